/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Teams and nodes in the form that the scheduler takes; shape.h does the same for workloads.
 *
 * Purpose. One conversion for the control plane and for whoever replays recorded rows on the
 * scheduler library, so that it decides there as it does on a server.
 *
 * Ownership. What is given refers to the row and to what was put into the arena, and lives as long
 * as both. Units are those of the rows, which are the scheduler's. Nothing fails.
 */
#ifndef ALLOT_CORE_CONVERT_H
#define ALLOT_CORE_CONVERT_H

#include <allot/sched.h>
#include <stdint.h>

#include "base/arena.h"
#include "model/node.h"
#include "model/team.h"

/*
 * The guarantee that counts. A team above others is assured of at least what is promised below
 * it (BELOW: the sum of what its children are assured of, unlimited ones left out), or nothing
 * there could be relied on. And GPUs are no use without the CPU and memory beside them: where a
 * team has a guarantee of GPUs and nothing is said of those, they do not bind.
 */
void core_assured(const struct model_team *row, const int64_t below[MODEL_RESOURCE_COUNT],
                  int64_t ret_assured[MODEL_RESOURCE_COUNT]);

/* ROW with ASSURED as its guarantees. */
struct sched_team core_sched_team(const struct model_team *row,
                                  const int64_t assured[MODEL_RESOURCE_COUNT], struct arena *arena);

/* ROW as it stands: drained nodes are not schedulable. */
struct sched_node core_sched_node(const struct model_node *row, struct arena *arena);

/* COUNT labels, of a node or of what asks for one. */
struct sched_label *core_sched_labels(const struct model_pair *labels, int32_t count,
                                      struct arena *arena);

#endif
