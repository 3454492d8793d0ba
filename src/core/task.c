/* SPDX-License-Identifier: Apache-2.0 */
#include "core/internal.h"

#include <stdlib.h>

#include "base/clock.h"

void core_task_intent(const struct core_workload *w, int32_t index, char *text)
{
    model_intent_format(w->id, index, w->tasks[index].attempt, text);
}

void core_task_set_state(struct core *core, struct core_workload *w, int32_t index,
                         enum model_task_state state)
{
    struct core_task *t = &core_workload_tasks(w)[index];

    if (!model_task_transition_ok(t->state, state))
        abort();
    w->running += model_task_state_holds(state) - model_task_state_holds(t->state);
    w->stopping += (state == MODEL_TASK_STOPPING) - (t->state == MODEL_TASK_STOPPING);
    w->ended += model_task_state_is_final(state) - model_task_state_is_final(t->state);
    t->state = state;
    if (state == MODEL_TASK_STOPPING)
        t->allocation.stopping_ms = core->now_ms;
}

/* GPU time of A until T_MS. */
static int64_t gpu_ns(const struct model_allocation *a, int64_t t_ms)
{
    int64_t ms = t_ms - a->start_ms, ns;

    if (ms <= 0)
        return 0;
    return __builtin_mul_overflow(ms, (int64_t)a->gpu_milli * (NS_PER_MS / 1000), &ns) ? INT64_MAX
                                                                                       : ns;
}

int64_t core_task_launch_ns(const struct core_task *t, const struct model_allocation *a)
{
    return gpu_ns(a, t->started_ms);
}

void core_task_release(struct core *core, struct core_workload *w, int32_t index, int64_t end_ms,
                       enum model_release how)
{
    struct core_task *t = &w->tasks[index];
    struct model_allocation *a = &t->allocation;

    if (a->id) {
        /* A report from before the last commit cannot end it before it began. */
        a->end_ms = end_ms < a->start_ms ? a->start_ms : end_ms;
        if (a->end_ms > core->now_ms)
            a->end_ms = core->now_ms;
        a->release = how;
        if (how == MODEL_RELEASE_REFUSED)
            a->known_ns = gpu_ns(a, a->end_ms); /* nothing ran */
        core_record_allocation(core, a);
        *a = (struct model_allocation){0};
    }
    free(t->devices);
    t->devices = NULL;
    t->device_count = 0;
    t->node = NULL;
    t->held_until_ms = 0;
    t->busy_base_ns = t->known_base_ns = 0;
    core->dirty = true;
}

void core_task_stop(struct core *core, struct core_workload *w, int32_t index, int64_t grace_ms)
{
    struct core_task *t = &core_workload_tasks(w)[index];
    char intent[MODEL_INTENT_MAX];

    if (t->state == MODEL_TASK_SUSPENDED) {
        core_task_set_state(core, w, index, MODEL_TASK_STOPPING);
        core_record_task(core, w, index);
    } else if (t->state == MODEL_TASK_STARTING || t->state == MODEL_TASK_RUNNING) {
        core_task_set_state(core, w, index, MODEL_TASK_STOPPING);
        sched_task_stopping(core->sched, w->id, (uint32_t)index, core->now_ms);
        core_record_task(core, w, index);
    } else if (t->state != MODEL_TASK_STOPPING || grace_ms < 0) {
        return;
    }
    core_task_intent(w, index, intent);
    core_journal_effect(core, EFFECT_STOP, intent, NULL,
                        grace_ms < 0 ? w->shape->model->grace_ms : grace_ms);
}
