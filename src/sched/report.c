/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the caller reports of tasks: restored, stopping, stopped.
 */
#include <errno.h>

#include "base/qty.h"
#include "sched/fit.h"
#include "sched/hold.h"
#include "sched/node.h"
#include "sched/past.h"
#include "sched/task.h"
#include "sched/workload.h"

#define TIME_MAX (INT64_MAX / 4) /* differences of times do not overflow */
#define DOUBLINGS_MAX 6          /* of the back-off: up to 64 times the first */

static int task_lookup(const struct sched *s, uint64_t workload, uint32_t task,
                       struct workload **ret_w)
{
    struct workload *w = workload_find(s, workload);
    if (w == NULL || task >= w->group->job->task_count)
        return -ENOENT;
    *ret_w = w;
    return 0;
}

/* ---- restore ----------------------------------------------------------------------------- */

static bool devices_match(const struct node *n, const struct shape *shape, const uint16_t *devices,
                          uint32_t count)
{
    uint32_t expected = shape->device_count;
    for (uint32_t m = 0; m < shape->mig_count; m++)
        expected += shape->mig[m].count;
    if (count != expected)
        return false;
    for (uint32_t k = 0; k < count; k++) {
        if (devices[k] >= n->device_count)
            return false;
        for (uint32_t j = 0; j < k; j++)
            if (devices[j] == devices[k])
                return false;
        const char *mig = n->devices[devices[k]].mig;
        bool found = shape->mig_count == 0 && mig == NULL;
        for (uint32_t m = 0; m < shape->mig_count && !found; m++)
            found = shape->mig[m].profile == mig;
        if (!found)
            return false;
    }
    return true;
}

static int restore_placed(struct sched *s, struct workload *w, uint32_t task,
                          enum sched_task_state state, struct node *n, const uint16_t *devices,
                          uint32_t count, int64_t since_ms)
{
    static const struct {
        enum task_phase phase;
        unsigned mask;
    } as[] = {
        [SCHED_TASK_HELD] = {TASK_HELD, MASK(VIEW_THEN)},
        [SCHED_TASK_RUNNING] = {TASK_RUNNING, MASK_START},
        /* It is there, however much of CPU and memory its node has left by now. */
        [SCHED_TASK_STOPPING] = {TASK_LEAVING, MASK(VIEW_NOW) | MASK_NO_CPU | MASK_NO_MEMORY},
    };
    if (!devices_match(n, task_shape(w, task), devices, count))
        return -EINVAL;
    if (!fit_devices(n, task_shape(w, task), as[state].mask, devices, count))
        return -EBUSY;
    task_place(s, w, task, as[state].phase, n, devices, count, since_ms);
    if (state == SCHED_TASK_HELD)
        workload_timer_set(s, w, since_ms);
    if (state == SCHED_TASK_STOPPING) {
        w->tasks[task].behalf = BEHALF_UNKNOWN;
        s->stopping_unknown++;
    }
    workload_requeue(s, w);
    return 0;
}

int sched_task_restore(struct sched *s, uint64_t workload, uint32_t task,
                       enum sched_task_state state, uint64_t node, const uint16_t *devices,
                       uint32_t device_count, int64_t since_ms)
{
    struct workload *w;
    int r = task_lookup(s, workload, task, &w);
    if (r < 0)
        return r;
    bool placed = state == SCHED_TASK_RUNNING || state == SCHED_TASK_STOPPING;
    if (w->removed || task_phase(w, task) != TASK_PENDING ||
        (placed && (since_ms > TIME_MAX || since_ms < -TIME_MAX)))
        return -EINVAL;
    if (state == SCHED_TASK_DONE) {
        task_release(s, w, task, TASK_DONE);
        workload_requeue(s, w);
        return 0;
    }
    if (state != SCHED_TASK_HELD && state != SCHED_TASK_RUNNING && state != SCHED_TASK_STOPPING)
        return -EINVAL;
    struct node *n = node_find(s, node);
    if (n == NULL)
        return -ENOENT;
    return restore_placed(s, w, task, state, n, devices, device_count, since_ms);
}

/* ---- stopping and stopped ---------------------------------------------------------------- */

static void now_advance(struct sched *s, int64_t now_ms)
{
    if (now_ms > s->now_ms)
        s->now_ms = now_ms;
    past_advance(s);
}

/* A launch failed: the workload waits, longer each time. Tasks of one launch count once. */
static void back_off(struct sched *s, struct workload *w, struct node *n)
{
    node_refused(s, n, w->id);
    if (w->failures > 0 && w->timer_ms > s->now_ms && w->timer_ms != INT64_MAX)
        return;
    int doublings = w->failures < DOUBLINGS_MAX ? w->failures : DOUBLINGS_MAX;
    if (w->failures <= DOUBLINGS_MAX)
        w->failures++;
    int64_t wait = qty_mul_div(s->config.backoff_ms, (int64_t)1 << doublings, 1);
    workload_timer_set(s, w, qty_add_sat(s->now_ms, wait));
}

static void launched(struct sched *s, struct workload *w, const struct task *task,
                     enum sched_stop how)
{
    node_launched(task->node);
    if (how == SCHED_STOP_DONE || s->now_ms - task->since_ms >= s->config.backoff_ms)
        w->failures = 0;
}

int sched_task_stopped(struct sched *s, uint64_t workload, uint32_t task, enum sched_stop how,
                       int64_t now_ms)
{
    struct workload *w;
    int r = task_lookup(s, workload, task, &w);
    if (r < 0)
        return r;
    enum task_phase phase = task_phase(w, task);
    if (phase != TASK_RUNNING && phase != TASK_LEAVING && phase != TASK_ENDING)
        return -EINVAL;
    now_advance(s, now_ms);
    struct task *t = &w->tasks[task];
    uint64_t behalf = t->behalf;
    bool awaited = phase == TASK_ENDING || (phase == TASK_LEAVING && how == SCHED_STOP_REQUEUE);
    if (!awaited) /* else it is what a cancel or an eviction asked for */
        s->outside_epoch++;
    if (how == SCHED_STOP_REFUSED && !w->removed)
        back_off(s, w, t->node);
    else
        launched(s, w, t, how);
    bool ends = how == SCHED_STOP_DONE || w->removed;
    task_release(s, w, task, ends ? TASK_DONE : TASK_PENDING);
    if (behalf == BEHALF_UNKNOWN)
        s->stopping_unknown--;
    else
        hold_victim_stopped(s, behalf);
    s->retry = true;
    workload_requeue(s, w);
    tasks_forget(w);
    workload_collect(s, w);
    return 0;
}

int sched_task_stopping(struct sched *s, uint64_t workload, uint32_t task, int64_t now_ms)
{
    struct workload *w;
    int r = task_lookup(s, workload, task, &w);
    if (r < 0)
        return r;
    enum task_phase phase = task_phase(w, task);
    if (phase != TASK_RUNNING && phase != TASK_LEAVING)
        return phase == TASK_ENDING ? 0 : -EINVAL;
    now_advance(s, now_ms);
    s->outside_epoch++;
    if (phase == TASK_RUNNING) /* on nobody's behalf; it ends if its workload is removed */
        task_turn(s, w, task, TASK_LEAVING);
    s->retry = true;
    workload_requeue(s, w);
    return 0;
}

int sched_task_state(struct sched *s, uint64_t workload, uint32_t task,
                     enum sched_task_state *ret_state, uint64_t *ret_node)
{
    static const enum sched_task_state states[TASK_PHASES] = {
        [TASK_PENDING] = SCHED_TASK_PENDING, [TASK_HELD] = SCHED_TASK_HELD,
        [TASK_RUNNING] = SCHED_TASK_RUNNING, [TASK_LEAVING] = SCHED_TASK_STOPPING,
        [TASK_ENDING] = SCHED_TASK_STOPPING, [TASK_DONE] = SCHED_TASK_DONE,
    };
    struct workload *w;
    int r = task_lookup(s, workload, task, &w);
    if (r < 0)
        return r;
    *ret_state = states[task_phase(w, task)];
    if (ret_node != NULL)
        *ret_node = w->tasks != NULL && w->tasks[task].node != NULL ? w->tasks[task].node->id : 0;
    return 0;
}
