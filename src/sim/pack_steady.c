/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The packing benchmark with an end to every pod: a cluster in its steady state.
 *
 * One loop over arrivals and ends in virtual time, for the published policies and for the library
 * alike; they differ in who starts what. A published policy is asked for each waiting pod in order
 * of arrival whenever there is a chance: at its arrival, and when a pod has ended on a node where
 * it fits (nowhere else anything has changed). The library has a queue of its own.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "sim/pack.h"

#define LIFE_MAX_S 86400 /* longer ones count as that: so a day is enough to forget the start */
#define WARM_MS (86400LL * 1000)
#define QOS (OPENB_GUARANTEED + 1)

struct life {              /* a pod that runs or waits */
    struct heap_node node; /* of the heap of ends */
    struct life *next;     /* waiting */
    int64_t arrived_ms, end_ms, runs_ms;
    int64_t on; /* node; -1 = waits */
    uint64_t id;
    uint32_t shape, count;
    uint16_t *devices;
};

struct lives { /* of one quality of service */
    VEC(int64_t) seconds;
    double mean;
};

struct steady {
    const struct pack_options *o;
    struct pack_placer p;
    struct lives lives[QOS];
    struct heap ends;
    VEC(struct life *) by_id;   /* of the library: index is the id - 1 */
    struct life *first, **last; /* who waits, published policies */
    double *frag, frag_sum;     /* of each node; of all */
    int64_t allocated;          /* milli */
    int64_t now_ms, until_ms;
    double area_allocated, area_frag, asked; /* while it is measured */
    VEC(int64_t) waits[PACK_CLASSES];
    uint64_t waiting[PACK_CLASSES];
    uint64_t pods;
};

static bool ends_before(const struct heap_node *a, const struct heap_node *b)
{
    const struct life *x = heap_entry(a, struct life, node), *y = heap_entry(b, struct life, node);
    return x->end_ms != y->end_ms ? x->end_ms < y->end_ms : x->id < y->id;
}

/* ---- lifetimes and arrivals -------------------------------------------------------------- */

static int lives_collect(struct steady *y, const struct openb_pods *pods, struct err *err)
{
    for (size_t i = 0; i < pods->count; i++) {
        const struct openb_pod *p = &pods->items[i];
        int64_t from = p->scheduled_s >= 0 ? p->scheduled_s : p->created_s;
        if (from < 0 || p->deleted_s <= from)
            continue;
        int64_t life = p->deleted_s - from < LIFE_MAX_S ? p->deleted_s - from : LIFE_MAX_S;
        vec_push(&y->lives[p->qos].seconds, life);
        y->lives[p->qos].mean += (double)life;
    }
    for (size_t i = 0; i < pods->count; i++)
        if (y->lives[pods->items[i].qos].seconds.len == 0)
            return err_set(err, -EINVAL, ERR_INVALID, "pods", "give openb_pod_list_default.csv",
                           "the list does not say how long its pods ran");
    for (int q = 0; q < QOS; q++)
        if (y->lives[q].seconds.len > 0)
            y->lives[q].mean /= (double)y->lives[q].seconds.len;
    return 0;
}

/* GPU that a drawn pod takes, times how long: mean, milli-GPU milliseconds. */
static double work_mean(const struct steady *y, const struct openb_pods *pods)
{
    double sum = 0;
    for (size_t i = 0; i < pods->count; i++)
        sum += (double)openb_pod_milli(&pods->items[i]) * y->lives[pods->items[i].qos].mean;
    return sum * 1000 / (double)pods->count;
}

static double exponential(struct rng *rng, double mean)
{
    double u = ((double)(rng_u64(rng) >> 11) + 1) / 9007199254740992.0; /* (0, 1] */
    return -log(u) * mean;
}

/* ---- books ------------------------------------------------------------------------------- */

static bool measured(const struct steady *y, int64_t at_ms)
{
    return at_ms >= WARM_MS;
}

/* Time goes on to AT. */
static void pass(struct steady *y, int64_t at_ms)
{
    int64_t from = y->now_ms > WARM_MS ? y->now_ms : WARM_MS;
    if (at_ms > from) {
        double idle = (double)(y->o->cluster->capacity - y->allocated);
        double span = (double)(at_ms - from);
        y->area_allocated += span * (double)y->allocated;
        y->area_frag += idle > 0 ? span * y->frag_sum / idle : 0;
    }
    y->now_ms = at_ms;
}

static void node_changed(struct steady *y, int64_t node)
{
    double now = pack_fragmentation(y->o->mix, &y->p.nodes[node]);
    y->frag_sum += now - y->frag[node];
    y->frag[node] = now;
}

static const struct pack_shape *shape_of(const struct steady *y, const struct life *l)
{
    return &y->o->list->shapes[l->shape];
}

/* It starts on NODE; the node's books are up to date. */
static void started(struct steady *y, struct life *l, int64_t node, const uint16_t *devices,
                    uint32_t count)
{
    l->on = node;
    l->count = count;
    l->devices = calloc(count + 1, sizeof(*l->devices));
    if (l->devices == NULL)
        abort(); /* as in base/arena.h */
    memcpy(l->devices, devices, count * sizeof(*devices));
    l->end_ms = y->now_ms + l->runs_ms;
    heap_push(&y->ends, &l->node);
    y->allocated += pack_shape_milli(shape_of(y, l));
    node_changed(y, node);
    if (measured(y, l->arrived_ms))
        vec_push(&y->waits[shape_of(y, l)->class_], y->now_ms - l->arrived_ms);
}

static void life_free(struct life *l)
{
    free(l->devices);
    free(l);
}

/* ---- the published policies --------------------------------------------------------------- */

static bool policy_start(struct steady *y, struct life *l)
{
    uint16_t devices[OPENB_DEVICES_MAX];
    uint32_t count;
    int64_t node = pack_place_devices(&y->p, l->shape, devices, &count);
    if (node < 0)
        return false;
    started(y, l, node, devices, count);
    return true;
}

static void policy_arrival(struct steady *y, struct life *l)
{
    if (policy_start(y, l))
        return;
    *y->last = l;
    y->last = &l->next;
}

/* A pod has ended on NODE: whoever fits there now starts. */
static void policy_end(struct steady *y, int64_t node)
{
    pack_place_changed(&y->p, (uint32_t)node);
    for (struct life **at = &y->first; *at != NULL;) {
        struct life *l = *at;
        if (!pack_fits(&y->p.nodes[node], shape_of(y, l)) || !policy_start(y, l)) {
            at = &l->next;
            continue;
        }
        *at = l->next;
        l->next = NULL;
        if (*at == NULL)
            y->last = at;
    }
}

/* ---- the library -------------------------------------------------------------------------- */

static void library_turn(struct steady *y)
{
    const struct sched_decisions *d = sched_turn(pack_sched_library(&y->p), y->now_ms);
    for (size_t i = 0; i < d->count; i++) {
        const struct sched_decision *one = &d->items[i];
        if (one->kind == SCHED_EVICT)
            abort(); /* production work within its guarantee stays where it is */
        if (one->kind != SCHED_START)
            continue;
        struct life *l = y->by_id.items[one->workload - 1];
        int64_t node = (int64_t)one->node - 1;
        pack_hold(&y->p.nodes[node], shape_of(y, l), one->devices, one->device_count);
        started(y, l, node, one->devices, one->device_count);
    }
}

static void library_arrival(struct steady *y, struct life *l)
{
    vec_push(&y->by_id, l);
    pack_sched_submit(&y->p, l->shape, l->id);
    library_turn(y);
}

static void library_end(struct steady *y, struct life *l)
{
    struct sched *s = pack_sched_library(&y->p);
    y->by_id.items[l->id - 1] = NULL;
    if (sched_task_stopped(s, l->id, 0, SCHED_STOP_DONE, y->now_ms) < 0 ||
        sched_workload_remove(s, l->id) < 0)
        abort(); /* it ran there */
    library_turn(y);
}

/* ---- the loop ------------------------------------------------------------------------------ */

static void arrive(struct steady *y, const struct openb_pods *pods)
{
    struct rng *rng = &y->p.rng;
    size_t i = rng_below(rng, pods->count);
    const struct lives *lives = &y->lives[pods->items[i].qos];
    struct life *l = calloc(1, sizeof(*l));
    if (l == NULL)
        abort(); /* as in base/arena.h */
    l->shape = y->o->list->pods[i];
    l->id = ++y->pods;
    l->on = -1;
    l->arrived_ms = y->now_ms;
    l->runs_ms = lives->seconds.items[rng_below(rng, lives->seconds.len)] * 1000;
    if (measured(y, y->now_ms))
        y->asked += (double)pack_shape_milli(shape_of(y, l)) * (double)l->runs_ms;
    if (y->o->policy->score == NULL)
        library_arrival(y, l);
    else
        policy_arrival(y, l);
}

static void end(struct steady *y, struct life *l)
{
    pack_give(&y->p.nodes[l->on], shape_of(y, l), l->devices, l->count);
    y->allocated -= pack_shape_milli(shape_of(y, l));
    node_changed(y, l->on);
    if (y->o->policy->score == NULL)
        library_end(y, l);
    else
        policy_end(y, l->on);
    life_free(l);
}

static void loop(struct steady *y, const struct openb_pods *pods, double between_ms)
{
    double next = exponential(&y->p.rng, between_ms);
    while (next < (double)y->until_ms) {
        struct heap_node *first = heap_peek(&y->ends);
        struct life *l = first != NULL ? heap_entry(first, struct life, node) : NULL;
        if (l != NULL && (double)l->end_ms <= next) {
            pass(y, l->end_ms);
            heap_pop(&y->ends);
            end(y, l);
            continue;
        }
        pass(y, (int64_t)next);
        arrive(y, pods);
        next += exponential(&y->p.rng, between_ms);
    }
    pass(y, y->until_ms);
}

/* ---- what comes out ------------------------------------------------------------------------ */

static int by_amount(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static double quantile_s(const int64_t *sorted, size_t count, double q)
{
    if (count == 0)
        return 0;
    size_t rank = (size_t)ceil(q * (double)count);
    return (double)sorted[rank > 0 ? rank - 1 : 0] / 1000;
}

/* Who still waits has waited until now, at least. */
static void count_waiting(struct steady *y, struct life *l)
{
    enum pack_class class_ = shape_of(y, l)->class_;
    if (!measured(y, l->arrived_ms))
        return;
    vec_push(&y->waits[class_], y->now_ms - l->arrived_ms);
    y->waiting[class_]++;
}

static void finish(struct steady *y)
{
    for (struct life *l = y->first, *next; l != NULL; l = next) {
        next = l->next;
        count_waiting(y, l);
        life_free(l);
    }
    for (struct heap_node *n; (n = heap_pop(&y->ends)) != NULL;) {
        struct life *l = heap_entry(n, struct life, node);
        if (y->by_id.len > 0)
            y->by_id.items[l->id - 1] = NULL;
        life_free(l);
    }
    for (size_t i = 0; i < y->by_id.len; i++)
        if (y->by_id.items[i] != NULL) {
            count_waiting(y, y->by_id.items[i]);
            life_free(y->by_id.items[i]);
        }
}

static struct pack_steady result(struct steady *y)
{
    double span = (double)(y->until_ms - WARM_MS), capacity = (double)y->o->cluster->capacity;
    struct pack_steady r = {.allocated = 100 * y->area_allocated / span / capacity,
                            .frag_ratio = 100 * y->area_frag / span,
                            .load = 100 * y->asked / span / capacity};
    for (int c = 0; c < PACK_CLASSES; c++) {
        size_t count = y->waits[c].len;
        int64_t *waits = y->waits[c].items;
        if (count > 0)
            qsort(waits, count, sizeof(*waits), by_amount);
        r.pods += count;
        r.classes[c] = (struct pack_steady_class){
            count, y->waiting[c], quantile_s(waits, count, 0.5), quantile_s(waits, count, 0.95),
            quantile_s(waits, count, 0.99)};
    }
    return r;
}

static void steady_done(struct steady *y)
{
    for (int q = 0; q < QOS; q++)
        vec_done(&y->lives[q].seconds);
    for (int c = 0; c < PACK_CLASSES; c++)
        vec_done(&y->waits[c]);
    vec_done(&y->by_id);
    heap_done(&y->ends);
    free(y->frag);
    free(y->p.nodes);
}

int pack_steady_run(const struct pack_options *o, const struct openb_pods *pods,
                    uint32_t load_percent, uint32_t days, uint64_t seed,
                    struct pack_steady *ret_steady, struct err *err)
{
    struct steady y = {.o = o,
                       .p = {.cluster = o->cluster,
                             .list = o->list,
                             .mix = o->mix,
                             .policy = o->policy,
                             .random_ties = o->ties == PACK_TIES_RANDOM},
                       .ends = HEAP_INIT(ends_before),
                       .until_ms = WARM_MS * (1 + (int64_t)days)};
    int r = lives_collect(&y, pods, err);
    if (r < 0) {
        steady_done(&y);
        return r;
    }
    y.last = &y.first;
    rng_seed(&y.p.rng, seed);
    y.p.nodes = pack_nodes_ordered(o->cluster, o->ties, &y.p.rng);
    y.frag = calloc(o->cluster->count, sizeof(*y.frag));
    if (y.frag == NULL)
        abort(); /* as in base/arena.h */
    bool library = o->policy->score == NULL;
    library ? pack_sched_start(&y.p) : pack_place_start(&y.p);
    for (size_t i = 0; i < o->cluster->count; i++)
        node_changed(&y, (int64_t)i);
    double capacity = (double)o->cluster->capacity;
    loop(&y, pods, work_mean(&y, pods) * 100 / ((double)load_percent * capacity));
    finish(&y);
    library ? pack_sched_end(&y.p) : pack_place_end(&y.p);
    *ret_steady = result(&y);
    steady_done(&y);
    return 0;
}
