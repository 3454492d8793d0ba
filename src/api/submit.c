/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/workloads: one, or a batch that is taken as a whole or not at all; or a dry run. */
#include "api/internal.h"

#include <errno.h>
#include <json-c/json.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/json.h"
#include "model/workload.h"

struct submit {
    bool batch; /* answered as a list */
};

static void encode_reply(const struct core_command *c, bool batch, struct strbuf *out)
{
    struct json_writer w;

    json_writer_init(&w, out);
    if (!batch) {
        struct model_workload shown = c->workloads[0];

        model_workload_encode(&shown, &w);
        return;
    }
    json_begin_object(&w);
    json_key(&w, "workloads");
    json_begin_array(&w);
    for (size_t i = 0; i < c->workload_count; i++) {
        json_begin_object(&w);
        json_key_i64(&w, "id", (int64_t)c->workloads[i].id);
        json_key_string(&w, "name", c->workloads[i].name);
        json_key_string(&w, "team", c->workloads[i].team);
        json_end_object(&w);
    }
    json_end_array(&w);
    json_end_object(&w);
}

/* On core's thread, before the commit; only with an Idempotency-Key. */
static int make_reply(struct core_command *c, int *ret_status, const char **ret_body)
{
    const struct api_call *call = c->user;
    const struct submit *s = call->data;
    _cleanup_strbuf_ struct strbuf body = STRBUF_INIT;

    encode_reply(c, s->batch, &body);
    *ret_status = 201;
    *ret_body = arena_strndup(&c->arena, body.data, body.len);
    return 0;
}

static void reply_submitted(struct api_call *call)
{
    const struct core_command *c = &call->command;
    const struct submit *s = call->data;
    struct strbuf body = STRBUF_INIT;

    encode_reply(c, s->batch, &body);
    if (!s->batch)
        http_reply_header(call->http, "Location",
                          arena_printf(call_arena(call), "/v1/workloads/%llu",
                                       (unsigned long long)c->workloads[0].id));
    call_reply(call, 201, &body);
}

/* {"workloads": [explanation, ...]}, in the order of the request. */
static void reply_dry(struct api_call *call)
{
    const struct core_command *c = &call->command;
    struct api_sight sight;
    struct strbuf body = STRBUF_INIT;
    struct json_writer w;
    struct err err = ERR_INIT;
    int r = call_sight(call, &sight, &err);

    if (r < 0) {
        call_fail(call, r, &err);
        return;
    }
    json_writer_init(&w, &body);
    json_begin_object(&w);
    json_key(&w, "workloads");
    json_begin_array(&w);
    for (size_t i = 0; i < c->workload_count; i++) {
        api_explanation_for(&sight, &c->ret_explanation[i], call_arena(call));
        model_explanation_encode(&c->ret_explanation[i], &w);
    }
    json_end_array(&w);
    json_end_object(&w);
    call_reply(call, 200, &body);
}

/* The list of workloads in JSON, or NULL when it is one by itself. */
static int find_batch(struct json_object *json, struct json_object **ret_list, struct err *err)
{
    struct json_object *list = NULL;

    *ret_list = NULL;
    if (json_object_is_type(json, json_type_array)) {
        list = json;
    } else if (json_object_object_get_ex(json, "workloads", &list)) {
        if (!json_object_is_type(list, json_type_array))
            return err_set(err, -EINVAL, ERR_INVALID, "workloads", "send an array",
                           "workloads must be an array, not %s", model_json_type_name(list));
        json_object_object_foreach(json, key, value)
        {
            (void)value;
            if (strcmp(key, "workloads") != 0)
                return err_set(err, -EINVAL, ERR_UNKNOWN_FIELD, key, "known: workloads",
                               "%.60s is not a known field of a batch", key);
        }
    }
    if (list && json_object_array_length(list) > MODEL_BATCH_MAX)
        return err_set(err, -EINVAL, ERR_TOO_LARGE, "workloads", "send several batches",
                       "batch has %zu workloads and may have %d", json_object_array_length(list),
                       MODEL_BATCH_MAX);
    if (list && json_object_array_length(list) == 0)
        return err_set(err, -EINVAL, ERR_MISSING, "workloads", "send at least one",
                       "batch has no workloads");
    *ret_list = list;
    return 0;
}

static int decode(struct api_call *call, struct json_object *json, struct err *err)
{
    struct core_command *c = &call->command;
    struct submit *s = arena_new(call_arena(call), struct submit);
    struct json_object *list;
    int r = find_batch(json, &list, err);

    if (r < 0)
        return r;
    s->batch = list != NULL;
    call->data = s;
    c->workload_count = list ? json_object_array_length(list) : 1;
    c->workloads = arena_new_array(call_arena(call), struct model_workload, c->workload_count);
    for (size_t i = 0; i < c->workload_count; i++) {
        struct json_object *one = list ? json_object_array_get_idx(list, i) : json;

        r = model_workload_decode(one, call_arena(call), &c->workloads[i], err);
        if (r < 0 && list)
            model_json_in(err, "workloads[%zu]", i);
        if (r < 0)
            return r;
    }
    return 0;
}

void handle_submit(struct api_call *call)
{
    struct json_object *json;
    struct err err = ERR_INIT;
    bool dry = false;
    int r = call_param_bool(call, "dry_run", &dry, &err);

    if (r == 0 && !dry)
        r = call_idempotency(call, &err);
    if (r > 0)
        return;
    if (r < 0) {
        call_fail(call, r, &err);
        return;
    }
    json = call_body(call, false);
    if (json == NULL)
        return;
    r = decode(call, json, &err);
    json_object_put(json);
    if (r < 0) {
        call_fail(call, r, &err);
        return;
    }
    if (dry) {
        call_submit(call, CORE_WORKLOADS_DRY, reply_dry);
        return;
    }
    call->command.make_reply = make_reply;
    call_submit(call, CORE_WORKLOADS_SUBMIT, reply_submitted);
}
