/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The judge of a history: an account of its own of everything that became durable.
 *
 * It watches the store (memory_store.h) and knows the rules, but neither core nor the scheduler.
 * With every row it checks, in the order in which things happened:
 *
 *   - no device, cpu or memory of a node is given out twice (ledger.h), and nothing starts on a
 *     node that is down or drained;
 *   - no start takes a team or an ancestor of it above its limit, and no start of work that is
 *     not preemptible above its guarantee, of all GPUs and of the type that it starts on;
 *   - a workload is accepted once and as it was asked for, follows its table of states, and is
 *     gone only when it has ended and nothing of it holds devices;
 *   - an attempt of a task starts once, one at a time, and its attempts grow;
 *   - a gang starts with its minimum, counting tasks that have done their part, or not at all;
 *   - metered intervals end after they begin and never lie over what the device, or the task, held
 *     before; a task is known to be busy, or not, for no longer than it had its devices;
 *   - who is suspended holds its CPU and memory and no device; its attempt goes on, in intervals
 *     without a gap, and with its devices only as a start may;
 *   - events grow and their times never go back; no two workloads make each other give way back and
 * forth while nothing happens from outside.
 *
 * Time of a quota. A decision is taken under the quotas that core applies at that moment, which
 * is when the answer of the store arrives, while rows come in groups. So a start is measured
 * against the most generous of the quotas that can have been in force: until the second group
 * after the change the former ones count too. The same holds for drained nodes.
 *
 * Units as in the model. Ownership: the judge copies what it needs.
 */
#ifndef ALLOT_SIM_HISTORY_JUDGE_H
#define ALLOT_SIM_HISTORY_JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/store_port.h"

struct history_judge;

struct history_counts {
    uint64_t accepted, succeeded, failed, cancelled, live;
    uint64_t allocations, evictions, groups;
    uint64_t suspended; /* by a person's wish, or to give way */
};

/* Knows nothing yet; aborts when out of memory. */
struct history_judge *history_judge_create(void);
void history_judge_destroy(struct history_judge *j);

/* The rows that follow become durable together; until here. */
void history_judge_group(struct history_judge *j);
void history_judge_group_end(struct history_judge *j);
/* One of them: a memory_store_watch_fn. */
void history_judge_op(void *judge, const struct store_op *op);
/* Something happened that neither core nor the scheduler has brought about. */
void history_judge_outside(struct history_judge *j);

/* NULL, or what was wrong first. */
const char *history_judge_wrong(const struct history_judge *j);
/* The durable workload with this number ("w17"): its id, 0 when it has ended. -ENOENT: none. */
int history_judge_find(const struct history_judge *j, int32_t number, uint64_t *ret_id);
/* The durable team with this number ("t3"): that of its parent, -1 = none. -ENOENT. */
int history_judge_team(const struct history_judge *j, int32_t number, int32_t *ret_parent);
/* The ids of live workloads in order, for whoever asks about each: those above AFTER, or 0. */
uint64_t history_judge_next(const struct history_judge *j, uint64_t after);
void history_judge_counts(const struct history_judge *j, struct history_counts *ret_counts);
/* A number of everything that became durable, in order. */
uint64_t history_judge_trace(const struct history_judge *j);

#endif
