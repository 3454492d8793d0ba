/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What follows for a workload from what happens to its tasks.
 *
 * A stop in progress is the state STOPPING; how it will end is already in exit_code: 0 ends as
 * CANCELLED, anything else as FAILED.
 */
#include "base/qty.h"
#include "core/internal.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct core_workload *core_workload_new(struct core *core, uint64_t id, const char *name,
                                        const char *owner, struct core_team *team,
                                        struct core_shape *shape)
{
    struct core_workload *w = calloc(1, sizeof(*w));

    if (w == NULL)
        abort();
    w->id = id;
    w->name = strdup(name);
    w->owner = core_intern(core, owner);
    w->team = team;
    w->shape = shape;
    shape->uses++;
    w->submitted_ms = core->now_ms;
    return w;
}

void core_workload_free(struct core_workload *w)
{
    if (w == NULL)
        return;
    for (int32_t i = 0; w->tasks && i < w->shape->model->task_count; i++)
        free(w->tasks[i].devices);
    w->shape->uses--;
    free(w->tasks);
    free(w->message);
    free(w->name);
    free(w);
}

struct core_task *core_workload_tasks(struct core_workload *w)
{
    if (w->tasks == NULL) {
        w->tasks = calloc((size_t)w->shape->model->task_count, sizeof(*w->tasks));
        if (w->tasks == NULL)
            abort();
    }
    return w->tasks;
}

void core_workload_set_message(struct core_workload *w, const char *fmt, ...)
{
    struct strbuf text = STRBUF_INIT;
    va_list ap;

    va_start(ap, fmt);
    strbuf_addv(&text, fmt, ap);
    va_end(ap);
    free(w->message);
    w->message = strbuf_steal(&text);
}

void core_workload_clear_message(struct core_workload *w)
{
    free(w->message);
    w->message = NULL;
}

static void count_state(struct core *core, const struct core_workload *w, int by)
{
    if (w->state == MODEL_WORKLOAD_PENDING)
        core->pending += (uint64_t)by;
    else if (!model_workload_state_is_final(w->state))
        core->running += (uint64_t)by;
}

void core_workload_set_state(struct core *core, struct core_workload *w,
                             enum model_workload_state state)
{
    if (w->state == state)
        return;
    if (!model_workload_transition_ok(w->state, state))
        abort();
    count_state(core, w, -1);
    w->state = state;
    count_state(core, w, 1);
}

void core_workload_arm_limit(struct core *core, struct core_workload *w)
{
    if (w->shape->model->limit_ms == 0 || w->started_ms == 0)
        return;
    w->limit_at_ms = w->started_ms + w->shape->model->limit_ms;
    heap_remove(&core->limits, &w->timer);
    heap_push(&core->limits, &w->timer);
}

/* Cancels the tasks that hold nothing. */
static void cancel_waiting(struct core *core, struct core_workload *w)
{
    for (int32_t i = 0; i < w->shape->model->task_count; i++) {
        struct core_task *t = &core_workload_tasks(w)[i];
        if (t->state != MODEL_TASK_PENDING && t->state != MODEL_TASK_HELD)
            continue;
        if (t->attempt == 0 && t->state == MODEL_TASK_PENDING) {
            /* Never placed: it has no row, and none is needed to say so. */
            t->state = MODEL_TASK_CANCELLED;
            w->ended++;
            continue;
        }
        core_task_set_state(core, w, i, MODEL_TASK_CANCELLED);
        core_record_task(core, w, i);
    }
}

void core_workload_stop(struct core *core, struct core_workload *w, int32_t exit_code,
                        int64_t grace_ms, const char *actor, const char *why)
{
    w->exit_code = exit_code;
    core_workload_set_message(w, "%s", why);
    heap_remove(&core->limits, &w->timer);
    core_workload_set_state(core, w, MODEL_WORKLOAD_STOPPING);
    sched_workload_remove(core->sched, w->id);
    core->dirty = true;
    cancel_waiting(core, w);
    for (int32_t i = 0; i < w->shape->model->task_count; i++)
        core_task_stop(core, w, i, grace_ms);
    core_record_workload(core, w);
    core_record_event(core, core_journal_txn(core),
                      &(struct model_event){.type = MODEL_EVENT_STOPPING,
                                            .workload = w->id,
                                            .task = -1,
                                            .workload_name = w->name,
                                            .team = w->team->row.name,
                                            .actor = actor,
                                            .message = why});
    core_workload_review(core, w);
}

static enum model_workload_state outcome(const struct core_workload *w)
{
    if (w->state == MODEL_WORKLOAD_STOPPING)
        return w->exit_code ? MODEL_WORKLOAD_FAILED : MODEL_WORKLOAD_CANCELLED;
    return w->exit_code ? MODEL_WORKLOAD_FAILED : MODEL_WORKLOAD_SUCCEEDED;
}

static void end(struct core *core, struct core_workload *w)
{
    if (w->state != MODEL_WORKLOAD_STOPPING)
        sched_workload_remove(core->sched, w->id);
    heap_remove(&core->limits, &w->timer);
    core_workload_set_state(core, w, outcome(w));
    if (w->state == MODEL_WORKLOAD_SUCCEEDED)
        core_workload_clear_message(w);
    core_record_workload(core, w);
    core_record_workload_event(core, w, -1, MODEL_EVENT_ENDED,
                               arena_printf(&core->turn, "{\"state\":\"%s\",\"exit_code\":%d}",
                                            model_workload_state_name(w->state), w->exit_code),
                               "%s%s%s", model_workload_state_name(w->state),
                               w->message ? ": " : "", w->message ? w->message : "");
    core->dirty = true;
    map_del_str(&w->team->names, w->name);
    map_del(&core->workloads, w->id);
    w->team->live--;
    core_workload_free(w);
}

void core_workload_review(struct core *core, struct core_workload *w)
{
    const struct model_shape *shape = w->shape->model;

    if (w->ended == shape->task_count) {
        end(core, w);
        return;
    }
    if (w->state == MODEL_WORKLOAD_PENDING && w->running > 0) {
        core_workload_set_state(core, w, MODEL_WORKLOAD_RUNNING);
        core_record_workload(core, w);
    } else if ((w->state == MODEL_WORKLOAD_RUNNING || w->state == MODEL_WORKLOAD_SUSPENDED) &&
               w->running == 0 && !w->asleep) {
        core_workload_set_state(core, w, MODEL_WORKLOAD_PENDING);
        heap_remove(&core->limits, &w->timer);
        w->started_ms = 0;
        core_record_workload(core, w);
        core_record_workload_event(core, w, -1, MODEL_EVENT_REQUEUED, NULL, "waits to run again");
    }
}

void core_workload_check_limits(struct core *core)
{
    struct heap_node *node;

    while ((node = heap_peek(&core->limits)) != NULL) {
        struct core_workload *w = heap_entry(node, struct core_workload, timer);
        char text[QTY_TEXT_MAX];

        if (w->limit_at_ms > core->now_ms)
            return;
        core_workload_stop(core, w, 124, -1, NULL,
                           arena_printf(&core->turn, "ran longer than its max_run_time of %s",
                                        qty_format_duration_ms(w->shape->model->limit_ms, text)));
    }
}
