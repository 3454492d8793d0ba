/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares a world with what a scenario expects of it.
 *
 * Purpose. One line of text a difference, in words that name the workload, what it is and what
 * was expected, so that a failed case can be read without a trace. Changes nothing.
 *
 *     n = sim_check(world, &scenario->expects[i], "at 10 s", &text);
 */
#ifndef ALLOT_SIM_SCENARIO_CHECK_H
#define ALLOT_SIM_SCENARIO_CHECK_H

#include "base/strbuf.h"
#include "sim/world.h"

/* Appends "# WHEN: ...\n" for each difference to OUT; how many there are. */
uint32_t sim_check(struct sim_world *w, const struct sim_expect *e, const char *when,
                   struct strbuf *out);

#endif
