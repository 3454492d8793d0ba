/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims: places in VIEW_THEN that are kept for tasks which are not there yet.
 *
 * Work that is being moved keeps its new place until it arrives; work that waits for what is
 * stopping anyway keeps its place until the end of the turn, so that others of the turn count on
 * what is left. The place of a move counts like a task, on the devices and in the sums of the
 * team. A claim on what is stopping counts on the devices, and against what its team may still
 * take from others; it does not make the team's running work a victim.
 *
 * Ownership: a claim owns its devices; free() them after the place is given back.
 */
#ifndef ALLOT_SCHED_CLAIM_H
#define ALLOT_SCHED_CLAIM_H

#include "sched/place.h"

/* Of a spot of P, for W; not taken yet. */
struct claim claim_of(const struct placing *p, const struct spot *spot, struct workload *w);
/* What its team is charged for it. */
struct amounts claim_charge(const struct claim *c);
/* Takes its place in VIEW_THEN for a task of a move (SIGN 1), or gives it back (-1). */
void claim_take(const struct claim *c, int sign);

#endif
