/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws the steps of a random history from a seed.
 *
 * First come the machines and the tree of teams, then as many steps as were asked for. What is
 * drawn may depend on the state that the steps before have led to (which tasks run, how much
 * waits), so that most steps do something; the state itself depends on the steps alone.
 *
 *     struct history_make m;
 *     history_make_init(&m, seed, steps, &plan);
 *     history_play(history_make_next, &m, 64, &result);
 */
#ifndef ALLOT_SIM_HISTORY_MAKE_H
#define ALLOT_SIM_HISTORY_MAKE_H

#include "base/rng.h"
#include "sim/history.h"
#include "sim/history_plan.h"

#define HISTORY_SHAPES 40
/* The most steps that come before those that were asked for. */
#define HISTORY_SETUP_MAX 40

struct history_make {
    struct rng rng;
    struct rng sleep; /* of all that is drawn about suspending: the rest is drawn as without */
    struct history_plan plan;
    int64_t left;
    struct history_step setup[HISTORY_SETUP_MAX];
    size_t setup_len, setup_at;
    struct history_step shapes[HISTORY_SHAPES]; /* what people submit again and again */
    uint32_t submits;
    int32_t next_number, devices;
    int32_t types; /* of GPUs: with one nobody asks or has a quota for it */
    int32_t crowd, leaves,
        favourite; /* how much lives at once, in how many teams, of which class */
};

/* Starts the sequence of SEED: the setup, and then STEPS steps with the faults of PLAN. */
void history_make_init(struct history_make *m, uint64_t seed, int64_t steps,
                       const struct history_plan *plan);
/* A history_next_fn; USER is the history_make. */
bool history_make_next(void *user, const struct history *h, struct history_step *ret_step);

#endif
