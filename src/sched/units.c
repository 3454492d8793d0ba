/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/units.h"

#include <stdlib.h>

#include "base/qty.h"
#include "sched/fit.h"
#include "sched/gate.h"
#include "sched/node.h"
#include "sched/task.h"
#include "sched/team.h"
#include "sched/trade.h"
#include "sched/tree.h"
#include "sched/types.h"
#include "sched/wake.h"

#define running_entry(n) tree_entry(n, struct workload, run)

#define LOOKS_A_UNIT 2 /* workloads looked at for each unit that is asked for */

enum { IMAGINED_NOT, IMAGINED_SURPLUS, IMAGINED_CORE };

struct evicting *evicting_new(void)
{
    return mem_new(1, sizeof(struct evicting));
}

void evicting_free(struct evicting *e)
{
    if (e == NULL)
        return;
    vec_done(&e->units);
    vec_done(&e->taken);
    vec_done(&e->leaves);
    vec_done(&e->found);
    vec_done(&e->passed);
    free(e);
}

struct amounts unit_charge(const struct unit *u)
{
    if (u->task >= 0)
        return task_charge(u->w, (uint32_t)u->task);
    struct amounts sum = {0};
    for (uint32_t t = 0; t < u->w->group->job->task_count; t++) {
        const struct task *task = &u->w->tasks[t];
        bool own = u->out ? task->imagined == IMAGINED_CORE : task->imagined == IMAGINED_NOT;
        if (task->phase != TASK_RUNNING || !own)
            continue;
        struct amounts charge = task_charge(u->w, t);
        amounts_add(&sum, &charge, 1);
    }
    return sum;
}

uint8_t unit_mark(const struct unit *u)
{
    return u->task >= 0 ? IMAGINED_SURPLUS : IMAGINED_CORE;
}

static void task_out(struct sched *s, struct workload *w, uint32_t t, uint8_t mark, bool out)
{
    struct task *task = &w->tasks[t];
    if (task->phase != TASK_RUNNING || task->imagined != (out ? IMAGINED_NOT : mark))
        return;
    task->imagined = out ? mark : IMAGINED_NOT;
    task_imagine(s, w, t, out ? -1 : 1);
}

void unit_imagine(struct sched *s, struct unit *u, bool out)
{
    u->out = out;
    if (u->task >= 0) {
        task_out(s, u->w, (uint32_t)u->task, IMAGINED_SURPLUS, out);
        return;
    }
    for (uint32_t t = 0; t < u->w->group->job->task_count; t++)
        task_out(s, u->w, t, IMAGINED_CORE, out);
}

/* ---- rights ------------------------------------------------------------------------------ */

bool units_strictly_lower(const struct group *g, const struct group *than)
{
    if (g->class_ != than->class_)
        return g->class_ > than->class_;
    return g->priority < than->priority;
}

/* By what right could the requester evict work of group G; SCHED_CAUSES = none. */
static uint8_t right_over(const struct sched *s, const struct evicting *e, const struct group *g)
{
    const struct group *me = e->w->group;
    if (group_idle(s, me))
        return SCHED_CAUSES;
    if (group_idle(s, g))
        return SCHED_CAUSE_IDLE_ONLY;
    if (g->team != me->team)
        return e->no_reclaim ? SCHED_CAUSES : SCHED_CAUSE_RECLAIM;
    return group_rule(s, me)->may_preempt && units_strictly_lower(g, me) ? SCHED_CAUSE_PREEMPT
                                                                         : SCHED_CAUSES;
}

/* Running work of the own leaf that is strictly lower, in sum; and whether there is any. */
static bool own_lower(const struct sched *s, const struct evicting *e, struct amounts *ret_sum)
{
    const struct team *t = e->w->group->team;
    *ret_sum = (struct amounts){0};
    uint32_t size = tree_size(t->running), found = 0;
    for (uint32_t i = size; i-- > 0 && found < UNITS_MAX; found++) {
        const struct workload *v = running_entry(tree_at(t->running, i));
        if (right_over(s, e, v->group) == SCHED_CAUSES)
            break;
        for (uint32_t k = 0; k < v->group->job->task_count; k++) {
            if (v->tasks[k].phase != TASK_RUNNING)
                continue;
            struct amounts charge = task_charge(v, k);
            amounts_add(ret_sum, &charge, 1);
        }
    }
    return found > 0;
}

bool units_may_exist(const struct sched *s, const struct group *g, const struct amounts *need)
{
    if (group_idle(s, g))
        return false;
    if (s->root.idle_running > 0)
        return true;
    const struct team *t = g->team;
    uint32_t size = tree_size(t->running);
    if (size > 0 && group_rule(s, g)->may_preempt &&
        units_strictly_lower(running_entry(tree_at(t->running, size - 1))->group, g))
        return true;
    return group_rule(s, g)->may_reclaim && gate_within_share(t, need);
}

bool units_worth(struct sched *s, struct evicting *e)
{
    const struct group *me = e->w->group;
    if (group_idle(s, me))
        return false;
    e->no_reclaim = true;
    bool preempts = own_lower(s, e, &e->lower);
    e->may_reclaim = group_rule(s, me)->may_reclaim;
    for (int r = 0; r < SCHED_RESOURCES && e->may_reclaim; r++) {
        int64_t after = me->team->used[VIEW_THEN].v[r] - e->lower.v[r] + e->need.v[r];
        e->may_reclaim = e->need.v[r] == 0 || after <= me->team->share.v[r];
    }
    return preempts || e->may_reclaim || s->root.idle_running > 0;
}

/* ---- collecting -------------------------------------------------------------------------- */

static int64_t protected_until(const struct sched *s, const struct workload *v)
{
    int64_t min_run = v->group->job->min_run_ms;
    min_run = min_run > s->config.min_run_ms ? min_run : s->config.min_run_ms;
    int64_t until = 0;
    for (uint32_t t = 0; min_run > 0 && t < v->group->job->task_count; t++) {
        int64_t end = qty_add_sat(v->tasks[t].since_ms, min_run);
        if (v->tasks[t].phase == TASK_RUNNING && end > until)
            until = end;
    }
    return until;
}

static bool node_may_help(const struct evicting *e, const struct node *n)
{
    if (!node_takes(n))
        return false;
    const struct job_shape *job = e->w->group->job;
    for (uint32_t t = 0; t < (job->uniform ? 1 : job->task_count); t++)
        if (fit_accepts(n, job_task(job, t)->shape))
            return true;
    return false;
}

/* Does it bring a team of the requester's back within its bounds if work of T goes, wherever that
 * runs? */
static bool eases(const struct evicting *e, const struct team *t)
{
    while (e->beyond != NULL && t != NULL && t != e->beyond)
        t = t->parent;
    return e->beyond != NULL && t != NULL;
}

/* A start that was told stands until something comes from outside. Where many wait the searches
 * take several turns, and it does not. */
static bool start_stands(struct sched *s, const struct task *t)
{
    const struct workload *v = t->workload;
    if (v->placed_epoch != s->outside_epoch || t->since_ms < v->placed_ms ||
        v->started_turn == s->turn || !wake_few(s))
        return false;
    trade_passed(s);
    return true;
}

/* Could it help that this task alone goes, and may it? */
static bool task_may_go(struct sched *s, const struct evicting *e, const struct task *t)
{
    if (start_stands(s, t))
        return false;
    return e->gates_closed || eases(e, t->workload->group->team) ||
           ((e->at == NULL || t->node == e->at) && node_may_help(e, t->node));
}

/* Could it help that V goes? */
static bool may_help(const struct evicting *e, const struct workload *v)
{
    if (e->gates_closed || eases(e, v->group->team))
        return true;
    for (uint32_t t = 0; t < v->group->job->task_count; t++)
        if (v->tasks[t].phase == TASK_RUNNING && node_may_help(e, v->tasks[t].node))
            return true;
    return false;
}

bool units_may_leave(struct sched *s, const struct workload *v, const struct workload *w)
{
    if (v->count[TASK_HELD] > 0 || trade_is_closed(s, v, w))
        return false;
    if (v->started_turn == s->turn && (v->stands || v->started_at < s->evicted_at)) {
        s->wake_soon = s->put_off = true;
        return false;
    }
    int64_t until = protected_until(s, v);
    if (until <= s->now_ms)
        return true;
    if (until < s->protected_until_ms)
        s->protected_until_ms = until;
    return false;
}

uint32_t units_budget(const struct workload *v)
{
    const struct job_shape *job = v->group->job;
    if (job->max_unavailable == 0)
        return UINT32_MAX;
    uint32_t wanted = job->task_count - v->count[TASK_DONE] - v->count[TASK_ENDING];
    uint32_t out = wanted - (v->count[TASK_RUNNING] - v->lost);
    return out < job->max_unavailable ? job->max_unavailable - out : 0;
}

static bool may_go(struct sched *s, const struct evicting *e, const struct workload *v)
{
    return v != e->w && may_help(e, v) && units_budget(v) > 0 && units_may_leave(s, v, e->w);
}

/* May all that runs of V go at once? */
static bool core_may_go(struct sched *s, const struct workload *v)
{
    for (uint32_t t = 0; v->placed_epoch == s->outside_epoch && t < v->group->job->task_count; t++)
        if (v->tasks[t].phase == TASK_RUNNING && start_stands(s, &v->tasks[t]))
            return false;
    return v->count[TASK_RUNNING] <= units_budget(v);
}

static bool same_band(const struct workload *a, const struct workload *b)
{
    return a->group->class_ == b->group->class_ && a->group->priority == b->group->priority;
}

static void unit_add(struct evicting *e, struct workload *v, int64_t task, uint32_t round,
                     uint8_t cause)
{
    struct unit *u = vec_add(&e->units);
    u->w = v;
    u->leaf = v->group->team;
    u->task = task;
    u->round = round;
    u->cause = cause;
}

/* All tasks of V that could be given up, whichever: the search sees to it that it is no more than
 * the surplus. */
static void spare_add(struct sched *s, struct evicting *e, struct workload *v, uint8_t cause)
{
    const struct job_shape *job = v->group->job;
    uint32_t surplus = units_budget(v) > 0 ? gang_surplus(v) : 0;
    for (uint32_t k = job->task_count; surplus > 0 && k-- > 0;) {
        uint32_t t = job->order != NULL ? job->order[k] : k;
        if (v->tasks[t].phase == TASK_RUNNING && task_may_go(s, e, &v->tasks[t]) &&
            gang_group_spare(v, job_task(job, t)->group) > 0)
            unit_add(e, v, t, surplus, cause);
    }
}

/* The surplus tasks of V, in the order in which it gives them up, but for those whose going would
 * not help: on any of its nodes it has as many to spare. */
static void surplus_add(struct sched *s, struct evicting *e, struct workload *v, uint8_t cause)
{
    uint32_t t, round = gang_surplus(v), left = units_budget(v);
    size_t first = e->units.len;
    e->cut = e->cut || left < round || round < v->count[TASK_RUNNING];
    vec_clear(&e->passed);
    while (round > 0 && left > 0 && gang_surplus_task(v, &t)) {
        v->tasks[t].phase = TASK_PENDING; /* so that the next one is found */
        if (!task_may_go(s, e, &v->tasks[t])) {
            vec_push(&e->passed, t); /* what can be spared is for those that help */
            continue;
        }
        unit_add(e, v, t, round, cause);
        v->count[TASK_RUNNING]--;
        round--;
        left--;
    }
    for (size_t i = first; i < e->units.len; i++) {
        v->tasks[e->units.items[i].task].phase = TASK_RUNNING;
        v->count[TASK_RUNNING]++;
    }
    for (size_t i = 0; i < e->passed.len; i++)
        v->tasks[e->passed.items[i]].phase = TASK_RUNNING;
}

/* Who has most surplus gives first; among equals the order of collection, youngest first. */
static void surplus_sort(struct evicting *e, size_t first)
{
    for (size_t i = first + 1; i < e->units.len; i++) {
        struct unit u = e->units.items[i];
        size_t k = i;
        for (; k > first && e->units.items[k - 1].round < u.round; k--)
            e->units.items[k] = e->units.items[k - 1];
        e->units.items[k] = u;
    }
}

/* Has the leaf nothing more to give, once what was collected has gone? Only units that would go
 * while its branch is above its bound count (LEFT is what it is above by). */
static bool exhausted(const struct evicting *e, const struct amounts *left)
{
    for (int r = 0; r < SCHED_RESOURCES; r++)
        if (e->need.v[r] > 0 && left->v[r] > 0)
            return false;
    return true;
}

static void core_add(struct evicting *e, struct workload *v, uint8_t cause, struct amounts *left)
{
    unit_add(e, v, -1, 0, cause);
    for (int r = 0; r < SCHED_RESOURCES; r++)
        if (left->v[r] == SCHED_UNLIMITED)
            return;
    struct amounts charge = unit_charge(&e->units.items[e->units.len - 1]);
    amounts_add(left, &charge, -1);
}

/* Is a class that comes before this one idle-only? Not by default. */
static bool idle_above(const struct sched *s, enum sched_class class_)
{
    for (int c = 0; c < (int)class_; c++)
        if (s->config.classes[c].idle_only)
            return true;
    return false;
}

/* So many units of the leaf are collected as were asked for. Not where surplus tasks of several
 * workloads come in an order of their own. */
static bool deep_enough(const struct evicting *e, const struct team *t)
{
    return e->depth > 0 && t->elastic_running == 0 &&
           (e->units.len - t->first_unit >= e->depth || e->looked >= e->depth * LOOKS_A_UNIT);
}

/* All of one class and priority, from index LAST down; returns the index below them. */
static uint32_t band_collect(struct sched *s, struct evicting *e, const struct team *t,
                             uint32_t last, struct amounts *left)
{
    struct workload *head = running_entry(tree_at(t->running, last));
    uint8_t cause = right_over(s, e, head->group);
    uint32_t end = last;
    size_t first = e->units.len;
    if (cause == SCHED_CAUSES && !idle_above(s, head->group->class_))
        return 0; /* nor over anything that comes before it */
    for (int cores = t->elastic_running > 0 ? 0 : 1; cores < 2; cores++) {
        end = last + 1;
        while (end > 0 && (!cores || !exhausted(e, left)) && !deep_enough(e, t)) {
            struct workload *v = running_entry(tree_at(t->running, end - 1));
            if (!same_band(v, head))
                break;
            end--;
            e->looked++;
            if (cause == SCHED_CAUSES || e->units.len >= e->most || !may_go(s, e, v))
                continue;
            if (cores && core_may_go(s, v))
                core_add(e, v, cause, left);
            else if (!cores && v->group->job->min_tasks < v->group->job->task_count && e->uncut)
                spare_add(s, e, v, cause);
            else if (!cores && v->group->job->min_tasks < v->group->job->task_count)
                surplus_add(s, e, v, cause);
        }
        if (!cores)
            surplus_sort(e, first);
    }
    return end;
}

static void leaf_done(struct evicting *e, struct team *t)
{
    t->unit_count = (uint32_t)e->units.len - t->first_unit;
    t->units_below = t->unit_count;
    t->next_unit = 0;
    if (t->unit_count > 0)
        vec_push(&e->leaves, t);
}

static void leaf_collect(struct sched *s, struct evicting *e, struct team *t, struct amounts left)
{
    t->first_unit = (uint32_t)e->units.len;
    t->gives = e->searches;
    if (e->most == 0)
        return;
    uint32_t end = tree_size(t->running);
    e->running += end;
    e->leaf_looks++;
    e->looked = 0;
    while (end > 0 && e->units.len < e->most && !exhausted(e, &left) && !deep_enough(e, t))
        end = band_collect(s, e, t, end - 1, &left);
    e->cut = e->cut || exhausted(e, &left);
    t->clipped = end > 0 && !exhausted(e, &left) && deep_enough(e, t);
    e->clipped = e->clipped || t->clipped;
    e->ran_out = e->ran_out || (t->clipped && e->units.len == t->first_unit);
    leaf_done(e, t);
}

/* Once lower work of its own has gone: the second clause of reclaim may be open then. */
static bool could_end_within_guarantee(const struct evicting *e, const struct team *mine)
{
    for (int r = 0; r < SCHED_RESOURCES; r++) {
        int64_t after = mine->used[VIEW_THEN].v[r] - e->lower.v[r] + e->need.v[r];
        if (e->need.v[r] > 0 && mine->guarantee[r] != SCHED_UNLIMITED && after > mine->guarantee[r])
            return false;
    }
    return true;
}

/* Could it end within a guarantee of some GPU type, likewise? */
static bool could_end_within_type(const struct evicting *e, const struct team *mine)
{
    int64_t need = e->need.v[SCHED_GPU_MILLI];
    return need > 0 && types_entitled(mine, NULL, need - e->lower.v[SCHED_GPU_MILLI]);
}

/* By how much is a branch beside the requester's path above what it may keep: its fair share, or
 * its guarantee where the second clause of reclaim or idle-only work is in question. For what it
 * has of a GPU type that the requester has a guarantee of, neither counts. */
static struct amounts branch_excess(const struct evicting *e, const struct team *t,
                                    const struct team *mine)
{
    struct amounts excess = {0};
    bool keeps_guarantee = t->idle_running > 0 || could_end_within_guarantee(e, mine);
    for (int r = 0; r < SCHED_RESOURCES; r++) {
        int64_t used = t->used[VIEW_THEN].v[r], share = t->share.v[r], keep = t->guarantee[r];
        if (!keeps_guarantee || keep > share)
            keep = share;
        excess.v[r] = used > keep ? used - keep : 0;
    }
    if (could_end_within_type(e, mine))
        excess.v[SCHED_GPU_MILLI] = t->used[VIEW_THEN].v[SCHED_GPU_MILLI];
    return excess;
}

static bool on_path(const struct evicting *e, const struct team *t)
{
    const struct team *p = e->w->group->team;
    while (p != NULL && p != t)
        p = p->parent;
    return p != NULL;
}

static const struct team *path_child(const struct evicting *e, const struct team *t)
{
    const struct team *p = e->w->group->team;
    while (p->parent != t)
        p = p->parent;
    return p;
}

static void collect_in(struct sched *s, struct evicting *e, struct team *t, struct amounts left)
{
    if (team_is_leaf(t)) {
        leaf_collect(s, e, t, left);
        return;
    }
    bool path = on_path(e, t);
    for (size_t i = 0; i < t->children.len; i++) {
        struct team *c = t->children.items[i];
        struct amounts part = left;
        if (path && !on_path(e, c)) {
            if (e->no_reclaim && c->idle_running == 0)
                continue;
            part = branch_excess(e, c, path_child(e, t));
            if (exhausted(e, &part))
                continue;
            if (e->uncut)
                part = left;
        }
        collect_in(s, e, c, part);
        t->units_below += c->units_below;
    }
}

void units_forget(struct evicting *e)
{
    for (size_t i = 0; i < e->leaves.len; i++)
        for (struct team *t = e->leaves.items[i]; t != NULL; t = t->parent)
            t->units_below = t->unit_count = 0, t->clipped = false;
    vec_clear(&e->units);
    vec_clear(&e->taken);
    vec_clear(&e->leaves);
    vec_clear(&e->found);
}

void units_ran_out(const struct sched *s, struct evicting *e, const struct team *t,
                   enum sched_cause cause)
{
    if (!t->clipped)
        return;
    bool own = t == e->w->group->team;
    const struct unit *last = &e->units.items[t->first_unit + t->unit_count - 1];
    if (cause == SCHED_CAUSE_IDLE_ONLY) /* such work comes first, where nothing else is said */
        e->ran_out = e->ran_out || last->cause == cause || idle_above(s, SCHED_CLASSES - 1);
    else if ((cause == SCHED_CAUSE_PREEMPT) == own)
        e->ran_out = true;
}

/* The highest team on its path that would end beyond its share or guarantee, or NULL. */
static const struct team *ends_beyond(const struct evicting *e)
{
    const struct team *beyond = NULL;
    for (const struct team *t = e->w->group->team; t->parent != NULL; t = t->parent)
        if (!gate_within_share(t, &e->need) || !gate_within_guarantee(t, &e->need))
            beyond = t;
    return beyond;
}

static void collect_begin(struct sched *s, struct evicting *e, uint32_t most, bool uncut,
                          uint32_t depth)
{
    units_forget(e);
    e->most = most;
    e->uncut = uncut;
    e->depth = depth;
    e->clipped = e->ran_out = false;
    e->running = 0;
    e->at = NULL;
    e->cut = false;
    e->gates_closed = !gate_open(e->w->group, &e->need, MASK(VIEW_THEN), NULL) ||
                      types_bind(e->w->group, e->need.v[SCHED_GPU_MILLI]);
    e->beyond = e->may_reclaim ? ends_beyond(e) : NULL;
}

static const struct amounts everything = {{SCHED_UNLIMITED, SCHED_UNLIMITED, SCHED_UNLIMITED}};

static void collect(struct sched *s, struct evicting *e, uint32_t most, bool uncut, uint32_t depth)
{
    collect_begin(s, e, most, uncut, depth);
    collect_in(s, e, &s->root, everything);
}

void units_collect(struct sched *s, struct evicting *e, uint32_t depth)
{
    collect(s, e, UNITS_MAX, false, depth);
}

void units_mark(struct sched *s, struct evicting *e)
{
    collect_begin(s, e, 0, false, 0);
    collect_in(s, e, &s->root, everything);
}

void units_collect_all(struct sched *s, struct evicting *e, uint32_t most)
{
    collect(s, e, most, true, 0);
}

/* ---- one node, or one domain ------------------------------------------------------------- */

/* By leaf, and in a leaf in the order in which they would go. */
static bool goes_before(const struct workload *a, const struct workload *b)
{
    const struct group *x = a->group, *y = b->group;
    if (x->team != y->team)
        return x->team->id < y->team->id;
    if (x->class_ != y->class_)
        return x->class_ > y->class_;
    if (x->priority != y->priority)
        return x->priority < y->priority;
    return a->age != b->age ? a->age > b->age : a->id > b->id;
}

static void found_add(struct evicting *e, struct workload *v)
{
    size_t i = e->found.len;
    for (size_t k = 0; k < i; k++)
        if (e->found.items[k] == v)
            return;
    vec_push(&e->found, v);
    for (; i > 0 && goes_before(v, e->found.items[i - 1]); i--)
        e->found.items[i] = e->found.items[i - 1];
    e->found.items[i] = v;
}

static void path_count(struct evicting *e)
{
    for (size_t i = 0; i < e->leaves.len; i++)
        for (struct team *t = e->leaves.items[i]->parent; t != NULL; t = t->parent)
            t->units_below += e->leaves.items[i]->unit_count;
}

/* Units of found[FROM..TO), all of one leaf: surplus before cores in each band. */
static void found_units(struct sched *s, struct evicting *e, size_t from, size_t to)
{
    for (size_t a = from, b; a < to; a = b) {
        size_t first = e->units.len;
        for (b = a; b < to && same_band(e->found.items[a], e->found.items[b]); b++)
            surplus_add(s, e, e->found.items[b], right_over(s, e, e->found.items[b]->group));
        surplus_sort(e, first);
        for (size_t i = a; i < b; i++)
            if (core_may_go(s, e->found.items[i]))
                unit_add(e, e->found.items[i], -1, 0, right_over(s, e, e->found.items[i]->group));
    }
}

static void found_on(struct sched *s, struct evicting *e, const struct node *n)
{
    for (const struct task *t = n->tasks; t != NULL; t = t->next) {
        struct workload *v = t->workload;
        if (t->phase == TASK_RUNNING && v->in_running &&
            right_over(s, e, v->group) != SCHED_CAUSES && may_go(s, e, v))
            found_add(e, v);
    }
}

void units_collect_on(struct sched *s, struct evicting *e, int level, uint32_t domain,
                      const struct node *n)
{
    units_forget(e);
    e->clipped = false;
    e->at = n;
    if (n != NULL)
        found_on(s, e, n);
    for (size_t i = 0; n == NULL && i < s->node_list.len; i++)
        if (s->node_list.items[i]->domain[level] == domain)
            found_on(s, e, s->node_list.items[i]);
    for (size_t from = 0, to; from < e->found.len; from = to) {
        struct team *leaf = e->found.items[from]->group->team;
        for (to = from; to < e->found.len && e->found.items[to]->group->team == leaf;)
            to++;
        leaf->first_unit = (uint32_t)e->units.len;
        found_units(s, e, from, to);
        leaf_done(e, leaf);
    }
    path_count(e);
}
