/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of the scale benchmark. */
#include <stdlib.h>

#include "sim/scale.h"

void scale_figure(struct scale_result *r, const char *name, double value)
{
    if (r->count < SCALE_FIGURES_MAX)
        r->figures[r->count++] = (struct scale_figure){name, value};
}

void scale_result_begin(struct scale_result *r, const struct scale_world *w, const char *mode,
                        const char *what)
{
    *r = (struct scale_result){.mode = mode,
                               .what = what,
                               .nodes = w->in->nodes.len,
                               .gpus = w->in->gpus,
                               .hash = w->hash};
    scale_figure(r, "rss_mib", (double)w->meter->rss_bytes() / (1 << 20));
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

double scale_percentile_us(int64_t *list, size_t count, int64_t thousandths)
{
    qsort(list, count, sizeof(*list), compare);
    size_t i = count * (size_t)thousandths / 1000;
    return (double)list[i < count ? i : count - 1] / 1e3;
}

/* Names of the figures of one list, and which of its percentiles they are. */
struct percentiles {
    const char *names[4];
};

static void percentiles(struct scale_result *r, int64_t *list, size_t count,
                        const struct percentiles *p)
{
    static const int64_t parts[] = {500, 990, 999, 1000};
    for (size_t i = 0; i < 4 && count > 0; i++)
        scale_figure(r, p->names[i], scale_percentile_us(list, count, parts[i]));
}

void scale_result_times(struct scale_result *r, struct scale_world *w)
{
    static const struct percentiles decision = {{"p50_us", "p99_us", "p999_us", "worst_us"}};
    static const struct percentiles submit = {
        {"submit_p50_us", "submit_p99_us", "submit_p999_us", "submit_worst_us"}};
    static const struct percentiles first = {
        {"first_turn_p50_us", "first_turn_p99_us", "first_turn_p999_us", "first_turn_worst_us"}};
    uint64_t made = w->decisions - w->marked;
    scale_figure(r, "decisions", (double)made);
    scale_figure(r, "turns", (double)w->turns);
    scale_figure(r, "seconds", (double)w->spent_ns / 1e9);
    if (w->spent_ns > 0)
        scale_figure(r, "decisions_per_second", (double)made / ((double)w->spent_ns / 1e9));
    percentiles(r, w->took.items, w->took.len, &decision);
    percentiles(r, w->submits.items, w->submits.len, &submit);
    percentiles(r, w->firsts.items, w->firsts.len, &first);
    scale_figure(r, "gpus_allocated_percent",
                 (double)w->gpu_milli / (double)w->in->gpus / 1000 * 100);
}
