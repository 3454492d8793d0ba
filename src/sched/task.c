/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/task.h"

#include <stdlib.h>
#include <string.h>

#include "sched/fit.h"
#include "sched/node.h"
#include "sched/team.h"
#include "sched/types.h"
#include "sched/workload.h"

static bool in_now(enum task_phase p)
{
    return p == TASK_RUNNING || p == TASK_LEAVING || p == TASK_ENDING;
}

static bool in_then(enum task_phase p)
{
    return p == TASK_RUNNING || p == TASK_HELD;
}

static bool in_demand(enum task_phase p)
{
    return p != TASK_ENDING && p != TASK_DONE;
}

struct amounts task_charge(const struct workload *w, uint32_t t)
{
    struct amounts charge = task_shape(w, t)->charge;
    if (w->tasks != NULL && w->tasks[t].node != NULL)
        charge.v[SCHED_GPU_MILLI] = w->tasks[t].gpu_milli;
    return charge;
}

static void use_add(struct workload *w, uint32_t t, enum view view, int sign)
{
    const struct task *task = &w->tasks[t];
    struct amounts charge = task_charge(w, t);
    team_use(w->group->team, view, &charge, !w->group->preemptible, sign);
    types_use(w->group->team, view, task->node->gpu_type, task->gpu_milli, !w->group->preemptible,
              sign);
    fit_take(task->node, task_shape(w, t), task_devices(task), task->device_count, view, sign);
}

/* Adds or takes back all that the task stands for in its present phase. */
static void account(struct sched *s, struct workload *w, uint32_t t, int sign)
{
    struct task *task = &w->tasks[t];
    enum task_phase p = (enum task_phase)task->phase;
    w->count[p] += (uint32_t)sign;
    if (in_now(p))
        use_add(w, t, VIEW_NOW, sign);
    if (p == TASK_LEAVING || p == TASK_ENDING)
        s->stopping += (uint32_t)sign;
    if (in_then(p) && (w->limit_ms > 0 || w->expected_ms > 0))
        s->ending_running += (uint32_t)sign;
    if (in_then(p))
        use_add(w, t, VIEW_THEN, sign);
    if (p == TASK_HELD && !w->group->may_burst) {
        struct amounts charge = task_charge(w, t);
        for (int r = 0; r < SCHED_RESOURCES; r++)
            w->group->team->held_within[r] += charge.v[r] > 0 ? (uint32_t)sign : 0;
        w->group->team->eased++; /* the rest of it may burst again */
    }
    if (p == TASK_RUNNING && !task->node->up)
        w->lost += (uint32_t)sign;
    if (in_demand(p)) {
        struct amounts charge = task_charge(w, t);
        team_demand(w->group->team, &charge, sign);
    }
    if (task->node != NULL && !node_takes(task->node))
        s->capacity_stale = s->move_room_stale = true;
}

static void tasks_make(struct workload *w)
{
    if (w->tasks != NULL)
        return;
    uint32_t count = w->group->job->task_count;
    w->tasks = mem_new(count, sizeof(*w->tasks));
    for (uint32_t t = 0; t < count; t++)
        w->tasks[t].workload = w;
}

void tasks_forget(struct workload *w)
{
    if (w->tasks == NULL || w->count[TASK_PENDING] < w->group->job->task_count)
        return;
    free(w->tasks); /* none has devices */
    w->tasks = NULL;
}

static void node_link(struct task *task, struct node *n)
{
    task->node = n;
    task->prev = NULL;
    task->next = n->tasks;
    if (n->tasks != NULL)
        n->tasks->prev = task;
    n->tasks = task;
}

static void node_unlink(struct task *task)
{
    if (task->prev != NULL)
        task->prev->next = task->next;
    else
        task->node->tasks = task->next;
    if (task->next != NULL)
        task->next->prev = task->prev;
    task->prev = task->next = NULL;
    task->node = NULL;
}

void task_place(struct sched *s, struct workload *w, uint32_t t, enum task_phase phase,
                struct node *n, const uint16_t *devices, uint32_t count, int64_t since_ms)
{
    tasks_make(w);
    struct task *task = &w->tasks[t];
    struct amounts waiting = task_charge(w, t);
    account(s, w, t, -1);
    task->device_count = (uint16_t)count;
    uint16_t *own = task->devices.small;
    if (count > DEVICES_INLINE)
        own = task->devices.large = mem_new(count, sizeof(*own));
    if (count > 0)
        memcpy(own, devices, count * sizeof(*own));
    task->gpu_milli = fit_charge(n, task_shape(w, t), devices, count);
    task->since_ms = since_ms;
    task->behalf = 0;
    task->phase = (uint8_t)phase;
    node_link(task, n);
    account(s, w, t, 1);
    if (task->gpu_milli != waiting.v[SCHED_GPU_MILLI] || phase == TASK_ENDING)
        s->shares_stale = true;
}

void task_turn(struct sched *s, struct workload *w, uint32_t t, enum task_phase phase)
{
    struct task *task = &w->tasks[t];
    bool demanded = in_demand((enum task_phase)task->phase);
    account(s, w, t, -1);
    task->phase = (uint8_t)phase;
    account(s, w, t, 1);
    if (demanded != in_demand(phase))
        s->shares_stale = true;
    if (phase == TASK_LEAVING || phase == TASK_ENDING)
        node_touch(s, task->node);
}

void task_release(struct sched *s, struct workload *w, uint32_t t, enum task_phase phase)
{
    tasks_make(w);
    struct task *task = &w->tasks[t];
    struct amounts placed = task_charge(w, t);
    bool demanded = in_demand((enum task_phase)task->phase);
    account(s, w, t, -1);
    if (task->node != NULL) {
        node_touch(s, task->node);
        node_unlink(task);
        if (task->device_count > DEVICES_INLINE)
            free(task->devices.large);
    }
    task->device_count = 0;
    task->behalf = 0;
    task->phase = (uint8_t)phase;
    account(s, w, t, 1);
    if (demanded != in_demand(phase) ||
        placed.v[SCHED_GPU_MILLI] != task_charge(w, t).v[SCHED_GPU_MILLI])
        s->shares_stale = true;
}

void task_imagine(struct sched *s, struct workload *w, uint32_t t, int sign)
{
    (void)s;
    use_add(w, t, VIEW_THEN, sign);
}

void task_count_fresh(struct sched *s, struct workload *w, int sign)
{
    const struct job_shape *job = w->group->job;
    w->count[TASK_PENDING] += (uint32_t)sign * job->task_count;
    team_demand(w->group->team, &job->total, sign);
    s->shares_stale = true;
}

void task_demand_rebuild(struct sched *s)
{
    size_t it = 0;
    s->root.demand = (struct amounts){0};
    for (struct team *t; (t = map_next(&s->teams, &it)) != NULL;)
        t->demand = (struct amounts){0};
    it = 0;
    for (struct workload *w; (w = map_next(&s->workloads, &it)) != NULL;) {
        if (w->tasks == NULL) {
            team_demand(w->group->team, &w->group->job->total, 1);
            continue;
        }
        for (uint32_t t = 0; t < w->group->job->task_count; t++) {
            struct amounts charge = task_charge(w, t);
            if (in_demand((enum task_phase)w->tasks[t].phase))
                team_demand(w->group->team, &charge, 1);
        }
        workload_requeue(s, w);
    }
    it = 0;
    for (struct group *g; (g = map_next(&s->groups, &it)) != NULL;)
        for (; g != NULL; g = g->next)
            g->lot->line.need = g->job->least;
    s->shares_stale = s->quotas_stale = true;
}

void task_node_lost(struct sched *s, struct node *n, bool lost)
{
    for (struct task *task = n->tasks; task != NULL; task = task->next)
        if (task->phase == TASK_RUNNING)
            task->workload->lost += lost ? 1 : -1U;
    for (struct task *task = n->tasks; task != NULL; task = task->next)
        workload_requeue(s, task->workload);
}

void task_node_unhold(struct sched *s, struct node *n)
{
    while (n->tasks != NULL)
        workload_unhold(s, n->tasks->workload);
}
