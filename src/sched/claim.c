/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/claim.h"

#include <string.h>

#include "sched/fit.h"
#include "sched/team.h"
#include "sched/types.h"

struct claim claim_of(const struct placing *p, const struct spot *spot, struct workload *w)
{
    struct claim c = {.workload = w,
                      .task = spot->task,
                      .shape = spot->shape,
                      .node = spot->node,
                      .device_count = spot->count,
                      .devices = mem_new(spot->count, sizeof(uint16_t))};
    if (spot->count > 0)
        memcpy(c.devices, spot_devices(p, spot), spot->count * sizeof(uint16_t));
    c.gpu_milli = fit_charge(c.node, c.shape, c.devices, c.device_count);
    return c;
}

struct amounts claim_charge(const struct claim *c)
{
    return (struct amounts){{c->gpu_milli, c->shape->cpu, c->shape->memory}};
}

void claim_take(const struct claim *c, int sign)
{
    const struct group *g = c->workload->group;
    struct amounts charge = claim_charge(c);
    team_use(g->team, VIEW_THEN, &charge, !g->preemptible, sign);
    types_use(g->team, VIEW_THEN, c->node->gpu_type, c->gpu_milli, !g->preemptible, sign);
    fit_take(c->node, c->shape, c->devices, c->device_count, VIEW_THEN, sign);
}
