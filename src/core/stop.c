/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stop is carried out at once and answered when it is durable: who was told "stopping" finds it
 * so, and a crash in between cannot forget it.
 */
#include "core/internal.h"

#include <errno.h>

/* Stopped once more: only a shorter grace makes a difference. */
static void stop_again(struct core *core, struct core_workload *w, const struct core_command *c)
{
    if (c->grace_ms < 0)
        return;
    for (int32_t i = 0; i < w->shape->model->task_count; i++)
        core_task_stop(core, w, i, c->grace_ms);
    core_record_event(
        core, core_journal_txn(core),
        &(struct model_event){.type = MODEL_EVENT_STOPPING,
                              .workload = w->id,
                              .task = -1,
                              .workload_name = w->name,
                              .team = w->team->row.name,
                              .actor = c->actor.name,
                              .message = arena_printf(&core->turn, "given %lld ms to stop",
                                                      (long long)c->grace_ms)});
}

int core_command_stop(struct core *core, struct core_command *c)
{
    struct core_workload *w = map_get(&core->workloads, c->id);
    int r;

    if (w == NULL)
        return err_set(&c->err, -ENOENT, ERR_NOT_FOUND, "id", "see 'allot ps --all'",
                       "no live workload has id %llu", (unsigned long long)c->id);
    r = core_access_team(&c->actor, w->team, &c->err);
    if (r < 0)
        return r;
    if (w->state == MODEL_WORKLOAD_STOPPING)
        stop_again(core, w, c);
    else
        core_workload_stop(core, w, 0, c->grace_ms, c->actor.name,
                           arena_printf(&core->turn, "stopped by %s", c->actor.name));
    core_journal_wait(core, c);
    return 0;
}
