/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fragmentation as published: for each request of the typical workload, the idle GPU of a node
 * that is of no use to it; the mean by frequency.
 *
 * What is of use depends on the request's (devices, milli) and, through type and CPU, on
 * whether the request can run there at all. So the frequencies are summed once, for each model
 * of GPU and each amount of CPU, by (devices, milli); a question then costs a walk over these.
 */
#include <stdlib.h>

#include "sim/pack.h"

#define COVER 0.95

struct need {
    int32_t milli;
    uint32_t devices;
};

struct pack_mix {
    VEC(struct need) needs;
    VEC(int64_t) cpus; /* ascending */
    double *share;     /* [model][amounts of CPU that are there][need] */
};

/* Of equally frequent ones the larger, as published. */
static int by_frequency(const void *a, const void *b)
{
    const struct pack_shape *x = a, *y = b;
    if (x->frequency != y->frequency)
        return x->frequency > y->frequency ? -1 : 1;
    if (x->cpu != y->cpu)
        return x->cpu > y->cpu ? -1 : 1;
    if (x->milli != y->milli)
        return x->milli > y->milli ? -1 : 1;
    if (x->devices != y->devices)
        return x->devices > y->devices ? -1 : 1;
    return x->pod < y->pod ? -1 : x->pod > y->pod; /* the first in the list */
}

static bool same_but_memory(const struct pack_shape *a, const struct pack_shape *b)
{
    return a->cpu == b->cpu && a->devices == b->devices && a->milli == b->milli &&
           a->models == b->models;
}

/* Requests by frequency, memory left aside. */
static size_t requests(const struct pack_list *l, struct pack_shape *out)
{
    size_t count = 0;
    for (size_t i = 0; i < l->shape_count; i++) {
        size_t k = 0;
        while (k < count && !same_but_memory(&out[k], &l->shapes[i]))
            k++;
        if (k < count) {
            out[k].frequency += l->shapes[i].frequency;
            continue;
        }
        out[count++] = l->shapes[i];
    }
    qsort(out, count, sizeof(*out), by_frequency);
    return count;
}

static size_t need_index(struct pack_mix *m, const struct pack_shape *s)
{
    size_t k = 0;
    while (k < m->needs.len &&
           (m->needs.items[k].milli != s->milli || m->needs.items[k].devices != s->devices))
        k++;
    if (k == m->needs.len)
        vec_push(&m->needs, ((struct need){s->milli, s->devices}));
    return k;
}

static int by_amount(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static double *share_at(const struct pack_mix *m, uint32_t model, size_t cpus)
{
    return &m->share[(model * (m->cpus.len + 1) + cpus) * m->needs.len];
}

/* How many of the amounts of CPU are there. */
static size_t cpu_rank(const struct pack_mix *m, int64_t cpu)
{
    size_t low = 0, high = m->cpus.len;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (m->cpus.items[mid] <= cpu)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct pack_mix *pack_mix_make(const struct pack_list *l, uint32_t model_count)
{
    size_t one = 0, cap = 0;
    struct pack_mix *m = vec_grow(NULL, &one, 1, sizeof(*m));
    *m = (struct pack_mix){0};
    struct pack_shape *all = vec_grow(NULL, &cap, l->shape_count, sizeof(*all));
    size_t count = requests(l, all), kept = 0;
    uint64_t covered = 0;
    while (kept < count && (double)covered < COVER * (double)l->count)
        covered += all[kept++].frequency;
    for (size_t i = 0; i < kept; i++) {
        need_index(m, &all[i]);
        vec_push(&m->cpus, all[i].cpu);
    }
    qsort(m->cpus.items, m->cpus.len, sizeof(m->cpus.items[0]), by_amount);
    m->share = calloc(model_count * (m->cpus.len + 1) * m->needs.len, sizeof(*m->share));
    if (m->share == NULL)
        abort(); /* as in base/arena.h */
    for (size_t i = 0; i < kept; i++)
        for (uint32_t model = 0; model < model_count; model++)
            for (size_t c = 1; c <= m->cpus.len; c++)
                if (all[i].devices > 0 && (all[i].models & (1ULL << model)) &&
                    m->cpus.items[c - 1] >= all[i].cpu)
                    share_at(m, model, c)[need_index(m, &all[i])] +=
                        (double)all[i].frequency / (double)covered;
    free(all);
    return m;
}

void pack_mix_free(struct pack_mix *m)
{
    if (m == NULL)
        return;
    vec_done(&m->needs);
    vec_done(&m->cpus);
    free(m->share);
    free(m);
}

double pack_fragmentation(const struct pack_mix *m, const struct pack_node *n)
{
    const double *share = share_at(m, n->model, cpu_rank(m, n->cpu));
    double useful = 0;
    for (size_t k = 0; k < m->needs.len; k++) {
        const struct need *need = &m->needs.items[k];
        if (share[k] == 0)
            continue;
        uint32_t count = 0;
        int64_t sum = 0;
        for (uint32_t d = 0; d < n->devices; d++) {
            bool large = n->room[d] >= need->milli;
            count += large;
            sum += large ? n->room[d] : 0;
        }
        if (count >= need->devices)
            useful += share[k] * (double)sum;
    }
    return (double)n->idle - useful;
}
