/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gangs: what of a workload must start together, and what is surplus.
 *
 * The minimum starts all or nothing; ended tasks count towards it. Groups have minima of their
 * own inside it. Past the minimum an elastic workload grows by one task at a time. A workload of
 * which nothing runs any more starts again only when all of its tasks have stopped: there are
 * never two incarnations.
 */
#ifndef ALLOT_SCHED_GANG_H
#define ALLOT_SCHED_GANG_H

#include "sched/world.h"

struct gang {
    uint32_t total;      /* tasks that must be placed together */
    uint32_t round;      /* 0 = to reach the minimum; else growth, 1 + the surplus it has */
    bool grouped;        /* quota[] binds */
    VEC(uint32_t) quota; /* of `total`, per group */
};

/* Frees what gang_next() made. */
void gang_done(struct gang *g);

/* What W would start next; W NULL: a fresh workload of that shape. False: nothing may start. */
bool gang_next(const struct job_shape *job, const struct workload *w, struct gang *ret_gang);

/* Charges of what would start next, with the tasks in start order. */
struct amounts gang_charge(const struct job_shape *job, const struct workload *w,
                           const struct gang *gang);
/* The same for a fresh workload: its minimum. */
struct amounts gang_least(const struct job_shape *job);

/* Tasks it must keep running: its minimum without those that have ended. */
uint32_t gang_minimum(const struct workload *w);
/* Running tasks beyond the minimum (and beyond the minima of the groups, in sum). */
uint32_t gang_surplus(const struct workload *w);
/* The running task that is given up first, and is beyond every minimum; false if there is none. */
bool gang_surplus_task(const struct workload *w, uint32_t *ret_task);
/* How many tasks of the group are beyond its minimum; all of them where there are no groups. */
uint32_t gang_group_spare(const struct workload *w, uint32_t group);
/* Has each group of W its minimum, with what is promised or has ended? */
bool gang_groups_met(const struct workload *w);
/* Something runs, but less than the minimum. */
bool gang_is_short(const struct workload *w);

/* Keeps sched.below up to date. */
void gang_watch(struct sched *s, struct workload *w);
/* W is going, or has nothing that runs. */
void gang_unwatch(struct sched *s, struct workload *w);

/* Time begins to count for those that have become short. */
void gang_stamp(struct sched *s);
/* Tears down what has been short for too long; one step of the turn. */
void gang_step(struct sched *s);
/* When the next one is due; INT64_MAX if never. */
int64_t gang_next_ms(const struct sched *s);

#endif
