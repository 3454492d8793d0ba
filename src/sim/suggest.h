/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guarantees for teams, proposed from what they have asked for.
 *
 * Demand. As if there were no limit and no end of GPUs: every job of the record holds what it is
 * charged from its submit for as long as it works (see past.h). Of the GPUs that a team so holds
 * at a time, the share of time counts: "p95 = 12" means that for 95% of the window it wanted 12
 * or fewer. The window is from the first submit to the end of the record.
 *
 * Proposal, in whole GPUs, never more than there are in all:
 *   1. each team gets its median demand, but at least the peak of what may not be evicted, which
 *      only starts within a guarantee;
 *   2. what remains is shared out towards each team's p95, in proportion to what it lacks;
 *   3. the rest stays free: teams borrow it by their weights.
 * Where step 1 alone asks for more than there is, all get the same part of it. Fractions of a GPU
 * go by largest remainder, ties to the older team.
 *
 *     suggest_make(&past, capacity_milli, &s);
 *     suggest_done(&s);
 */
#ifndef ALLOT_SIM_SUGGEST_H
#define ALLOT_SIM_SUGGEST_H

#include "base/vec.h"
#include "sim/past.h"

struct suggest_team {
    const struct past_team *team;
    uint64_t jobs;
    int64_t p50_milli, p95_milli, p99_milli, peak_milli; /* of demand, by share of time */
    int64_t firm_milli;                                  /* peak of what may not be evicted */
    int64_t now_milli;                                   /* guarantee of the record */
    int64_t gpus;                                        /* proposed */
    int64_t now_permille, then_permille; /* of its demanded GPU time, how much is within them */
    int64_t wait_p95_ms;                 /* as recorded */
};

struct suggest {
    int64_t capacity_milli, window_ms;
    int64_t sum_p95_milli;          /* of the teams; the p95 of all together is below */
    int64_t p95_milli;              /* of the demand of all teams together */
    int64_t gpus;                   /* proposed in all */
    bool scaled;                    /* step 1 did not fit */
    VEC(struct suggest_team) teams; /* that had jobs with GPUs, by name */
};

/* Never fails; a record without work gives no teams. */
void suggest_make(const struct past *past, struct suggest *ret);
void suggest_done(struct suggest *s);

#endif
