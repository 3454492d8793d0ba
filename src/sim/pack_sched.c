/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placing with the scheduler library itself: one team without limits, one workload of one task at
 * a time, one turn. What does not start in it is removed: dropped.
 *
 * All of it is production work within a guarantee of the whole cluster: nothing is evicted or
 * moved, so that a placement is final as it is for the published policies.
 *
 * The library learns the mix of requests from what arrives; nothing about the list is told to it.
 */
#include <stdlib.h>

#include "sim/pack.h"

struct library {
    struct sched *s;
    uint64_t pods; /* so far; ids and ages */
};

static void must(int r)
{
    if (r < 0)
        abort(); /* the lists are checked: the library takes all of it */
}

void pack_sched_start(struct pack_placer *p)
{
    struct library *own = calloc(1, sizeof(*own));
    if (own == NULL || (own->s = sched_create(NULL)) == NULL)
        abort(); /* as in base/arena.h */
    p->own = own;
    struct sched_team team = {.id = 1, .weight = 1};
    for (int r = 0; r < SCHED_RESOURCES; r++)
        team.guarantee[r] = team.limit[r] = SCHED_UNLIMITED;
    must(sched_team_set(own->s, &team));
    for (size_t i = 0; i < p->cluster->count; i++) {
        struct sched_device devices[OPENB_DEVICES_MAX];
        struct sched_node n = openb_sched_node(p->nodes[i].node, i + 1, i, devices);
        must(sched_node_set(own->s, &n));
    }
}

void pack_sched_end(struct pack_placer *p)
{
    struct library *own = p->own;
    sched_destroy(own->s);
    free(own);
}

struct sched *pack_sched_library(struct pack_placer *p)
{
    struct library *own = p->own;
    return own->s;
}

void pack_sched_submit(struct pack_placer *p, uint32_t shape, uint64_t id)
{
    struct library *own = p->own;
    struct sched_request request = openb_sched_request(p->list->shapes[shape].pod);
    request.device_milli = p->list->shapes[shape].milli;
    struct sched_task task = {.request = &request};
    struct sched_workload w = {.id = id,
                               .team = 1,
                               .age = id,
                               .class_ = SCHED_CLASS_PRODUCTION,
                               .tasks = &task,
                               .task_count = 1,
                               .min_tasks = 1,
                               .accepted = true};
    must(sched_workload_add(own->s, &w, NULL));
}

int64_t pack_sched_pod(struct pack_placer *p, uint32_t index)
{
    struct library *own = p->own;
    const struct pack_shape *shape = &p->list->shapes[index];
    uint64_t id = ++own->pods;
    pack_sched_submit(p, index, id);
    const struct sched_decisions *d = sched_turn(own->s, (int64_t)id);
    for (size_t i = 0; i < d->count; i++) {
        const struct sched_decision *one = &d->items[i];
        if (one->kind != SCHED_START || one->workload != id)
            continue;
        uint64_t node = one->node - 1;
        pack_take(&p->nodes[node], shape, one->device_count > 0 ? one->devices[0] : 0);
        return (int64_t)node;
    }
    must(sched_workload_remove(own->s, id));
    return -1;
}
