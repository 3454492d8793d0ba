/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/plan.h"

#include <stdlib.h>

#include "base/qty.h"
#include "sched/fit.h"
#include "sched/gate.h"
#include "sched/place.h"
#include "sched/states.h"
#include "sched/task.h"
#include "sched/team.h"
#include "sched/types.h"
#include "sched/units.h"

#define TRIALS_MAX 256 /* instants looked at, where windows make later ones worse */

struct release {
    int64_t end_ms;
    struct task *task; /* NULL: a window ends */
    bool declared;
};

struct releases VEC_BODY(struct release);

int64_t plan_task_end(const struct sched *s, const struct task *t, bool *ret_declared)
{
    const struct workload *w = t->workload;
    int64_t span = w->limit_ms > 0 ? w->limit_ms : w->expected_ms;
    *ret_declared = w->limit_ms > 0;
    if (span == 0)
        return INT64_MAX;
    int64_t start = t->phase == TASK_HELD ? s->now_ms : t->since_ms;
    int64_t end = qty_add_sat(start, span);
    return end > s->now_ms ? end : s->now_ms + 1; /* overdue: any moment */
}

/* Most nodes are in the plan of this turn what they were in the last one, and remain known. */
static void node_copy(struct node *n)
{
    bool same = n->cpu_used[VIEW_PLAN] == n->cpu_used[VIEW_THEN] &&
                n->memory_used[VIEW_PLAN] == n->memory_used[VIEW_THEN];
    for (uint32_t d = 0; d < n->device_count; d++) {
        struct use *plan = &n->devices[d].use[VIEW_PLAN];
        const struct use *then = &n->devices[d].use[VIEW_THEN];
        same = same && plan->memory == then->memory && plan->milli == then->milli &&
               plan->tenants == then->tenants;
        *plan = *then;
    }
    if (same)
        return;
    n->cpu_used[VIEW_PLAN] = n->cpu_used[VIEW_THEN];
    n->memory_used[VIEW_PLAN] = n->memory_used[VIEW_THEN];
    n->idle[VIEW_PLAN] = n->idle[VIEW_THEN];
    n->milli_used[VIEW_PLAN] = n->milli_used[VIEW_THEN];
    states_note(n);
}

static void view_copy(struct sched *s)
{
    size_t it = 0;
    s->root.used[VIEW_PLAN] = s->root.used[VIEW_THEN];
    s->root.firm[VIEW_PLAN] = s->root.firm[VIEW_THEN];
    for (struct team *t; (t = map_next(&s->teams, &it)) != NULL;) {
        t->used[VIEW_PLAN] = t->used[VIEW_THEN];
        t->firm[VIEW_PLAN] = t->firm[VIEW_THEN];
        for (size_t i = 0; i < t->types.len; i++) {
            struct type_quota *q = &t->types.items[i];
            q->used[VIEW_PLAN] = q->used[VIEW_THEN];
            q->firm[VIEW_PLAN] = q->firm[VIEW_THEN];
        }
    }
    for (size_t i = 0; i < s->node_list.len; i++)
        node_copy(s->node_list.items[i]);
}

static int release_compare(const void *a, const void *b)
{
    const struct release *x = a, *y = b;
    if (x->end_ms != y->end_ms)
        return x->end_ms < y->end_ms ? -1 : 1;
    if (x->task == NULL || y->task == NULL)
        return (x->task == NULL) - (y->task == NULL);
    if (x->task->workload->id != y->task->workload->id)
        return x->task->workload->id < y->task->workload->id ? -1 : 1;
    return x->task < y->task ? -1 : x->task > y->task;
}

bool plan_gives_way(const struct sched *s, const struct group *w, const struct group *g)
{
    if (!g->preemptible || plan_keeps_some(g->job))
        return false;
    if (g->team == w->team)
        return group_rule(s, w)->may_preempt && units_strictly_lower(g, w);
    return group_idle(s, g) && !group_idle(s, w);
}

/* Does T stand above its guarantee where its path parts from OTHER's? */
static bool above_guarantee(struct team *t, struct team *other)
{
    static const struct amounts nothing = {{0}};
    struct team *ours, *theirs;
    team_part(other, t, &ours, &theirs);
    return !gate_within_guarantee(theirs, &nothing);
}

/* When TASK could leave the plan of W. */
static int64_t release_ms(const struct sched *s, const struct workload *w, const struct task *task,
                          bool *ret_declared)
{
    const struct group *g = task->workload->group;
    *ret_declared = true;
    if (plan_gives_way(s, w->group, g) &&
        (g->team == w->group->team || above_guarantee(g->team, w->group->team)))
        return s->now_ms;
    int64_t end = plan_task_end(s, task, ret_declared);
    const struct node *n = task->node;
    if (n->window_until_ms <= s->now_ms || !g->preemptible || end <= n->window_from_ms)
        return end;
    *ret_declared = true;
    return n->window_until_ms;
}

static void collect(struct sched *s, const struct workload *w, struct releases *list)
{
    for (size_t i = 0; i < s->node_list.len; i++)
        for (struct task *t = s->node_list.items[i]->tasks; t != NULL; t = t->next) {
            bool declared;
            int64_t end = release_ms(s, w, t, &declared);
            if (end == INT64_MAX || (t->phase != TASK_RUNNING && t->phase != TASK_HELD))
                continue;
            struct release r = {end, t, declared};
            vec_push(list, r);
        }
    for (size_t i = 0; i < s->windows.len; i++) {
        struct release r = {s->windows.items[i]->window_until_ms, NULL, true};
        vec_push(list, r);
    }
    if (list->len > 1)
        qsort(list->items, list->len, sizeof(list->items[0]), release_compare);
}

/* Takes the tasks [FROM, TO) out of the plan, or puts them back. */
static void release_range(const struct releases *list, size_t from, size_t to, int sign)
{
    for (size_t i = from; i < to; i++) {
        struct task *task = list->items[i].task;
        if (task == NULL)
            continue;
        struct workload *w = task->workload;
        uint32_t t = (uint32_t)(task - w->tasks);
        struct amounts charge = task_charge(w, t);
        team_use(w->group->team, VIEW_PLAN, &charge, !w->group->preemptible, -sign);
        types_use(w->group->team, VIEW_PLAN, task->node->gpu_type, task->gpu_milli,
                  !w->group->preemptible, -sign);
        fit_take(task->node, task_shape(w, t), task_devices(task), task->device_count, VIEW_PLAN,
                 -sign);
    }
}

static bool fits(struct sched *s, const struct workload *w, const struct gang *gang,
                 const struct amounts *need, int64_t at_ms)
{
    s->plan_ms = at_ms;
    return gate_open(w->group, need, MASK(VIEW_PLAN), NULL) &&
           place_gang(s, w->group->job, w, gang, MASK(VIEW_PLAN));
}

/* How many of the ends it takes; more than the list has if all are not enough. */
static size_t ends_needed(struct sched *s, const struct workload *w, const struct gang *gang,
                          const struct amounts *need, const struct releases *list)
{
    size_t low = 0, high = list->len, at = list->len; /* low ends are not enough, high are */
    if (high == 0)
        return 1;
    release_range(list, 0, high, 1);
    if (!fits(s, w, gang, need, list->items[high - 1].end_ms))
        return list->len + 1;
    while (low + 1 < high) {
        size_t mid = low + (high - low) / 2;
        if (mid < at)
            release_range(list, mid, at, -1);
        else
            release_range(list, at, mid, 1);
        at = mid;
        if (fits(s, w, gang, need, list->items[mid - 1].end_ms))
            high = mid;
        else
            low = mid;
    }
    if (at < high)
        release_range(list, at, high, 1);
    return high;
}

/* Likewise, end after end: what is possible before a window may not be possible later. */
static size_t ends_needed_in_order(struct sched *s, const struct workload *w,
                                   const struct gang *gang, const struct amounts *need,
                                   const struct releases *list)
{
    int trials = 0;
    for (size_t at = 0; at < list->len && trials < TRIALS_MAX; at++) {
        int64_t end_ms = list->items[at].end_ms;
        release_range(list, at, at + 1, 1);
        if (end_ms <= s->now_ms || (at + 1 < list->len && list->items[at + 1].end_ms == end_ms))
            continue;
        trials++;
        if (fits(s, w, gang, need, end_ms))
            return at + 1;
    }
    return list->len + 1;
}

bool plan_earliest(struct sched *s, const struct workload *w, const struct gang *gang,
                   const struct amounts *need, struct plan *ret_plan)
{
    view_copy(s);
    *ret_plan = (struct plan){.start_ms = s->now_ms, .declared = true};
    if (fits(s, w, gang, need, s->now_ms))
        return true;
    struct releases list = {0};
    collect(s, w, &list);
    size_t needed = s->windows.len > 0 ? ends_needed_in_order(s, w, gang, need, &list)
                                       : ends_needed(s, w, gang, need, &list);
    bool found = needed > 0 && needed <= list.len && list.items[needed - 1].end_ms > s->now_ms &&
                 fits(s, w, gang, need, list.items[needed - 1].end_ms);
    if (found) {
        ret_plan->start_ms = list.items[needed - 1].end_ms;
        const struct task *last = list.items[needed - 1].task;
        ret_plan->waits_for = last != NULL ? last->workload->id : 0;
        for (size_t i = 0; i < needed; i++)
            ret_plan->declared = ret_plan->declared && list.items[i].declared;
        /* What ends at the same instant is gone as well. */
        size_t also = needed;
        while (also < list.len && list.items[also].end_ms == ret_plan->start_ms)
            also++;
        release_range(&list, needed, also, 1);
    }
    vec_done(&list);
    return found;
}
