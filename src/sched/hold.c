/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/hold.h"

#include <stdlib.h>
#include <string.h>

#include "sched/decide.h"
#include "sched/fit.h"
#include "sched/gate.h"
#include "sched/node.h"
#include "sched/place.h"
#include "sched/task.h"
#include "sched/team.h"
#include "sched/workload.h"

static bool held_nodes_take(const struct workload *w)
{
    for (uint32_t t = 0; t < w->group->job->task_count; t++)
        if (w->tasks[t].phase == TASK_HELD && !node_takes(w->tasks[t].node))
            return false;
    return true;
}

static void held_take(struct workload *w, uint32_t count, int sign)
{
    for (uint32_t t = 0; t < w->group->job->task_count && count > 0; t++) {
        const struct task *task = &w->tasks[t];
        if (task->phase != TASK_HELD)
            continue;
        fit_take(task->node, task_shape(w, t), task_devices(task), task->device_count, VIEW_NOW,
                 sign);
        count--;
    }
}

/* Are all promised devices free now, for all tasks together, and the gates open? */
static bool held_can_start(struct workload *w)
{
    struct amounts need = {0};
    uint32_t taken = 0;
    bool fits = true;
    for (uint32_t t = 0; t < w->group->job->task_count && fits; t++) {
        const struct task *task = &w->tasks[t];
        if (task->phase != TASK_HELD)
            continue;
        struct amounts charge = task_charge(w, t);
        amounts_add(&need, &charge, 1);
        fits = fit_devices(task->node, task_shape(w, t), MASK(VIEW_NOW), task_devices(task),
                           task->device_count);
        if (fits) {
            fit_take(task->node, task_shape(w, t), task_devices(task), task->device_count,
                     VIEW_NOW, 1);
            taken++;
        }
    }
    held_take(w, taken, -1);
    return fits && gate_open(w->group, &need, MASK(VIEW_NOW), NULL);
}

void hold_step(struct sched *s)
{
    for (size_t i = 0; i < s->holding.len;) {
        struct workload *w = s->holding.items[i];
        if (!held_nodes_take(w))
            decide_unhold(s, w, SCHED_CAUSE_OBSOLETE);
        else if (held_can_start(w))
            decide_start_held(s, w);
        else if (w->timer_ms <= s->now_ms)
            decide_unhold(s, w, SCHED_CAUSE_EXPIRED);
        else if (w->victims == 0 && s->stopping_unknown == 0)
            workload_hold_ripens(s, w);
        if (i < s->holding.len && s->holding.items[i] == w)
            i++;
    }
}

void hold_victim_stopped(struct sched *s, uint64_t workload)
{
    struct workload *w = workload == 0 ? NULL : workload_find(s, workload);
    if (w != NULL && w->victims > 0)
        w->victims--;
}

void hold_claim(struct sched *s, struct workload *w)
{
    const struct placing *p = s->placing;
    place_take(s, VIEW_THEN, 1);
    for (size_t i = 0; i < p->spots.len; i++) {
        const struct spot *spot = &p->spots.items[i];
        struct claim *c = vec_add(&s->claims);
        c->workload = w;
        c->shape = spot->shape;
        c->node = spot->node;
        c->device_count = spot->count;
        c->devices = mem_new(spot->count, sizeof(*c->devices));
        if (spot->count > 0)
            memcpy(c->devices, spot_devices(p, spot), spot->count * sizeof(*c->devices));
    }
}

void hold_claims_drop(struct sched *s)
{
    for (size_t i = 0; i < s->claims.len; i++) {
        struct claim *c = &s->claims.items[i];
        fit_take(c->node, c->shape, c->devices, c->device_count, VIEW_THEN, -1);
        node_touch(s, c->node);
        free(c->devices);
    }
    vec_clear(&s->claims);
}
