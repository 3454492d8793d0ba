/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shapes in the form that the scheduler takes: what workloads ask for, converted once.
 *
 * Purpose. The control plane keeps equal shapes once (interned by canonical JSON) and hands the
 * scheduler the same arrays for all workloads of a shape. Whoever replays recorded work on the
 * scheduler library uses the same conversion, so that it asks for exactly what the server would.
 *
 * Ownership. A shape owns what its arena holds, `json` included; release it with arena_done().
 * What core_shape_sched() gives refers to the shape and lives as long. One thread at a time.
 *
 *     struct core_shape shape = {.json = arena_strdup(&shape.arena, json)};
 *     if (core_shape_ready(&shape, &err) == 0)
 *         core_shape_sched(&shape, id, team, false, &workload);
 */
#ifndef ALLOT_CORE_SHAPE_H
#define ALLOT_CORE_SHAPE_H

#include <allot/sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "model/workload.h"

struct core_shape {
    uint64_t id;
    char *json;
    const struct model_shape *model; /* NULL until first used */
    struct sched_workload sched;     /* template: id, team, age are filled in per workload */
    struct arena arena;
    int32_t gpu_milli; /* charge of all tasks while they wait */
    bool stored;       /* the store has it: its first transaction is durable */
    uint32_t uses;     /* workloads that refer to it */
};

/* Decodes and converts `json` when it is first needed. 0, or -EINVAL and the like with ERR. */
int core_shape_ready(struct core_shape *s, struct err *err);
/* The scheduler's view of a workload of shape S, which is ready. */
void core_shape_sched(const struct core_shape *s, uint64_t id, uint64_t team, bool accepted,
                      struct sched_workload *ret);
/* The only GPU type that shape S, which is ready, accepts for all of its tasks; NULL = there is
 * more than one, or it does not say. */
const char *core_shape_only_type(const struct core_shape *s);

#endif
