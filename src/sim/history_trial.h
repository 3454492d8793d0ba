/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plays a history in a child process, so that one that aborts, crashes or hangs is a result.
 *
 * The steps are written down in memory that both processes see, before each is played: whatever
 * happens to the child, the list that led to it is there. A child that needs more than a minute
 * of CPU for a few hundred steps hangs.
 *
 *     struct history_trial *t = history_trial_create(steps + HISTORY_SETUP_MAX);
 *     history_trial_make(t, &make);
 *     if (t->verdict != HISTORY_HELD)
 *         puts(t->why);
 */
#ifndef ALLOT_SIM_HISTORY_TRIAL_H
#define ALLOT_SIM_HISTORY_TRIAL_H

#include "sim/history.h"
#include "sim/history_make.h"

enum history_verdict { HISTORY_HELD, HISTORY_WRONG, HISTORY_DIED };

struct history_trial {
    enum history_verdict verdict;
    char why[512];                /* "" = held */
    struct history_result result; /* of a child that did not die */
    uint64_t compare_every;       /* see history_play(); the caller's, 1 at first */
    size_t count, capacity;       /* of steps */
    struct history_step steps[];
};

/* Room for CAPACITY steps; aborts when there is no memory. */
struct history_trial *history_trial_create(size_t capacity);
void history_trial_destroy(struct history_trial *t);

/* Draws the steps, and writes them down. */
void history_trial_make(struct history_trial *t, const struct history_make *make);
/* Plays a list. QUIET: what the child says on its way down is of no interest. */
void history_trial_list(struct history_trial *t, const struct history_steps *steps, bool quiet);
/* Is that the same failure, numbers aside? */
bool history_trial_same(const char *why, const char *other);

#endif
