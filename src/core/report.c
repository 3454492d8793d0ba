/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Engine events. Each is about one attempt of one task, named by its intent; reports about
 * attempts that are over, or of workloads that have ended, only lead to a forget().
 *
 *   STARTED  STARTING -> RUNNING
 *   SUSPENDED, RESUMED, WAKE   see suspend.c
 *   EXITED   STARTING, RUNNING, UNKNOWN -> SUCCEEDED, or FAILED, or PENDING for a retry
 *            STOPPING -> CANCELLED (the workload is stopping), PENDING (it was evicted); one that
 *            ended by itself just before the wish to stop reached it has ended
 *   LOST     -> PENDING without using up a retry (CANCELLED when the workload is stopping)
 *   REFUSED  -> PENDING with back-off; after LAUNCHES_MAX in a row, or at once where trying
 *            again cannot help, the workload fails
 *
 * A failed task of a job takes its gang along: the other ranks wait for it in vain. A replica
 * of a service fails and comes back alone, with back-off.
 */
#include "core/internal.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/json_writer.h"
#include "base/qty.h"

#define LAUNCHES_MAX 3
#define BEYOND_TOLD_BYTES (INT64_C(64) << 20)
/* The exit code of what could not be launched, as shells have it. */
#define LAUNCH_FAILED 126
/* How often a running allocation's busy time is written down, ms. */
#define USAGE_STORE_MS 30000

struct subject {
    struct core_workload *w;
    struct core_task *t;
    int32_t index;
};

static bool find(struct core *core, const char *intent, struct subject *ret)
{
    uint64_t id;
    int32_t index, attempt;

    if (model_intent_parse(intent, &id, &index, &attempt) < 0)
        return false;
    ret->w = map_get(&core->workloads, id);
    if (ret->w == NULL || ret->w->tasks == NULL || index >= ret->w->shape->model->task_count)
        return false;
    ret->index = index;
    ret->t = &ret->w->tasks[index];
    return ret->t->attempt == attempt && model_task_state_lives(ret->t->state);
}

static void forget(struct core *core, const char *intent)
{
    core_journal_effect(core, EFFECT_FORGET, intent, NULL, 0);
}

/* Does the minimum of the gang run now, counting tasks that have done their part? */
static bool gang_runs(const struct core_workload *w)
{
    const struct model_shape *shape = w->shape->model;
    int32_t n = 0;

    for (int32_t i = 0; i < shape->task_count; i++)
        n += w->tasks[i].state == MODEL_TASK_RUNNING || w->tasks[i].state == MODEL_TASK_SUCCEEDED;
    return n >= shape->min_tasks;
}

static void started(struct core *core, struct subject *s, const struct engine_event *event)
{
    struct core_workload *w = s->w;

    if (s->t->state != MODEL_TASK_STARTING)
        return;
    core_task_set_state(core, w, s->index, MODEL_TASK_RUNNING);
    s->t->started_ms = core_timeline(core, event->boot_ms);
    s->t->allocation.known_ns = core_task_launch_ns(s->t, &s->t->allocation);
    w->refusals = 0;
    core_record_task(core, w, s->index);
    core_record_workload_event(core, w, s->index, MODEL_EVENT_TASK_STARTED, NULL,
                               "task %d runs on '%s'", s->index, s->t->node->row.name);
    if (w->started_ms == 0 && w->state == MODEL_WORKLOAD_RUNNING && gang_runs(w)) {
        w->started_ms = core->now_ms;
        core_workload_clear_message(w); /* why it waited before is history now */
        core_workload_arm_limit(core, w);
        core_record_workload(core, w);
        core_record_workload_event(core, w, -1, MODEL_EVENT_STARTED, NULL, "%d of %d tasks run",
                                   w->running, w->shape->model->task_count);
    }
}

/*
 * When what EVENT ends was over, on the stored timeline. What went down with its node holds
 * nothing while the node is off: it is metered until it was last heard of, or for as long as it
 * says that it ran.
 */
static int64_t end_of(struct core *core, const struct subject *s, const struct engine_event *event)
{
    const struct model_allocation *a = &s->t->allocation;
    int64_t end_ms = s->t->started_ms > 0 ? s->t->started_ms : a->start_ms;

    if (!event->past_boot || a->id == 0)
        return core_timeline(core, event->boot_ms);
    end_ms = qty_add_sat(end_ms, event->ran_ms);
    if (end_ms < a->seen_ms)
        end_ms = a->seen_ms;
    return end_ms < core->now_ms ? end_ms : core->now_ms;
}

/* The task goes back to the queue as a new attempt. */
static void requeue(struct core *core, struct subject *s, enum sched_stop how, int64_t end_ms,
                    enum model_release release)
{
    core_suspend_one_again(core, s->w);
    if (s->w->state == MODEL_WORKLOAD_PENDING) { /* it waited for its devices */
        heap_remove(&core->limits, &s->w->timer);
        s->w->started_ms = 0;
    }
    core_task_release(core, s->w, s->index, end_ms, release);
    core_task_set_state(core, s->w, s->index, MODEL_TASK_PENDING);
    s->t->attempt++;
    s->t->started_ms = s->t->ended_ms = 0;
    sched_task_stopped(core->sched, s->w->id, (uint32_t)s->index, how, core->now_ms);
    core_record_task(core, s->w, s->index);
}

static void finish(struct core *core, struct subject *s, enum model_task_state state,
                   int64_t end_ms, enum model_release release)
{
    core_suspend_one_again(core, s->w);
    core_task_release(core, s->w, s->index, end_ms, release);
    core_task_set_state(core, s->w, s->index, state);
    s->t->ended_ms = end_ms;
    sched_task_stopped(core->sched, s->w->id, (uint32_t)s->index, SCHED_STOP_DONE, core->now_ms);
    core_record_task(core, s->w, s->index);
}

static bool retries_left(const struct core_workload *w)
{
    const struct model_shape *shape = w->shape->model;

    if (shape->kind == MODEL_SERVICE && shape->max_retries == 0)
        return true;
    return w->failures <= shape->max_retries;
}

/* Sends the whole gang back to the queue, by way of stopping what still runs. */
static void restart_gang(struct core *core, struct core_workload *w)
{
    for (int32_t i = 0; i < w->shape->model->task_count; i++)
        core_task_stop(core, w, i, -1);
}

static const char *how_it_ended(struct core *core, const struct engine_event *e)
{
    if (e->message)
        return e->message;
    if (e->exit_signal)
        return arena_printf(&core->turn, "killed by signal %d (%s)", e->exit_signal,
                            strsignal(e->exit_signal));
    return arena_printf(&core->turn, "exit code %d", e->exit_code);
}

static void failed(struct core *core, struct subject *s, const struct engine_event *event,
                   int64_t end_ms)
{
    struct core_workload *w = s->w;
    const char *how = how_it_ended(core, event);
    int32_t code = event->exit_code ? event->exit_code : 1;

    w->failures++;
    if (retries_left(w)) {
        core_workload_set_message(w, "task %d failed (%s) and is tried again", s->index, how);
        w->restarts++;
        requeue(core, s, SCHED_STOP_REFUSED, end_ms, MODEL_RELEASE_FAILED);
        if (w->shape->model->kind != MODEL_SERVICE)
            restart_gang(core, w);
        core_record_workload(core, w);
        core_workload_review(core, w);
        return;
    }
    finish(core, s, MODEL_TASK_FAILED, end_ms, MODEL_RELEASE_FAILED);
    if (w->ended == w->shape->model->task_count) {
        w->exit_code = code;
        core_workload_set_message(w, "task %d: %s", s->index, how);
        core_workload_review(core, w);
        return;
    }
    core_workload_stop(core, w, code, -1, NULL,
                       arena_printf(&core->turn, "task %d: %s", s->index, how));
}

/* What is reported never runs backwards, whatever an engine forgot. */
static void take_busy(struct core_task *t, const struct engine_event *event)
{
    struct model_allocation *a = &t->allocation;
    int64_t known_ns = qty_add_sat(core_task_launch_ns(t, a), event->known_ns) - t->known_base_ns;
    int64_t busy_ns = event->busy_ns - t->busy_base_ns;

    a->busy_ns = busy_ns > a->busy_ns ? busy_ns : a->busy_ns;
    a->known_ns = known_ns > a->known_ns ? known_ns : a->known_ns;
}

static void exited(struct core *core, struct subject *s, const struct engine_event *event)
{
    struct core_workload *w = s->w;
    int64_t end_ms = end_of(core, s, event);
    /* Who ended by itself before the wish to stop reached it has ended, not given way. */
    bool gave_way = s->t->state == MODEL_TASK_STOPPING && event->stopped;

    s->t->exit_code = event->exit_code;
    s->t->exit_signal = event->exit_signal;
    take_busy(s->t, event);
    core_record_workload_event(core, w, s->index, MODEL_EVENT_TASK_ENDED,
                               arena_printf(&core->turn, "{\"exit_code\":%d,\"signal\":%d}",
                                            event->exit_code, event->exit_signal),
                               "task %d: %s", s->index, how_it_ended(core, event));
    if (w->state == MODEL_WORKLOAD_STOPPING) {
        finish(core, s, MODEL_TASK_CANCELLED, end_ms, MODEL_RELEASE_STOPPED);
        core_workload_review(core, w);
    } else if (gave_way) {
        requeue(core, s, SCHED_STOP_REQUEUE, end_ms, MODEL_RELEASE_GAVE_WAY);
        /* The last of it: surplus that went is no restart, nor are ranks behind a failed one. */
        if (w->running == 0 && w->started_ms > 0 && w->evicted_ms >= w->started_ms)
            w->restarts++;
        core_workload_review(core, w);
    } else if (event->exit_code == 0 && event->exit_signal == 0 &&
               w->shape->model->kind != MODEL_SERVICE) {
        finish(core, s, MODEL_TASK_SUCCEEDED, end_ms, MODEL_RELEASE_ENDED);
        core_workload_review(core, w);
    } else {
        failed(core, s, event, end_ms);
    }
}

static void lost(struct core *core, struct subject *s, const struct engine_event *event)
{
    struct core_workload *w = s->w;
    int64_t end_ms = end_of(core, s, event);

    core_record_workload_event(core, w, s->index, MODEL_EVENT_TASK_LOST, NULL, "task %d lost: %s",
                               s->index, event->message ? event->message : "no exit record");
    if (w->state == MODEL_WORKLOAD_STOPPING) {
        finish(core, s, MODEL_TASK_CANCELLED, end_ms, MODEL_RELEASE_LOST);
    } else {
        core_workload_set_message(w, "task %d was lost: %s", s->index,
                                  event->message ? event->message : "no exit record");
        requeue(core, s, SCHED_STOP_REQUEUE, end_ms, MODEL_RELEASE_LOST);
        /* Once, however many ranks a node took along; replicas come and go one by one. */
        if (w->running == 0 || w->shape->model->kind == MODEL_SERVICE)
            w->restarts++;
        core_record_workload(core, w);
    }
    core_workload_review(core, w);
}

/* The first line of what the engine says; the rest as {"detail": "..."}, or NULL. */
static const char *reason_of(struct core *core, const char *message, const char **ret_data)
{
    const char *end = message ? strchr(message, '\n') : NULL;
    _cleanup_strbuf_ struct strbuf data = STRBUF_INIT;
    struct json_writer w;

    *ret_data = NULL;
    if (message == NULL || *message == '\0')
        return "no reason given";
    if (end == NULL)
        return message;
    json_writer_init(&w, &data);
    json_begin_object(&w);
    json_key_string(&w, "detail", end + 1);
    json_end_object(&w);
    *ret_data = arena_strdup(&core->turn, strbuf_str(&data));
    return arena_strndup(&core->turn, message, (size_t)(end - message));
}

static void refused(struct core *core, struct subject *s, const struct engine_event *event)
{
    struct core_workload *w = s->w;
    const char *data, *why = reason_of(core, event->message, &data);
    int64_t end_ms = end_of(core, s, event);

    core_record_workload_event(core, w, s->index, MODEL_EVENT_TASK_REFUSED, data,
                               "task %d could not be launched: %s", s->index, why);
    if (w->state == MODEL_WORKLOAD_STOPPING) {
        finish(core, s, MODEL_TASK_CANCELLED, end_ms, MODEL_RELEASE_REFUSED);
        core_workload_review(core, w);
        return;
    }
    w->refusals++;
    if (w->refusals < LAUNCHES_MAX && !event->lasting) {
        w->restarts++;
        core_workload_set_message(w, "could not be launched and is tried again: %s", why);
        requeue(core, s, SCHED_STOP_REFUSED, end_ms, MODEL_RELEASE_REFUSED);
        core_record_workload(core, w);
        core_workload_review(core, w);
        return;
    }
    s->t->exit_code = LAUNCH_FAILED;
    finish(core, s, MODEL_TASK_FAILED, end_ms, MODEL_RELEASE_REFUSED);
    core_workload_stop(core, w, LAUNCH_FAILED, -1, NULL,
                       arena_printf(&core->turn, "could not be launched: %s", why));
}

/* Programs that go around the shim are charged, and named. */
static void note_beyond(struct core *core, struct subject *s, int64_t bytes)
{
    char text[QTY_TEXT_MAX];

    if (bytes < BEYOND_TOLD_BYTES || s->t->beyond_told)
        return;
    s->t->beyond_told = true;
    core_record_workload_event(core, s->w, s->index, MODEL_EVENT_TASK_BEYOND,
                               arena_printf(&core->turn, "{\"bytes\":%lld}", (long long)bytes),
                               "task %d holds %s of GPU memory that its programs took past the "
                               "shim; it is charged to its part",
                               s->index, qty_format_bytes(bytes, text));
}

static void usage(struct core *core, struct subject *s, const struct engine_event *event)
{
    struct model_allocation *a = &s->t->allocation;

    if (a->id == 0)
        return;
    take_busy(s->t, event);
    a->seen_ms = core_timeline(core, event->boot_ms);
    note_beyond(core, s, event->beyond_bytes);
    core_idle_seen(core, s->w, event);
    if (core->now_ms - s->t->usage_stored_ms < USAGE_STORE_MS)
        return;
    s->t->usage_stored_ms = core->now_ms;
    core_record_allocation(core, a);
}

/* What is not about a task: true if EVENT is that. */
static bool about_no_task(struct core *core, const struct engine_event *event)
{
    switch (event->kind) {
    case ENGINE_NODE:
        core_node_report(core, event->node);
        return true;
    case ENGINE_READINGS:
        core_reading_take(core, event);
        return true;
    case ENGINE_RECONCILED:
        core->reconciled = true;
        core->dirty = true;
        return true;
    default:
        return false;
    }
}

void core_report_handle(struct core *core, const struct engine_event *event)
{
    struct subject s;

    if (about_no_task(core, event))
        return;
    if (!find(core, event->intent, &s)) {
        if (event->kind == ENGINE_EXITED || event->kind == ENGINE_LOST ||
            event->kind == ENGINE_REFUSED)
            forget(core, event->intent);
        return;
    }
    switch (event->kind) {
    case ENGINE_SUSPENDED:
        take_busy(s.t, event);
        core_suspend_suspended(core, s.w, event);
        return;
    case ENGINE_RESUMED:
        core_suspend_resumed(core, s.w, event);
        return;
    case ENGINE_WAKE:
        core_suspend_wake(core, s.w);
        return;
    case ENGINE_STARTED:
        started(core, &s, event);
        return;
    case ENGINE_USAGE:
        usage(core, &s, event);
        return;
    case ENGINE_EXITED:
        exited(core, &s, event);
        break;
    case ENGINE_LOST:
        lost(core, &s, event);
        break;
    case ENGINE_REFUSED:
        refused(core, &s, event);
        break;
    case ENGINE_NODE:
    case ENGINE_READINGS:
    case ENGINE_RECONCILED:
        return;
    }
    forget(core, event->intent);
}
