/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a failing list of steps small: delta debugging by taking away pieces, half of the list
 * first and single steps last, as long as what is left still fails. At the end no single step can
 * be missed (1-minimal), unless the budget ran out first.
 *
 *     struct history_steps steps = ...;
 *     history_shrink(&steps, still_fails, &trial, 5000);
 */
#ifndef ALLOT_SIM_HISTORY_SHRINK_H
#define ALLOT_SIM_HISTORY_SHRINK_H

#include <stdbool.h>

#include "sim/history_step.h"

/* Does this list fail in the same way? */
typedef bool history_fails_fn(void *user, const struct history_steps *steps);

/* Shrinks STEPS, which must fail, in place, with at most TRIALS trials; returns how many it
 * took. */
int32_t history_shrink(struct history_steps *steps, history_fails_fn *fails, void *user,
                       int32_t trials);

#endif
