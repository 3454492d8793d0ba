/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trades: who made way for whom since the last event from outside.
 *
 * The promise of no loops is kept here and not left to the rules of eviction: whatever right or
 * move is used, the same workload does not make way for the same winner, return, and make way
 * for it again, unless something has happened outside (sched.outside_epoch). A winner that has
 * grown meanwhile asks for something else and may ask again.
 *
 * Events do not end every loop, though: a team that is below its guarantee takes a place back,
 * fills up with other work, is above its share by that, and loses the place again to one whose
 * team has a share left. So one rule outlives them: what a team has won within its guarantee, the
 * loser does not take back by its mere share, as long as what the two teams are entitled to is
 * what it was, and the winner has not grown beyond what it won. The guarantee is the stronger
 * right, and the team's other work can make way.
 *
 * A winner that finds a victim closed to it waits; sched.passed_epoch remembers that, and the
 * first event from outside has the lines tried again.
 *
 * Ownership: the records live in an arena of their own until the epoch changes; what was won by
 * guarantees is forgotten when there is too much of it, which costs a lap and no promise.
 */
#ifndef ALLOT_SCHED_TRADE_H
#define ALLOT_SCHED_TRADE_H

#include "sched/world.h"

/* A task of VICTIM is to stop on behalf of the workload with this id. */
void trade_note(struct sched *s, const struct workload *victim, uint64_t winner);
/* Has V made way for W before, and returned since, and has W nothing more than it had then? */
bool trade_is_closed(struct sched *s, const struct workload *v, const struct workload *w);
/* LOSER is to make way for GAINED tasks of WINNER, whose team stays within its guarantee. */
void trade_guard(struct sched *s, const struct workload *loser, const struct workload *winner,
                 uint32_t gained);
/* Has W lost to V so, and is what their teams are entitled to the same? GPUS: V has some, and W
 * wants some. */
bool trade_is_guarded(struct sched *s, const struct workload *v, const struct workload *w,
                      bool gpus);
/* Somebody was passed over until the next event from outside. */
void trade_passed(struct sched *s);
/* That event has come, and whoever waited for it is to be tried again; asked once a turn. */
bool trade_reopened(struct sched *s);
/* Frees all. */
void trade_done(struct sched *s);

#endif
