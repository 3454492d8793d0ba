/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/search.h"

#include "base/qty.h"
#include "sched/decide.h"
#include "sched/fit.h"
#include "sched/gate.h"
#include "sched/node.h"
#include "sched/order.h"
#include "sched/place.h"
#include "sched/task.h"
#include "sched/team.h"
#include "sched/types.h"
#include "sched/trade.h"

#define UNITS_FEW 12 /* as many are tried out of order */
#define SETS_MAX 96  /* tried out of order in one turn */

/* ---- trials ------------------------------------------------------------------------------ */

/* Is T above BOUND in a resource that the request needs and the unit holds? GPUs decide where
 * both have them: nobody loses a GPU for being over its share of memory. */
static bool above(const struct team *t, const struct amounts *bound, const struct amounts *need,
                  const struct amounts *unit)
{
    int last = need->v[SCHED_GPU_MILLI] > 0 && unit->v[SCHED_GPU_MILLI] > 0 ? SCHED_GPU_MILLI
                                                                            : SCHED_RESOURCES - 1;
    for (int r = 0; r <= last; r++)
        if (need->v[r] > 0 && unit->v[r] > 0 &&
            t->used[VIEW_THEN].v[r] - t->moving.v[r] > bound->v[r])
            return true;
    return false;
}

/* Does its team keep what the unit has of some GPU type? */
static bool type_keeps(const struct team *t, const struct unit *u)
{
    if (t->types.len == 0)
        return false;
    for (uint32_t k = 0; k < u->w->group->job->task_count; k++) {
        const struct task *task = &u->w->tasks[k];
        if (task->phase == TASK_RUNNING && task->gpu_milli > 0 && (u->task < 0 || u->task == k) &&
            types_keeps(t, task->node->gpu_type))
            return true;
    }
    return false;
}

/* A GPU type that the unit has some of, the requester could use, and its team has a guarantee of.
 */
static const char *type_entitled(const struct evicting *e, const struct team *mine,
                                 const struct unit *u)
{
    int64_t need = e->need.v[SCHED_GPU_MILLI];
    if (need <= 0 || !types_entitled(mine, NULL, need))
        return NULL;
    for (uint32_t k = 0; k < u->w->group->job->task_count; k++) {
        const struct task *task = &u->w->tasks[k];
        if (task->phase == TASK_RUNNING && task->gpu_milli > 0 && (u->task < 0 || u->task == k) &&
            types_entitled(mine, task->node->gpu_type, need))
            return task->node->gpu_type;
    }
    return NULL;
}

/* May the unit go, as things stand? */
static bool unit_may_go(struct sched *s, const struct evicting *e, struct unit *u)
{
    u->by_guarantee = false;
    u->by_type = NULL;
    if (u->cause == SCHED_CAUSE_PREEMPT || u->leaf == e->w->group->team)
        return true;
    struct team *mine, *theirs;
    team_part(e->w->group->team, u->leaf, &mine, &theirs);
    struct amounts guarantee;
    for (int r = 0; r < SCHED_RESOURCES; r++)
        guarantee.v[r] = theirs->guarantee[r];
    if (type_keeps(theirs, u))
        return false;
    struct amounts charge = unit_charge(u);
    if (u->cause == SCHED_CAUSE_IDLE_ONLY)
        return above(theirs, &guarantee, &e->need, &charge);
    /* Won since the last outside event: nothing has changed that could make it unjust. */
    if (u->w->won_epoch == s->outside_epoch) {
        trade_passed(s);
        return false;
    }
    bool gpus = e->need.v[SCHED_GPU_MILLI] > 0 && charge.v[SCHED_GPU_MILLI] > 0;
    if (above(theirs, &theirs->share, &e->need, &charge) && !trade_is_guarded(s, u->w, e->w, gpus))
        return true;
    u->by_guarantee =
        above(theirs, &guarantee, &e->need, &charge) && gate_within_guarantee(mine, &e->need);
    u->by_type = u->by_guarantee ? NULL : type_entitled(e, mine, u);
    return u->by_guarantee || u->by_type != NULL;
}

static bool within_share(const struct evicting *e, const struct amounts *charge)
{
    for (const struct team *t = e->w->group->team; t->parent != NULL; t = t->parent)
        if (!gate_within_share(t, charge))
            return false;
    return true;
}

/* Would the request start with the taken units gone? */
static bool feasible(struct sched *s, struct evicting *e)
{
    bool reclaims = false;
    for (size_t i = 0; i < e->taken.len; i++) {
        const struct unit *u = &e->units.items[e->taken.items[i]];
        if (!u->out)
            continue;
        reclaims = reclaims || u->cause == SCHED_CAUSE_RECLAIM;
        struct team *mine, *theirs;
        if (!u->by_guarantee && u->by_type == NULL)
            continue;
        team_part(e->w->group->team, u->leaf, &mine, &theirs);
        if (u->by_guarantee && !gate_within_guarantee(mine, &e->need))
            return false;
        if (u->by_type != NULL && !types_entitled(mine, u->by_type, e->need.v[SCHED_GPU_MILLI]))
            return false;
    }
    if (!gate_open(e->w->group, &e->need, MASK(VIEW_THEN), NULL))
        return false;
    if (reclaims && !within_share(e, &e->need))
        return false;
    if (!place_within_gates(s, e->w, e->gang, MASK(VIEW_THEN)))
        return false;
    struct amounts charge = place_charge(s);
    return !reclaims || within_share(e, &charge);
}

/* ---- the next victim --------------------------------------------------------------------- */

static struct unit *next_of_leaf(struct sched *s, struct evicting *e, struct team *t, uint8_t cause)
{
    struct unit *units = e->units.items + t->first_unit;
    while (t->next_unit < t->unit_count && (units[t->next_unit].out || units[t->next_unit].skipped))
        t->next_unit++;
    for (uint32_t i = t->next_unit; i < t->unit_count; i++) {
        struct unit *u = &units[i];
        if (u->out || u->skipped || u->cause != cause || (e->surplus_only && u->task < 0))
            continue;
        if (unit_may_go(s, e, u))
            return u;
        u->skipped = true;
    }
    units_ran_out(s, e, t, (enum sched_cause)cause);
    return NULL;
}

static struct unit *last_in(struct sched *s, struct evicting *e, struct team *t, uint8_t cause)
{
    if (team_is_leaf(t))
        return next_of_leaf(s, e, t, cause);
    struct unit *last = NULL;
    struct order_key last_key;
    for (size_t i = 0; i < t->children.len; i++) {
        struct team *c = t->children.items[i];
        struct unit *u = c->units_below == 0 ? NULL : last_in(s, e, c, cause);
        if (u == NULL)
            continue;
        struct amounts charge = unit_charge(u);
        struct order_key key = order_key(c, &charge, true);
        if (last == NULL || order_before(&last_key, &key)) {
            last = u;
            last_key = key;
        }
    }
    return last;
}

static struct unit *next_victim(struct sched *s, struct evicting *e)
{
    static const uint8_t causes[] = {SCHED_CAUSE_IDLE_ONLY, SCHED_CAUSE_RECLAIM,
                                     SCHED_CAUSE_PREEMPT};
    for (size_t i = 0; i < sizeof(causes); i++) {
        if (causes[i] == SCHED_CAUSE_RECLAIM && e->no_reclaim)
            continue;
        struct unit *u = last_in(s, e, &s->root, causes[i]);
        if (u != NULL)
            return u;
    }
    return NULL;
}

/* ---- the search -------------------------------------------------------------------------- */

static void take(struct sched *s, struct evicting *e, struct unit *u)
{
    unit_imagine(s, u, true);
    uint32_t index = (uint32_t)(u - e->units.items);
    vec_push(&e->taken, index);
}

static struct unit *taken_at(struct evicting *e, size_t i)
{
    return &e->units.items[e->taken.items[i]];
}

static void rewind_leaves(struct evicting *e)
{
    for (size_t i = 0; i < e->leaves.len; i++)
        e->leaves.items[i]->next_unit = 0;
}

static void give_back_all(struct sched *s, struct evicting *e)
{
    for (size_t i = e->taken.len; i-- > 0;)
        if (taken_at(e, i)->out)
            unit_imagine(s, taken_at(e, i), false);
    vec_clear(&e->taken);
    rewind_leaves(e);
    for (size_t i = 0; i < e->units.len; i++)
        e->units.items[i].skipped = false;
}

static bool unskip(struct evicting *e)
{
    rewind_leaves(e);
    bool any = false;
    for (size_t i = 0; i < e->units.len; i++) {
        any = any || e->units.items[i].skipped;
        e->units.items[i].skipped = false;
    }
    return any;
}

/* Takes units in order until the request fits; trials at 1, 2, 4, ... and at the end. RET_BELOW:
 * that many were not enough. */
static bool take_enough(struct sched *s, struct evicting *e, size_t *ret_below)
{
    size_t next_trial = 1, tried = 0, at_unskip = 0;
    *ret_below = 0;
    for (;;) {
        struct unit *u = next_victim(s, e);
        if (u == NULL && e->taken.len > at_unskip && unskip(e)) {
            at_unskip = e->taken.len; /* what went may have made others eligible */
            continue;
        }
        if (u != NULL)
            take(s, e, u);
        if (u != NULL && e->taken.len < next_trial)
            continue;
        if (e->taken.len == tried)
            return false;
        if (feasible(s, e))
            return true;
        *ret_below = tried = e->taken.len;
        next_trial = 2 * e->taken.len;
        if (u == NULL || (e->takes > 0 && tried >= e->takes))
            return false;
    }
}

/* Keeps exactly the first COUNT of the taken units out. */
static void keep_out(struct sched *s, struct evicting *e, size_t count)
{
    for (size_t i = e->taken.len; i-- > count;)
        if (taken_at(e, i)->out)
            unit_imagine(s, taken_at(e, i), false);
    for (size_t i = 0; i < count; i++)
        if (!taken_at(e, i)->out)
            unit_imagine(s, taken_at(e, i), true);
}

/* The shortest prefix that is enough; more than BELOW, at most all. */
static void shorten(struct sched *s, struct evicting *e, size_t below)
{
    size_t enough = e->taken.len;
    while (below + 1 < enough) {
        size_t mid = below + (enough - below) / 2;
        keep_out(s, e, mid);
        if (feasible(s, e))
            enough = mid;
        else
            below = mid;
    }
    keep_out(s, e, enough);
    e->taken.len = enough;
}

/* Is the core of this surplus unit's workload out as well? */
static bool core_is_out(struct evicting *e, const struct unit *surplus)
{
    for (size_t i = 0; i < e->taken.len; i++)
        if (taken_at(e, i)->w == surplus->w && taken_at(e, i)->task < 0 && taken_at(e, i)->out)
            return true;
    return false;
}

/* Gives back what is not needed, the most valuable first. */
static void minimise(struct sched *s, struct evicting *e)
{
    for (size_t i = e->taken.len; i-- > 0;) {
        struct unit *u = taken_at(e, i);
        if (u->task >= 0 && core_is_out(e, u))
            continue;
        unit_imagine(s, u, false);
        if (!feasible(s, e))
            unit_imagine(s, u, true);
    }
    size_t kept = 0;
    for (size_t i = 0; i < e->taken.len; i++)
        if (taken_at(e, i)->out)
            e->taken.items[kept++] = e->taken.items[i];
    e->taken.len = kept;
}

static bool fits_on(struct sched *s, const struct job_shape *job, const struct node *n)
{
    struct fit f;
    for (uint32_t t = 0; t < (job->uniform ? 1 : job->task_count); t++) {
        const struct shape *shape = job_task(job, t)->shape;
        if (fit_accepts(n, shape) && fit_node(n, shape, MASK(VIEW_THEN), s->placing->trial, &f))
            return true;
    }
    return false;
}

/* Does any of it fit on a node that a candidate would leave? Without them it has no place. */
static bool relieved(struct sched *s, const struct evicting *e)
{
    const struct node *last = NULL;
    for (size_t i = 0; i < e->units.len; i++) {
        const struct workload *v = e->units.items[i].w;
        for (uint32_t t = 0; t < v->group->job->task_count; t++) {
            const struct node *n = v->tasks[t].node;
            if (v->tasks[t].imagined == 0 || n == last || !node_takes(n))
                continue;
            last = n;
            if (fits_on(s, e->w->group->job, n))
                return true;
        }
    }
    return false;
}

/* Would it fit if all candidates went, whatever their order? Most searches end here. */
static bool hopeless(struct sched *s, struct evicting *e)
{
    for (size_t i = 0; i < e->units.len; i++) {
        struct unit *u = &e->units.items[i];
        if (!e->surplus_only || u->task >= 0)
            unit_imagine(s, u, true);
    }
    bool fits = gate_open(e->w->group, &e->need, MASK(VIEW_THEN), NULL) &&
                (e->gates_closed || relieved(s, e)) &&
                place_gang(s, e->w->group->job, e->w, e->gang, MASK(VIEW_THEN));
    for (size_t i = e->units.len; i-- > 0;)
        if (e->units.items[i].out)
            unit_imagine(s, &e->units.items[i], false);
    return !fits;
}

static bool search(struct sched *s, struct evicting *e)
{
    size_t below;
    if (e->takes == 0 && hopeless(s, e))
        return false;
    if (take_enough(s, e, &below)) {
        shorten(s, e, below);
        minimise(s, e);
        return true;
    }
    give_back_all(s, e);
    return false;
}

/* Is there an elastic core among the taken? Idle-only ones are first victims anyhow. */
static bool takes_elastic_core(struct evicting *e)
{
    for (size_t i = 0; i < e->taken.len; i++) {
        const struct unit *u = taken_at(e, i);
        const struct job_shape *job = u->w->group->job;
        if (u->task < 0 && u->cause != SCHED_CAUSE_IDLE_ONLY && job->min_tasks < job->task_count)
            return true;
    }
    return false;
}

/* Writes down what is taken, task by task, and gives it back. */
static void note_plan(struct sched *s, struct evicting *e, struct victims *plan)
{
    victims_clear(plan);
    for (size_t i = 0; i < e->taken.len; i++) {
        const struct unit *u = taken_at(e, i);
        uint8_t mark = unit_mark(u);
        for (uint32_t t = 0; t < u->w->group->job->task_count; t++) {
            const struct task *task = &u->w->tasks[t];
            if (task->phase == TASK_RUNNING && task->imagined == mark &&
                (u->task < 0 || u->task == t))
                victims_add(s, plan, u->w, t, (enum sched_cause)u->cause);
        }
        plan->units++;
    }
    give_back_all(s, e);
}

bool search_victims(struct sched *s, struct evicting *e, struct victims *ret_plan)
{
    e->surplus_only = false;
    if (e->units.len == 0 || !search(s, e))
        return false;
    bool core = takes_elastic_core(e);
    note_plan(s, e, ret_plan);
    if (!core)
        return true;
    e->surplus_only = true;
    if (search(s, e))
        note_plan(s, e, ret_plan);
    e->surplus_only = false;
    return true;
}

/* ---- out of order ------------------------------------------------------------------------ */

static uint32_t unit_group(const struct unit *u)
{
    return u->task < 0 ? 0 : job_task(u->w->group->job, (uint32_t)u->task)->group;
}

/* Those of one team keep their order, of an elastic workload no more goes than is surplus, and its
 * core only after that. */
static bool out_of_turn(const struct evicting *e, const struct unit *u)
{
    uint32_t out = 0, offered = 0, in_group = 0;
    uint32_t may = gang_surplus(u->w), budget = units_budget(u->w);
    for (size_t i = 0; i < e->units.len; i++) {
        const struct unit *other = &e->units.items[i];
        if (other->out && other->leaf == u->leaf && other > u)
            return true;
        if (other->w != u->w || other->task < 0)
            continue;
        offered++;
        out += other->out;
        in_group += other->out && unit_group(other) == unit_group(u);
    }
    may = may < budget ? may : budget;
    if (u->task < 0)
        return out < may && out < offered;
    return out >= may || in_group >= gang_group_spare(u->w, unit_group(u));
}

/* Of its tasks that are out with it; see decide_price_ms(). */
static int64_t unit_price_ms(const struct sched *s, const struct unit *u)
{
    int64_t sum = 0;
    for (uint32_t t = 0; t < u->w->group->job->task_count; t++)
        if (u->w->tasks[t].phase == TASK_RUNNING && (u->task < 0 || u->task == t))
            sum = qty_add_sat(sum, decide_price_ms(s, u->w, t));
    return sum;
}

/* Fewer tasks than PLAN (NULL: any are), neither dearer nor more valuable. */
static bool spares(const struct sched *s, struct evicting *e, const struct victims *plan)
{
    size_t tasks = 0;
    int64_t price_ms = 0;
    if (plan == NULL)
        return true;
    for (size_t i = 0; i < e->taken.len; i++) {
        const struct unit *u = taken_at(e, i);
        if (u->w->group->class_ < plan->class_)
            return false;
        tasks += u->task >= 0 ? 1 : u->w->count[TASK_RUNNING];
        price_ms = qty_add_sat(price_ms, unit_price_ms(s, u));
    }
    return tasks < plan->list.len && price_ms <= plan->price_ms;
}

/* Takes SIZE more units, any that may go, so that all that are out are enough. */
static bool take_any(struct sched *s, struct evicting *e, size_t size, const struct victims *plan)
{
    if (size == 0)
        return spares(s, e, plan) && s->set_searches++ < SETS_MAX && feasible(s, e);
    for (size_t i = 0; i < e->units.len; i++) {
        struct unit *u = &e->units.items[i];
        if (u->out || out_of_turn(e, u) || !unit_may_go(s, e, u))
            continue;
        take(s, e, u);
        if (take_any(s, e, size - 1, plan))
            return true;
        unit_imagine(s, u, false);
        e->taken.len--;
    }
    return false;
}

bool search_out_of_order(struct sched *s, struct evicting *e, const struct victims *than,
                         struct victims *ret_plan)
{
    bool found = false;
    e->surplus_only = false;
    units_collect_all(s, e, UNITS_FEW + 1);
    if (e->units.len < 2 || e->units.len > UNITS_FEW || hopeless(s, e))
        return false;
    for (size_t size = 1; size <= e->units.len && s->set_searches < SETS_MAX && !found; size++)
        found = take_any(s, e, size, than);
    if (!found)
        return false;
    minimise(s, e);
    note_plan(s, e, ret_plan);
    return true;
}
