/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waking: which parked lines may have a chance after what has happened?
 *
 * A line is parked when it was tried and failed. It is woken when some of it fits on a node that
 * something left since, when a gate that was closed is open, when a reservation was in its way,
 * or when it has a right to evict: somebody lower runs in its team, idle-
 * only work runs, or its team would stay within its fair share. Both tests are cheap and err on
 * the side of waking; what is not woken would certainly fail again. Who has no right may still
 * have others moved (move.h) if enough is free in all: each waking tries a few of these, in turn.
 *
 * Searches for victims are what a turn costs most. Where more than SEARCHES lines have nothing
 * but a right to evict, each waking takes a part of them, and the turns go on (sched_next_ms()
 * says at once) until all have had their search. Others are woken there only if their shape has a
 * place, and do not search where they find it taken.
 */
#ifndef ALLOT_SCHED_WAKE_H
#define ALLOT_SCHED_WAKE_H

#include "sched/world.h"

/* Wakes what has a chance, or all if quota or inventory changed; clears the marks. */
void wake_lines(struct sched *s);

#endif
