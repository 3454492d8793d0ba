/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search for a minimal set of victims among collected units; see evict.h for its rules.
 *
 * Units are taken out of VIEW_THEN on trial, in the order in which they would go, until the
 * request fits; the shortest sufficient prefix is found by doubling and halving; then each unit
 * that is not needed is given back, the most valuable first. Whatever the outcome, VIEW_THEN is
 * left as it was.
 */
#ifndef ALLOT_SCHED_SEARCH_H
#define ALLOT_SCHED_SEARCH_H

#include "sched/units.h"
#include "sched/victims.h"

/* True with the victims for e->w among e->units. */
bool search_victims(struct sched *s, struct evicting *e, struct victims *ret_plan);
/* Collects for itself, where the order finds none although all together would do: it may spend
 * what a team is above its share by on work that is of no help. Tries sets out of order, small ones
 * first; for few units only, and a bounded number of sets a turn. THAN: only sets with fewer tasks,
 * neither dearer nor of a higher class; NULL = any. */
bool search_out_of_order(struct sched *s, struct evicting *e, const struct victims *than,
                         struct victims *ret_plan);

#endif
