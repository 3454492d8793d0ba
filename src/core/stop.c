/* SPDX-License-Identifier: Apache-2.0 */
#include "core/internal.h"

#include <errno.h>

struct staged_stop {
    uint64_t id;
    int64_t grace_ms;
};

static void apply_stop(struct core *core, struct core_entry *entry)
{
    const struct staged_stop *s = entry->staged;
    struct core_workload *w = map_get(&core->workloads, s->id);

    /* It may have ended by itself while the wish was being written down. */
    if (w == NULL || w->state == MODEL_WORKLOAD_STOPPING)
        return;
    core_workload_stop(core, w, 0, s->grace_ms, entry->command->actor.name,
                       arena_printf(&core->turn, "stopped by %s", entry->command->actor.name));
}

int core_command_stop(struct core *core, struct core_command *c)
{
    struct core_workload *w = map_get(&core->workloads, c->id);
    struct core_entry *entry;
    struct staged_stop *s;
    int r;

    if (w == NULL)
        return err_set(&c->err, -ENOENT, ERR_NOT_FOUND, "id", "see 'allot ps --all'",
                       "no live workload has id %llu", (unsigned long long)c->id);
    r = core_access_team(&c->actor, w->team, &c->err);
    if (r < 0)
        return r;
    entry = core_journal_command(core, c);
    s = arena_new(&entry->txn.arena, struct staged_stop);
    s->id = w->id;
    s->grace_ms = c->grace_ms;
    entry->staged = s;
    entry->apply = apply_stop;
    core_record_event(core, &entry->txn,
                      &(struct model_event){
                          .type = MODEL_EVENT_STOPPING,
                          .workload = w->id,
                          .task = -1,
                          .workload_name = w->name,
                          .team = w->team->row.name,
                          .actor = c->actor.name,
                          .message = "asked to stop",
                      });
    return 0;
}
