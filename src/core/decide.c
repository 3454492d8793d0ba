/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scheduler decisions become state, rows, events and calls to the engine. The scheduler has
 * applied each already; here the same change is made to our side, and its reason is kept.
 */
#include "core/internal.h"

#include <stdlib.h>

static const char *describe_cause(const struct sched_decision *d)
{
    switch (d->cause) {
    case SCHED_CAUSE_FITS:
        return "fits into free capacity";
    case SCHED_CAUSE_PROMISED:
        return "takes the place that was held for it";
    case SCHED_CAUSE_EXPIRED:
        return "the hold expired";
    case SCHED_CAUSE_OBSOLETE:
        return "the hold is not needed any more";
    default:
        return "others are asked to give way for it";
    }
}

static void set_placement(struct core *core, struct core_task *t, const struct sched_decision *d)
{
    size_t size = d->device_count * sizeof(*d->devices);

    free(t->devices);
    t->devices = d->device_count ? malloc(size) : NULL;
    if (d->device_count) {
        if (t->devices == NULL)
            abort();
        __builtin_memcpy(t->devices, d->devices, size);
    }
    t->device_count = (int32_t)d->device_count;
    t->gpu_milli = d->gpu_milli;
    t->node = map_get(&core->nodes, d->node);
}

static void open_allocation(struct core *core, struct core_workload *w, int32_t index)
{
    struct core_task *t = &w->tasks[index];
    int32_t group = model_shape_group_of(w->shape->model, index, NULL);
    const struct model_request *request = &w->shape->model->groups[group].request;

    t->allocation = (struct model_allocation){
        .id = ++core->last_id,
        .workload = w->id,
        .task = index,
        .attempt = t->attempt,
        .team = w->team->row.id,
        .node = t->node->row.id,
        .devices = t->devices,
        .device_count = t->device_count,
        .gpu_milli = t->gpu_milli,
        .cpu_milli = request->cpu_milli,
        .memory_bytes = request->memory_bytes,
        .start_ms = core->now_ms,
        .seen_ms = core->now_ms,
    };
    t->usage_stored_ms = core->now_ms;
    core_record_allocation(core, &t->allocation);
}

/* Nodes of the tasks that are placed, by rank. */
static const char *node_list(struct core_workload *w, struct arena *arena)
{
    struct strbuf text = STRBUF_INIT;
    const char *list;

    for (int32_t i = 0; i < w->shape->model->task_count; i++) {
        if (w->tasks[i].node == NULL)
            continue;
        if (text.len)
            strbuf_addc(&text, ',');
        strbuf_adds(&text, w->tasks[i].node->row.name);
    }
    list = arena_strdup(arena, strbuf_str(&text));
    strbuf_done(&text);
    return list;
}

/* Copies all that the engine needs into the transaction that carries the intent. */
static void launch(struct core *core, struct core_workload *w, int32_t index, const char *nodes)
{
    struct store_txn *txn = core_journal_txn(core);
    struct core_task *t = &w->tasks[index];
    struct engine_start *start = arena_new(&txn->arena, struct engine_start);
    char intent[MODEL_INTENT_MAX];
    int32_t rank_in_group;
    int32_t group = model_shape_group_of(w->shape->model, index, &rank_in_group);

    core_task_intent(w, index, intent);
    *start = (struct engine_start){
        .intent = arena_strdup(&txn->arena, intent),
        .workload = w->id,
        .task = index,
        .attempt = t->attempt,
        .task_count = w->shape->model->task_count,
        .name = arena_strdup(&txn->arena, w->name),
        .team = arena_strdup(&txn->arena, w->team->row.name),
        .owner = w->owner,
        .node = arena_strdup(&txn->arena, t->node->row.name),
        .node_list = arena_strdup(&txn->arena, nodes),
        .request = &w->shape->model->groups[group].request,
        .devices =
            arena_memdup(&txn->arena, t->devices, (size_t)t->device_count * sizeof(*t->devices)),
        .device_count = t->device_count,
        .group = group,
        .rank_in_group = rank_in_group,
        .suspendable = core_suspend_possible(w->shape),
    };
    core_journal_effect(core, EFFECT_START, intent, start, 0);
}

static void decided_start(struct core *core, struct core_workload *w,
                          const struct sched_decision *d)
{
    int32_t index = (int32_t)d->task;

    set_placement(core, &core_workload_tasks(w)[index], d);
    core_task_set_state(core, w, index, MODEL_TASK_STARTING);
    if (w->asleep)
        core_suspend_start(core, w);
    else
        open_allocation(core, w, index);
    core_record_task(core, w, index);
    core_record_workload_event(core, w, index, MODEL_EVENT_TASK_STARTING,
                               arena_printf(&core->turn, "{\"cause\":\"%s\",\"gpu_milli\":%d}",
                                            sched_cause_name(d->cause), d->gpu_milli),
                               "task %d is placed on '%s': %s", index,
                               w->tasks[index].node->row.name, describe_cause(d));
}

static void decided_hold(struct core *core, struct core_workload *w, const struct sched_decision *d)
{
    struct core_task *t = &core_workload_tasks(w)[d->task];

    if (w->asleep)
        return; /* it is promised what it had; at a restart it asks anew */
    if (t->state != MODEL_TASK_HELD)
        core_task_set_state(core, w, (int32_t)d->task, MODEL_TASK_HELD);
    set_placement(core, t, d);
    t->held_until_ms = d->until_ms;
    core_record_task(core, w, (int32_t)d->task);
    core_record_workload_event(core, w, (int32_t)d->task, MODEL_EVENT_TASK_HELD, NULL,
                               "a place on '%s' is held for task %u: %s", t->node->row.name,
                               d->task, describe_cause(d));
}

static void decided_unhold(struct core *core, struct core_workload *w,
                           const struct sched_decision *d)
{
    if (w->asleep)
        return;
    core_task_release(core, w, (int32_t)d->task, core->now_ms, MODEL_RELEASE_NONE);
    core_task_set_state(core, w, (int32_t)d->task, MODEL_TASK_PENDING);
    core_record_task(core, w, (int32_t)d->task);
    core_record_workload_event(core, w, (int32_t)d->task, MODEL_EVENT_TASK_RELEASED, NULL,
                               "the place held for task %u is given up: %s", d->task,
                               describe_cause(d));
}

/* All that a workload gives up in this turn. */
/* Of all decisions of KIND about WORKLOAD. */
static int64_t sum_milli(const struct sched_decisions *decisions, enum sched_decision_kind kind,
                         uint64_t workload)
{
    int64_t milli = 0;

    for (size_t i = 0; i < decisions->count; i++)
        if (decisions->items[i].kind == kind && decisions->items[i].workload == workload)
            milli += decisions->items[i].gpu_milli;
    return milli;
}

/* What one eviction is about: a turn's decisions on a workload, taken together. */
struct reason {
    const struct sched_decision *d;
    const struct core_workload *winner; /* or NULL */
    int64_t taken;                      /* from it, milli-GPU */
    int64_t asked;                      /* what the winner gets for it; 0 = it loses no GPU */
};

static struct reason reason_of(struct core *core, const struct sched_decisions *decisions,
                               const struct sched_decision *d)
{
    struct reason r = {.d = d,
                       .winner = map_get(&core->workloads, d->on_behalf_of),
                       .taken = sum_milli(decisions, SCHED_EVICT, d->workload)};

    if (r.winner && r.taken > 0)
        r.asked = sum_milli(decisions, SCHED_HOLD, d->on_behalf_of);
    if (r.winner && r.taken > 0 && r.asked == 0)
        r.asked = r.winner->shape->gpu_milli;
    return r;
}

/* Read by all who see the workload: work of another team is not named; see evicted_data(). */
static const char *describe_eviction(struct core *core, const struct core_workload *w,
                                     const struct reason *r)
{
    bool same_team = r->winner && r->winner->team == w->team;

    return model_eviction_describe(
        &(struct model_eviction){
            .cause = sched_cause_name(r->d->cause),
            .for_id = same_team ? r->winner->id : 0,
            .for_name = same_team ? r->winner->name : NULL,
            .for_team = r->winner ? r->winner->team->row.name : NULL,
            .gpu_milli = r->asked,
            .gpu_type = r->winner ? core_shape_only_type(r->winner->shape) : NULL,
        },
        &core->turn);
}

/* All there is to say; the API leaves out what its reader may not see. */
static const char *evicted_data(struct core *core, const struct reason *r)
{
    _cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
    struct json_writer w;

    json_writer_init(&w, &text);
    json_begin_object(&w);
    json_key_string(&w, "cause", sched_cause_name(r->d->cause));
    json_key_i64(&w, "on_behalf_of", (int64_t)r->d->on_behalf_of);
    if (r->winner) {
        json_key_string(&w, "for_name", r->winner->name);
        json_key_string(&w, "for_team", r->winner->team->row.name);
        json_key_i64(&w, "asked_milli", r->asked);
        if (core_shape_only_type(r->winner->shape))
            json_key_string(&w, "asked_type", core_shape_only_type(r->winner->shape));
    }
    json_key_i64(&w, "gpu_milli", r->taken);
    json_key_i64(&w, "price_ms", r->d->price_ms);
    json_end_object(&w);
    return arena_strdup(&core->turn, strbuf_str(&text));
}

/* Once a workload and turn, however many of its tasks go. */
static void announce_eviction(struct core *core, struct core_workload *w, const struct reason *r)
{
    const char *why = describe_eviction(core, w, r);

    w->evicted_ms = core->now_ms;
    core_workload_set_message(w, "%s", why);
    core_record_workload(core, w);
    core_record_workload_event(core, w, -1, MODEL_EVENT_EVICTED, evicted_data(core, r), "%s", why);
}

static void decided_evict(struct core *core, struct core_workload *w,
                          const struct sched_decision *d)
{
    char intent[MODEL_INTENT_MAX];
    int32_t index = (int32_t)d->task;
    bool suspends = core_suspend_evict(core, w, d);

    core_task_set_state(core, w, index, MODEL_TASK_STOPPING);
    core_record_task(core, w, index);
    if (suspends)
        core_record_workload_event(core, w, index, MODEL_EVENT_SUSPENDING, NULL,
                                   "is to be suspended: %s", w->message);
    else
        core_record_workload_event(core, w, index, MODEL_EVENT_TASK_STOPPING, NULL,
                                   "task %d is asked to stop within %lld s: %s", index,
                                   (long long)(w->shape->model->grace_ms / 1000), w->message);
    core_task_intent(w, index, intent);
    if (!suspends)
        core_journal_effect(core, EFFECT_STOP, intent, NULL, w->shape->model->grace_ms);
}

struct sleepers VEC_BODY(struct core_workload *);

/* Returns whose it was. */
static struct core_workload *carry_out(struct core *core, const struct sched_decisions *decisions,
                                       const struct sched_decision *d)
{
    uint64_t owner = core_suspend_owner(d->workload);
    struct core_workload *w = map_get(&core->workloads, owner ? owner : d->workload);

    if (w == NULL)
        abort(); /* the scheduler knows a workload that core does not */
    switch (d->kind) {
    case SCHED_START:
        decided_start(core, w, d);
        break;
    case SCHED_HOLD:
        decided_hold(core, w, d);
        break;
    case SCHED_UNHOLD:
        decided_unhold(core, w, d);
        break;
    case SCHED_EVICT:
        if (w->evicted_ms != core->now_ms) {
            struct reason reason = reason_of(core, decisions, d);

            announce_eviction(core, w, &reason);
        }
        decided_evict(core, w, d);
        break;
    }
    core_workload_review(core, w);
    return w;
}

/* Launches follow all placements of the turn, so that each rank knows where the others are. */
static void launch_started(struct core *core, const struct sched_decisions *decisions)
{
    const char *nodes = NULL;
    uint64_t nodes_of = 0;

    for (size_t i = 0; i < decisions->count; i++) {
        const struct sched_decision *d = &decisions->items[i];
        struct core_workload *w;

        if (d->kind != SCHED_START)
            continue;
        w = map_get(&core->workloads, d->workload);
        if (w == NULL || w->asleep || w->tasks[d->task].state != MODEL_TASK_STARTING)
            continue;
        if (nodes_of != w->id) {
            nodes = node_list(w, &core->turn);
            nodes_of = w->id;
        }
        launch(core, w, (int32_t)d->task, nodes);
    }
}

/* What has become of suspended workloads the scheduler is told when its decisions were read. */
static void tell_of_sleepers(struct core *core, const struct sleepers *sleepers)
{
    for (size_t i = 0; i < sleepers->len; i++)
        core_suspend_decided(core, sleepers->items[i]);
}

void core_decide(struct core *core)
{
    const struct sched_decisions *decisions;
    struct sleepers sleepers = {0};

    core->dirty = false;
    decisions = sched_turn(core->sched, core->now_ms);
    for (size_t i = 0; i < decisions->count; i++) {
        const struct sched_decision *d = &decisions->items[i];
        struct core_workload *w = carry_out(core, decisions, d);

        if (w->asleep && (d->kind == SCHED_START || d->kind == SCHED_EVICT))
            vec_push(&sleepers, w);
    }
    launch_started(core, decisions);
    tell_of_sleepers(core, &sleepers);
    vec_done(&sleepers);
}
