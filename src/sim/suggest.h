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
 *      only starts within a guarantee; a team with a hard quota gets its p95, since it can borrow
 *      nothing;
 *   2. what remains is shared out towards each team's p95, in proportion to what it lacks;
 *   3. the rest stays free: teams borrow it by their weights.
 * A team above others is to have what those below it have, and one that wanted nothing nothing.
 * Where step 1 alone asks for more than there is, all get the same part of it. Fractions of a GPU
 * go by largest remainder, ties to the older team.
 *
 * Bounds. Nobody is given more than a limit of its own (of a hard quota the limit goes with the
 * guarantee), of a team above it, or than the limits of single GPU types leave. What a limit cuts
 * off goes to the others. Where a team states guarantees of single types, those are proposed in
 * the same way from the demand for that type and the GPUs of it; the guarantee of all types is
 * never below their sum. The type of a job is that which it ran on, else the one it prefers.
 *
 *     suggest_make(&past, &s);
 *     suggest_done(&s);
 */
#ifndef ALLOT_SIM_SUGGEST_H
#define ALLOT_SIM_SUGGEST_H

#include "base/vec.h"
#include "sim/past.h"

/* What a team wanted and is to have: of all GPUs, or of one type. */
struct suggest_line {
    const char *type;                                    /* NULL = all */
    int64_t p50_milli, p95_milli, p99_milli, peak_milli; /* of demand, by share of time */
    int64_t firm_milli;                                  /* peak of what may not be evicted */
    int64_t now_milli;   /* guarantee of the record; MODEL_UNLIMITED = all there is */
    int64_t limit_milli; /* likewise; of a hard quota MODEL_UNLIMITED: it follows */
    int64_t gpus;        /* proposed */
    bool cut;            /* it would be more but for a limit */
    int64_t now_permille, then_permille; /* of its demanded GPU time, how much is within them */
};

struct suggest_team {
    const struct past_team *team;
    uint64_t jobs;
    int64_t wait_p95_ms; /* as recorded */
    struct suggest_line all;
    struct suggest_line *types; /* those with a guarantee */
    size_t type_count;
};

/* A team with a guarantee of GPUs that is not among those that had jobs: it wanted nothing, or it
 * has teams below it, whose guarantees it is assured of anyway. */
struct suggest_other {
    const struct past_team *team;
    int64_t now_milli; /* MODEL_UNLIMITED = all there is */
    int64_t gpus;      /* proposed: what the teams below it are to have; 0 where there is none */
};

struct suggest {
    int64_t capacity_milli, window_ms;
    int64_t sum_p95_milli;          /* of the teams; the p95 of all together is below */
    int64_t p95_milli;              /* of the demand of all teams together */
    int64_t gpus;                   /* proposed in all */
    bool scaled;                    /* step 1 did not fit */
    VEC(struct suggest_team) teams; /* that had jobs with GPUs, by name */
    VEC(struct suggest_other) others;
};

/* Never fails; a record without work gives no teams. */
void suggest_make(const struct past *past, struct suggest *ret);
/* Frees it. */
void suggest_done(struct suggest *s);

#endif
