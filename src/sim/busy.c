/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/busy.h"

#include "base/rng.h"

#define HOUR (3600 * 1000LL)
#define SHORT_MS (6 * HOUR)
#define LONG_MS (24 * HOUR)
#define SHORT_IDLE 490 /* thousandths */
#define LONG_IDLE 250
#define INSIDE 650
#define PERIOD_MS (HOUR / 2)
#define PERIODS_MAX 4096

struct cuts VEC_BODY(int64_t);

static int64_t mean_idle(int64_t run_ms)
{
    if (run_ms <= SHORT_MS)
        return SHORT_IDLE;
    if (run_ms >= LONG_MS)
        return LONG_IDLE;
    return SHORT_IDLE - (SHORT_IDLE - LONG_IDLE) * (run_ms - SHORT_MS) / (LONG_MS - SHORT_MS);
}

static int cut_compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* COUNT - 1 random points of LENGTH in order, and LENGTH itself. */
static void cut(struct cuts *cuts, int64_t length, int64_t count, struct rng *rng)
{
    vec_clear(cuts);
    for (int64_t i = 1; i < count; i++) {
        int64_t at = (int64_t)rng_below(rng, (uint64_t)length + 1);
        vec_push(cuts, at);
    }
    vec_push(cuts, length);
    qsort(cuts->items, cuts->len, sizeof(cuts->items[0]), cut_compare);
}

static void period_add(struct busy_periods *periods, int64_t at, int64_t length)
{
    struct drive_pause p = {.at_ms = at, .length_ms = length};
    if (length <= 0)
        return;
    struct drive_pause *last = periods->len > 0 ? &periods->items[periods->len - 1] : NULL;
    if (last != NULL && last->at_ms + last->length_ms == at)
        last->length_ms += length;
    else
        vec_push(periods, p);
}

void busy_make(struct busy *ret_busy, struct busy_periods *periods, uint64_t seed, uint64_t index,
               int64_t run_ms, const struct use_curve *curve)
{
    struct rng rng;
    rng_seed(&rng, seed * 0x9e3779b97f4a7c15u + index);
    int64_t share = (int64_t)rng_below(&rng, (uint64_t)(2 * mean_idle(run_ms)) + 1);
    *ret_busy = (struct busy){.idle_ms = run_ms / 1000 * share, .use = use_curve_busy(curve, &rng)};
    int64_t inside = ret_busy->idle_ms * INSIDE / 1000;
    int64_t before = (ret_busy->idle_ms - inside) / 2;
    int64_t after = ret_busy->idle_ms - inside - before;
    int64_t count = 1 + inside / PERIOD_MS;
    count = count < PERIODS_MAX ? count : PERIODS_MAX;
    struct cuts idle = {0}, busy = {0};
    cut(&idle, inside, count, &rng);
    cut(&busy, run_ms - ret_busy->idle_ms, count + 1, &rng);
    vec_clear(periods);
    period_add(periods, 0, before);
    for (int64_t i = 0, past = 0; i < count; i++) {
        period_add(periods, before + busy.items[i] + past, idle.items[i] - past);
        past = idle.items[i];
    }
    period_add(periods, run_ms - after, after);
    vec_done(&idle);
    vec_done(&busy);
}
