/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state as text, one line a thing, in order of id: two cores with the same text will behave
 * alike. What is not stored on purpose is left out: launches refused in a row, and when a running
 * task's usage was last written down.
 */
#include "core/internal.h"

#include <inttypes.h>
#include <stdlib.h>

static int by_id(const void *a, const void *b)
{
    const uint64_t *x = *(uint64_t *const *)a, *y = *(uint64_t *const *)b;

    return *x < *y ? -1 : *x > *y;
}

/* The values of M in order of the id that each begins with, into the turn's scratch. */
static void **in_order(struct core *core, const struct map *m)
{
    void **all = arena_new_array(&core->turn, void *, m->len + 1);
    size_t it = 0, n = 0;
    void *value;

    while ((value = map_next(m, &it)) != NULL)
        all[n++] = value;
    if (n)
        qsort(all, n, sizeof(*all), by_id);
    return all;
}

static void describe_team(struct core *core, const struct core_team *t, struct strbuf *out)
{
    struct sched_team_usage u = {0};
    int r = sched_team_usage(core->sched, t->row.id, &u);

    strbuf_addf(out,
                "team %" PRIu64 " '%s' below %" PRIu64 " version %" PRIu64 " weight %" PRId64
                " priority %d live %u children %u (%d):",
                t->row.id, t->row.name, t->parent ? t->parent->row.id : 0, t->row.version,
                t->row.weight, t->row.priority, t->live, t->children, r);
    for (int i = 0; i < MODEL_RESOURCE_COUNT; i++)
        strbuf_addf(out,
                    " [guarantee %" PRId64 " assured %" PRId64 " limit %" PRId64 " used %" PRId64
                    " firm %" PRId64 "]",
                    t->row.guarantee[i], t->assured[i], t->row.limit[i], u.used[i],
                    u.used_nonpreemptible[i]);
    strbuf_addc(out, '\n');
}

static void describe_task(struct core *core, const struct core_workload *w, int32_t index,
                          struct strbuf *out)
{
    const struct core_task *t = &w->tasks[index];
    enum sched_task_state state = SCHED_TASK_PENDING;
    uint64_t node = 0;
    /* Of one that is stopping the scheduler knows the devices only. */
    bool known = w->state != MODEL_WORKLOAD_STOPPING &&
                 sched_task_state(core->sched, w->id, (uint32_t)index, &state, &node) == 0;

    if (w->asleep && state == SCHED_TASK_HELD) {
        state = SCHED_TASK_PENDING; /* that promise is not stored */
        node = 0;
    }
    strbuf_addf(out,
                "  task %d %s attempt %d node %" PRIu64 " milli %d held %" PRId64
                " started %" PRId64 " ended %" PRId64 " code %d signal %d sched %d %d %" PRIu64
                " allocation %" PRIu64 " from %" PRId64 " of %" PRId64
                " asleep %d, to be %d, earlier %" PRId64 " on",
                index, model_task_state_name(t->state), t->attempt, t->node ? t->node->row.id : 0,
                t->gpu_milli, t->held_until_ms, t->started_ms, t->ended_ms, t->exit_code,
                t->exit_signal, known, (int)state, node, t->allocation.id, t->allocation.start_ms,
                t->allocation.memory_bytes, w->asleep, core_suspend_wanted(w), t->known_base_ns);
    for (int32_t i = 0; i < t->device_count; i++)
        strbuf_addf(out, " %u", t->devices[i]);
    strbuf_addc(out, '\n');
}

static void describe_workload(struct core *core, const struct core_workload *w, struct strbuf *out)
{
    strbuf_addf(out,
                "workload %" PRIu64 " '%s' of '%s' in '%s' %s submitted %" PRId64
                " started %" PRId64 " limit %" PRId64 " evicted %" PRId64
                " restarts %d failures %d code %d running %d ended %d shape %" PRIu64 " %s\n",
                w->id, w->name, w->owner, w->team->row.name, model_workload_state_name(w->state),
                w->submitted_ms, w->started_ms, w->timer.pos ? w->limit_at_ms : 0, w->evicted_ms,
                w->restarts, w->failures, w->exit_code, w->running, w->ended, w->shape->id,
                w->message ? w->message : "");
    for (int32_t i = 0; w->tasks && i < w->shape->model->task_count; i++)
        if (w->tasks[i].state != MODEL_TASK_PENDING || w->tasks[i].attempt > 0)
            describe_task(core, w, i, out);
}

void core_describe(struct core *core, struct strbuf *out)
{
    void **all = in_order(core, &core->teams);

    for (; *all; all++)
        describe_team(core, *all, out);
    for (all = in_order(core, &core->nodes); *all; all++) {
        const struct core_node *n = *all;
        strbuf_addf(out, "node %" PRIu64 " %s%s %s\n", n->row.id,
                    model_node_state_name(n->row.state), n->row.drained ? " drained" : "", n->json);
    }
    for (all = in_order(core, &core->workloads); *all; all++)
        describe_workload(core, *all, out);
    strbuf_addf(out, "%" PRIu64 " pending, %" PRIu64 " running\n", core->pending, core->running);
}
