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
 * How they are found. A parked lot counts as ready again when its shape may have a place on a node
 * that something left (parked.h): asked once for each shape. It is woken by itself when its gate is
 * open, or for its rights. Lines that are not calm (queue.h) are woken by every waking.
 *
 * Searches for victims are what a turn costs most. At most SEARCHES lots are woken at once for
 * their rights, leaf after leaf, and fewer where the last ones took too long (evict.h); the turns
 * go on (sched_next_ms() says at once) until all have had their search. A leaf is passed over as
 * long as nothing has changed that could give one of its lots a right (team.quiet).
 *
 * Few or many. Up to LOTS_FEW parked lots, whoever is tried for a place also searches where it
 * finds none. Beyond that a shape is open only if all of its gang has a place, and shut when that
 * is taken (wake_shut()); who is tried for a place does not search out of turn, and most searches
 * are left to the turns that follow. So what an end of work costs depends on the shapes and leaves
 * that wait, and not on how many workloads.
 */
#ifndef ALLOT_SCHED_WAKE_H
#define ALLOT_SCHED_WAKE_H

#include "sched/world.h"

#define LOTS_FEW 1024

/* Are so few lots parked that each has its search as soon as it may have a right? */
static inline bool wake_few(const struct sched *s)
{
    return s->lots_parked <= s->lots_few;
}

/* Wakes what has a chance, or all if quota or inventory changed; clears the marks. */
void wake_lines(struct sched *s);

/* The line is to be tried: a parked one becomes a ready one. */
void wake_line(struct sched *s, struct line *line);
/* It has its search for victims in a later turn. */
void wake_again(struct sched *s, struct line *line);
/* One of this shape was found to have no place: so have all, and perhaps others. */
void wake_shut(struct sched *s, const struct job_shape *job);

#endif
