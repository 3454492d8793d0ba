/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/vec.h"
#include "sim/replay.h"

#define EXCESS_MS 60000
#define MINUTES 60000

struct times VEC_BODY(int64_t);

static int time_compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Nearest rank; TIMES are sorted. */
static int64_t quantile(const struct times *times, uint32_t percent)
{
    if (times->len == 0)
        return 0;
    size_t rank = (times->len * percent + 99) / 100;
    return times->items[rank > 0 ? rank - 1 : 0];
}

static int64_t mean(const struct times *times)
{
    int64_t sum = 0;
    for (size_t i = 0; i < times->len; i++)
        sum += times->items[i];
    return times->len > 0 ? sum / (int64_t)times->len : 0;
}

static size_t above(const struct times *times, int64_t bound)
{
    size_t n = 0;
    for (size_t i = 0; i < times->len; i++)
        n += times->items[i] > bound;
    return n;
}

static void times_sort(struct times *times)
{
    if (times->len > 1)
        qsort(times->items, times->len, sizeof(times->items[0]), time_compare);
}

static enum replay_size size_class(uint32_t gpus)
{
    return gpus == 1 ? REPLAY_1 : gpus <= 4 ? REPLAY_2_4 : gpus <= 8 ? REPLAY_8 : REPLAY_MORE;
}

static void spread_fill(const struct philly *trace, const struct replay_result *r,
                        enum replay_size size, struct replay_spread *s)
{
    struct times waits = {0}, jcts = {0};
    int64_t queued = 0;
    for (size_t i = 0; i < trace->count; i++) {
        const struct replay_job *job = &r->each[i];
        if (size != REPLAY_ALL && size_class(trace->jobs[i].gpus) != size)
            continue;
        if (job->wait_ms != DRIVE_NEVER)
            vec_push(&waits, job->wait_ms);
        if (job->jct_ms != DRIVE_NEVER)
            vec_push(&jcts, job->jct_ms);
        queued += job->queued_ms;
    }
    times_sort(&waits);
    times_sort(&jcts);
    *s = (struct replay_spread){
        .jobs = waits.len,
        .mean = mean(&waits),
        .p50 = quantile(&waits, 50),
        .p90 = quantile(&waits, 90),
        .p95 = quantile(&waits, 95),
        .p99 = quantile(&waits, 99),
        .max = quantile(&waits, 100),
        .over_5min = above(&waits, 5 * MINUTES),
        .over_1h = above(&waits, 60 * MINUTES),
        .queued_mean = waits.len > 0 ? queued / (int64_t)waits.len : 0,
        .jct_mean = mean(&jcts),
        .jct_p50 = quantile(&jcts, 50),
        .jct_p95 = quantile(&jcts, 95),
    };
    vec_done(&waits);
    vec_done(&jcts);
}

/* Is anybody worse off for sharing (Zhao et al., HiveD, OSDI 2020)? */
static void compare(const struct replay_job *shared, const struct replay_job *alone,
                    struct replay_result *r)
{
    r->in_quota += shared->in_quota;
    if (shared->wait_ms == DRIVE_NEVER || alone->wait_ms == DRIVE_NEVER)
        return;
    int64_t excess = shared->wait_ms - alone->wait_ms;
    r->worse += excess > EXCESS_MS;
    r->better += excess < -EXCESS_MS;
    if (!shared->in_quota || excess <= EXCESS_MS)
        return;
    r->unsafe++;
    r->unsafe_worst_ms = excess > r->unsafe_worst_ms ? excess : r->unsafe_worst_ms;
}

void replay_measure(const struct philly *trace, const struct replay_result *alone,
                    struct replay_result *r)
{
    for (int size = 0; size < REPLAY_SIZES; size++)
        spread_fill(trace, r, (enum replay_size)size, &r->spread[size]);
    for (size_t i = 0; i < trace->count; i++) {
        r->evictions += r->each[i].evictions;
        r->pauses += r->each[i].pauses;
        r->fractions += r->each[i].fraction;
        if (alone != NULL)
            compare(&r->each[i], &alone->each[i], r);
    }
}
