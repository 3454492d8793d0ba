/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges decisions. They are carried out in the books one by one, in the order given, and each
 * is judged against the books as they are just before it. Shares are computed once a turn: what
 * runs and what waits together do not change by a decision.
 *
 * All judges return false after prop_fail() with the decision and what is wrong with it.
 *
 *     struct judge j = {.w = w, .shares = naive_shares(w), .d = decisions, .quiet = true};
 *     for (j.i = 0; j.i < j.d->count; j.i++)
 *         if (!judge_decision(&j)) ...
 */
#ifndef ALLOT_PROP_JUDGE_H
#define ALLOT_PROP_JUDGE_H

#include "prop_naive.h"

struct judge {
    struct prop_world *w;
    struct naive_shares shares;
    const struct sched_decisions *d;
    size_t i;   /* the decision that is judged */
    bool quiet; /* nothing was stopping when the turn began: nobody waits for a stop */
};

/* The decision that is judged. */
static inline const struct sched_decision *judge_now(const struct judge *j)
{
    return &j->d->items[j->i];
}

/* The workload with this id of the scheduler. */
static inline struct prop_workload *judge_subject(const struct judge *j, uint64_t id)
{
    return j->w->workloads.items[id - 1];
}

/* Says what is wrong with the decision; false. */
bool judge_bad(const struct judge *j, const char *what);

/* Carries the decision out and judges it: devices, gates, phases, and by the two below. */
bool judge_decision(struct judge *j);
/* May this work go, for this winner and this cause? Carries it out (prop_evict.c). */
bool judge_evict(const struct judge *j);
/* Once all starts or promises of a winner are known: it ends within its share, and none of its
 * victims could have stayed (prop_winner.c). */
bool judge_winner(const struct judge *j);
/* Likewise: notes what was won by guarantee (prop_guard.c). */
void judge_guards(const struct judge *j);
/* Has LOSER lost to WINNER so, and are both teams entitled to what they were? GPUS: only of these
 * is it asked. */
bool prop_guarded(const struct prop_world *w, const struct naive_shares *shares, uint32_t loser,
                  uint32_t winner, bool gpus);
/* Does a loser wait while its winner runs? A scheduler that is built anew knows nothing of it. */
bool prop_guards_matter(const struct prop_world *w);
/* Once the turn is over: gangs are whole and in the domains they asked for (prop_gang.c). */
bool judge_gangs(const struct judge *j);

#endif
