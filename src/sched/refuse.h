/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Never satisfiable: could a workload ever start, were everything else gone?
 *
 * Asked of the whole inventory, nodes that are down included, and of the limits and guarantees
 * above its team. What was accepted once is never asked again; it waits.
 */
#ifndef ALLOT_SCHED_REFUSE_H
#define ALLOT_SCHED_REFUSE_H

#include "sched/world.h"

/* 0, or -E2BIG with the reason. */
int refuse_check(struct sched *s, const struct group *g, struct sched_refusal *ret_refusal);

#endif
