/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Histories of the whole control plane: the real core and scheduler between a store in memory, an
 * engine in virtual time and a clock that jumps.
 *
 * A history is a list of steps (history_step.h), asked for one by one. After each of them must
 * hold:
 *
 *   - core_verify(): the scheduler's and core's sums are those of a recount from scratch, devices
 *     and tasks included;
 *   - the judge (history_judge.h), which has seen every row that became durable, and the engine,
 *     which has seen every call, found nothing wrong;
 *   - who was told that work is accepted finds it in the store, and who was refused does not;
 *   - whenever nothing waits for the disk, core knows as many live workloads as the store has.
 *
 * Further, at each crash that finds nothing waiting for the disk, and at every so many steps that
 * do: what is loaded from the store is, as text (core_describe()), the state
 * that was live. At each `rest`: within a bounded number of turns nothing happens any more, and
 * nobody waits who could start. At the end faults cease, quotas are opened, and everything that
 * was accepted runs and ends within a bounded number of rounds; then nothing holds a device.
 *
 * The same steps give the same trace on every machine: a number of every row that became durable
 * and every call to the engine, in order.
 *
 *     struct history_result r;
 *     if (history_play(next_of_list, &list, 1, &r) < 0)
 *         printf("step %" PRIu64 ": %s\n", r.steps, r.wrong);
 */
#ifndef ALLOT_SIM_HISTORY_H
#define ALLOT_SIM_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/history_judge.h"
#include "sim/history_step.h"

struct history;

/* How a difference between stored and live state begins. */
#define HISTORY_DIFFERS "stored state differs from live state"

struct history_result {
    uint64_t trace;
    uint64_t steps; /* played; when something is wrong, the last of them is at fault */
    uint64_t refused, crashes, compared, disk_faults, rests;
    struct history_counts counts;
    char wrong[480]; /* "" = all held */
};

/* Gives the next step; false at the end. H is as the former step left it. */
typedef bool history_next_fn(void *user, const struct history *h, struct history_step *ret_step);

/* Plays all steps and the end. Stored and live state are compared after every COMPARE_EVERY steps
 * that leave nothing waiting for the disk (and at crashes): 1 = each. 0, or -EUCLEAN with
 * RET_RESULT->wrong; RET_RESULT is always written. Aborts where the code under test aborts. */
int history_play(history_next_fn *next, void *user, uint64_t compare_every,
                 struct history_result *ret_result);

#endif
