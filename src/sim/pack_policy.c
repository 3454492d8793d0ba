/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The published policies: whole numbers 0..100, cut, of a pod on a node.
 *
 * As described for the experiment by Weng et al. (USENIX ATC 2023) and made anew: DotProd after
 * Tetris, Clustering after Gandiva, Packing after MLaaS in the wild, BestFit, and fragmentation
 * gradient descent.
 */
#include <math.h>
#include <string.h>

#include "sim/pack.h"

#define CPU_MAX 128000.0 /* of the largest node */
#define GPU_MAX 8000.0

/* The device with the least room that is enough. */
static uint32_t tightest(const struct pack_node *n, const struct pack_shape *shape)
{
    uint32_t best = 0;
    int32_t least = INT32_MAX;
    for (uint32_t d = 0; d < n->devices; d++)
        if (n->room[d] >= shape->milli && n->room[d] < least) {
            least = n->room[d];
            best = d;
        }
    return best;
}

static int score_random(const struct pack_mix *m, struct pack_node *n,
                        const struct pack_shape *shape, uint32_t *ret_device)
{
    (void)m;
    *ret_device = tightest(n, shape);
    return 0;
}

static int score_dotprod(const struct pack_mix *m, struct pack_node *n,
                         const struct pack_shape *shape, uint32_t *ret_device)
{
    (void)m;
    *ret_device = tightest(n, shape);
    double cpu = (double)n->cpu / CPU_MAX * ((double)shape->cpu / CPU_MAX);
    double gpu = (double)n->idle / GPU_MAX * ((double)pack_shape_milli(shape) / GPU_MAX);
    return (int)(100 * (1 - (cpu + gpu) / 2));
}

static int score_bestfit(const struct pack_mix *m, struct pack_node *n,
                         const struct pack_shape *shape, uint32_t *ret_device)
{
    (void)m;
    *ret_device = tightest(n, shape);
    double cpu = (double)(n->cpu - shape->cpu) / CPU_MAX;
    double gpu = (double)(n->idle - pack_shape_milli(shape)) / GPU_MAX;
    return (int)(100 * (1 - 0.5 * cpu - 0.5 * gpu));
}

static int score_clustering(const struct pack_mix *m, struct pack_node *n,
                            const struct pack_shape *shape, uint32_t *ret_device)
{
    (void)m;
    *ret_device = tightest(n, shape);
    if (shape->devices == 0)
        return 0;
    uint64_t kind = pack_shape_fraction(shape) ? 1 : 1ULL << (shape->devices & 63);
    int like = 0;
    if (n->kinds == kind)
        like = 75;
    else if (n->kinds & kind)
        like = 50;
    else if (n->kinds == 0)
        like = 25;
    return like + (int)(25 * (GPU_MAX - (double)n->idle) / GPU_MAX);
}

static int score_packing(const struct pack_mix *m, struct pack_node *n,
                         const struct pack_shape *shape, uint32_t *ret_device)
{
    (void)m;
    *ret_device = tightest(n, shape);
    if (shape->devices == 0)
        return 0;
    int devices = (int)n->devices;
    if (n->whole == n->devices)
        return 33 - devices > devices ? 33 - devices : devices;
    int32_t room = pack_shape_fraction(shape) ? n->room[*ret_device] : PACK_WHOLE;
    if (room == PACK_WHOLE)
        return 50 - (int)shape->devices > 33 ? 50 - (int)shape->devices : 33;
    int full = 100 - room / 10 / 10; /* free percent of the one device, over ten */
    return full > 50 ? full : 50;
}

static int sigmoid(double delta_milli)
{
    return (int)(100 / (1 + exp(-delta_milli / PACK_WHOLE)));
}

/* The score if the pod went there: to DEVICE, where it is a fraction. */
static int gradient(const struct pack_mix *m, const struct pack_node *n,
                    const struct pack_shape *shape, uint32_t device, double before)
{
    struct pack_node after = *n;
    pack_take(&after, shape, device);
    return sigmoid(before - pack_fragmentation(m, &after));
}

static int score_fgd(const struct pack_mix *m, struct pack_node *n, const struct pack_shape *shape,
                     uint32_t *ret_device)
{
    double before = pack_fragmentation(m, n);
    *ret_device = 0;
    if (!pack_shape_fraction(shape))
        return gradient(m, n, shape, 0, before);
    int best = -1;
    for (uint32_t d = 0; d < n->devices; d++) {
        bool seen = n->room[d] < shape->milli;
        for (uint32_t k = 0; k < d && !seen; k++)
            seen = n->room[k] == n->room[d];
        int score = seen ? -1 : gradient(m, n, shape, d, before);
        if (score <= best)
            continue;
        best = score;
        *ret_device = d;
    }
    return best;
}

static const struct pack_policy policies[] = {
    {.name = "random", .score = score_random, .random_node = true, .random_device = true},
    {.name = "dotprod", .score = score_dotprod},
    {.name = "clustering", .score = score_clustering},
    {.name = "packing", .score = score_packing},
    {.name = "bestfit", .score = score_bestfit},
    {.name = "fgd", .score = score_fgd},
    {.name = "allot"},
};

const struct pack_policy *pack_policy_at(size_t i)
{
    return i < sizeof(policies) / sizeof(policies[0]) ? &policies[i] : NULL;
}

const struct pack_policy *pack_policy_find(const char *name)
{
    const struct pack_policy *p;
    for (size_t i = 0; (p = pack_policy_at(i)) != NULL; i++)
        if (strcmp(p->name, name) == 0)
            return p;
    return NULL;
}
