/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model of what a job does with its GPUs: when they are idle, and how busy they are otherwise.
 *
 * Purpose. Public traces of arrivals say how long a job ran, not what it did. The replay needs
 * busy time beside allocated time. This gives each job a course of busy and idle periods that is
 * drawn from its number and a seed, so that every policy sees the same job.
 *
 * The model, all of it an assumption but for the measured curve of use:
 *   - Idle share of the run time: uniform from 0 to twice its mean. The mean is 49 % for jobs of
 *     6 hours or less and 25 % from 24 hours on, linear between.
 *   - 65 % of the idle time lies inside the job, cut at random into periods of half an hour on
 *     average, with busy time cut at random between them. The rest is half before the first busy
 *     period and half after the last.
 *   - Use in busy periods: one value a job, drawn from the measured curve without its zeros.
 *
 *     struct busy b;
 *     struct busy_periods idle = {0};
 *     busy_make(&b, &idle, seed, index, run_ms, &curve);
 */
#ifndef ALLOT_SIM_BUSY_H
#define ALLOT_SIM_BUSY_H

#include "base/vec.h"
#include "sim/drive.h"
#include "sim/philly.h"

#define BUSY_USE_FULL 10000 /* hundredths of a percent */

struct busy {
    int64_t idle_ms; /* of the run time */
    int32_t use;     /* of its GPUs while busy, of BUSY_USE_FULL */
};

struct busy_periods VEC_BODY(struct drive_pause); /* idle ones, in order */

/* The course of job INDEX. PERIODS is cleared and filled; the caller frees it with vec_done(). */
void busy_make(struct busy *ret_busy, struct busy_periods *periods, uint64_t seed, uint64_t index,
               int64_t run_ms, const struct use_curve *curve);

#endif
