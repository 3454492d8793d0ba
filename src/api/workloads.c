/* SPDX-License-Identifier: Apache-2.0 */
/* Workloads: list, one, stop, explain, allocations. */
#include "api/internal.h"

#include <errno.h>
#include <json-c/json.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "model/amount.h"
#include "model/json.h"
#include "model/workload.h"

/* ---- list ----------------------------------------------------------------------------------- */

/* A comma-separated parameter into a mask; PARSE gives the bit of one word. */
static int read_mask(struct api_call *call, const char *name,
                     int (*parse)(const char *word, uint32_t *ret_bits), uint32_t *ret_mask,
                     struct err *err)
{
    const char *text = call_param(call, name);
    uint32_t mask = 0;

    while (text && *text) {
        size_t n = strcspn(text, ",");
        const char *word = arena_strndup(call_arena(call), text, n);
        uint32_t bits = 0;

        if (n > 0 && parse(word, &bits) < 0)
            return err_set(err, -EINVAL, ERR_INVALID, name,
                           "GET /v1/openapi.json lists the words; several are joined by commas",
                           "%s '%.40s' is not known", name, word);
        mask |= bits;
        text += n + (text[n] == ',');
    }
    *ret_mask = mask;
    return 0;
}

static int state_bits(const char *word, uint32_t *ret)
{
    enum model_workload_state v;

    if (strcmp(word, "live") == 0) {
        *ret = 1u << MODEL_WORKLOAD_PENDING | 1u << MODEL_WORKLOAD_RUNNING |
               1u << MODEL_WORKLOAD_STOPPING;
        return 0;
    }
    if (model_workload_state_parse(word, &v) < 0)
        return -EINVAL;
    *ret = 1u << v;
    return 0;
}

static int kind_bits(const char *word, uint32_t *ret)
{
    enum model_kind v;

    if (model_kind_parse(word, &v) < 0)
        return -EINVAL;
    *ret = 1u << v;
    return 0;
}

static int class_bits(const char *word, uint32_t *ret)
{
    enum model_class v;

    if (model_class_parse(word, &v) < 0)
        return -EINVAL;
    *ret = 1u << v;
    return 0;
}

static int read_filter(struct api_call *call, struct store_workload_filter *f, struct err *err)
{
    int64_t limit = API_LIST_DEFAULT, before = 0;
    int r;

    f->team = call_param(call, "team");
    f->owner = call_param(call, "owner");
    f->name = call_param(call, "name");
    r = read_mask(call, "state", state_bits, &f->states, err);
    if (r == 0)
        r = read_mask(call, "kind", kind_bits, &f->kinds, err);
    if (r == 0)
        r = read_mask(call, "class", class_bits, &f->classes, err);
    if (r == 0)
        r = call_param_int(call, "limit", 1, API_LIST_MAX, &limit, err);
    if (r == 0)
        r = call_param_int(call, "before", 1, INT64_MAX, &before, err);
    if (r == 0)
        r = call_visible_teams(call, &f->teams, &f->team_count, err);
    f->limit = (int32_t)limit;
    f->before_id = (uint64_t)before;
    return r;
}

/*
 * Rows are encoded as the store hands them over, each without its closing brace: why it waits is
 * known only when core has answered, and rows do not outlive the walk.
 */
struct page {
    struct strbuf text;
    VEC(size_t) ends; /* of each row in text */
    VEC(uint64_t) ids;
    bool pending; /* one at least waits */
    int32_t limit;
};

static int take_row(void *arg, const struct store_workload_row *row)
{
    struct page *p = arg;
    struct json_writer w;

    json_writer_init(&w, &p->text);
    json_begin_object(&w);
    model_workload_encode_fields(row->workload, &w);
    vec_push(&p->ends, p->text.len);
    vec_push(&p->ids, row->workload->id);
    p->pending |= row->workload->state == MODEL_WORKLOAD_PENDING;
    return 0;
}

static void add_reason(struct strbuf *out, const struct core_command *c, size_t i)
{
    if (c->ret_reasons == NULL || c->ret_reasons[i] == NULL)
        return;
    /* A word of the scheduler, which needs no escaping. */
    strbuf_addf(out, ",\"reason\":\"%s\",\"position\":%u", c->ret_reasons[i], c->ret_positions[i]);
}

static void reply_page(struct api_call *call)
{
    const struct page *p = call->data;
    struct strbuf body = STRBUF_INIT;
    size_t begin = 0;

    strbuf_reserve(&body, p->text.len + p->ends.len * 48 + 64);
    strbuf_adds(&body, "{\"workloads\":[");
    for (size_t i = 0; i < p->ends.len; i++) {
        if (i > 0)
            strbuf_addc(&body, ',');
        strbuf_add(&body, p->text.data + begin, p->ends.items[i] - begin);
        add_reason(&body, &call->command, i);
        strbuf_addc(&body, '}');
        begin = p->ends.items[i];
    }
    strbuf_addc(&body, ']');
    if (p->ids.len == (size_t)p->limit)
        strbuf_addf(&body, ",\"next\":%llu", (unsigned long long)p->ids.items[p->ids.len - 1]);
    strbuf_addc(&body, '}');
    call_reply(call, 200, &body);
}

static void page_free(struct api_call *call)
{
    struct page *p = call->data;

    strbuf_done(&p->text);
    vec_done(&p->ends);
    vec_done(&p->ids);
}

void handle_workload_list(struct api_call *call)
{
    const struct api_config *config = &call->api->config;
    struct store_workload_filter filter = {0};
    struct page *p = arena_new(call_arena(call), struct page);
    struct err err = ERR_INIT;
    int r = read_filter(call, &filter, &err);

    call->data = p;
    call->cleanup = page_free;
    p->limit = filter.limit;
    if (r == 0)
        r = config->store->list_workloads(config->store_ctx, &filter, take_row, p, &err);
    if (r < 0) {
        call_fail(call, r, &err);
        return;
    }
    if (!p->pending) {
        reply_page(call);
        return;
    }
    call->command.ids = p->ids.items;
    call->command.id_count = p->ids.len;
    call_submit(call, CORE_EXPLAIN_BRIEF, reply_page);
}

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
    if (s->workload.state != MODEL_WORKLOAD_PENDING) {
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
        r = err_set(&err, -EBUSY, ERR_CONFLICT, "id", NULL, "workload %llu has ended: %s",
                    (unsigned long long)w.id, model_workload_state_name(w.state));
    if (r < 0) {
        call_fail(call, r, &err);
        return;
    }
    call->command.id = w.id;
    call_submit(call, CORE_WORKLOAD_STOP, reply_stopping);
}

/* ---- explain -------------------------------------------------------------------------------- */

static void reply_explanation(struct api_call *call)
{
    struct strbuf body = STRBUF_INIT;
    struct json_writer w;

    json_writer_init(&w, &body);
    model_explanation_encode(call->command.ret_explanation, &w);
    call_reply(call, 200, &body);
}

/* Core knows only what lives; what has ended is explained from its row. */
static void explain_ended(struct api_call *call, const struct model_workload *m)
{
    struct model_explanation *x = arena_new(call_arena(call), struct model_explanation);

    x->id = m->id;
    x->name = m->name;
    x->own_team = x->team = m->team;
    x->state = m->state;
    x->tasks = m->shape ? m->shape->task_count : 0;
    x->limit = MODEL_UNLIMITED;
    x->now_ms = core_now_ms(call->api->config.core);
    x->sentence = model_explanation_sentence(x, call_arena(call));
    call->command.ret_explanation = x;
    reply_explanation(call);
}

void handle_workload_explain(struct api_call *call)
{
    struct model_workload w;
    struct err err = ERR_INIT;
    int r = call_find_workload(call, call->args[0], &w, &err);

    if (r < 0) {
        call_fail(call, r, &err);
    } else if (model_workload_state_is_final(w.state)) {
        explain_ended(call, &w);
    } else {
        call->command.id = w.id;
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
    json_key_i64(w, "busy_ms", a->busy_ns / 1000000);
    json_end_object(w);
    return 0;
}

void handle_workload_allocations(struct api_call *call)
{
    const struct api_config *config = &call->api->config;
    _cleanup_strbuf_ struct strbuf body = STRBUF_INIT;
    struct model_workload m;
    struct json_writer w;
    struct err err = ERR_INIT;
    int r = call_find_workload(call, call->args[0], &m, &err);

    json_writer_init(&w, &body);
    json_begin_object(&w);
    json_key(&w, "allocations");
    json_begin_array(&w);
    if (r == 0)
        r = config->store->list_allocations(config->store_ctx, m.id, take_allocation, &w, &err);
    json_end_array(&w);
    json_end_object(&w);
    if (r < 0)
        call_fail(call, r, &err);
    else
        call_reply(call, 200, &body);
}
