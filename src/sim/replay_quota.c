/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sim/replay.h"

#define MINUTE 60000
#define GRAIN 8

static int count_compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* GPUs that TEAM would use at the start of each minute; the nearest-rank quantile of them. */
static uint32_t demand_quantile(const struct philly *trace, uint32_t team, uint32_t quantile,
                                int64_t *minutes, size_t count)
{
    memset(minutes, 0, (count + 1) * sizeof(minutes[0]));
    for (size_t i = 0; i < trace->count; i++) {
        const struct philly_job *job = &trace->jobs[i];
        size_t from = (size_t)((job->submit_ms + MINUTE - 1) / MINUTE);
        size_t to = (size_t)((job->submit_ms + job->run_ms + MINUTE - 1) / MINUTE);
        if (job->team != team || from >= count)
            continue;
        minutes[from] += job->gpus;
        minutes[to < count ? to : count] -= job->gpus;
    }
    for (size_t i = 1; i < count; i++)
        minutes[i] += minutes[i - 1];
    qsort(minutes, count, sizeof(minutes[0]), count_compare);
    size_t rank = (count * quantile + 99) / 100;
    return (uint32_t)minutes[rank > 0 ? rank - 1 : 0];
}

/* Scales BLOCKS to GPUS in all: whole parts, then one more by largest remainder, then by order. */
static void scale(uint32_t *blocks, uint32_t count, uint64_t sum, uint32_t gpus)
{
    uint64_t rest[PHILLY_TEAMS_MAX];
    uint32_t given = 0;
    for (uint32_t t = 0; t < count; t++) {
        uint64_t part = (uint64_t)blocks[t] * gpus;
        blocks[t] = (uint32_t)(part / sum);
        rest[t] = part % sum + 1;
        given += blocks[t];
    }
    for (; given < gpus; given++) {
        uint32_t most = 0;
        for (uint32_t t = 1; t < count; t++)
            if (rest[t] > rest[most])
                most = t;
        blocks[most]++;
        rest[most] = 0;
    }
}

uint32_t replay_blocks(const struct philly *trace, uint32_t quantile, uint32_t gpus,
                       uint32_t *ret_blocks)
{
    size_t count = (size_t)(trace->jobs[trace->count - 1].submit_ms / MINUTE) + 1;
    _cleanup_free_ int64_t *minutes = calloc(count + 1, sizeof(minutes[0]));
    if (minutes == NULL)
        abort();
    uint64_t sum = 0;
    for (uint32_t t = 0; t < trace->team_count; t++) {
        uint32_t block = demand_quantile(trace, t, quantile, minutes, count);
        for (size_t i = 0; i < trace->count; i++)
            if (trace->jobs[i].team == t && trace->jobs[i].gpus > block)
                block = trace->jobs[i].gpus;
        block = (block + GRAIN - 1) / GRAIN * GRAIN;
        ret_blocks[t] = block;
        sum += block;
    }
    if (gpus > 0)
        scale(ret_blocks, trace->team_count, sum, gpus);
    return gpus > 0 ? gpus : (uint32_t)sum;
}
