/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random and recorded histories for programs: one TAP line each.
 *
 * A random history is played in a child process while its steps are written down, and then once
 * more from what was written down: both must leave the same trace. One that fails (a rule is
 * broken, the program aborts, is killed, or hangs in one step) is shrunk: steps are taken away,
 * in ever smaller pieces, as long as the rest fails in the same way (delta debugging: Zeller and
 * Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE TSE 28(2), 2002). What is
 * left is printed, and written to a file that can be played again.
 *
 *     struct sim_random_options o = {.seed = 1, .seeds = 30, .steps = 1500, .plan = plan};
 *     int status = sim_random_run(&o, stdout);
 */
#ifndef ALLOT_SIM_RANDOM_RUN_H
#define ALLOT_SIM_RANDOM_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/history_plan.h"

struct sim_random_options {
    int64_t seed;         /* of the first */
    int64_t seeds, steps; /* at least 1, at most INT32_MAX */
    struct history_plan plan;
    bool once;        /* do not play it again */
    bool points;      /* play it once more with a crash at each commit, of each kind */
    const char *save; /* file for the shrunk steps of the last failure; NULL = print only */
};

/* 0: all held; 1: some did not, with seed, step and reason on OUT. */
int sim_random_run(const struct sim_random_options *options, FILE *out);

/* Plays recorded lists of steps. 0; 1: some did not hold; 2: a file cannot be read. SHRINK: look
 * for a smaller list that fails in the same way. */
int sim_random_replay(char *const *paths, size_t count, bool shrink, FILE *out);

#endif
