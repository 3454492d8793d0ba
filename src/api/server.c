/* SPDX-License-Identifier: Apache-2.0 */
/* The server about itself: health, version, status, OpenAPI. */
#include "api/internal.h"

#include "model/user.h"

void handle_healthz(struct api_call *call)
{
    struct strbuf body = STRBUF_INIT;

    strbuf_adds(&body, "{\"status\":\"ok\"}");
    call_reply(call, 200, &body);
}

void handle_version(struct api_call *call)
{
    struct strbuf body = STRBUF_INIT;
    struct json_writer w;

    json_writer_init(&w, &body);
    json_begin_object(&w);
    json_key_string(&w, "name", "allot");
    json_key_string(&w, "version", ALLOT_VERSION);
    json_key_string(&w, "api", "v1");
    json_end_object(&w);
    call_reply(call, 200, &body);
}

static void reply_status(struct api_call *call)
{
    const struct core_status *s = &call->command.ret_status;
    struct strbuf body = STRBUF_INIT;
    struct json_writer w;

    json_writer_init(&w, &body);
    json_begin_object(&w);
    json_key_string(&w, "version", ALLOT_VERSION);
    json_key_time(&w, "started_at", s->started_ms);
    json_key_time(&w, "now", s->now_ms);
    json_key_i64(&w, "pending", (int64_t)s->pending);
    json_key_i64(&w, "running", (int64_t)s->running);
    json_key_i64(&w, "last_event", (int64_t)s->last_event);
    json_key_bool(&w, "reconciled", s->reconciled);
    json_key(&w, "store");
    json_begin_object(&w);
    json_key_bool(&w, "ok", s->store_ok);
    json_key_string(&w, "message", s->store_message);
    json_end_object(&w);
    json_key(&w, "user");
    model_user_encode(&call->user, &w);
    json_end_object(&w);
    call_reply(call, 200, &body);
}

void handle_status(struct api_call *call)
{
    call_submit(call, CORE_STATUS, reply_status);
}

void handle_openapi(struct api_call *call)
{
    struct strbuf body = STRBUF_INIT;
    struct json_writer w;

    json_writer_init(&w, &body);
    api_openapi_write(&w);
    call_reply(call, 200, &body);
}
