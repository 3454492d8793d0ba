/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of teams and its sums.
 *
 * All top teams are children of one root that has no gates. Sums are kept at every level: who
 * adds to a leaf adds to all of its ancestors, so that a gate or a comparison reads one record.
 * sched_team_set() and its kin (allot/sched.h) live here too.
 */
#ifndef ALLOT_SCHED_TEAM_H
#define ALLOT_SCHED_TEAM_H

#include "sched/world.h"

/* The organisation above all teams, without limits. */
void team_root_init(struct sched *s);
/* Of a team without children and workloads. */
void team_free(struct team *t);

/* NULL where there is none. */
struct team *team_find(const struct sched *s, uint64_t id);

static inline bool team_is_leaf(const struct team *t)
{
    return t->children.len == 0;
}

/* Adds SIGN times AMOUNTS to a sum of the team and of all its ancestors. */
void team_use(struct team *t, enum view view, const struct amounts *a, bool firm, int sign);
/* Counts, for it and all above, what may open a gate or give a right: something was given back, a
 * share or quota changed, other work began to run. */
uint64_t team_eased(const struct team *t);
/* Adds SIGN times AMOUNTS to what is wanted of it and of all above, running or not. */
void team_demand(struct team *t, const struct amounts *a, int sign);
/* So many more lines are ready, or fewer. */
void team_ready(struct team *t, bool idle, int change);
/* So many more idle-only workloads run, or fewer. */
void team_idle_running(struct team *t, int change);

/* The children of the deepest common ancestor that lead to A and B; the same team twice if A
 * and B are one. */
void team_part(struct team *a, struct team *b, struct team **ret_a, struct team **ret_b);

#endif
