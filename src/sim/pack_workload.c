/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "sim/pack.h"

#define ANY_MODEL UINT64_MAX

/* ---- cluster ----------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    const struct pack_node *x = a, *y = b;
    return strcmp(x->node->name, y->node->name);
}

static int model_bit(struct pack_cluster *c, const char *model, uint32_t *ret_bit, struct err *err)
{
    for (uint32_t i = 0; i < c->model_count; i++)
        if (strcmp(c->models[i], model) == 0) {
            *ret_bit = i;
            return 0;
        }
    if (c->model_count == PACK_MODELS_MAX)
        return err_set(err, -EINVAL, ERR_TOO_LARGE, "model", "give a list with fewer",
                       "the nodes have more than %d models of GPU", PACK_MODELS_MAX);
    *ret_bit = c->model_count;
    c->models[c->model_count++] = model;
    return 0;
}

int pack_cluster_make(const struct openb_nodes *nodes, struct pack_cluster *ret_cluster,
                      struct err *err)
{
    struct pack_cluster c = {0};
    VEC(struct pack_node) list = {0};
    int r = 0;
    for (size_t i = 0; i < nodes->count && r == 0; i++) {
        const struct openb_node *from = &nodes->items[i];
        if (from->device_count == 0)
            continue;
        struct pack_node *n = vec_add(&list);
        n->cpu = from->cpu_milli;
        n->memory = from->memory_bytes;
        n->devices = n->whole = from->device_count;
        n->idle = (int64_t)n->devices * PACK_WHOLE;
        n->node = from;
        for (uint32_t d = 0; d < n->devices; d++)
            n->room[d] = PACK_WHOLE;
        c.capacity += n->idle;
        r = model_bit(&c, from->model, &n->model, err);
    }
    if (r == 0 && list.len == 0)
        r = err_set(err, -EINVAL, ERR_INVALID, "nodes", "give a list of nodes with GPUs",
                    "no node has a GPU");
    if (r < 0) {
        vec_done(&list);
        return r;
    }
    qsort(list.items, list.len, sizeof(list.items[0]), by_name);
    c.nodes = list.items;
    c.count = list.len;
    *ret_cluster = c;
    return 0;
}

void pack_cluster_free(struct pack_cluster *c)
{
    free(c->nodes);
    *c = (struct pack_cluster){0};
}

struct pack_node *pack_nodes_ordered(const struct pack_cluster *c, enum pack_ties ties,
                                     struct rng *rng)
{
    struct pack_node *nodes = calloc(c->count, sizeof(*nodes));
    if (nodes == NULL)
        abort(); /* as in base/arena.h */
    memcpy(nodes, c->nodes, c->count * sizeof(*nodes));
    for (size_t i = c->count; i > 1 && ties != PACK_TIES_NAME; i--) { /* Fisher and Yates */
        size_t j = rng_below(rng, i);
        struct pack_node other = nodes[j];
        nodes[j] = nodes[i - 1];
        nodes[i - 1] = other;
    }
    return nodes;
}

bool pack_fits(const struct pack_node *n, const struct pack_shape *shape)
{
    if (n->cpu < shape->cpu || n->memory < shape->memory || n->idle < pack_shape_milli(shape) ||
        !(shape->models & (1ULL << n->model)))
        return false;
    if (!pack_shape_fraction(shape))
        return n->whole >= shape->devices;
    for (uint32_t d = 0; d < n->devices; d++)
        if (n->room[d] >= shape->milli)
            return true;
    return false;
}

void pack_take(struct pack_node *n, const struct pack_shape *shape, uint32_t device)
{
    n->cpu -= shape->cpu;
    n->memory -= shape->memory;
    n->idle -= pack_shape_milli(shape);
    if (pack_shape_fraction(shape)) {
        n->whole -= n->room[device] == PACK_WHOLE;
        n->room[device] -= shape->milli;
        n->kinds |= 1;
        return;
    }
    uint32_t left = shape->devices;
    for (uint32_t d = 0; d < n->devices && left > 0; d++)
        if (n->room[d] == PACK_WHOLE) {
            n->room[d] = 0;
            left--;
        }
    n->whole -= shape->devices;
    n->kinds |= shape->devices > 0 ? 1ULL << (shape->devices & 63) : 0;
}

void pack_hold(struct pack_node *n, const struct pack_shape *shape, const uint16_t *devices,
               uint32_t count)
{
    n->cpu -= shape->cpu;
    n->memory -= shape->memory;
    n->idle -= pack_shape_milli(shape);
    for (uint32_t k = 0; k < count; k++) {
        n->whole -= n->room[devices[k]] == PACK_WHOLE;
        n->room[devices[k]] -= shape->milli;
    }
}

void pack_give(struct pack_node *n, const struct pack_shape *shape, const uint16_t *devices,
               uint32_t count)
{
    n->cpu += shape->cpu;
    n->memory += shape->memory;
    n->idle += pack_shape_milli(shape);
    for (uint32_t k = 0; k < count; k++) {
        n->room[devices[k]] += shape->milli;
        n->whole += n->room[devices[k]] == PACK_WHOLE;
    }
}

/* ---- pods -------------------------------------------------------------------------------- */

static struct pack_shape shape_of(const struct openb_pod *pod, const struct pack_cluster *c)
{
    struct pack_shape s = {.cpu = pod->cpu_milli,
                           .memory = pod->memory_bytes,
                           .devices = pod->device_count,
                           .milli = pod->device_milli,
                           .asked = pod->device_milli,
                           .models = pod->model_count > 0 ? 0 : ANY_MODEL,
                           .pod = pod};
    for (uint32_t i = 0; i < pod->model_count; i++)
        for (uint32_t m = 0; m < c->model_count; m++)
            if (strcmp(c->models[m], pod->models[i]) == 0)
                s.models |= 1ULL << m;
    if (s.devices > 1)
        s.class_ = PACK_MANY_GPUS;
    else if (s.devices == 1)
        s.class_ = s.milli < PACK_WHOLE ? PACK_FRACTION : PACK_ONE_GPU;
    else
        s.class_ = PACK_CPU_ONLY;
    return s;
}

static bool shape_same(const struct pack_shape *a, const struct pack_shape *b)
{
    return a->cpu == b->cpu && a->memory == b->memory && a->devices == b->devices &&
           a->milli == b->milli && a->models == b->models;
}

/* Index of the shape; lists have some hundreds, and equal pods come in runs. */
static uint32_t shape_index(struct pack_list *l, size_t *cap, const struct pack_shape *shape)
{
    for (size_t i = 0; i < l->shape_count; i++)
        if (shape_same(&l->shapes[i], shape))
            return (uint32_t)i;
    if (l->shape_count == *cap)
        l->shapes = vec_grow(l->shapes, cap, *cap + 1, sizeof(*l->shapes));
    l->shapes[l->shape_count] = *shape;
    return (uint32_t)l->shape_count++;
}

int pack_list_make(const struct openb_pods *pods, const struct pack_cluster *c,
                   struct pack_list *ret_list, struct err *err)
{
    struct pack_list l = {0};
    size_t cap = 0, pod_cap = 0;
    int64_t asked = 0;
    for (size_t i = 0; i < pods->count; i++)
        asked += openb_pod_milli(&pods->items[i]);
    if (asked == 0)
        return err_set(err, -EINVAL, ERR_INVALID, "pods", "give a list of pods with GPUs",
                       "no pod asks for a GPU");
    l.pods = vec_grow(NULL, &pod_cap, pods->count, sizeof(*l.pods));
    for (size_t i = 0; i < pods->count; i++) {
        struct pack_shape shape = shape_of(&pods->items[i], c);
        l.pods[l.count] = shape_index(&l, &cap, &shape);
        l.shapes[l.pods[l.count++]].frequency++;
    }
    *ret_list = l;
    return 0;
}

void pack_list_slice(struct pack_list *l, int32_t slices)
{
    int32_t slice = PACK_WHOLE / slices;
    for (size_t i = 0; i < l->shape_count; i++) {
        struct pack_shape *s = &l->shapes[i];
        if (s->milli == 0 || s->milli == PACK_WHOLE)
            continue;
        int32_t count = (s->asked * slices + PACK_WHOLE - 1) / PACK_WHOLE;
        s->milli = count == slices ? PACK_WHOLE : count * slice;
    }
}

void pack_list_free(struct pack_list *l)
{
    free(l->shapes);
    free(l->pods);
    *l = (struct pack_list){0};
}

void pack_arrivals_make(const struct pack_list *l, int64_t capacity, struct rng *rng,
                        struct pack_arrivals *ret_arrivals)
{
    struct pack_arrivals a = {0};
    int64_t target = capacity * PACK_ARRIVAL_PERCENT / 100, sum = 0;
    for (size_t i = 0; i < l->count; i++) {
        vec_push(&a.shapes, l->pods[i]);
        sum += pack_shape_asked(&l->shapes[l->pods[i]]);
    }
    for (size_t i = a.shapes.len; i > 1; i--) { /* Fisher and Yates */
        size_t j = rng_below(rng, i);
        uint32_t other = a.shapes.items[j];
        a.shapes.items[j] = a.shapes.items[i - 1];
        a.shapes.items[i - 1] = other;
    }
    while (sum > target) { /* too much: random ones go, the others keep their order */
        size_t i = rng_below(rng, a.shapes.len);
        sum -= pack_shape_asked(&l->shapes[a.shapes.items[i]]);
        memmove(&a.shapes.items[i], &a.shapes.items[i + 1],
                (--a.shapes.len - i) * sizeof(a.shapes.items[0]));
    }
    for (;;) { /* as published: the check looks at one device of the pod */
        uint32_t shape = l->pods[rng_below(rng, l->count)];
        if (sum + l->shapes[shape].asked > target)
            break;
        vec_push(&a.shapes, shape);
        sum += pack_shape_asked(&l->shapes[shape]);
    }
    *ret_arrivals = a;
}
