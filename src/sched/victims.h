/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A set of victims that was found, with its price; plans are compared before one is carried out.
 */
#ifndef ALLOT_SCHED_VICTIMS_H
#define ALLOT_SCHED_VICTIMS_H

#include "sched/world.h"

struct victim {
    struct workload *w;
    uint32_t task;
    enum sched_cause cause;
};

struct victims {
    VEC(struct victim) list; /* in the order of going */
    uint32_t units;
    int64_t price_ms;
    bool idle_only;          /* all of it is idle-only work */
    enum sched_class class_; /* of the highest among them */
    int32_t priority;
};

/* Empties the set and keeps its memory. */
void victims_clear(struct victims *v);
/* Frees the set. */
void victims_done(struct victims *v);
/* Enters a unit, in the order of the search. */
void victims_add(struct sched *s, struct victims *v, struct workload *w, uint32_t task,
                 enum sched_cause cause);
/* Is A cheaper than B, without touching more valuable work? */
bool victims_better(const struct victims *a, const struct victims *b);
/* Takes them all out of VIEW_THEN on trial (SIGN -1), or puts them back. */
void victims_imagine(struct sched *s, const struct victims *v, int sign);

#endif
