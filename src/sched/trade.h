/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trades: who made way for whom since the last event from outside.
 *
 * The promise of no loops is kept here and not left to the rules of eviction: whatever right or
 * move is used, the same workload does not make way for the same winner, return, and make way
 * for it again, unless something has happened outside (sched.outside_epoch). A winner that has
 * grown meanwhile asks for something else and may ask again.
 *
 * A winner that finds a victim closed to it waits; sched.passed_epoch remembers that, and the
 * first event from outside has the lines tried again.
 *
 * Ownership: the records live in an arena of their own until the epoch changes.
 */
#ifndef ALLOT_SCHED_TRADE_H
#define ALLOT_SCHED_TRADE_H

#include "sched/world.h"

/* A task of VICTIM is to stop on behalf of the workload with this id. */
void trade_note(struct sched *s, const struct workload *victim, uint64_t winner);
/* Has V made way for W before, and returned since, and has W nothing more than it had then? */
bool trade_is_closed(struct sched *s, const struct workload *v, const struct workload *w);
/* Somebody was passed over until the next event from outside. */
void trade_passed(struct sched *s);
/* That event has come, and whoever waited for it is to be tried again; asked once a turn. */
bool trade_reopened(struct sched *s);
/* Frees all. */
void trade_done(struct sched *s);

#endif
