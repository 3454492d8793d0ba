/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decisions: each is recorded for the caller and applied to the state in one step, so that what
 * is decided is never decided twice.
 */
#ifndef ALLOT_SCHED_DECIDE_H
#define ALLOT_SCHED_DECIDE_H

#include "sched/world.h"

/* W gets the spots of the last place_gang(): its tasks start. */
void decide_start_spots(struct sched *s, struct workload *w, enum sched_cause cause);
/* Likewise, as a promise. */
void decide_hold_spots(struct sched *s, struct workload *w, enum sched_cause cause);
/* All that is promised to W starts. */
void decide_start_held(struct sched *s, struct workload *w);
/* All that is promised to W is given up. */
void decide_unhold(struct sched *s, struct workload *w, enum sched_cause cause);

struct eviction {
    enum sched_cause cause;
    uint64_t behalf; /* workload, or 0 */
    uint64_t team;   /* whose share made it due, or 0 */
};
/* One running task of W has to go. The caller requeues W when all that go of it have been said. */
void decide_evict(struct sched *s, struct workload *w, uint32_t t, const struct eviction *why);
/* If the task started in this turn it has to go for the sake of the workload BEHALF: it waits again
 * at once as if it had never started. False: it started before, and nothing is done. The caller
 * requeues W. */
bool decide_take_back(struct sched *s, struct workload *w, uint32_t t, uint64_t behalf);
/* The turn is over: nothing is said of starts that were taken back. */
void decide_end(struct sched *s);
/* All running tasks of W have to go, on nobody's behalf. */
void decide_evict_all(struct sched *s, struct workload *w, enum sched_cause cause);

/* GPU-milliseconds that are lost if the running task goes now; a task without GPU is priced by
 * its time alone, as if it had a thousandth of one. */
int64_t decide_price_ms(const struct sched *s, const struct workload *w, uint32_t t);

#endif
