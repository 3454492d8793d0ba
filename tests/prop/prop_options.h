/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs of this folder share on their command line, and how they go through seeds.
 *
 *     struct prop_options o = {.seeds = 1000, .first = 1, .steps = 120};
 *     if (!prop_options_parse(argc, argv, "prop-sched", &o))
 *         return 2;
 *     return prop_bundles(&o, "histories", holds, &sum);
 *
 * One thread; prints to standard output.
 */
#ifndef ALLOT_PROP_OPTIONS_H
#define ALLOT_PROP_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#define PROP_BUNDLES 20 /* at most so many lines of TAP, however many seeds */

struct prop_options {
    int64_t seeds, first, steps;
    bool trace;
    bool chosen; /* --first was given */
};

/* --seeds N, --first SEED, --steps N, --trace into RET, which holds the defaults; false with the
 * usage of PROGRAM on standard error. */
bool prop_options_parse(int argc, char **argv, const char *program, struct prop_options *ret);

/* How many lines prop_bundles() will print. */
int64_t prop_bundle_count(const struct prop_options *o);

/* Does the history of SEED hold? Says why not; adds to SUM. */
typedef bool prop_holds_fn(uint64_t seed, const struct prop_options *o, void *sum);

/* Plays all seeds, one line of TAP a bundle of them: "ok 3 - WHAT of seeds 101 to 150". The plan
 * is the caller's. 0, or 1 where some did not hold. */
int prop_bundles(const struct prop_options *o, const char *what, prop_holds_fn *holds, void *sum);

#endif
