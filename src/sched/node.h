/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes: the inventory, its topology domains, and the capacity that shares are made of.
 *
 * A node that is down stays in the inventory (what could run there is not refused) but takes
 * nothing and gives no capacity; the running tasks on it count as lost. A drained node runs what
 * it has and gives that much capacity, so that entitlements can be met by what is left.
 *
 * A topology domain is the path of label values from the outermost level down: rack r1 of zone
 * z1 is not rack r1 of zone z2. A node without the label is in no domain of that level.
 */
#ifndef ALLOT_SCHED_NODE_H
#define ALLOT_SCHED_NODE_H

#include "sched/world.h"

/* NULL where there is none. */
struct node *node_find(const struct sched *s, uint64_t id);
/* Of a node that no task holds. */
void node_free(struct node *n);

/* May new work be placed here? */
static inline bool node_takes(const struct node *n)
{
    return n->up && n->schedulable && !n->in_window;
}

/* Node order: does A come before B? */
bool node_before(const struct node *a, const struct node *b);

/* Something left the node, now or in VIEW_THEN: what did not fit there may fit. */
void node_touch(struct sched *s, struct node *n);

/* Nodes take work that did not, or the reverse: capacity, shares and waiting work are looked at
 * anew. */
void node_use_changed(struct sched *s);

/* Brings sched.capacity up to date. */
void node_capacity_refresh(struct sched *s);

/* Index of a topology level by its (interned) key; -1 if there is no such level. */
int node_level(const struct sched *s, const char *key);

/* A launch of WORKLOAD failed on N: after failures of different workloads in a row the node is
 * avoided for a while. node_launched() ends that. */
void node_refused(struct sched *s, struct node *n, uint64_t workload);
/* A launch succeeded. */
void node_launched(struct node *n);

#endif
