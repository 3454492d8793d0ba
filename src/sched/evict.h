/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eviction: who has to go so that a blocked workload can start.
 *
 * Three rights, asked in this order of their victims:
 *   idle-only  any work that is not idle-only itself may displace idle-only work: of its own
 *              team, or of a team that is above its guarantee where their paths part;
 *   reclaim    across teams, where the paths part: the victim's team is above its fair share
 *              before the victim goes, or above its guarantee while the requester stays within
 *              its own; the requester ends within its fair share at every level;
 *   preempt    of its own team, strictly lower by class, then priority.
 * Nobody evicts what is not preemptible, what is protected by a minimum run time, what has
 * started since the last event from outside, what holds a promise, or more of a workload than its
 * disruption budget has left.
 *
 * A start that nobody was told of yet is not evicted either, but taken back: it waits as before,
 * nothing stops, and the requester is tried again at once. So a turn does not start what the next
 * one would evict. It is not taken back where it was promised, where the workload ran in part
 * before, or where others have gone since, who went while it was there. Where so many wait that
 * searches take several turns (wake.h), what started in the first may be evicted in a later one.
 *
 * The search takes units in the exact reverse of the order (order.h, queue.h) until the request
 * would fit, then gives back every unit that is not needed, the most valuable first. So the set
 * is minimal: without any one of its members the request would not start. Where a node or a
 * topology domain has to be cleared of several, the cheapest one is, as long as nothing more
 * valuable has to go for it (price: work lost since the start and the cost of a restart, by size).
 * A rigid gang goes as a
 * whole; an elastic workload gives up surplus tasks first, and its core never goes where surplus
 * tasks would do. A candidate that may not go is passed over and never ends the search.
 *
 * No loops: who has reclaimed its place is not reclaimed before something happens outside (a
 * submit, an end, a change of quota or nodes), and nobody makes way for the same winner twice
 * (trade.h). So without outside events everything comes to rest.
 *
 * Where the order finds nothing, or takes the core of an elastic workload whose other tasks might
 * do, few candidates are also tried out of order (search.h).
 *
 * Large clusters. Most requests need one victim, so the first few units of each leaf are tried
 * before any others are collected. In a cluster of more than 128 nodes with more than 1024 possible
 * victims one task looks no further than that, and at nodes one by one: such as could be cleared by
 * teams that have something to give, at most 32 in vain a turn. Up to 1024 nodes the search goes on
 * in the next turn, and ends when it has seen all of them; in larger clusters it goes on from there
 * at the next event. Gangs, and work that a closed gate keeps waiting, always see all.
 *
 * Trials happen in VIEW_THEN and are undone; nothing is decided before a set is found.
 */
#ifndef ALLOT_SCHED_EVICT_H
#define ALLOT_SCHED_EVICT_H

#include "sched/gang.h"
#include "sched/victims.h"
#include "sched/world.h"

/* Finds victims for W; nothing is decided. */
bool evict_find(struct sched *s, struct workload *w, const struct gang *gang,
                const struct amounts *need, struct victims *ret_plan);
/* Takes back what of the victims has started in this turn. True if there was any: then W is to be
 * tried again, and perhaps nobody else has to go. */
bool evict_take_back(struct sched *s, struct workload *w, const struct victims *plan);
/* Decides the evictions, and promises W what they free. False: nothing changed. */
bool evict_carry_out(struct sched *s, struct workload *w, const struct gang *gang,
                     const struct victims *plan);

#endif
