/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order across teams: whose turn is it, and whose work goes first when something must go.
 *
 * At each level of the tree siblings are compared by, in this order: within their fair share
 * (as they are, without the candidate) before over it; within their guarantee with it; sibling
 * priority; the smaller dominant share of what they are entitled to, with it (the dominant
 * resource is the one of which the team has the largest part: Ghodsi et al., Dominant Resource
 * Fairness, NSDI 2011); age; id. All in VIEW_THEN, the state after the stopping ones have gone.
 *
 * Every team remembers the first line below it until something there changes: what is used or
 * ready in its subtree (team_use(), team_ready(), queue.c), or any share (sched.order_epoch). So
 * the next line costs the path of the last change, not all teams that wait.
 *
 * Victims come in the exact reverse, with the victim as the candidate that came last.
 */
#ifndef ALLOT_SCHED_ORDER_H
#define ALLOT_SCHED_ORDER_H

#include "sched/world.h"

struct order_key {
    const struct team *team;
    bool over_share, over_guarantee;
    int64_t part, whole; /* dominant share, part / whole */
};

/* The key of T for a candidate that asks for NEED. RUNNING: it is in the sums already. */
struct order_key order_key(const struct team *t, const struct amounts *need, bool running);
/* Does A's candidate start before B's? */
bool order_before(const struct order_key *a, const struct order_key *b);

/* The ready line that comes first in all the tree; NULL if there is none. */
struct line *order_next(struct sched *s, bool idle);

#endif
