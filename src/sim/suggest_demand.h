/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many GPUs were wanted for how long, as if there were no end of them.
 *
 * A demand is a list of levels, ascending: for so many milliseconds of the window so much was
 * wanted. They add up to the window. Units: milli-GPU, milliseconds.
 *
 *     struct demand d = {0};
 *     demand_collect(&past, &(struct demand_filter){.firm = true}, &d);
 *     p95 = demand_percentile(&d, 95);
 *     demand_done(&d);
 */
#ifndef ALLOT_SIM_SUGGEST_DEMAND_H
#define ALLOT_SIM_SUGGEST_DEMAND_H

#include "base/vec.h"
#include "sim/past.h"

struct demand_level {
    int64_t milli, ms;
};

struct demand {
    VEC(struct demand_level) levels;
    int64_t window_ms;
};

struct demand_filter {
    const size_t *jobs; /* indices of the jobs that are looked at; NULL = all */
    size_t count;
    const char *type; /* GPUs of this type alone; NULL = all */
    bool firm;        /* only what may not be evicted */
};

/* Of the jobs that the filter looks at: how many does it take? */
size_t demand_jobs(const struct past *p, const struct demand_filter *filter);
/* Fills in RET, which is empty. */
void demand_collect(const struct past *p, const struct demand_filter *filter, struct demand *ret);
/* Frees it. */
void demand_done(struct demand *d);

/* The smallest level that holds for PERCENT of the time. */
int64_t demand_percentile(const struct demand *d, int64_t percent);
/* The largest level. */
int64_t demand_peak(const struct demand *d);
/* In thousandths, how much of the demanded GPU time is within MILLI. */
int64_t demand_within(const struct demand *d, int64_t milli);

#endif
