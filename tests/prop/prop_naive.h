/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules, computed the slow way from the books: sums over all tasks, fair shares by repeated
 * division, charges from the request. Nothing is kept between calls and nothing is shared with
 * the scheduler's code.
 *
 *     struct naive_sums now = naive_sums(w, NAIVE_NOW);
 *     if (now.used[team].v[SCHED_GPU_MILLI] > limit) ...
 */
#ifndef ALLOT_PROP_NAIVE_H
#define ALLOT_PROP_NAIVE_H

#include "prop_world.h"

struct naive_amounts {
    int64_t v[SCHED_RESOURCES];
};

enum naive_view {
    NAIVE_NOW, /* running and stopping */
    NAIVE_THEN /* running and promised */
};

struct naive_sums {
    struct naive_amounts used[PROP_TEAMS_MAX];
    struct naive_amounts firm[PROP_TEAMS_MAX]; /* of non-preemptible work */
};

/* Per team, subtree included. */
struct naive_sums naive_sums(const struct prop_world *w, enum naive_view view);

/* Charge of task T: of its devices where it has some, else of its request. */
struct naive_amounts naive_charge(const struct prop_world *w, const struct prop_workload *p,
                                  uint32_t t);
/* GPU charge of a request on these devices of a node. */
int32_t naive_placed_milli(const struct prop_world *w, const struct sched_request *q, uint32_t node,
                           const uint16_t *devices, uint32_t count);

/* How many devices or slices a request takes. */
static inline uint32_t naive_devices(const struct sched_request *q)
{
    uint32_t count = q->device_count;
    for (uint32_t i = 0; i < q->mig_count; i++)
        count += q->mig[i].count;
    return count;
}

struct naive_shares {
    struct naive_amounts demand[PROP_TEAMS_MAX], share[PROP_TEAMS_MAX], entitled[PROP_TEAMS_MAX];
};

struct naive_shares naive_shares(const struct prop_world *w);

/* Would a start of task T keep every ancestor's limit and, where it must, guarantee? */
bool naive_gates_open(const struct prop_world *w, const struct prop_workload *p, uint32_t t,
                      const struct naive_sums *sums);
/* Likewise of the node's GPU type, for MILLI there more. */
bool naive_types_open(const struct prop_world *w, const struct prop_workload *p, uint32_t node,
                      int64_t milli, enum naive_view view);
/* Is what TEAM has of TYPE within a guarantee of it, so that it is not reclaimed; and would it be
 * with MILLI more, so that others make way there? */
bool naive_type_keeps(const struct prop_world *w, uint32_t team, const char *type);
bool naive_type_entitled(const struct prop_world *w, uint32_t team, const char *type,
                         int64_t milli);
/* Is the node there for work now: up, open, without maintenance? */
bool naive_takes(const struct prop_world *w, uint32_t node);
/* And does its next maintenance leave P time to run? */
bool naive_leaves_time(const struct prop_world *w, const struct prop_workload *p, uint32_t node);
/* May the node hold it at all: type, labels, the one it is bound to. */
bool naive_node_suits(const struct prop_world *w, const struct sched_request *q, uint32_t node);

/* Depth-first helpers of the tree. */
bool naive_within(const struct prop_world *w, uint32_t team, uint32_t ancestor);
/* The two teams below the last common ancestor of A and B; false if A == B. */
bool naive_parting(const struct prop_world *w, uint32_t a, uint32_t b, uint32_t *ret_a,
                   uint32_t *ret_b);

#endif
