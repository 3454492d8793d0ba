/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/workload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/qty.h"
#include "sched/explain.h"
#include "sched/gang.h"
#include "sched/mix.h"
#include "sched/move.h"
#include "sched/queue.h"
#include "sched/refuse.h"
#include "sched/shape.h"
#include "sched/share.h"
#include "sched/task.h"
#include "sched/team.h"

struct workload *workload_find(const struct sched *s, uint64_t id)
{
    return map_get(&s->workloads, id);
}

void workload_free(struct workload *w)
{
    for (uint32_t t = 0; w->tasks != NULL && t < w->group->job->task_count; t++)
        if (w->tasks[t].device_count > DEVICES_INLINE)
            free(w->tasks[t].devices.large);
    free(w->tasks);
    free(w->own);
    free(w);
}

/* ---- timers ------------------------------------------------------------------------------ */

bool workload_timer_before(const struct heap_node *a, const struct heap_node *b)
{
    const struct workload *x = heap_entry(a, struct workload, timer);
    const struct workload *y = heap_entry(b, struct workload, timer);
    return x->timer_ms != y->timer_ms ? x->timer_ms < y->timer_ms : x->id < y->id;
}

void workload_timer_set(struct sched *s, struct workload *w, int64_t at_ms)
{
    heap_remove(&s->timers, &w->timer);
    w->timer_ms = at_ms;
    if (at_ms != INT64_MAX)
        heap_push(&s->timers, &w->timer);
}

/* ---- where it waits ---------------------------------------------------------------------- */

static bool is_fresh(const struct workload *w)
{
    return w->count[TASK_PENDING] == w->group->job->task_count;
}

static bool backs_off(const struct sched *s, const struct workload *w)
{
    return w->failures > 0 && w->timer_ms > s->now_ms && w->timer_ms != INT64_MAX;
}

static void leave(struct sched *s, struct workload *w)
{
    if (w->place == PLACE_GROUP)
        group_remove(s, w);
    else if (w->place == PLACE_LINE)
        line_disown(s, w);
    w->place = PLACE_NONE;
}

static void queue_up(struct sched *s, struct workload *w)
{
    struct gang gang;
    if (w->removed || w->moving > 0 || !gang_next(w->group->job, w, &gang)) {
        leave(s, w);
        return;
    }
    bool in_group = is_fresh(w) && !backs_off(s, w);
    if (!in_group || w->place != PLACE_GROUP)
        leave(s, w);
    if (backs_off(s, w)) {
        w->place = PLACE_BACKOFF;
    } else if (in_group && w->place != PLACE_GROUP) {
        group_add(s, w);
        w->place = PLACE_GROUP;
    } else if (!in_group) {
        struct amounts need = gang_charge(w->group->job, w, &gang);
        line_own(s, w, gang.round, &need);
        w->place = PLACE_LINE;
    }
    gang_done(&gang);
}

/* Closes the gaps in the list of holders once they are most of it. */
static void holding_pack(struct sched *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->holding.len; i++) {
        struct workload *w = s->holding.items[i];
        if (w == NULL)
            continue;
        s->holding.items[kept++] = w;
        w->holding = (uint32_t)kept;
    }
    s->holding.len = kept;
    s->holding_gaps = 0;
}

static void holding_update(struct sched *s, struct workload *w)
{
    bool holds = w->count[TASK_HELD] > 0;
    if (holds == (w->holding > 0))
        return;
    if (holds) {
        vec_push(&s->holding, w);
        w->holding = (uint32_t)s->holding.len;
        return;
    }
    s->holding.items[w->holding - 1] = NULL;
    w->holding = 0;
    if (++s->holding_gaps > s->holding.len / 2)
        holding_pack(s);
}

void workload_requeue(struct sched *s, struct workload *w)
{
    bool runs = w->group->preemptible && w->count[TASK_RUNNING] > 0 && !w->removed;
    if (!runs)
        running_remove(s, w); /* before it may enter its group */
    queue_up(s, w);
    if (runs)
        running_add(s, w);
    gang_watch(s, w);
    if (w->tasks != NULL)
        holding_update(s, w);
}

void workload_unhold(struct sched *s, struct workload *w)
{
    for (uint32_t t = 0; w->tasks != NULL && t < w->group->job->task_count; t++)
        if (w->tasks[t].phase == TASK_HELD)
            task_release(s, w, t, TASK_PENDING);
    w->victims = 0;
    workload_timer_set(s, w, INT64_MAX);
    s->retry = true;
    workload_requeue(s, w);
}

void workload_hold_ripens(struct sched *s, struct workload *w)
{
    if (w->count[TASK_HELD] > 0 && w->timer_ms == INT64_MAX)
        workload_timer_set(s, w, qty_add_sat(s->now_ms, s->config.hold_ms));
}

/* ---- add and remove ---------------------------------------------------------------------- */

static int workload_team(const struct sched *s, const struct sched_workload *w,
                         struct team **ret_team)
{
    if (w->id == 0 || (unsigned)w->class_ >= SCHED_CLASSES || w->limit_ms < 0 || w->expected_ms < 0)
        return -EINVAL;
    struct team *team = team_find(s, w->team);
    if (team == NULL)
        return -ENOENT;
    if (!team_is_leaf(team))
        return -EINVAL;
    *ret_team = team;
    return 0;
}

/* Checks W and makes its group (counted). */
static int workload_prepare(struct sched *s, const struct sched_workload *w,
                            struct sched_refusal *ret_refusal, struct group **ret_group)
{
    struct team *team;
    int r = workload_team(s, w, &team);
    if (r < 0)
        return r;
    struct job_shape *job;
    r = job_shape_get(s, w, &job);
    if (r < 0)
        return r;
    struct group *g = group_get(s, team, job, w);
    job_shape_put(s, job); /* the group has its own */
    for (int k = 0; k < SCHED_RESOURCES && r == 0; k++)
        if (g->job->total.v[k] > SUM_MAX - s->root.demand.v[k])
            r = -EINVAL;
    if (r == 0 && !w->accepted) {
        struct sched_refusal refusal;
        r = refuse_check(s, g, &refusal);
        if (r == -E2BIG && ret_refusal != NULL)
            *ret_refusal = refusal;
    }
    if (r < 0) {
        group_put(s, g);
        return r;
    }
    *ret_group = g;
    return 0;
}

/* LEVEL as the caller's declaration has it, which outlives the check. */
static const char *own_level(const struct sched_workload *w, const char *level)
{
    for (uint32_t g = 0; level != NULL && g < w->group_count; g++)
        if (w->groups[g].required != NULL && strcmp(w->groups[g].required, level) == 0)
            return w->groups[g].required;
    return level == NULL ? NULL : w->topology_required;
}

int sched_workload_check(struct sched *s, const struct sched_workload *w,
                         struct sched_refusal *ret_refusal)
{
    struct sched_workload probe = *w;
    probe.id = probe.id == 0 ? 1 : probe.id;
    probe.accepted = false;
    struct group *g;
    strings_check_begin(s);
    int r = workload_prepare(s, &probe, ret_refusal, &g);
    if (r == 0)
        group_put(s, g);
    else if (ret_refusal != NULL)
        ret_refusal->level = own_level(w, ret_refusal->level);
    strings_check_end(s);
    return r;
}

static int workload_enter(struct sched *s, const struct sched_workload *w,
                          struct sched_refusal *ret_refusal, struct workload **ret_new)
{
    if (w->id != 0 && workload_find(s, w->id) != NULL)
        return -EEXIST;
    struct group *g;
    int r = workload_prepare(s, w, ret_refusal, &g);
    if (r < 0)
        return r;
    struct workload *new = mem_new(1, sizeof(*new));
    new->id = w->id;
    new->age = w->age;
    new->limit_ms = w->limit_ms;
    new->expected_ms = w->expected_ms;
    new->group = g;
    new->timer_ms = INT64_MAX;
    map_put(&s->workloads, new->id, new);
    g->team->workloads++;
    task_count_fresh(s, new, 1);
    workload_requeue(s, new);
    *ret_new = new;
    return 0;
}

int sched_workload_add(struct sched *s, const struct sched_workload *w,
                       struct sched_refusal *ret_refusal)
{
    struct workload *new;
    int r = workload_enter(s, w, ret_refusal, &new);
    if (r < 0)
        return r;
    s->outside_epoch++;
    mix_learn_job(s, new->group->job);
    return 0;
}

/* It is there while it is asked about, and then shares are what they were. What remembers the past
 * hears nothing of it. */
int sched_explain_new(struct sched *s, const struct sched_workload *w, int64_t now_ms,
                      struct sched_explanation *ret_explanation)
{
    struct sched_workload probe = *w;
    struct workload *new;
    explain_catch_up(s, now_ms);
    uint64_t epoch = s->outside_epoch;
    bool retry = s->retry;
    probe.accepted = true;
    strings_check_begin(s);
    int r = workload_enter(s, &probe, NULL, &new);
    if (r == 0) {
        r = explain_fresh(s, w->id, now_ms, ret_explanation);
        if (r == 0)
            ret_explanation->level = own_level(w, ret_explanation->level);
        (void)sched_workload_remove(s, w->id);
        share_refresh(s);
        s->outside_epoch = epoch;
        s->retry = retry;
    }
    strings_check_end(s);
    return r;
}

void workload_collect(struct sched *s, struct workload *w)
{
    if (!w->removed || w->count[TASK_ENDING] + w->count[TASK_LEAVING] > 0)
        return;
    heap_remove(&s->timers, &w->timer);
    map_del(&s->workloads, w->id);
    w->group->team->workloads--;
    struct group *g = w->group;
    workload_free(w);
    group_put(s, g);
}

int sched_workload_remove(struct sched *s, uint64_t id)
{
    struct workload *w = workload_find(s, id);
    if (w == NULL || w->removed)
        return -ENOENT;
    if (w->count[TASK_HELD] > 0)
        workload_unhold(s, w);
    if (w->moving > 0)
        move_drop(s, w);
    w->removed = true;
    s->outside_epoch++;
    /* What was kept for it, or what of it runs, others may count on from now on. */
    s->retry = s->retry || s->reserved.last == id || w->tasks != NULL ||
               (w->claimed_turn != 0 && s->stopping > 0);
    workload_requeue(s, w);
    workload_timer_set(s, w, INT64_MAX);
    if (w->tasks == NULL) {
        task_count_fresh(s, w, -1);
    } else {
        for (uint32_t t = 0; t < w->group->job->task_count; t++) {
            enum task_phase p = task_phase(w, t);
            if (p == TASK_PENDING)
                task_release(s, w, t, TASK_DONE);
            else if (p == TASK_RUNNING || p == TASK_LEAVING)
                task_turn(s, w, t, TASK_ENDING);
        }
        workload_requeue(s, w);
    }
    workload_collect(s, w);
    return 0;
}
