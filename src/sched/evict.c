/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/evict.h"

#include "sched/decide.h"
#include "sched/fit.h"
#include "sched/gate.h"
#include "sched/node.h"
#include "sched/place.h"
#include "sched/search.h"
#include "sched/shape.h"
#include "sched/task.h"
#include "sched/team.h"
#include "sched/trade.h"
#include "sched/units.h"
#include "sched/workload.h"

#define VICTIMS_FEW 256        /* tasks, beyond which no other order is tried */
#define PLACE_SEARCHES_MAX 128 /* nodes or domains looked at alone, in one turn */
#define SHALLOW 2              /* units of each leaf, at first: most requests need one victim */
#define SHALLOW_TAKES 4        /* victims that are tried of these */
#define MANY 1024              /* units, for one task of a large cluster */
#define LEAF_LOOKS_MAX 512     /* leaves looked through in vain, in one turn of a large cluster */
#define VAIN_MAX 32            /* nodes of a large cluster that one request looks at in vain */
#define WAYS_MAX 4             /* nodes of a large cluster that could make way, before one does */
#define WALK_MAX 1024          /* nodes that one request walks by */
#define ALONE 63               /* searches at nodes alone, after one through all teams was vain */

struct alternatives {
    struct sched *s;
    struct evicting *e;
    struct victims *best;
    bool found;
};

/* What one node or one domain alone would give: taken if it is cheaper, or the only way. False:
 * it gives nothing. */
static bool consider(struct alternatives *a, int level, uint32_t domain, const struct node *n)
{
    struct victims other = {0};
    units_collect_on(a->s, a->e, level, domain, n);
    bool way = search_victims(a->s, a->e, &other);
    if (way && (!a->found || victims_better(&other, a->best))) {
        struct victims former = *a->best;
        *a->best = other;
        other = former;
        a->found = true;
    }
    victims_done(&other);
    return way;
}

static bool budget_left(struct sched *s)
{
    return s->place_searches++ < PLACE_SEARCHES_MAX;
}

/* Could the node hold the task if all went that may? A first, cheap look. */
static bool could_clear(const struct alternatives *a, const struct node *n)
{
    const struct job_shape *job = a->e->w->group->job;
    if (n->tasks == NULL || !node_takes(n))
        return false;
    if (!job->uniform)
        return true;
    uint32_t idle = n->idle[VIEW_THEN], whole = shape_whole(job->tasks[0].shape);
    if (n->whole_count < whole || !fit_accepts(n, job->tasks[0].shape))
        return false; /* before its tasks are looked at: most nodes are of another kind */
    for (const struct task *t = n->tasks; t != NULL && idle < whole; t = t->next)
        if (t->phase == TASK_RUNNING && t->workload->in_running &&
            t->workload->group->team->gives == a->e->searches)
            idle += t->device_count;
    return idle >= whole;
}

/* In a large cluster from where the last look ended, and the cheapest of a few is enough. Where it
 * is cut short it goes on in the next turn; in a very large one at the next event. */
static void consider_nodes(struct alternatives *a)
{
    struct sched *s = a->s;
    size_t count = s->node_list.len;
    bool large = count > PLACE_SEARCHES_MAX;
    struct look look = large ? s->look : (struct look){0};
    unsigned ways = 0, vain = 0, walked = 0;
    for (; look.done < count && walked < WALK_MAX; look.done++, walked++) {
        const struct node *n = s->node_list.items[(look.from + look.done) % count];
        if (!could_clear(a, n))
            continue;
        if ((large && (ways == WAYS_MAX || vain == VAIN_MAX)) || !budget_left(s))
            break;
        bool way = consider(a, -1, 0, n);
        ways += way;
        vain += !way;
        s->place_searches -= large && way; /* only what was looked at in vain counts there */
    }
    if (look.done < count && ways == 0 && count <= WALK_MAX)
        s->search_denied = true;
    if (large) {
        s->look = look;
        a->e->w->group->job->look_from = (uint32_t)((look.from + look.done) % count);
    }
}

static void consider_domains(struct alternatives *a, int level)
{
    for (uint32_t d = 1; d <= a->s->domains.len; d++) {
        const struct node *member = NULL;
        for (size_t i = 0; i < a->s->node_list.len && member == NULL; i++)
            if (a->s->node_list.items[i]->domain[level] == d)
                member = a->s->node_list.items[i];
        if (member == NULL)
            continue;
        if (!budget_left(a->s))
            return;
        consider(a, level, d, NULL);
    }
}

/* The order finds victims wherever they are; where the request needs one node, or one domain,
 * another one may give way at a lower price, or the order may have spent a team's surplus over
 * its share where it does not help. One victim alone is never exchanged for another. */
static bool look_around(struct sched *s, struct evicting *e, struct victims *best, bool found)
{
    struct alternatives a = {s, e, best, found};
    const struct job_shape *job = e->w->group->job;
    int level = job->required != NULL ? node_level(s, job->required) : -1;
    if ((found && best->units < 2) || (!found && !e->cut))
        return found;
    if (level >= 0 && e->gang->total > 1)
        consider_domains(&a, level);
    else if (e->gang->total == 1)
        consider_nodes(&a);
    return a.found;
}

/* Does more of an elastic workload go than is surplus? Another of its tasks may be enough. */
static bool spends_core(const struct victims *plan)
{
    for (size_t i = 0; i < plan->list.len && plan->list.len <= VICTIMS_FEW; i++) {
        const struct workload *v = plan->list.items[i].w;
        const struct job_shape *job = v->group->job;
        uint32_t tasks = 0, surplus = gang_surplus(v);
        for (size_t k = i; job->min_tasks < job->task_count && k < plan->list.len; k++)
            tasks += plan->list.items[k].w == v;
        if (surplus > 0 && tasks > surplus)
            return true;
    }
    return false;
}

/* A task that several victims have to make way for: in a large cluster the order finds them
 * together on one node by chance only, after thousands. */
static bool clear_a_node(struct sched *s, struct evicting *e, struct victims *ret_plan)
{
    struct alternatives a = {s, e, ret_plan, false};
    if (s->node_list.len > PLACE_SEARCHES_MAX && e->gang->total == 1 && !e->gates_closed)
        consider_nodes(&a);
    return a.found;
}

/* Among the first units of each leaf. */
static bool search_shallow(struct sched *s, struct evicting *e, struct victims *ret_plan)
{
    units_collect(s, e, SHALLOW);
    e->takes = e->clipped ? SHALLOW_TAKES : 0;
    bool found = search_victims(s, e, ret_plan);
    e->takes = 0;
    return found;
}

/* So many could go that to consider all of them for one task takes too long: what is not found
 * near the surface, or on the nodes that are looked at, is looked for again at the next event. */
static bool has_many(const struct sched *s, const struct evicting *e)
{
    return s->node_list.len > PLACE_SEARCHES_MAX && e->gang->total == 1 && !e->gates_closed &&
           e->running > MANY;
}

/* Found or not, another order may do better. */
static bool search_further(struct sched *s, struct evicting *e, struct victims *plan, bool found)
{
    struct victims other = {0};
    if (search_out_of_order(s, e, found ? plan : NULL, &other)) {
        struct victims former = *plan;
        *plan = other;
        other = former;
        found = true;
    }
    victims_done(&other);
    return found;
}

/* In a large cluster most searches are vain, whichever team asks, and those through all teams take
 * longest: after one was vain, many more for the same shape look at nodes alone. */
static bool looks_alone(struct sched *s, struct evicting *e)
{
    struct job_shape *job = e->w->group->job;
    if (job->alone == 0 || job->alone_gen != s->all_gen || e->gang->total != 1)
        return false;
    for (const struct team *t = e->w->group->team; t->parent != NULL; t = t->parent)
        if (!gate_within_share(t, &e->need))
            return false; /* work of its own team would have to go, wherever it runs */
    units_mark(s, e);
    if (e->gates_closed)
        return false;
    job->alone--;
    return true;
}

bool evict_find(struct sched *s, struct workload *w, const struct gang *gang,
                const struct amounts *need, struct victims *ret_plan)
{
    struct evicting *e = s->evicting;
    e->w = w;
    e->gang = gang;
    e->need = *need;
    if (!units_worth(s, e))
        return false;
    if (s->node_list.len > PLACE_SEARCHES_MAX && s->leaf_looks > LEAF_LOOKS_MAX) {
        s->search_denied = true;
        return false;
    }
    e->leaf_looks = 0;
    e->searches++;
    e->no_reclaim = !e->may_reclaim;
    if (looks_alone(s, e)) {
        bool cleared = clear_a_node(s, e, ret_plan);
        units_forget(e);
        return cleared;
    }
    bool found = search_shallow(s, e, ret_plan), cleared = false, many = has_many(s, e);
    if (e->clipped && (!found || (e->ran_out && !many))) {
        found = cleared = clear_a_node(s, e, ret_plan);
        if (!cleared && !many) {
            units_collect(s, e, 0);
            found = search_victims(s, e, ret_plan);
        }
    }
    if (!cleared)
        found = look_around(s, e, ret_plan, found);
    if (!found && !e->no_reclaim) {
        e->no_reclaim = true;
        if (many) {
            found = search_shallow(s, e, ret_plan);
        } else {
            units_collect(s, e, 0);
            found = search_victims(s, e, ret_plan);
        }
        e->no_reclaim = false;
    }
    if (!many && (!found || spends_core(ret_plan)))
        found = search_further(s, e, ret_plan, found);
    units_forget(e);
    s->leaf_looks += found ? 0 : e->leaf_looks;
    w->group->job->alone = many && !found ? ALONE : 0;
    w->group->job->alone_gen = s->all_gen;
    return found;
}

static enum sched_cause main_cause(const struct victims *plan)
{
    enum sched_cause cause = SCHED_CAUSE_IDLE_ONLY;
    for (size_t i = 0; i < plan->list.len; i++) {
        if (plan->list.items[i].cause == SCHED_CAUSE_RECLAIM)
            return SCHED_CAUSE_RECLAIM;
        if (plan->list.items[i].cause == SCHED_CAUSE_PREEMPT)
            cause = SCHED_CAUSE_PREEMPT;
    }
    return cause;
}

/* With the victims imagined away and W placed: which of them go because of a guarantee? */
static void guard(struct sched *s, const struct workload *w, const struct gang *gang,
                  const struct victims *plan)
{
    struct amounts charge = place_charge(s);
    for (size_t i = 0; i < plan->list.len; i++) {
        const struct victim *v = &plan->list.items[i];
        struct team *mine, *theirs;
        if (v->cause != SCHED_CAUSE_RECLAIM)
            continue;
        team_part(w->group->team, v->w->group->team, &mine, &theirs);
        if (gate_within_guarantee(mine, &charge))
            trade_guard(s, v->w, w, gang->total);
    }
}

/* All that started of V in this turn, whichever tasks are to go: else one would start as another
 * stops. */
static bool take_back(struct sched *s, struct workload *v, const struct workload *w)
{
    bool any = false;
    for (uint32_t t = 0; v->started_turn == s->turn && t < v->group->job->task_count; t++)
        if (v->tasks[t].phase == TASK_RUNNING)
            any = decide_take_back(s, v, t, w->id) || any;
    if (any)
        workload_requeue(s, v);
    return any;
}

bool evict_take_back(struct sched *s, struct workload *w, const struct victims *plan)
{
    bool any = false;
    for (size_t i = 0; i < plan->list.len; i++) {
        const struct victim *v = &plan->list.items[i];
        if (!take_back(s, v->w, w))
            continue;
        any = true;
        if (v->cause == SCHED_CAUSE_RECLAIM)
            w->won_epoch = s->outside_epoch;
    }
    return any;
}

bool evict_carry_out(struct sched *s, struct workload *w, const struct gang *gang,
                     const struct victims *plan)
{
    victims_imagine(s, plan, -1);
    bool placed = place_gang(s, w->group->job, w, gang, MASK(VIEW_THEN));
    if (placed)
        guard(s, w, gang, plan);
    victims_imagine(s, plan, 1);
    if (!placed)
        return false;
    w->victims = 0;
    for (size_t i = 0; i < plan->list.len; i++) {
        const struct victim *v = &plan->list.items[i];
        struct eviction why = {.cause = v->cause, .behalf = w->id};
        if (v->cause == SCHED_CAUSE_RECLAIM)
            why.team = w->group->team->id;
        decide_evict(s, v->w, v->task, &why);
        w->victims++;
        if (i + 1 == plan->list.len || plan->list.items[i + 1].w != v->w)
            workload_requeue(s, v->w);
    }
    decide_hold_spots(s, w, main_cause(plan));
    return true;
}
