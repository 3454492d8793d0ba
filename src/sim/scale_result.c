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
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static double at(const struct scale_world *w, double part)
{
    size_t i = (size_t)((double)w->took.len * part);
    return (double)w->took.items[i < w->took.len ? i : w->took.len - 1] / 1e3;
}

void scale_result_times(struct scale_result *r, struct scale_world *w)
{
    uint64_t made = w->decisions - w->marked;
    scale_figure(r, "decisions", (double)made);
    scale_figure(r, "seconds", (double)w->spent_ns / 1e9);
    if (w->spent_ns > 0)
        scale_figure(r, "decisions_per_second", (double)made / ((double)w->spent_ns / 1e9));
    if (w->took.len == 0)
        return;
    qsort(w->took.items, w->took.len, sizeof(w->took.items[0]), compare);
    scale_figure(r, "p50_us", at(w, 0.5));
    scale_figure(r, "p99_us", at(w, 0.99));
    scale_figure(r, "p999_us", at(w, 0.999));
    scale_figure(r, "worst_us", at(w, 1));
}
