/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The placement score: how much worse for those who come later is a node once a task is on it?
 *
 * The cost of a placement, in fixed point (SCORE_ONE = one milli-GPU), smaller is better:
 *
 *   1. Holes. What the device's hole is worth less, beyond the size of the request: whether what
 *      is left of it can be cut up among requests for parts of devices (worth.h). This decides
 *      how full devices get where there are many, and so it weighs most there; on few devices
 *      the request that would fit a hole may never come, and fragmentation counts instead.
 *   2. Fragmentation. A node's idle GPU is of use to a request if the request's type, CPU and
 *      devices fit; then the devices that are large enough are, the others are not. The mean
 *      over the observed mix of requests is the useful idle GPU; what a placement takes of it
 *      beyond its own size is fragmentation. This is the gradient of Weng et al., "Beware of
 *      Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent"
 *      (USENIX ATC 2023), kept exact instead of cut to a hundred steps. Requests for several
 *      devices weigh more than their number (mix.h), so that whole nodes stay free for them.
 *   3. Leftover. Of nodes that are equal in that, the fuller one, by CPU and GPU.
 *   4. Starvation. GPUs that the node could no longer feed with the CPU that a GPU of the mix
 *      takes along.
 *   5. Scarcity. Some requests accept few kinds of node: they name a type, or ask for more CPU,
 *      memory or devices than most nodes have. Those kinds are left to them.
 *
 * Invariants. Integer arithmetic, no overflow for inventories within the limits of world.h; the
 * same (mix, node state, shape, view mask) gives the same cost and devices, so both may be
 * cached under (shape, state, score_mix.generation).
 *
 * Memory requests count as the share of the device that their charge says. A device's room is
 * the smaller of its free compute and its free memory. MIG slices are left out.
 *
 *     if (fit_node(n, shape, mask, devices, &fit)) {
 *         int64_t cost = score_place(mix_current(s), n, shape, mask, devices, fit.count);
 *     }
 */
#ifndef ALLOT_SCHED_SCORE_H
#define ALLOT_SCHED_SCORE_H

#include "sched/world.h"

#define SCORE_ONE (1LL << 20)
#define SCORE_NEEDS_MAX 64  /* distinct (devices, milli) of a mix */
#define SCORE_CPUS_MAX 128  /* distinct amounts of CPU */
#define SCORE_TYPES_MAX 32  /* device types that requests name */
#define SCORE_KINDS_MAX 128 /* kinds of node */

struct score_need {
    int32_t milli; /* of each device */
    uint32_t count;
};

/* A mix of requests, ready for questions; made by mix.c. */
struct score_mix {
    uint64_t generation; /* differs whenever scores may */
    uint32_t need_count, cpu_count, type_count;
    struct score_need needs[SCORE_NEEDS_MAX]; /* largest milli first */
    int64_t cpus[SCORE_CPUS_MAX];             /* ascending */
    const char *types[SCORE_TYPES_MAX];       /* interned; row 1 + index. Row 0: any other type */
    /* By node.kind: what is asked of it by requests that accept few kinds, per GPU of it, if all
     * demand together were as large as the inventory. SCORE_ONE = all of it. */
    int64_t scarcity[SCORE_KINDS_MAX + 1];
    int32_t worth[WHOLE_MILLI + 1]; /* of a hole, SCORE_ONE per milli-GPU; worth.h */
    int64_t holes_permille;         /* how much that counts, against fragmentation alone */
    int64_t cpu_per_gpu;            /* millicores that a GPU should have left; mix.h */
    int64_t cpu_max, milli_max;     /* of the largest node */
    /* Share of the mix, SCORE_ONE = all of it: who has need n, accepts the type, and asks for at
     * most the r-th amount of CPU: weight[(row * (cpu_count + 1) + r) * need_count + n]. */
    int32_t *weight;
};

/* Cost of placing SHAPE on N in the views of MASK. It fits there: fit_node() has filled DEVICES
 * (COUNT of them), which are replaced where others on the node are better. */
int64_t score_place(const struct score_mix *mix, const struct node *n, const struct shape *shape,
                    unsigned mask, uint16_t *devices, uint32_t count);

/* Idle GPU of N that is of no use to the mix, in SCORE_ONE per milli-GPU; for reports. */
int64_t score_fragmentation(const struct score_mix *mix, const struct node *n, unsigned mask);

#endif
