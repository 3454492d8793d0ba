/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Past use: who had much lately gets less of the surplus.
 *
 * With sched_config.past_half_life_ms set, each team keeps what it used, per resource, as amount
 * times milliseconds; it halves in that time. Among siblings a weight is biased by what is due
 * over what was had,
 *
 *     (weight / sum of weights) / (past / sum of pasts),
 *
 * between a quarter and four times, in eighths rounded down. Who used what its weight is due has
 * the weight that it states. Guarantees and limits know nothing of the past.
 *
 * The half-life is divided in 64 steps. At each step, counted from the caller's zero, pasts
 * decay by the factor 2^(-1/64) (in 2^-32, rounded down) and biases are made anew; between steps
 * they stand still. So the outcome follows from what was in use when, however often turns are
 * asked for, and shares move at known times. A step that changes a bias is an event from outside
 * (sched.outside_epoch): whoever is entitled to more by it may take it back.
 *
 * past_advance() comes after the clock has moved and before what is in use changes.
 */
#ifndef ALLOT_SCHED_PAST_H
#define ALLOT_SCHED_PAST_H

#include "sched/world.h"

#define PAST_EIGHTHS 8 /* a bias of one */

/* Counts what was in use up to sched.now_ms. */
void past_advance(struct sched *s);
/* Weights or the tree changed: biases are made anew. */
void past_rebias(struct sched *s);
/* When the next step is due, if anybody waits; INT64_MAX if not. */
int64_t past_next_ms(const struct sched *s);

#endif
