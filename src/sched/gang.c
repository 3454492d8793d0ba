/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/gang.h"

#include <stdlib.h>

#include "base/qty.h"
#include "sched/decide.h"
#include "sched/task.h"

/* Not every report says when it happens: the time a gang is short counts from the next turn. */
#define SINCE_NEXT_TURN INT64_MIN

void gang_done(struct gang *g)
{
    vec_done(&g->quota);
}

static bool counts_as_present(enum task_phase phase)
{
    return phase == TASK_HELD || phase == TASK_RUNNING || phase == TASK_DONE;
}

/* What each group lacks; returns the sum. */
static uint32_t group_needs(const struct job_shape *job, const struct workload *w,
                            struct gang *gang)
{
    uint32_t sum = 0;
    for (uint32_t g = 0; g < job->group_count; g++)
        vec_push(&gang->quota, job->groups[g].min_tasks);
    for (uint32_t t = 0; w != NULL && w->tasks != NULL && t < job->task_count; t++) {
        uint32_t *quota = &gang->quota.items[job_task(job, t)->group];
        if (counts_as_present(w->tasks[t].phase) && *quota > 0)
            --*quota;
    }
    for (uint32_t g = 0; g < job->group_count; g++)
        sum += gang->quota.items[g];
    return sum;
}

static uint32_t present(const struct workload *w)
{
    return w->count[TASK_HELD] + w->count[TASK_RUNNING] + w->count[TASK_DONE];
}

bool gang_next(const struct job_shape *job, const struct workload *w, struct gang *ret_gang)
{
    struct gang gang = {.grouped = job->group_count > 0};
    uint32_t have = w == NULL ? 0 : present(w);
    uint32_t pending = w == NULL ? job->task_count : w->count[TASK_PENDING];
    if (w != NULL &&
        (w->removed || pending == 0 || w->count[TASK_HELD] > 0 ||
         (w->count[TASK_RUNNING] == 0 && w->count[TASK_LEAVING] + w->count[TASK_ENDING] > 0)))
        return false;
    uint32_t grouped = gang.grouped ? group_needs(job, w, &gang) : 0;
    gang.total = have < job->min_tasks ? job->min_tasks - have : 0;
    if (gang.total < grouped)
        gang.total = grouped;
    if (gang.total == 0) {
        gang.total = 1;
        gang.round = 1 + (w == NULL ? 0 : gang_surplus(w));
    }
    if (gang.total > pending) {
        gang_done(&gang);
        return false;
    }
    *ret_gang = gang;
    return true;
}

struct amounts gang_charge(const struct job_shape *job, const struct workload *w,
                           const struct gang *gang)
{
    struct amounts sum = {0};
    uint32_t left = gang->total, free_left = gang->total;
    VEC(uint32_t) quota = {0};
    for (size_t g = 0; g < gang->quota.len; g++) {
        vec_push(&quota, gang->quota.items[g]);
        free_left -= gang->quota.items[g];
    }
    for (uint32_t k = 0; k < job->task_count && left > 0; k++) {
        uint32_t t = job->order != NULL ? job->order[k] : k;
        if (w != NULL && w->tasks != NULL && w->tasks[t].phase != TASK_PENDING)
            continue;
        const struct job_task *task = job_task(job, t);
        if (quota.len > 0 && quota.items[task->group] > 0)
            quota.items[task->group]--;
        else if (free_left > 0)
            free_left--;
        else
            continue;
        left--;
        amounts_add(&sum, &task->shape->charge, 1);
    }
    vec_done(&quota);
    return sum;
}

struct amounts gang_least(const struct job_shape *job)
{
    struct gang gang;
    if (!gang_next(job, NULL, &gang))
        return job->total;
    struct amounts least = gang_charge(job, NULL, &gang);
    gang_done(&gang);
    return least;
}

/* ---- surplus ----------------------------------------------------------------------------- */

uint32_t gang_minimum(const struct workload *w)
{
    uint32_t min = w->group->job->min_tasks, ended = w->count[TASK_DONE];
    return min > ended ? min - ended : 0;
}

uint32_t gang_surplus(const struct workload *w)
{
    uint32_t active = w->count[TASK_RUNNING] + w->count[TASK_HELD], min = gang_minimum(w);
    return active > min ? active - min : 0;
}

static uint32_t group_present(const struct workload *w, uint32_t group)
{
    uint32_t count = 0;
    for (uint32_t t = 0; t < w->group->job->task_count; t++)
        count += job_task(w->group->job, t)->group == group && counts_as_present(w->tasks[t].phase);
    return count;
}

bool gang_surplus_task(const struct workload *w, uint32_t *ret_task)
{
    const struct job_shape *job = w->group->job;
    if (gang_surplus(w) == 0 || w->count[TASK_HELD] > 0)
        return false;
    for (uint32_t k = job->task_count; k-- > 0;) {
        uint32_t t = job->order != NULL ? job->order[k] : k;
        if (w->tasks[t].phase != TASK_RUNNING)
            continue;
        uint32_t g = job_task(job, t)->group;
        if (job->group_count > 0 && group_present(w, g) <= job->groups[g].min_tasks)
            continue;
        *ret_task = t;
        return true;
    }
    return false;
}

uint32_t gang_group_spare(const struct workload *w, uint32_t group)
{
    const struct job_shape *job = w->group->job;
    uint32_t there = group_present(w, group);
    uint32_t min = job->group_count > 0 ? job->groups[group].min_tasks : 0;
    return there > min ? there - min : 0;
}

bool gang_groups_met(const struct workload *w)
{
    const struct job_shape *job = w->group->job;
    for (uint32_t g = 0; g < job->group_count; g++)
        if (group_present(w, g) < job->groups[g].min_tasks)
            return false;
    return true;
}

bool gang_is_short(const struct workload *w)
{
    if (w->removed || w->count[TASK_RUNNING] == 0 || w->count[TASK_HELD] > 0)
        return false;
    uint32_t alive = w->count[TASK_RUNNING] - w->lost;
    if (alive == 0)
        return false;
    if (alive < gang_minimum(w))
        return true;
    return !gang_groups_met(w);
}

/* ---- stale gangs ------------------------------------------------------------------------- */

void gang_unwatch(struct sched *s, struct workload *w)
{
    if (w->short_index == 0)
        return;
    vec_remove_swap(&s->below, w->short_index - 1);
    if (w->short_index <= s->below.len)
        s->below.items[w->short_index - 1].workload->short_index = w->short_index;
    w->short_index = 0;
}

void gang_watch(struct sched *s, struct workload *w)
{
    if (!gang_is_short(w)) {
        gang_unwatch(s, w);
        return;
    }
    if (w->short_index > 0)
        return;
    struct short_gang new = {w, SINCE_NEXT_TURN};
    vec_push(&s->below, new);
    w->short_index = (uint32_t)s->below.len;
}

static int64_t due_ms(const struct sched *s, const struct short_gang *g)
{
    int64_t since_ms = g->since_ms == SINCE_NEXT_TURN ? s->now_ms : g->since_ms;
    return qty_add_sat(since_ms, s->config.stale_gang_ms);
}

void gang_stamp(struct sched *s)
{
    for (size_t i = 0; i < s->below.len; i++)
        if (s->below.items[i].since_ms == SINCE_NEXT_TURN)
            s->below.items[i].since_ms = s->now_ms;
}

void gang_step(struct sched *s)
{
    gang_stamp(s);
    for (size_t i = s->below.len; i-- > 0;) /* who is torn down leaves the list */
        if (due_ms(s, &s->below.items[i]) <= s->now_ms)
            decide_evict_all(s, s->below.items[i].workload, SCHED_CAUSE_STALE_GANG);
}

int64_t gang_next_ms(const struct sched *s)
{
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < s->below.len; i++)
        if (due_ms(s, &s->below.items[i]) < next)
            next = due_ms(s, &s->below.items[i]);
    return next;
}
