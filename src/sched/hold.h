/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Promises: capacity that victims free belongs to the workload they were stopped for.
 *
 * A promise covers all tasks of a gang that start together. It is kept when all of its devices
 * are free and the gates are open in VIEW_NOW (the stopping victims still count there, so no
 * gate is passed twice). It is given up when a node of it is lost or drained, when a limit or
 * guarantee is lowered below it, when the gang that it was to complete is gone, when there is a
 * place to start at once, or when it could not be kept for sched_config.hold_ms after its last
 * victim stopped.
 *
 * What became free goes to those who wait in their order, whether they have a promise or not: a
 * promise is exchanged for a start at once at its holder's place in the order.
 */
#ifndef ALLOT_SCHED_HOLD_H
#define ALLOT_SCHED_HOLD_H

#include "sched/world.h"

/* Keeps, ripens and gives up promises; the first step of a turn. */
void hold_step(struct sched *s);
/* Who is promised a place, and comes before LINE (NULL: anybody), gives it up for a start at once
 * if there is one, and if something left a node since that was last asked. False: nobody was asked,
 * and the spots of the last place_gang() are still there. */
bool hold_starts_first(struct sched *s, const struct line *line);
/* One of W's victims has stopped. */
void hold_victim_stopped(struct sched *s, uint64_t workload);

/* Capacity that waiting work counts on, until the end of the turn: takes the spots of the last
 * place_gang() in VIEW_THEN for W. */
void hold_claim(struct sched *s, struct workload *w);
/* The turn is over. */
void hold_claims_drop(struct sched *s);

#endif
