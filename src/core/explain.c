/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler's explanation with ids turned into names. */
#include "core/internal.h"

#include <errno.h>

static const char *basis_name(enum sched_start_basis basis)
{
    static const char *const names[] = {
        [SCHED_START_UNKNOWN] = "unknown",    [SCHED_START_NOW] = "now",
        [SCHED_START_VICTIMS] = "victims",    [SCHED_START_LIMITS] = "limits",
        [SCHED_START_EXPECTED] = "expected",  [SCHED_START_BACKOFF] = "backoff",
        [SCHED_START_WINDOW] = "maintenance", [SCHED_START_RESERVED] = "reserved",
    };
    return names[basis];
}

static struct model_explanation_holder holder_of(struct core *core, uint64_t id, int64_t gpu_milli,
                                                 struct arena *arena)
{
    const struct core_workload *w = map_get(&core->workloads, id);

    if (w == NULL)
        return (struct model_explanation_holder){0};
    return (struct model_explanation_holder){w->id, arena_strdup(arena, w->name),
                                             arena_strdup(arena, w->team->row.name), gpu_milli};
}

static void fill_numbers(struct core *core, const struct core_workload *w,
                         const struct sched_explanation *s, struct arena *arena,
                         struct model_explanation *x)
{
    const struct core_team *team = map_get(&core->teams, s->team);
    const struct core_node *node = s->node ? map_get(&core->nodes, s->node) : NULL;
    struct model_explanation_holder *holders =
        arena_new_array(arena, struct model_explanation_holder, s->holder_count);

    x->reason = sched_reason_name(s->reason);
    x->resource = (enum model_resource)s->resource;
    x->asked = s->asked;
    x->free = s->free;
    x->missing = s->missing;
    x->team = arena_strdup(arena, team ? team->row.name : w->team->row.name);
    x->gpu_type = arena_strdup(arena, s->gpu_type);
    x->used = s->used;
    x->guarantee = s->guarantee;
    x->limit = s->limit;
    x->share = s->share;
    x->position = (int32_t)s->position;
    x->pending = (int32_t)s->pending;
    x->start_ms = s->start_ms;
    x->basis = basis_name(s->basis);
    x->waits_for = holder_of(core, s->waits_for, 0, arena);
    if (node) {
        x->node = arena_strdup(arena, node->row.name);
        x->window_from_ms = node->row.window_from_ms;
        x->window_until_ms = node->row.window_until_ms;
    }
    x->run_ms = s->run_ms;
    for (uint32_t i = 0; i < s->holder_count; i++) {
        holders[x->holder_count] = holder_of(core, s->holders[i], s->holder_gpu_milli[i], arena);
        x->holder_count += holders[x->holder_count].id != 0;
    }
    x->holders = holders;
}

int core_command_explain(struct core *core, struct core_command *c)
{
    const struct core_workload *w = map_get(&core->workloads, c->id);
    struct model_explanation *x = arena_new(&c->arena, struct model_explanation);
    struct sched_explanation s;
    int r;

    if (w == NULL)
        return err_set(&c->err, -ENOENT, ERR_NOT_FOUND, "id",
                       "it may have ended: 'allot show' tells", "no live workload has id %llu",
                       (unsigned long long)c->id);
    r = core_access_team(&c->actor, w->team, &c->err);
    if (r < 0)
        return r;
    x->id = w->id;
    x->name = arena_strdup(&c->arena, w->name);
    x->own_team = arena_strdup(&c->arena, w->team->row.name);
    x->state = w->state;
    x->now_ms = core->now_ms;
    x->tasks = w->shape->model->task_count;
    x->request = model_request_describe(&w->shape->model->groups[0].request, &c->arena);
    x->last_eviction = w->evicted_ms ? arena_strdup(&c->arena, w->message) : NULL;
    x->last_eviction_ms = w->evicted_ms;
    if (sched_explain(core->sched, w->id, core->now_ms, &s) == 0)
        fill_numbers(core, w, &s, &c->arena, x);
    x->sentence = model_explanation_sentence(x, &c->arena);
    x->remedy = model_explanation_remedy(x, &c->arena);
    c->ret_explanation = x;
    core_command_finish(c, 0);
    return 0;
}

int core_command_explain_brief(struct core *core, struct core_command *c)
{
    c->ret_reasons = arena_new_array(&c->arena, const char *, c->id_count);
    c->ret_positions = arena_new_array(&c->arena, uint32_t, c->id_count);
    c->ret_stopping = arena_new_array(&c->arena, int32_t, c->id_count);
    for (size_t i = 0; i < c->id_count; i++) {
        const struct core_workload *w = map_get(&core->workloads, c->ids[i]);
        struct sched_explanation s;

        if (w && w->state == MODEL_WORKLOAD_RUNNING)
            c->ret_stopping[i] = w->stopping;
        if (w == NULL || w->state != MODEL_WORKLOAD_PENDING ||
            sched_explain(core->sched, w->id, core->now_ms, &s) < 0)
            continue;
        c->ret_reasons[i] = sched_reason_name(s.reason);
        c->ret_positions[i] = s.position;
    }
    core_command_finish(c, 0);
    return 0;
}
