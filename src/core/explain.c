/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler's explanation with ids turned into names. */
#include "core/internal.h"

#include <errno.h>
#include <string.h>

static const char *basis_name(enum sched_start_basis basis)
{
    static const char *const names[] = {
        [SCHED_START_UNKNOWN] = "unknown",     [SCHED_START_NOW] = "now",
        [SCHED_START_VICTIMS] = "victims",     [SCHED_START_LIMITS] = "limits",
        [SCHED_START_EXPECTED] = "expected",   [SCHED_START_BACKOFF] = "backoff",
        [SCHED_START_WINDOW] = "maintenance",  [SCHED_START_RESERVED] = "reserved",
        [SCHED_START_PROTECTED] = "protected", [SCHED_START_BEHIND] = "behind",
    };
    return names[basis];
}

static struct model_explanation_holder holder_of(struct core *core, uint64_t id, int64_t amount,
                                                 struct arena *arena)
{
    uint64_t owner = core_suspend_owner(id);
    const struct core_workload *w = map_get(&core->workloads, owner ? owner : id);

    if (w == NULL)
        return (struct model_explanation_holder){0};
    return (struct model_explanation_holder){.id = w->id,
                                             .name = arena_strdup(arena, w->name),
                                             .team = arena_strdup(arena, w->team->row.name),
                                             .amount = amount};
}

static bool accepts(const struct model_shape *shape, const char *type)
{
    for (int32_t g = 0; g < shape->group_count; g++) {
        const struct model_request *r = &shape->groups[g].request;

        if (r->device_count > 0 && r->gpu_type_count == 0)
            return true;
        for (int32_t i = 0; i < r->gpu_type_count; i++)
            if (strcmp(r->gpu_types[i], type) == 0)
                return true;
    }
    return false;
}

/* What is stated of the types that it could run on, by its team and by those above. */
static void fill_types(struct core *core, const struct core_workload *w, struct arena *arena,
                       struct model_explanation *x)
{
    struct model_explanation_type *types;
    size_t most = 0;

    for (const struct core_team *t = w->team; t; t = t->parent)
        most += (size_t)t->row.type_count;
    if (most == 0)
        return;
    types = arena_new_array(arena, struct model_explanation_type, most);
    for (const struct core_team *t = w->team; t; t = t->parent)
        for (int32_t i = 0; i < t->row.type_count; i++) {
            const struct model_type_quota *q = &t->row.types[i];
            struct model_explanation_type *of = &types[x->type_count];

            if (!accepts(w->shape->model, q->type))
                continue;
            *of = (struct model_explanation_type){.team = arena_strdup(arena, t->row.name),
                                                  .type = arena_strdup(arena, q->type),
                                                  .guarantee = q->guarantee,
                                                  .limit = q->limit};
            (void)sched_team_type_used(core->sched, t->row.id, q->type, &of->used);
            x->type_count++;
        }
    x->types = types;
}

/* Where one type binds: what is stated of it, and no share, which is of all types together. */
static void fill_bound_type(struct model_explanation *x)
{
    if (x->gpu_type == NULL)
        return;
    x->share = MODEL_UNLIMITED;
    for (int32_t i = 0; i < x->type_count; i++)
        if (strcmp(x->types[i].type, x->gpu_type) == 0 && strcmp(x->types[i].team, x->team) == 0)
            x->guarantee = x->types[i].guarantee;
}

static void fill_quota(struct core *core, const struct core_workload *w,
                       const struct sched_explanation *s, struct arena *arena,
                       struct model_explanation *x)
{
    const struct core_team *team = map_get(&core->teams, s->team);
    const struct core_team *over = s->over_team ? map_get(&core->teams, s->over_team) : NULL;

    team = team ? team : w->team;
    x->team = arena_strdup(arena, team->row.name);
    x->hard_quota = team->row.quota == MODEL_QUOTA_HARD;
    x->firm = s->firm;
    x->gpu_type = arena_strdup(arena, s->gpu_type);
    x->used = s->used;
    x->guarantee = s->guarantee;
    x->limit = s->limit;
    x->share = s->share;
    x->over_team = over ? arena_strdup(arena, over->row.name) : NULL;
    x->guarantees = s->guarantees;
    x->capacity = s->capacity;
}

static const char *node_state(const struct core *core, const struct core_node *n)
{
    if (n->row.state != MODEL_NODE_UP)
        return model_node_state_name(n->row.state);
    if (n->row.drained)
        return "drained";
    return n->row.window_until_ms > core->now_ms ? "maintenance" : "up";
}

static void fill_nodes(struct core *core, const struct sched_explanation *s, struct arena *arena,
                       struct model_explanation *x)
{
    struct model_explanation_node *nodes =
        arena_new_array(arena, struct model_explanation_node, s->node_count);

    for (uint32_t i = 0; i < s->node_count; i++) {
        const struct core_node *n = map_get(&core->nodes, s->nodes[i]);

        if (n == NULL)
            continue;
        if (i == 0 && s->reason == SCHED_REASON_MAINTENANCE) {
            x->window_from_ms = n->row.window_from_ms;
            x->window_until_ms = n->row.window_until_ms;
        }
        nodes[x->node_count++] =
            (struct model_explanation_node){arena_strdup(arena, n->row.name), node_state(core, n)};
    }
    x->nodes = nodes;
}

static void fill_holders(struct core *core, const struct sched_explanation *s, struct arena *arena,
                         struct model_explanation *x)
{
    struct model_explanation_holder *holders =
        arena_new_array(arena, struct model_explanation_holder, s->holder_count);
    const struct core_workload *other = map_get(&core->workloads, s->waits_for);

    x->waits_for = holder_of(core, s->waits_for, 0, arena);
    x->budget = other ? other->shape->model->max_unavailable : 0;
    for (uint32_t i = 0; i < s->holder_count; i++) {
        holders[x->holder_count] = holder_of(core, s->holders[i], s->holder_amount[i], arena);
        x->holder_count += holders[x->holder_count].id != 0;
    }
    x->holders = holders;
}

/* Who gives way for its promise has the grace of its own to do so. */
static void fill_deadline(struct core *core, const struct sched_explanation *s,
                          struct model_explanation *x)
{
    int64_t last_ms = 0;

    if (s->reason != SCHED_REASON_HELD && s->reason != SCHED_REASON_STOPPING)
        return;
    for (uint32_t i = 0; i < s->holder_count; i++) {
        const struct core_workload *v = map_get(&core->workloads, s->holders[i]);

        if (v == NULL || v->evicted_ms == 0)
            return; /* stopped by a person: with a grace that nobody remembers */
        int64_t gone_ms = v->evicted_ms + v->shape->model->grace_ms;
        last_ms = gone_ms > last_ms ? gone_ms : last_ms;
    }
    x->start_ms = last_ms;
}

static void fill_numbers(struct core *core, const struct core_workload *w,
                         const struct sched_explanation *s, struct arena *arena,
                         struct model_explanation *x)
{
    x->reason = sched_reason_name(s->reason);
    x->resource = (enum model_resource)s->resource;
    x->asked = s->asked;
    x->each = s->each;
    x->free = s->free;
    x->most = s->most;
    x->missing = s->missing;
    x->less = s->less;
    x->less_tasks = (int32_t)s->less_tasks;
    x->takes = s->takes;
    x->gang = (int32_t)s->gang;
    x->fitting = (int32_t)s->fitting;
    x->level = arena_strdup(arena, s->level);
    x->domain = arena_strdup(arena, s->domain);
    x->position = (int32_t)s->position;
    x->pending = (int32_t)s->pending;
    x->start_ms = s->start_ms;
    x->basis = basis_name(s->basis);
    x->run_ms = s->run_ms;
    fill_quota(core, w, s, arena, x);
    fill_types(core, w, arena, x);
    fill_bound_type(x);
    fill_nodes(core, s, arena, x);
    fill_holders(core, s, arena, x);
    fill_deadline(core, s, x);
}

static void fill_request(const struct core_shape *from, struct arena *arena,
                         struct model_explanation *x)
{
    const struct model_shape *shape = from->model;
    const struct model_request *request = &shape->groups[0].request;

    x->tasks = shape->task_count;
    x->request = model_request_describe(request, arena);
    x->type = arena_strdup(arena, core_shape_only_type(from));
    x->asks_gpu = request->device_count > 0 || request->mig_count > 0;
    x->idle_only = shape->class_ == MODEL_BATCH;
}

static void fill_identity(struct core *core, const struct core_workload *w, struct arena *arena,
                          struct model_explanation *x)
{
    x->id = w->id;
    x->name = arena_strdup(arena, w->name);
    x->own_team = arena_strdup(arena, w->team->row.name);
    x->state = w->state;
    x->now_ms = core->now_ms;
    fill_request(w->shape, arena, x);
}

void core_explain_new(struct core *core, const struct core_workload *w, struct arena *arena,
                      struct model_explanation *x)
{
    struct sched_workload view;
    struct sched_explanation s;

    fill_identity(core, w, arena, x);
    core_shape_sched(w->shape, w->id, w->team->row.id, true, &view);
    if (sched_explain_new(core->sched, &view, core->now_ms, &s) == 0)
        fill_numbers(core, w, &s, arena, x);
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
    fill_identity(core, w, &c->arena, x);
    x->message = arena_strdup(&c->arena, w->message);
    if (sched_explain(core->sched, w->id, core->now_ms, &s) == 0)
        fill_numbers(core, w, &s, &c->arena, x);
    if (w->evicted_ms && w->refusals == 0) { /* else its message tells of the launch */
        x->last_eviction = x->message;
        x->last_eviction_ms = w->evicted_ms;
    }
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
        enum sched_reason reason;

        if (w && w->state == MODEL_WORKLOAD_RUNNING)
            c->ret_stopping[i] = w->stopping;
        if (w == NULL || w->state != MODEL_WORKLOAD_PENDING ||
            sched_explain_brief(core->sched, w->id, core->now_ms, &reason, &c->ret_positions[i]) <
                0)
            continue;
        c->ret_reasons[i] = sched_reason_name(reason);
    }
    core_command_finish(c, 0);
    return 0;
}
