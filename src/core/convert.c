/* SPDX-License-Identifier: Apache-2.0 */
#include "core/convert.h"

#include "model/workload.h"

void core_assured(const struct model_team *row, const int64_t below[MODEL_RESOURCE_COUNT],
                  int64_t ret_assured[MODEL_RESOURCE_COUNT])
{
    for (int r = 0; r < MODEL_RESOURCE_COUNT; r++) {
        int64_t most = row->guarantee[r] > below[r] ? row->guarantee[r] : below[r];

        ret_assured[r] = most < row->limit[r] ? most : row->limit[r];
        if (r != MODEL_GPU_MILLI && most == 0 && ret_assured[MODEL_GPU_MILLI] > 0 &&
            row->limit[r] == MODEL_UNLIMITED)
            ret_assured[r] = MODEL_UNLIMITED;
    }
}

struct sched_team core_sched_team(const struct model_team *row,
                                  const int64_t assured[MODEL_RESOURCE_COUNT], struct arena *arena)
{
    struct sched_type_quota *types =
        arena_new_array(arena, struct sched_type_quota, (size_t)row->type_count);
    struct sched_team team = {
        .types = types,
        .type_count = (uint32_t)row->type_count,
        .id = row->id,
        .parent = row->parent_id,
        .age = row->id,
        .weight = row->weight,
        .priority = row->priority,
    };

    for (int r = 0; r < MODEL_RESOURCE_COUNT; r++) {
        team.guarantee[r] = assured[r];
        team.limit[r] = row->limit[r];
    }
    for (int32_t i = 0; i < row->type_count; i++)
        types[i] = (struct sched_type_quota){row->types[i].type, row->types[i].guarantee,
                                             row->types[i].limit};
    return team;
}

struct sched_label *core_sched_labels(const struct model_pair *labels, int32_t count,
                                      struct arena *arena)
{
    struct sched_label *converted = arena_new_array(arena, struct sched_label, (size_t)count);

    for (int32_t i = 0; i < count; i++)
        converted[i] = (struct sched_label){labels[i].key, labels[i].value};
    return converted;
}

struct sched_node core_sched_node(const struct model_node *row, struct arena *arena)
{
    struct sched_device *devices =
        arena_new_array(arena, struct sched_device, (size_t)row->device_count);

    for (int32_t i = 0; i < row->device_count; i++)
        devices[i] = (struct sched_device){row->devices[i].mig_profile,
                                           row->devices[i].memory_bytes, row->devices[i].mig_milli};
    return (struct sched_node){
        .id = row->id,
        .order = row->id,
        .gpu_type = row->gpu_type,
        .devices = devices,
        .device_count = (uint32_t)row->device_count,
        .cpu_milli = row->cpu_milli,
        .memory_bytes = row->memory_bytes,
        .labels = core_sched_labels(row->labels, row->label_count, arena),
        .label_count = (uint32_t)row->label_count,
        .up = row->state == MODEL_NODE_UP,
        .schedulable = !row->drained,
        .window_from_ms = row->window_from_ms,
        .window_until_ms = row->window_until_ms,
    };
}
