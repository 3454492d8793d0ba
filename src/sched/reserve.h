/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reservation: the first blocked workload whose start can be computed is not delayed by others
 * (EASY backfilling: Lifka, The ANL/IBM SP Scheduling System, JSSPP 1995).
 *
 * The plan (plan.h) gives the earliest start from declared and expected ends; the gang is then
 * entered in VIEW_PLAN. Work behind it starts if it ends before that by its own declared limit,
 * or fits in VIEW_PLAN as well, or could be evicted by the reserved workload anyway. Where
 * running work declares nothing there is no plan and no reservation; the next blocked workload
 * is asked. A reservation is made anew in every turn, at its holder's place in the order, so
 * that work before it is never bound by it.
 */
#ifndef ALLOT_SCHED_RESERVE_H
#define ALLOT_SCHED_RESERVE_H

#include "sched/gang.h"
#include "sched/world.h"

/* At the start of a turn: nobody is reserved for yet. */
void reserve_begin(struct sched *s);
/* At its end. */
void reserve_end(struct sched *s);
/* There was a reservation in the last turn, and there is none now, or another one that those who
 * waited for it were not asked about. */
bool reserve_changed(const struct sched *s);

/* W is blocked; if nobody has a reservation yet it gets one, where a start can be computed. */
void reserve_for(struct sched *s, struct workload *w, const struct gang *gang,
                 const struct amounts *need);
/* Would starting W (which fits now) have to respect the reservation? */
bool reserve_binds(const struct sched *s, const struct workload *w, const struct amounts *need);
/* The head of a ready line would outlast the reservation; is there a younger one in its group
 * that would not? Then that one is the head now. */
bool reserve_backfill(struct sched *s, struct line *line);
/* W starts on the spots of the last place_gang(): enters them in the plan if they outlast it. */
void reserve_started(struct sched *s, const struct workload *w);

#endif
