/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random workloads that are valid by construction: every field takes part, also at its bounds.
 */
#ifndef ALLOT_TESTS_MODEL_RANDOM_WORKLOAD_H
#define ALLOT_TESTS_MODEL_RANDOM_WORKLOAD_H

#include "base/arena.h"
#include "base/rng.h"
#include "model/workload.h"

/* Shape, launch, identity and state; everything in ARENA. */
void random_workload(struct rng *r, struct arena *arena, struct model_workload *ret_workload);

#endif
