/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public Philly trace in the form of the Sia artifact, and distributions of GPU use.
 *
 * Purpose. 82,247 jobs that 15 real teams (virtual clusters) submitted to one GPU cluster in 109
 * days: the arrivals of the replay benchmark. Beside it, the cumulative distribution of GPU use
 * that was measured on several clusters.
 *
 * Columns. Jobs: timestamp ("2017-10-09 07:01:55", taken as UTC), duration (seconds), num_gpus,
 * cluster. Use: util_pct, cdf_pct, both ascending from 0 to 100.
 *
 * Order. Jobs are sorted by time, equal ones in the order of the file.
 *
 * Ownership. Everything lives in the arena until philly_free(), use_curve_free().
 *
 *     struct philly trace = {0};
 *     int r = philly_load(path, &trace, err);
 *     ...
 *     philly_free(&trace);
 */
#ifndef ALLOT_SIM_PHILLY_H
#define ALLOT_SIM_PHILLY_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/rng.h"

#define PHILLY_TEAMS_MAX 256
#define PHILLY_GPUS_MAX 4096 /* of one job */

struct philly_job {
    int64_t submit_ms; /* from the first job on */
    int64_t run_ms;
    uint32_t gpus;
    uint32_t team; /* index into names */
};

struct philly {
    struct arena arena;
    struct philly_job *jobs;
    size_t count;
    const char *teams[PHILLY_TEAMS_MAX]; /* in the order of their first line */
    uint32_t team_count;
};

/* 0, or a negative errno with file and line in ERR. */
int philly_load(const char *path, struct philly *ret_trace, struct err *err);
/* A zeroed trace is fine. */
void philly_free(struct philly *trace);

struct use_curve {
    struct arena arena;
    struct use_point {
        int32_t use, below; /* hundredths of a percent; BELOW = part of samples at most USE */
    } * points;
    size_t count;
};

/* Loads a distribution. 0, or a negative errno with file and line in ERR. */
int use_curve_load(const char *path, struct use_curve *ret_curve, struct err *err);
/* A zeroed curve is fine. */
void use_curve_free(struct use_curve *curve);
/* A sample among those above 0, in hundredths of a percent: the use of a minute that is not idle.
 */
int32_t use_curve_busy(const struct use_curve *curve, struct rng *rng);

#endif
