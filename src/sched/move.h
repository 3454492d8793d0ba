/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Consolidation: running preemptible work is moved to make room for a request that would fit if
 * what is free lay together.
 *
 * A move needs no right over anybody: whoever may be started may have room made, if every moved
 * workload finds a new place and its gates are open there (work of a team that is above a lowered
 * limit stays where it is: it would not start again). Whole workloads move (a rigid gang restarts
 * as one), at most sched_config.moves_max a decision, each smaller than the request and not twice
 * without an outside event, never what is protected by a minimum run time or holds a promise. Node
 * after node is considered, the cheapest set wins; a set without a member that is not needed. For
 * gangs all nodes are looked at together; what that takes in a large cluster beyond the bound of a
 * turn, the turns that follow do without.
 *
 * Carrying out: the tasks are evicted (cause consolidate), the room is promised to the request,
 * and the new places are kept in sched.moving until the moved tasks have stopped and start there
 * again. A new place is given up with its node, with the workload, when a limit is lowered below
 * it, or when it could not be used for sched_config.hold_ms; the workload then waits like any
 * other.
 */
#ifndef ALLOT_SCHED_MOVE_H
#define ALLOT_SCHED_MOVE_H

#include "sched/gang.h"
#include "sched/world.h"

struct move_plan {
    VEC(struct claim) room;   /* for the request */
    VEC(struct claim) places; /* for what is moved, workload by workload */
    int64_t price_ms;
};

/* Releases the plan; what was carried out has been taken from it. */
void move_plan_done(struct move_plan *p);

/* A turn begins: it has looked at no nodes yet, but for what the last one looked at too many. */
void move_begin(struct sched *s);
/* The cheapest way to make room for W by moving others; nothing is decided. */
bool move_find(struct sched *s, struct workload *w, const struct gang *gang,
               const struct amounts *need, struct move_plan *ret_plan);
/* Decides the moves and promises W the room. */
void move_carry_out(struct sched *s, struct workload *w, struct move_plan *plan);

/* Starts what has arrived, gives up what cannot; one step of the turn. */
void move_step(struct sched *s);
/* W gives its new places up; makes no decision. */
void move_drop(struct sched *s, struct workload *w);

#endif
