/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exact answers for small worlds, by trying everything.
 *
 * Where a gang could be placed: every choice of its tasks, on every node, on every choice of
 * devices. Who could be made to leave for it: every set of units, each entered in every order in
 * which each of its members may go. What starts first: the order of the teams, level by level.
 * Costs grow exponentially; asked of a few nodes and workloads only.
 *
 * All of it looks at what is held once the stopping are gone (prop_world.then), and leaves the
 * books as they were. What is not decided exactly here (see exact_simple()) is not asked.
 */
#ifndef ALLOT_PROP_EXACT_H
#define ALLOT_PROP_EXACT_H

#include "prop_judge.h"

#define EXACT_STATES_MAX 8192 /* sets of victims; a world that has more is passed over */

/* ---- starting (prop_exact.c) ------------------------------------------------------------- */

struct exact_next {            /* what of a workload would start together next */
    uint32_t total;            /* tasks */
    uint32_t lacks[2];         /* of these, at least, per group */
    bool growth;               /* past the minimum */
    struct naive_amounts need; /* charge while it waits, with the tasks in start order */
};

/* False: nothing may start. */
bool exact_next(const struct prop_world *w, const struct prop_workload *p,
                struct exact_next *ret_next);

/* Equal requests, no ranks beside groups, no groups with a domain of their own: no choice of tasks
 * depends on more than counts. The scheduler gives each group the first domain that holds it, and
 * does not go back on that when there is none for the next. */
bool exact_simple(const struct prop_workload *p);

/* All that waits of it starts together, no group has a domain of its own, and at most one of its
 * requests shares devices: whatever its tasks ask for, there is no choice but of nodes. */
bool exact_whole(const struct prop_workload *p, const struct exact_next *next);

/* Is there any way to start what would start next: gates open, every task placed? ACCEPT (or
 * NULL) may turn a way down by its charge. */
bool exact_starts(struct prop_world *w, struct prop_workload *p,
                  bool (*accept)(void *user, const struct naive_amounts *charge), void *user);

/* Do all gates admit CHARGE more of P's work? */
bool exact_gates(const struct prop_world *w, const struct prop_workload *p,
                 const struct naive_sums *sums, const struct naive_amounts *charge);

/* ---- order (prop_order.c) ---------------------------------------------------------------- */

/* Must A's next start come before B's, whatever else waits? Both wait; false also where it
 * depends on others. */
bool exact_before(const struct prop_world *w, const struct naive_shares *shares, uint32_t a,
                  uint32_t b);

/* ---- evicting (prop_admit.c) ------------------------------------------------------------- */

#define EXACT_WORKLOADS_MAX 64

struct exact_victims {
    uint32_t workloads;                 /* how many give way, in whole or in part */
    uint8_t tasks[EXACT_WORKLOADS_MAX]; /* which of their tasks, as bits */
};

enum exact_answer { EXACT_NO, EXACT_YES, EXACT_TOO_MANY };

/* Could P start if some of those went that it has a right over? RET_FEWEST: the set with the least
 * number of workloads. */
enum exact_answer exact_evicts(struct prop_world *w, uint32_t p, const struct naive_shares *shares,
                               struct exact_victims *ret_fewest);
/* P was promised room for VICTIMS, who are back in the books: is that an admissible set, and is
 * none of its parts enough? Keeps the failure. */
bool exact_minimal(struct prop_world *w, uint32_t p, const struct naive_shares *shares,
                   const struct exact_victims *victims);

#endif
