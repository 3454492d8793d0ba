/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random histories of the control plane for programs: one TAP line a seed.
 *
 * Each seed is played twice (history.h) and must leave the same hash. Nothing real is touched:
 * store, engine and clock are in memory.
 *
 *     struct sim_random_options o = {.seeds = 30, .steps = 1500, .first = 1};
 *     int status = sim_random_run(&o, stdout);
 */
#ifndef ALLOT_SIM_RANDOM_RUN_H
#define ALLOT_SIM_RANDOM_RUN_H

#include <stdint.h>
#include <stdio.h>

struct sim_random_options {
    int64_t seeds, steps; /* at least 1, at most INT32_MAX */
    int64_t first;        /* seed of the first */
};

/* 0: all held; 1: some did not, with seed, step and reason on OUT. */
int sim_random_run(const struct sim_random_options *options, FILE *out);

#endif
