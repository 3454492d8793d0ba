/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start-up: the stored rows become state again, in the order in which they refer to each other,
 * and the scheduler is told the same. Then the engine is asked about every task that held
 * devices; until it has answered, nothing is decided.
 */
#include "core/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

struct loading {
    struct core *core;
    struct err *err;
};

static int load_shape(void *user, uint64_t id, const char *json)
{
    struct loading *l = user;

    return core_shape_add_stored(l->core, id, json);
}

static int load_team(void *user, const struct model_team *row)
{
    struct loading *l = user;

    core_team_add(l->core, row);
    return 0;
}

static int load_node(void *user, const struct model_node *row)
{
    struct loading *l = user;
    struct core_node *n = core_node_add(l->core, row);

    if (n == NULL)
        return err_set(l->err, -EUCLEAN, ERR_INTERNAL, "nodes", NULL,
                       "the stored node '%s' cannot be read", row->name);
    map_put_str(&l->core->node_names, n->row.name, n);
    return core_node_to_sched(l->core, n);
}

static int load_user(void *user, const struct model_user *row)
{
    struct loading *l = user;

    core_user_set(l->core, row->name, row->admin);
    return 0;
}

static int load_workload(void *user, const struct store_workload_row *row)
{
    struct loading *l = user;
    struct core *core = l->core;
    const struct model_workload *m = row->workload;
    struct core_team *team = map_get(&core->teams, m->team_id);
    struct core_shape *shape = map_get(&core->shape_ids, row->shape_id);
    struct core_workload *w;
    struct sched_workload s;
    int r;

    if (team == NULL || shape == NULL)
        return err_set(l->err, -EUCLEAN, ERR_INTERNAL, "workloads", "restore a backup",
                       "stored workload %llu refers to a missing %s", (unsigned long long)m->id,
                       team ? "shape" : "team");
    r = core_shape_ready(shape, l->err);
    if (r < 0)
        return r;
    w = core_workload_new(core, m->id, m->name, m->owner, team, shape);
    w->state = m->state;
    w->submitted_ms = m->submitted_ms;
    w->started_ms = m->started_ms;
    w->evicted_ms = m->evicted_ms;
    w->restarts = m->restarts;
    w->failures = m->failures;
    w->exit_code = m->exit_code;
    w->message = m->message ? strdup(m->message) : NULL;
    map_put(&core->workloads, w->id, w);
    map_put_str(&team->names, w->name, w);
    team->live++;
    if (w->state == MODEL_WORKLOAD_PENDING)
        core->pending++;
    else
        core->running++;
    core_shape_sched(shape, w->id, team->row.id, true, &s);
    return sched_workload_add(core->sched, &s, NULL);
}

static enum sched_task_state sched_state(enum model_task_state s)
{
    switch (s) {
    case MODEL_TASK_HELD:
        return SCHED_TASK_HELD;
    case MODEL_TASK_STARTING:
    case MODEL_TASK_RUNNING:
    case MODEL_TASK_UNKNOWN:
        return SCHED_TASK_RUNNING;
    case MODEL_TASK_STOPPING:
        return SCHED_TASK_STOPPING;
    default:
        return SCHED_TASK_DONE;
    }
}

static int restore_in_sched(struct core *core, const struct core_workload *w,
                            const struct model_task *m)
{
    int64_t started = m->started_ms ? m->started_ms : core->now_ms;
    int64_t since = m->state == MODEL_TASK_HELD ? m->held_until_ms : started;

    if (m->state == MODEL_TASK_PENDING || m->state == MODEL_TASK_SUSPENDED ||
        (m->state == MODEL_TASK_STOPPING && core_suspend_possible(w->shape)))
        return 0; /* of those that are, or may be, suspended it is told in settle() */
    return sched_task_restore(core->sched, m->workload, (uint32_t)m->index, sched_state(m->state),
                              m->node, m->devices, (uint32_t)m->device_count, since);
}

static int load_task(void *user, const struct model_task *m)
{
    struct loading *l = user;
    struct core *core = l->core;
    struct core_workload *w = map_get(&core->workloads, m->workload);
    struct core_task *t;

    if (w == NULL || m->index >= w->shape->model->task_count)
        return err_set(l->err, -EUCLEAN, ERR_INTERNAL, "tasks", "restore a backup",
                       "stored task %d of workload %llu has no place there", m->index,
                       (unsigned long long)m->workload);
    t = &core_workload_tasks(w)[m->index];
    t->state = m->state;
    t->attempt = m->attempt;
    t->node = map_get(&core->nodes, m->node);
    t->device_count = m->device_count;
    if (m->device_count) {
        size_t size = (size_t)m->device_count * sizeof(*m->devices);
        t->devices = malloc(size);
        if (t->devices == NULL)
            return -ENOMEM;
        memcpy(t->devices, m->devices, size);
    }
    t->gpu_milli = m->gpu_milli;
    t->held_until_ms = m->held_until_ms;
    t->started_ms = m->started_ms;
    t->ended_ms = m->ended_ms;
    t->exit_code = m->exit_code;
    t->exit_signal = m->exit_signal;
    w->running += model_task_state_holds(t->state);
    w->stopping += t->state == MODEL_TASK_STOPPING;
    w->ended += model_task_state_is_final(t->state);
    if (restore_in_sched(core, w, m) < 0)
        return err_set(l->err, -EUCLEAN, ERR_INTERNAL, "tasks", "restore a backup",
                       "the devices of task %d of workload %llu are taken twice", m->index,
                       (unsigned long long)m->workload);
    return 0;
}

static int load_allocation(void *user, const struct model_allocation *a)
{
    struct loading *l = user;
    struct core_workload *w = map_get(&l->core->workloads, a->workload);

    if (w == NULL || w->tasks == NULL || a->task >= w->shape->model->task_count)
        return err_set(l->err, -EUCLEAN, ERR_INTERNAL, "allocations", "restore a backup",
                       "open allocation %llu has no task", (unsigned long long)a->id);
    w->tasks[a->task].allocation = *a;
    w->tasks[a->task].allocation.devices = w->tasks[a->task].devices;
    w->tasks[a->task].usage_stored_ms = l->core->now_ms;
    return 0;
}

/* Parents may have larger ids than children, so links follow when all teams are there. */
static int link_team(struct core *core, struct core_team *t)
{
    int r;

    if (t->row.parent_id && t->parent == NULL) {
        struct core_team *parent = map_get(&core->teams, t->row.parent_id);

        if (parent == NULL)
            return -EUCLEAN;
        t->parent = parent; /* before the walk up, so that a damaged circle ends it */
        parent->children++;
        r = link_team(core, parent);
        if (r < 0)
            return r;
    }
    return core_team_to_sched(core, t);
}

static int link_teams(struct core *core, struct err *err)
{
    struct core_team *t;
    size_t it = 0;

    while ((t = map_next(&core->teams, &it)) != NULL)
        if (link_team(core, t) < 0)
            return err_set(err, -EUCLEAN, ERR_INTERNAL, "teams", "restore a backup",
                           "stored team '%s' has no valid parent", t->row.name);
    return 0;
}

/* Tasks that never ran have no row; stopping has cancelled them. */
static void settle_stopping(struct core *core, struct core_workload *w)
{
    for (int32_t i = 0; i < w->shape->model->task_count; i++) {
        struct core_task *t = &core_workload_tasks(w)[i];
        if (t->state == MODEL_TASK_PENDING) {
            t->state = MODEL_TASK_CANCELLED;
            w->ended++;
        }
    }
    sched_workload_remove(core->sched, w->id);
}

/* What only the sum of the rows tells. */
static int settle(struct core *core, struct err *err)
{
    struct core_workload *w;
    size_t it = 0;

    while ((w = map_next(&core->workloads, &it)) != NULL) {
        if (w->tasks && model_task_state_lives(w->tasks[0].state) &&
            core_suspend_possible(w->shape) && core_suspend_load(core, w) < 0)
            return err_set(err, -EUCLEAN, ERR_INTERNAL, "tasks", "restore a backup",
                           "what workload %llu holds is taken twice", (unsigned long long)w->id);
        if (w->state == MODEL_WORKLOAD_STOPPING)
            settle_stopping(core, w);
        else if (w->started_ms)
            core_workload_arm_limit(core, w);
    }
    return 0;
}

int core_load_state(struct core *core, struct err *err)
{
    const struct store_ops *store = core->ports.store;
    void *ctx = core->ports.store_ctx;
    struct loading l = {core, err};
    uint64_t other = 0;
    int r = store->last_ids(ctx, &core->last_workload, &core->last_event, &other, err);

    if (r == 0)
        r = store->each_shape(ctx, load_shape, &l, err);
    if (r == 0)
        r = store->each_team(ctx, load_team, &l, err);
    if (r == 0)
        r = link_teams(core, err);
    if (r == 0)
        r = core_past_load(core, err);
    if (r == 0)
        r = store->each_node(ctx, load_node, &l, err);
    if (r == 0)
        r = store->each_user(ctx, load_user, &l, err);
    if (r == 0)
        r = store->each_live_workload(ctx, load_workload, &l, err);
    if (r == 0)
        r = core_idle_load(core, err);
    if (r == 0)
        r = core_suspend_load_wishes(core, err);
    if (r == 0)
        r = store->each_live_task(ctx, load_task, &l, err);
    if (r == 0)
        r = store->each_open_allocation(ctx, load_allocation, &l, err);
    if (r < 0)
        return r;
    if (other > core->last_id)
        core->last_id = other;
    core->committed_event = core->last_event;
    return settle(core, err);
}

void core_load_reconcile(struct core *core)
{
    struct engine_intent *intents = NULL;
    struct core_workload *w;
    size_t it = 0, count = 0;

    while ((w = map_next(&core->workloads, &it)) != NULL)
        count += w->running > 0 ? (size_t)w->running : w->asleep;
    intents = arena_new_array(&core->turn, struct engine_intent, count);
    it = count = 0;
    while ((w = map_next(&core->workloads, &it)) != NULL) {
        for (int32_t i = 0; w->tasks && i < w->shape->model->task_count; i++) {
            const struct core_task *t = &w->tasks[i];
            char intent[MODEL_INTENT_MAX];
            bool suspended;

            if (!model_task_state_lives(t->state))
                continue;
            suspended = core_suspend_wanted(w);
            core_task_intent(w, i, intent);
            intents[count++] = (struct engine_intent){
                .intent = arena_strdup(&core->turn, intent),
                .state = t->state,
                .devices = t->devices,
                .device_count = t->device_count,
                .suspended = suspended,
                .busy_ns = t->allocation.busy_ns + t->busy_base_ns,
                .known_ns = t->allocation.known_ns + t->known_base_ns -
                            core_task_launch_ns(t, &t->allocation),
            };
            if (t->state == MODEL_TASK_STOPPING && (w->asleep || !suspended))
                core_journal_effect(core, EFFECT_STOP, intent, NULL, w->shape->model->grace_ms);
        }
    }
    if (count)
        log_info("asking the engine about %zu tasks that held devices", count);
    core->ports.engine->reconcile(core->ports.engine_ctx, intents, count);
}
