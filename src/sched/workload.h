/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workloads: known to the scheduler from sched_workload_add() until nothing of them holds
 * devices any more after sched_workload_remove().
 *
 * workload_requeue() derives from a workload's task counts where it waits (group, own line,
 * back-off, nowhere) and whether it is a possible victim, a gang below its minimum, a holder of
 * a promise; call it after any change of its tasks.
 */
#ifndef ALLOT_SCHED_WORKLOAD_H
#define ALLOT_SCHED_WORKLOAD_H

#include "sched/world.h"

/* NULL where there is none. */
struct workload *workload_find(const struct sched *s, uint64_t id);
/* Of a workload that is in no line and holds nothing. */
void workload_free(struct workload *w);

/* Back into the line that it belongs to now, or into none. */
void workload_requeue(struct sched *s, struct workload *w);

/* Its promises are dropped: HELD tasks are PENDING again. Makes no decision. */
void workload_unhold(struct sched *s, struct workload *w);

/* When its victims have stopped the promise begins to expire, unless it can be kept at once. */
void workload_hold_ripens(struct sched *s, struct workload *w);

/* The time at which back-off or hold ends; INT64_MAX = never. Used by the timer heap. */
void workload_timer_set(struct sched *s, struct workload *w, int64_t at_ms);
/* Order of the timer heap. */
bool workload_timer_before(const struct heap_node *a, const struct heap_node *b);

/* A removed workload of which nothing holds devices any more is forgotten. */
void workload_collect(struct sched *s, struct workload *w);

#endif
