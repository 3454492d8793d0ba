/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placing by a published policy: the highest score of all nodes, each decision.
 *
 * Scores are kept per (shape, node) and made anew only for nodes that have changed since the
 * shape was last asked for: all changes are listed in order, and a shape remembers up to where
 * it has seen the list.
 */
#include <stdlib.h>

#include "sim/pack.h"

#define NO_FIT (-1)

struct scores { /* of one shape */
    int16_t *score;
    uint8_t *device;
    size_t seen; /* of the list of changes */
    bool made;
};

struct placing {
    struct scores *shapes;
    VEC(uint32_t) changed; /* nodes, in order */
};

static void *array(size_t count, size_t size)
{
    void *p = calloc(count, size);
    if (p == NULL)
        abort(); /* as in base/arena.h */
    return p;
}

void pack_place_start(struct pack_placer *p)
{
    struct placing *own = array(1, sizeof(*own));
    own->shapes = array(p->list->shape_count, sizeof(*own->shapes));
    p->own = own;
}

void pack_place_end(struct pack_placer *p)
{
    struct placing *own = p->own;
    for (size_t i = 0; i < p->list->shape_count; i++) {
        free(own->shapes[i].score);
        free(own->shapes[i].device);
    }
    free(own->shapes);
    vec_done(&own->changed);
    free(own);
}

static void rescore(struct pack_placer *p, struct scores *s, const struct pack_shape *shape,
                    uint32_t node)
{
    uint32_t device = 0;
    struct pack_node *n = &p->nodes[node];
    s->score[node] = NO_FIT;
    if (pack_fits(n, shape))
        s->score[node] = (int16_t)p->policy->score(p->mix, n, shape, &device);
    s->device[node] = (uint8_t)device;
}

static void refresh(struct pack_placer *p, struct scores *s, const struct pack_shape *shape)
{
    struct placing *own = p->own;
    size_t nodes = p->cluster->count;
    if (!s->made) {
        s->score = array(nodes, sizeof(*s->score));
        s->device = array(nodes, sizeof(*s->device));
        s->made = true;
        s->seen = own->changed.len;
        for (uint32_t i = 0; i < nodes; i++)
            rescore(p, s, shape, i);
        return;
    }
    if (own->changed.len - s->seen > nodes) { /* each node once is enough */
        for (uint32_t i = 0; i < nodes; i++)
            rescore(p, s, shape, i);
        s->seen = own->changed.len;
    }
    for (; s->seen < own->changed.len; s->seen++)
        rescore(p, s, shape, own->changed.items[s->seen]);
}

static int64_t choose(struct pack_placer *p, const struct scores *s)
{
    int best = NO_FIT;
    int64_t node = -1;
    size_t count = p->cluster->count;
    for (size_t i = 0; i < count; i++)
        if (s->score[i] > best) {
            best = s->score[i];
            node = (int64_t)i;
        }
    if (node < 0 || (!p->random_ties && !p->policy->random_node))
        return node;
    uint64_t equal = 0;
    for (size_t i = (size_t)node; i < count; i++)
        equal += s->score[i] == best;
    uint64_t skip = rng_below(&p->rng, equal);
    for (size_t i = (size_t)node;; i++)
        if (s->score[i] == best && skip-- == 0)
            return (int64_t)i;
}

static uint32_t random_device(struct pack_placer *p, const struct pack_node *n,
                              const struct pack_shape *shape)
{
    uint32_t fitting[OPENB_DEVICES_MAX], count = 0;
    for (uint32_t d = 0; d < n->devices; d++)
        if (n->room[d] >= shape->milli)
            fitting[count++] = d;
    return fitting[rng_below(&p->rng, count)];
}

/* The node for a pod and, for a fraction, its device; -1 where it fits nowhere. */
static int64_t decide(struct pack_placer *p, uint32_t index, uint32_t *ret_device)
{
    struct placing *own = p->own;
    const struct pack_shape *shape = &p->list->shapes[index];
    struct scores *s = &own->shapes[index];
    refresh(p, s, shape);
    int64_t node = choose(p, s);
    if (node < 0)
        return -1;
    *ret_device = s->device[node];
    if (p->policy->random_device && pack_shape_fraction(shape))
        *ret_device = random_device(p, &p->nodes[node], shape);
    return node;
}

void pack_place_changed(struct pack_placer *p, uint32_t node)
{
    struct placing *own = p->own;
    vec_push(&own->changed, node);
}

int64_t pack_place_pod(struct pack_placer *p, uint32_t index)
{
    uint32_t device = 0;
    int64_t node = decide(p, index, &device);
    if (node < 0)
        return -1;
    pack_take(&p->nodes[node], &p->list->shapes[index], device);
    pack_place_changed(p, (uint32_t)node);
    return node;
}

int64_t pack_place_devices(struct pack_placer *p, uint32_t index, uint16_t *ret_devices,
                           uint32_t *ret_count)
{
    const struct pack_shape *shape = &p->list->shapes[index];
    uint32_t device = 0, count = 0;
    int64_t node = decide(p, index, &device);
    if (node < 0)
        return -1;
    struct pack_node *n = &p->nodes[node];
    if (pack_shape_fraction(shape))
        ret_devices[count++] = (uint16_t)device;
    else
        for (uint32_t d = 0; d < n->devices && count < shape->devices; d++)
            if (n->room[d] == PACK_WHOLE)
                ret_devices[count++] = (uint16_t)d;
    pack_hold(n, shape, ret_devices, count);
    pack_place_changed(p, (uint32_t)node);
    *ret_count = count;
    return node;
}
