/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/units.h"

#include <stdlib.h>

#include "base/qty.h"
#include "sched/evict.h"
#include "sched/fit.h"
#include "sched/gate.h"
#include "sched/node.h"
#include "sched/task.h"
#include "sched/team.h"
#include "sched/tree.h"

#define running_entry(n) tree_entry(n, struct workload, run)

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

void unit_imagine(struct sched *s, struct unit *u, bool out)
{
    u->out = out;
    uint8_t mark = u->task >= 0 ? IMAGINED_SURPLUS : IMAGINED_CORE;
    for (uint32_t t = 0; t < u->w->group->job->task_count; t++) {
        struct task *task = &u->w->tasks[t];
        if (task->phase != TASK_RUNNING || (u->task >= 0 && u->task != t) ||
            task->imagined != (out ? IMAGINED_NOT : mark))
            continue;
        task->imagined = out ? mark : IMAGINED_NOT;
        task_imagine(s, u->w, t, out ? -1 : 1);
    }
}

/* ---- rights ------------------------------------------------------------------------------ */

bool units_strictly_lower(const struct group *g, const struct group *than)
{
    if (g->class_ != than->class_)
        return g->class_ > than->class_;
    return g->priority < than->priority;
}

/* By what right could the requester evict work of group G; SCHED_CAUSES = none. */
static uint8_t right_over(const struct sched *s, const struct evicting *e,
                          const struct group *g)
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

bool units_worth(struct sched *s, struct evicting *e)
{
    const struct group *me = e->w->group;
    if (group_idle(s, me))
        return false;
    struct amounts lower;
    e->no_reclaim = true;
    bool preempts = own_lower(s, e, &lower);
    e->may_reclaim = group_rule(s, me)->may_reclaim;
    for (int r = 0; r < SCHED_RESOURCES && e->may_reclaim; r++) {
        int64_t after = me->team->used[VIEW_THEN].v[r] - lower.v[r] + e->need.v[r];
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
    if (e->only_node != NULL)
        return n == e->only_node;
    if (!node_takes(n))
        return false;
    const struct job_shape *job = e->w->group->job;
    for (uint32_t t = 0; t < (job->uniform ? 1 : job->task_count); t++)
        if (fit_accepts(n, job_task(job, t)->shape))
            return true;
    return false;
}

/* Could it help that V goes? */
static bool may_help(const struct evicting *e, const struct workload *v)
{
    if (e->gates_closed && e->only_node == NULL)
        return true;
    for (uint32_t t = 0; t < v->group->job->task_count; t++)
        if (v->tasks[t].phase == TASK_RUNNING && node_may_help(e, v->tasks[t].node))
            return true;
    return false;
}

static bool may_go(struct sched *s, const struct evicting *e, const struct workload *v)
{
    if (v == e->w || v->count[TASK_HELD] > 0 || !may_help(e, v))
        return false;
    if (v->started_turn == s->turn) {
        s->wake_soon = true;
        return false;
    }
    int64_t until = protected_until(s, v);
    if (until <= s->now_ms)
        return true;
    if (until < s->protected_until_ms)
        s->protected_until_ms = until;
    return false;
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

/* The surplus tasks of V, in the order in which it gives them up. */
static void surplus_add(struct evicting *e, struct workload *v, uint8_t cause)
{
    uint32_t t;
    size_t first = e->units.len;
    for (uint32_t round = gang_surplus(v); round > 0 && gang_surplus_task(v, &t); round--) {
        unit_add(e, v, t, round, cause);
        v->tasks[t].phase = TASK_PENDING; /* so that the next one is found */
        v->count[TASK_RUNNING]--;
    }
    for (size_t i = first; i < e->units.len; i++) {
        v->tasks[e->units.items[i].task].phase = TASK_RUNNING;
        v->count[TASK_RUNNING]++;
    }
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

/* All of one class and priority, from index LAST down; returns the index below them. */
static uint32_t band_collect(struct sched *s, struct evicting *e, const struct team *t,
                             uint32_t last)
{
    struct workload *head = running_entry(tree_at(t->running, last));
    uint8_t cause = right_over(s, e, head->group);
    uint32_t end = last;
    size_t first = e->units.len;
    for (int cores = 0; cores < 2; cores++) {
        end = last + 1;
        while (end > 0) {
            struct workload *v = running_entry(tree_at(t->running, end - 1));
            if (!same_band(v, head))
                break;
            end--;
            if (cause == SCHED_CAUSES || e->units.len >= UNITS_MAX || !may_go(s, e, v))
                continue;
            if (cores)
                unit_add(e, v, -1, 0, cause);
            else if (v->group->job->min_tasks < v->group->job->task_count)
                surplus_add(e, v, cause);
        }
        if (!cores)
            surplus_sort(e, first);
    }
    return end;
}

static void leaf_collect(struct sched *s, struct evicting *e, struct team *t)
{
    t->first_unit = (uint32_t)e->units.len;
    for (uint32_t end = tree_size(t->running); end > 0 && e->units.len < UNITS_MAX;)
        end = band_collect(s, e, t, end - 1);
    t->unit_count = (uint32_t)e->units.len - t->first_unit;
    t->units_below = t->unit_count;
}

/* Has a branch beside the requester's path anything to give? */
static bool branch_gives(const struct evicting *e, const struct team *t)
{
    for (int r = 0; r < SCHED_RESOURCES; r++) {
        int64_t used = t->used[VIEW_THEN].v[r];
        if (e->need.v[r] > 0 && ((!e->no_reclaim && used > t->share.v[r]) ||
                                 used > t->guarantee[r]))
            return !e->no_reclaim || t->idle_running > 0;
    }
    return false;
}

static bool on_path(const struct evicting *e, const struct team *t)
{
    const struct team *p = e->w->group->team;
    while (p != NULL && p != t)
        p = p->parent;
    return p != NULL;
}

static void collect_in(struct sched *s, struct evicting *e, struct team *t)
{
    t->units_below = t->unit_count = 0;
    if (team_is_leaf(t)) {
        leaf_collect(s, e, t);
        return;
    }
    bool path = on_path(e, t);
    for (size_t i = 0; i < t->children.len; i++) {
        struct team *c = t->children.items[i];
        c->units_below = c->unit_count = 0;
        if (path && !on_path(e, c) && !branch_gives(e, c))
            continue;
        collect_in(s, e, c);
        t->units_below += c->units_below;
    }
}

void units_collect(struct sched *s, struct evicting *e)
{
    vec_clear(&e->units);
    vec_clear(&e->taken);
    e->gates_closed = !gate_open(e->w->group, &e->need, MASK(VIEW_THEN), NULL);
    collect_in(s, e, &s->root);
}
