/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The packing benchmark: how much of a GPU cluster is left when pods arrive until it is full?
 *
 * Purpose. The experiment of Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing
 * Workloads with Fragmentation Gradient Descent" (USENIX ATC 2023), step by step, with its
 * policies made anew beside the scheduler of this project. An empty cluster with its nodes in
 * random order; the pods of a list, shuffled, and drawn again until 130% of its GPUs are asked
 * for; each is placed at once or dropped for ever. What is recorded is the part of all GPUs that
 * is not allocated, against the part that was asked for so far.
 *
 * Parts. pack_workload.c makes cluster and arrivals, pack_mix.c measures fragmentation,
 * pack_policy.c holds the published policies, pack_place.c places pods by one of them,
 * pack_sched.c places them with the scheduler library itself, pack_run.c runs seeds and keeps the
 * curves, pack_steady.c runs pods that end, pack_report.c prints them, cmd_pack.c is the command.
 *
 * Invariants. The same lists, policy, seed and ties give the same figures on every machine:
 * floating point is used for scores and means here, in one order. (The scheduler uses none.)
 *
 * Units: millicores, bytes, milli-GPU; percents of the cluster's GPUs.
 * Ownership: whoever makes a structure frees it; a run borrows cluster and shapes. One thread.
 */
#ifndef ALLOT_SIM_PACK_H
#define ALLOT_SIM_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "base/vec.h"
#include "sim/openb.h"

#define PACK_WHOLE 1000
#define PACK_ARRIVAL_PERCENT 130 /* at which a run ends */
#define PACK_POINTS (PACK_ARRIVAL_PERCENT + 1)
#define PACK_MODELS_MAX 64

enum pack_class { PACK_CPU_ONLY, PACK_FRACTION, PACK_ONE_GPU, PACK_MANY_GPUS, PACK_CLASSES };

/* ---- cluster and arrivals ---------------------------------------------------------------- */

struct pack_shape { /* what a pod asks for; equal ones are one */
    int64_t cpu, memory;
    uint32_t devices;
    int32_t milli;               /* of each device; what it takes */
    int32_t asked;               /* what the list says: less where sizes are rounded up */
    uint64_t models;             /* bit per model; all bits = any */
    uint64_t frequency;          /* in the list */
    const struct openb_pod *pod; /* one of them */
    enum pack_class class_;
};

struct pack_node {
    int64_t cpu, memory;     /* free */
    int64_t idle;            /* free milli-GPU, all devices together */
    uint64_t kinds;          /* of the pods on it: bit 0 fractions, bit k those with k whole GPUs */
    uint32_t devices, whole; /* in all; wholly free ones */
    uint32_t model;          /* bit number */
    const struct openb_node *node;
    int32_t room[OPENB_DEVICES_MAX];
};

struct pack_cluster { /* as it is when empty, nodes by name */
    struct pack_node *nodes;
    size_t count;
    int64_t capacity; /* milli-GPU */
    const char *models[PACK_MODELS_MAX];
    uint32_t model_count;
};

struct pack_list { /* a pod list */
    struct pack_shape *shapes;
    size_t shape_count;
    uint32_t *pods; /* index of the shape, in the order of the list */
    size_t count;
};

struct pack_arrivals {
    VEC(uint32_t) shapes;
};

/* The nodes with GPUs of a list, empty. 0, or -EINVAL with ERR: none, or too many models. */
int pack_cluster_make(const struct openb_nodes *nodes, struct pack_cluster *ret_cluster,
                      struct err *err);
/* Frees it; a zeroed one is fine. */
void pack_cluster_free(struct pack_cluster *c);
/* Shapes and pods of a list; models that no node has are none. 0, or -EINVAL with ERR: empty. */
int pack_list_make(const struct openb_pods *pods, const struct pack_cluster *c,
                   struct pack_list *ret_list, struct err *err);
/* Fractions are rounded up to slices, as of a device that is cut into SLICES equal ones: what they
 * ask for stays, what they take does not. 1 .. 1000. */
void pack_list_slice(struct pack_list *l, int32_t slices);
/* Frees it; a zeroed one is fine. */
void pack_list_free(struct pack_list *l);
/* What arrives: the list in an order of RNG's, lengthened by draws or cut until 130% of CAPACITY
 * are asked for. */
void pack_arrivals_make(const struct pack_list *l, int64_t capacity, struct rng *rng,
                        struct pack_arrivals *ret_arrivals);

/* Which of equal nodes? The scheduler library itself takes the first of its order. */
enum pack_ties {
    PACK_TIES_ORDER,  /* the first, in an order that is shuffled once a run: as published */
    PACK_TIES_NAME,   /* the first by name */
    PACK_TIES_RANDOM, /* any, each time; the library's nodes are in shuffled order */
    PACK_TIES,
};

/* The cluster's nodes, empty, in the order that TIES asks for; RNG shuffles. Free with free(). */
struct pack_node *pack_nodes_ordered(const struct pack_cluster *c, enum pack_ties ties,
                                     struct rng *rng);

static inline int64_t pack_shape_milli(const struct pack_shape *s)
{
    return (int64_t)s->devices * s->milli;
}
static inline int64_t pack_shape_asked(const struct pack_shape *s)
{
    return (int64_t)s->devices * s->asked;
}
/* Does it ask for part of one device? */
static inline bool pack_shape_fraction(const struct pack_shape *s)
{
    return s->devices == 1 && s->milli < PACK_WHOLE;
}
/* Is there room for SHAPE on N? */
bool pack_fits(const struct pack_node *n, const struct pack_shape *shape);
/* Takes it: a fraction of DEVICE, or the first whole devices that are free. */
void pack_take(struct pack_node *n, const struct pack_shape *shape, uint32_t device);

/* ---- fragmentation ----------------------------------------------------------------------- */

struct pack_mix; /* the typical workload: the most frequent requests, to 95% of the pods */

/* The typical workload of a list; free with pack_mix_free(). Aborts when out of memory. */
struct pack_mix *pack_mix_make(const struct pack_list *l, uint32_t model_count);
/* NULL is fine. */
void pack_mix_free(struct pack_mix *m);
/* Idle milli-GPU of N that is of no use to the typical workload, in its mean. */
double pack_fragmentation(const struct pack_mix *m, const struct pack_node *n);

/* ---- policies ---------------------------------------------------------------------------- */

/* Score of SHAPE on N, on which it fits: 0..100, higher is better. RET_DEVICE: for a fraction. */
typedef int pack_score_fn(const struct pack_mix *m, struct pack_node *n,
                          const struct pack_shape *shape, uint32_t *ret_device);

struct pack_policy {
    const char *name;
    pack_score_fn *score; /* NULL: the scheduler library decides */
    bool random_node, random_device;
};

/* NULL where there is none of that name. */
const struct pack_policy *pack_policy_find(const char *name);
/* The I-th; NULL after the last. */
const struct pack_policy *pack_policy_at(size_t i);

/* ---- placing ----------------------------------------------------------------------------- */

/* One run's state: places or drops one pod after the other. */
struct pack_placer {
    const struct pack_cluster *cluster;
    const struct pack_list *list;
    const struct pack_mix *mix;
    const struct pack_policy *policy;
    struct rng rng;          /* for ties and random choices */
    bool random_ties;        /* else the first of the nodes */
    struct pack_node *nodes; /* as they are now, in their order */
    void *own;               /* of pack_place.c or pack_sched.c */
};

/* The caller has filled in all members but the last, the nodes empty; P owns that one. */
void pack_place_start(struct pack_placer *p);
void pack_sched_start(struct pack_placer *p);
/* Places one pod of SHAPE: the node that took it, or -1: it is dropped. */
int64_t pack_place_pod(struct pack_placer *p, uint32_t shape);
int64_t pack_sched_pod(struct pack_placer *p, uint32_t shape);
/* Frees what start made. */
void pack_place_end(struct pack_placer *p);
void pack_sched_end(struct pack_placer *p);

/* ---- with an end ------------------------------------------------------------------------- */

/* Takes and gives back exactly these devices; COUNT of them. */
void pack_hold(struct pack_node *n, const struct pack_shape *shape, const uint16_t *devices,
               uint32_t count);
void pack_give(struct pack_node *n, const struct pack_shape *shape, const uint16_t *devices,
               uint32_t count);
/* As pack_place_pod(); tells the devices too: RET_DEVICES has OPENB_DEVICES_MAX elements. */
int64_t pack_place_devices(struct pack_placer *p, uint32_t shape, uint16_t *ret_devices,
                           uint32_t *ret_count);
/* A node has changed otherwise: scores for it are made anew. */
void pack_place_changed(struct pack_placer *p, uint32_t node);
/* The library, between start and end. */
struct sched *pack_sched_library(struct pack_placer *p);
/* What the library is told of a pod of SHAPE; of age and number ID. */
void pack_sched_submit(struct pack_placer *p, uint32_t shape, uint64_t id);

/* ---- runs -------------------------------------------------------------------------------- */

struct pack_point {                 /* of all arrivals that round to that percent */
    double unallocated, frag_ratio; /* means; NAN where nothing arrived */
    uint64_t dropped[PACK_CLASSES], arrived[PACK_CLASSES]; /* until the last of them */
};

struct pack_run {
    struct pack_point points[PACK_POINTS];
    uint64_t dropped[PACK_CLASSES], arrived[PACK_CLASSES];
    uint64_t decisions;
    int64_t spent_ns; /* in decisions, by the meter */
};

struct pack_options {
    const struct pack_cluster *cluster;
    const struct pack_list *list;
    const struct pack_mix *mix;
    const struct pack_policy *policy;
    enum pack_ties ties;
    int64_t (*cpu_ns)(void);
};

/* One seed. */
void pack_run(const struct pack_options *o, uint64_t seed, struct pack_run *ret_run);

/* ---- steady state ------------------------------------------------------------------------ */

struct pack_steady_class {
    uint64_t pods, waiting; /* that arrived while it was measured; of these never started */
    double p50, p95, p99;   /* seconds waited; who never started: until the end */
};

struct pack_steady {              /* means over the time that is measured */
    double allocated, frag_ratio; /* percent of all GPUs; of idle ones */
    double load;                  /* percent of all GPUs that what arrived asked for */
    uint64_t pods;
    struct pack_steady_class classes[PACK_CLASSES];
};

/* Pods of the list drawn at random arrive without end (Poisson), live as long as one of the same
 * quality of service in PODS did, at most a day, and wait where there is no room, in order of
 * arrival but for those who fit earlier. After a day WARM it is measured for DAYS. LOAD_PERCENT:
 * of all GPUs, that would be in use on average if nobody waited. -EINVAL with ERR: the list does
 * not say when pods came and went. */
int pack_steady_run(const struct pack_options *o, const struct openb_pods *pods,
                    uint32_t load_percent, uint32_t days, uint64_t seed,
                    struct pack_steady *ret_steady, struct err *err);

/* ---- what comes out ---------------------------------------------------------------------- */

struct pack_report {
    const struct pack_policy *policy;
    enum pack_ties ties;
    int64_t first; /* seed */
    const struct pack_run *runs;
    size_t count; /* at least 1 */
};

/* "order", "name", "random". */
const char *pack_ties_name(enum pack_ties ties);
/* Tables for a person, to standard output. */
void pack_print_text(const struct pack_report *report);
/* One JSON object and a newline, to standard output. */
void pack_print_json(const struct pack_report *report);
/* Likewise of steady states, one a seed; REPORT's runs are not looked at. */
void pack_print_steady(const struct pack_report *report, const struct pack_steady *steady,
                       bool json);

#endif
