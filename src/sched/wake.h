/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waking: which parked lines may have a chance after what has happened?
 *
 * A line is parked when it was tried and failed. What it was tried for can only succeed after one
 * of these, each of which leaves a mark for the next turn (sched.retry unless said otherwise):
 *
 *     what happens                                     who may have a chance
 *     something left a node, now or in VIEW_THEN       whose tasks fit on it (sched.touched); all
 *       (stop, eviction, cancel, promise or move         of a team that a quota per type binds
 *       given up, claim of one who is cancelled)       whose gate was closed and is open
 *     a share changed, or a bias of past use           who has a right over anybody, by the
 *     a team passed its share, guarantee, or that        cheap look of units_may_exist()
 *       of a type: its work became eligible
 *     a budget grew, a promise was kept                likewise
 *     minimum run time is over, or what had just       likewise (protected_until_ms, wake_soon)
 *       started has not just started any more
 *     an event from outside, and somebody had been     likewise (trade_reopened())
 *       passed over until the next one
 *     a bound on searches cut one short                who was cut short (wake_soon)
 *     the reservation is gone, or is another one       who was parked for it
 *     a window began or ended; quota, teams, nodes     all (retry_all)
 *     a back-off is over                               it is a ready line by itself
 *
 * Whether there is a place for a gang hangs on nothing else: not on the observed mix of requests,
 * which only says which place is best (place.h). The looks are cheap and err on the side of waking.
 * Who has no right may still have others moved (move.h) if enough is free in all: each waking tries
 * a few of these, in turn.
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
