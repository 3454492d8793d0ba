/* SPDX-License-Identifier: Apache-2.0 */
/* One workload: show, stop, explain, allocations. */
#include "api/internal.h"

#include <errno.h>
#include <json-c/json.h>
#include <string.h>

#include "base/clock.h"
#include "base/cleanup.h"
#include "model/amount.h"
#include "model/json.h"
#include "model/workload.h"

/* ---- one ------------------------------------------------------------------------------------ */

struct shown {
    struct model_workload workload;
    struct json_writer w;
    int32_t next_task; /* first that is not written yet */
};

/* A task without a stored row is pending with attempt 0. */
static void encode_tasks_until(struct shown *s, int32_t index)
{
    for (; s->next_task < index; s->next_task++) {
        struct model_task t = {.workload = s->workload.id, .index = s->next_task};

        model_task_encode(&t, &s->w);
    }
}

static int take_task(void *arg, const struct model_task *task)
{
    struct shown *s = arg;

    encode_tasks_until(s, task->index);
    model_task_encode(task, &s->w);
    s->next_task = task->index + 1;
    return 0;
}

static void reply_workload(struct api_call *call)
{
    const struct api_config *config = &call->api->config;
    const struct core_command *c = &call->command;
    _cleanup_strbuf_ struct strbuf body = STRBUF_INIT;
    struct shown *s = call->data;
    struct err err = ERR_INIT;
    int r;

    json_writer_init(&s->w, &body);
    json_begin_object(&s->w);
    model_workload_encode_fields(&s->workload, &s->w);
    if (c->ret_reasons && c->ret_reasons[0]) {
        json_key_string(&s->w, "reason", c->ret_reasons[0]);
        json_key_i64(&s->w, "position", c->ret_positions[0]);
    }
    if (c->ret_stopping && c->ret_stopping[0] > 0)
        json_key_i64(&s->w, "stopping_tasks", c->ret_stopping[0]);
    json_key(&s->w, "tasks_detail");
    json_begin_array(&s->w);
    r = config->store->list_tasks(config->store_ctx, s->workload.id, take_task, s, &err);
    if (r == 0 && s->workload.shape)
        encode_tasks_until(s, s->workload.shape->task_count);
    json_end_array(&s->w);
    json_end_object(&s->w);
    if (r < 0)
        call_fail(call, r, &err);
    else
        call_reply(call, 200, &body);
}

void handle_workload_get(struct api_call *call)
{
    struct shown *s = arena_new(call_arena(call), struct shown);
    struct err err = ERR_INIT;
    int r = call_find_workload(call, call->args[0], &s->workload, &err);

    if (r < 0) {
        call_fail(call, r, &err);
        return;
    }
    call->data = s;
    if (model_workload_state_is_final(s->workload.state)) {
        reply_workload(call);
        return;
    }
    call->command.ids = &s->workload.id;
    call->command.id_count = 1;
    call_submit(call, CORE_EXPLAIN_BRIEF, reply_workload);
}

/* ---- stop ----------------------------------------------------------------------------------- */

static int decode_stop(struct api_call *call, struct json_object *json, struct err *err)
{
    static const struct model_json_field fields[] = {
        {"grace", model_json_read_duration, offsetof(struct core_command, grace_ms)},
    };

    return json ? model_json_read(json, fields, ARRAY_LEN(fields), call_arena(call), &call->command,
                                  err)
                : 0;
}

static void reply_stopping(struct api_call *call)
{
    struct strbuf body = STRBUF_INIT;
    struct json_writer w;

    json_writer_init(&w, &body);
    json_begin_object(&w);
    json_key_i64(&w, "id", (int64_t)call->command.id);
    json_key_string(&w, "state", model_workload_state_name(MODEL_WORKLOAD_STOPPING));
    json_end_object(&w);
    call_reply(call, 202, &body);
}

/* The row of an end that is not durable yet does not tell it. */
static int refuse_ended(const struct model_workload *w, struct err *err)
{
    bool told = model_workload_state_is_final(w->state);

    return err_set(err, -EBUSY, ERR_CONFLICT, "id", NULL, "workload %llu has ended%s%s",
                   (unsigned long long)w->id, told ? ": " : "",
                   told ? model_workload_state_name(w->state) : "");
}

static void refuse_gone(struct api_call *call)
{
    struct model_workload w;
    struct err err = ERR_INIT;
    int r = call_find_workload(call, call->args[0], &w, &err);

    if (r == 0)
        r = refuse_ended(&w, &err);
    call_fail(call, r, &err);
}

void handle_workload_stop(struct api_call *call)
{
    struct model_workload w;
    struct json_object *json = NULL;
    struct err err = ERR_INIT;
    int r;

    if (call->http->body_len > 0) {
        json = call_body(call, false);
        if (json == NULL)
            return;
    }
    r = decode_stop(call, json, &err);
    json_object_put(json);
    if (r == 0)
        r = call_find_workload(call, call->args[0], &w, &err);
    if (r == 0 && model_workload_state_is_final(w.state))
        r = refuse_ended(&w, &err);
    if (r < 0) {
        call_fail(call, r, &err);
        return;
    }
    call->command.id = w.id;
    call->gone = refuse_gone;
    call_submit(call, CORE_WORKLOAD_STOP, reply_stopping);
}

/* ---- suspend and resume ---------------------------------------------------------------------- */

static void reply_state(struct api_call *call)
{
    struct strbuf body = STRBUF_INIT;
    struct json_writer w;

    json_writer_init(&w, &body);
    json_begin_object(&w);
    json_key_i64(&w, "id", (int64_t)call->command.id);
    json_key_string(&w, "state", model_workload_state_name(call->command.ret_state));
    json_end_object(&w);
    call_reply(call, 202, &body);
}

static void change_sleep(struct api_call *call, enum core_command_kind kind)
{
    struct model_workload w;
    struct err err = ERR_INIT;
    int r = call_find_workload(call, call->args[0], &w, &err);

    if (r == 0 && model_workload_state_is_final(w.state))
        r = refuse_ended(&w, &err);
    if (r < 0) {
        call_fail(call, r, &err);
        return;
    }
    call->command.id = w.id;
    call->gone = refuse_gone;
    call_submit(call, kind, reply_state);
}

void handle_workload_suspend(struct api_call *call)
{
    change_sleep(call, CORE_WORKLOAD_SUSPEND);
}

void handle_workload_resume(struct api_call *call)
{
    change_sleep(call, CORE_WORKLOAD_RESUME);
}

static int decode_extension(struct api_call *call, struct json_object *json, struct err *err)
{
    static const struct model_json_field fields[] = {
        {"for", model_json_read_duration, offsetof(struct core_command, grace_ms)},
    };

    return json ? model_json_read(json, fields, ARRAY_LEN(fields), call_arena(call), &call->command,
                                  err)
                : 0;
}

void handle_workload_extend(struct api_call *call)
{
    struct json_object *json = NULL;
    struct err err = ERR_INIT;
    int r;

    if (call->http->body_len > 0) {
        json = call_body(call, false);
        if (json == NULL)
            return;
    }
    r = decode_extension(call, json, &err);
    json_object_put(json);
    if (r < 0)
        call_fail(call, r, &err);
    else
        change_sleep(call, CORE_WORKLOAD_EXTEND);
}

/* ---- explain -------------------------------------------------------------------------------- */

static void reply_explanation(struct api_call *call)
{
    struct strbuf body = STRBUF_INIT;
    struct json_writer w;
    struct api_sight sight;
    struct err err = ERR_INIT;
    int r = call_sight(call, &sight, &err);

    if (r < 0) {
        call_fail(call, r, &err);
        return;
    }
    api_explanation_for(&sight, call->command.ret_explanation, call_arena(call));
    json_writer_init(&w, &body);
    model_explanation_encode(call->command.ret_explanation, &w);
    call_reply(call, 200, &body);
}

/* Core knows only what lives; the rest is explained from its row. */
static void explain_row(struct api_call *call, const struct model_workload *m)
{
    struct model_explanation *x = arena_new(call_arena(call), struct model_explanation);

    x->id = m->id;
    x->name = m->name;
    x->own_team = x->team = m->team;
    x->state = m->state;
    x->tasks = m->shape ? m->shape->task_count : 0;
    x->limit = MODEL_UNLIMITED;
    x->now_ms = core_now_ms(call->api->config.core);
    call->command.ret_explanation = x;
    reply_explanation(call);
}

/* It has ended meanwhile; or its end is not durable yet, and then everybody is told what is. */
static void explain_gone(struct api_call *call)
{
    struct model_workload w;
    struct err err = ERR_INIT;
    int r = call_find_workload(call, call->args[0], &w, &err);

    if (r < 0)
        call_fail(call, r, &err);
    else
        explain_row(call, &w);
}

void handle_workload_explain(struct api_call *call)
{
    struct model_workload w;
    struct err err = ERR_INIT;
    int r = call_find_workload(call, call->args[0], &w, &err);

    if (r < 0) {
        call_fail(call, r, &err);
    } else if (model_workload_state_is_final(w.state)) {
        explain_row(call, &w);
    } else {
        call->command.id = w.id;
        call->gone = explain_gone;
        call_submit(call, CORE_EXPLAIN, reply_explanation);
    }
}

/* ---- allocations ---------------------------------------------------------------------------- */

static int take_allocation(void *arg, const struct model_allocation *a)
{
    struct json_writer *w = arg;

    json_begin_object(w);
    json_key_i64(w, "id", (int64_t)a->id);
    json_key_i64(w, "task", a->task);
    json_key_i64(w, "attempt", a->attempt);
    json_key(w, "devices");
    json_begin_array(w);
    for (int32_t i = 0; i < a->device_count; i++)
        json_i64(w, a->devices[i]);
    json_end_array(w);
    model_milli_encode(w, "gpu", a->gpu_milli);
    model_milli_encode(w, "cpu", a->cpu_milli);
    model_amount_encode(w, "memory", MODEL_MEMORY_BYTES, a->memory_bytes);
    json_key_time(w, "started_at", a->start_ms);
    json_key_time(w, "ended_at", a->end_ms);
    json_key_i64(w, "busy_ms", a->busy_ns / NS_PER_MS);
    json_key_i64(w, "known_ms", a->known_ns / NS_PER_MS);
    json_key_string(w, "release", a->release ? model_release_name(a->release) : NULL);
    json_end_object(w);
    return 0;
}

static int write_allocations(struct api_call *call, struct json_writer *w, void *arg,
                             struct err *err)
{
    const struct api_config *config = &call->api->config;
    struct model_workload m;
    int r = call_find_workload(call, call->args[0], &m, err);

    return r < 0
               ? r
               : config->store->list_allocations(config->store_ctx, m.id, take_allocation, w, err);
}

void handle_workload_allocations(struct api_call *call)
{
    call_reply_list(call, "allocations", write_allocations, NULL);
}
