/* SPDX-License-Identifier: Apache-2.0 */
/* Questions that only core can answer: live figures of teams and of itself. */
#include "core/internal.h"

#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b)
{
    const struct core_team_usage *x = a, *y = b;

    return strcmp(x->name, y->name);
}

static void copy_usage(struct core *core, const struct core_team *t, struct core_team_usage *u)
{
    struct sched_team_usage s;

    if (sched_team_usage(core->sched, t->row.id, &s) < 0)
        return;
    for (int r = 0; r < MODEL_RESOURCE_COUNT; r++) {
        u->used[r] = s.used[r];
        u->demand[r] = s.demand[r];
        u->share[r] = s.share[r];
        u->entitled[r] = s.entitled[r];
    }
    u->past_gpu_ms = s.past[SCHED_GPU_MILLI] / 1000;
    u->bias_milli = (int32_t)s.bias_milli[SCHED_GPU_MILLI];
}

static void copy_types(struct core *core, const struct core_team *t, struct arena *arena,
                       struct core_team_usage *u)
{
    struct core_type_usage *types =
        arena_new_array(arena, struct core_type_usage, (size_t)t->row.type_count);

    for (int32_t i = 0; i < t->row.type_count; i++) {
        types[i].type = arena_strdup(arena, t->row.types[i].type);
        (void)sched_team_type_used(core->sched, t->row.id, types[i].type, &types[i].used);
    }
    u->types = types;
    u->type_count = t->row.type_count;
}

/* Walks workloads of one team only through its names. */
static void count_workloads(const struct core_team *t, struct core_team_usage *u)
{
    struct core_workload *w;
    size_t it = 0;

    while ((w = map_next(&t->names, &it)) != NULL) {
        u->workloads[w->state][w->shape->model->class_]++;
        if (w->state == MODEL_WORKLOAD_PENDING)
            u->pending++;
        else
            u->running++;
    }
}

/* Of the teams that the caller sees. */
static void count_own(struct core *core, const struct core_command *c, uint64_t *ret_pending,
                      uint64_t *ret_running)
{
    struct core_team_usage sum = {0};
    const struct core_team *t;
    size_t it = 0;

    while ((t = map_next(&core->teams, &it)) != NULL)
        if (core_access_team(&c->actor, t, NULL) == 0)
            count_workloads(t, &sum);
    *ret_pending = sum.pending;
    *ret_running = sum.running;
}

int core_command_status(struct core *core, struct core_command *c)
{
    const struct core_journal *j = &core->journal;
    uint64_t pending = core->pending, running = core->running;

    if (!c->actor.admin)
        count_own(core, c, &pending, &running);
    c->ret_status = (struct core_status){
        .store_ok = !j->failing,
        .store_message = j->failing ? arena_strdup(&c->arena, j->err.text) : NULL,
        .pending = pending,
        .running = running,
        .last_event = core->committed_event,
        .started_ms = core->started_ms,
        .now_ms = core->now_ms,
        .reconciled = core->reconciled,
    };
    core_command_finish(c, 0);
    return 0;
}

static void list_usage(struct core *core, struct core_command *c)
{
    struct core_team_usage *rows =
        arena_new_array(&c->arena, struct core_team_usage, core->teams.len);
    struct core_team *t;
    size_t it = 0, n = 0;

    while ((t = map_next(&core->teams, &it)) != NULL) {
        rows[n].name = arena_strdup(&c->arena, t->row.name);
        memcpy(rows[n].guarantee, t->row.guarantee, sizeof(rows[n].guarantee));
        memcpy(rows[n].limit, t->row.limit, sizeof(rows[n].limit));
        copy_usage(core, t, &rows[n]);
        copy_types(core, t, &c->arena, &rows[n]);
        count_workloads(t, &rows[n]);
        n++;
    }
    qsort(rows, n, sizeof(*rows), by_name);
    c->ret_team_usage = rows;
    c->ret_team_count = n;
}

int core_command_team_usage(struct core *core, struct core_command *c)
{
    list_usage(core, c);
    core_command_finish(c, 0);
    return 0;
}

int core_command_metrics(struct core *core, struct core_command *c)
{
    list_usage(core, c);
    core_reading_list(core, c);
    core_command_finish(c, 0);
    return 0;
}
