/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks: their phases, and the only code that changes the sums that follow from them.
 *
 *     phase    VIEW_NOW   VIEW_THEN   demand
 *     PENDING  -          -           yes
 *     HELD     -          yes         yes
 *     RUNNING  yes        yes         yes
 *     LEAVING  yes        -           yes (it will be pending again)
 *     ENDING   yes        -           -   (its workload was removed)
 *     DONE     -          -           -
 *
 * Functions here keep teams, nodes and the workload's counts right. The queues follow when the
 * caller is done with a workload: workload_requeue().
 */
#ifndef ALLOT_SCHED_TASK_H
#define ALLOT_SCHED_TASK_H

#include "sched/world.h"

static inline enum task_phase task_phase(const struct workload *w, uint32_t t)
{
    return w->tasks == NULL ? TASK_PENDING : (enum task_phase)w->tasks[t].phase;
}
static inline struct shape *task_shape(const struct workload *w, uint32_t t)
{
    return job_task(w->group->job, t)->shape;
}
static inline const uint16_t *task_devices(const struct task *t)
{
    return t->device_count <= DEVICES_INLINE ? t->devices.small : t->devices.large;
}
/* Charge of a task: of its placement if it has one, else of its request. */
struct amounts task_charge(const struct workload *w, uint32_t t);

/* A pending task takes devices: PHASE is HELD, RUNNING, LEAVING or ENDING. */
void task_place(struct sched *s, struct workload *w, uint32_t t, enum task_phase phase,
                struct node *n, const uint16_t *devices, uint32_t count, int64_t since_ms);
/* It keeps its devices and changes its phase. */
void task_turn(struct sched *s, struct workload *w, uint32_t t, enum task_phase phase);
/* It gives its devices back: PHASE is PENDING or DONE. Also for a PENDING one that is DONE. */
void task_release(struct sched *s, struct workload *w, uint32_t t, enum task_phase phase);

/* Frees the records of W's tasks if all of them are pending again: it waits as if it were new. */
void tasks_forget(struct workload *w);

/* Takes a RUNNING task out of VIEW_THEN as if it had been evicted (SIGN -1), or puts it back. */
void task_imagine(struct sched *s, struct workload *w, uint32_t t, int sign);

/* All of a fresh workload's tasks begin, or cease, to be counted as pending. */
void task_count_fresh(struct sched *s, struct workload *w, int sign);
/* Charges changed: all demands are summed anew. */
void task_demand_rebuild(struct sched *s);

/* The node went down (or came back): its running tasks are lost (or found). */
void task_node_lost(struct sched *s, struct node *n, bool lost);
/* Drops the promises on a node that is removed. */
void task_node_unhold(struct sched *s, struct node *n);

#endif
