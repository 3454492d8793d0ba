/* SPDX-License-Identifier: Apache-2.0 */
#include "api/internal.h"

#include <errno.h>
#include <string.h>

#include "model/json.h"

#define SIDE_MAX 64 /* threads for calls that may block */

/* A thing that the path names is 404; one that the body names makes the body wrong. */
static bool is_path_field(const char *field)
{
    return field[0] == '\0' || strcmp(field, "id") == 0 || strcmp(field, "name") == 0;
}

int api_status_of(int errnum, const struct err *err)
{
    static const struct {
        int errnum, status;
    } table[] = {
        {EINVAL, 400},    {ERANGE, 400},     {EACCES, 403},    {EPERM, 403},      {EEXIST, 409},
        {EBUSY, 409},     {ESTALE, 412},     {E2BIG, 422},     {EOPNOTSUPP, 501}, {ENOSPC, 503},
        {EROFS, 503},     {EIO, 503},        {ESHUTDOWN, 503}, {EAGAIN, 503},     {EUCLEAN, 503},
        {ETIMEDOUT, 504}, {EPROTOTYPE, 426},
    };

    if (err->code && strcmp(err->code, ERR_UNAUTHENTICATED) == 0)
        return 401;
    if (errnum == -ENOENT)
        return is_path_field(err->field) ? 404 : 422;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (table[i].errnum == -errnum)
            return table[i].status;
    return 500;
}

void call_fail(struct api_call *call, int errnum, const struct err *err)
{
    int status = api_status_of(errnum, err);

    if (status == 401)
        http_reply_header(call->http, "WWW-Authenticate", "Bearer");
    if (status == 503)
        http_reply_header(call->http, "Retry-After", "1");
    http_reply_problem(call->http, status, err);
}

void call_reply(struct api_call *call, int status, struct strbuf *body)
{
    http_reply(call->http, status, "application/json", body);
}

void call_reply_list(struct api_call *call, const char *key, api_each_fn *each, void *arg)
{
    _cleanup_strbuf_ struct strbuf body = STRBUF_INIT;
    struct err err = ERR_INIT;
    struct json_writer w;
    int r;

    json_writer_init(&w, &body);
    json_begin_object(&w);
    json_key(&w, key);
    json_begin_array(&w);
    r = each(call, &w, arg, &err);
    json_end_array(&w);
    json_end_object(&w);
    if (r < 0)
        call_fail(call, r, &err);
    else
        call_reply(call, 200, &body);
}

void call_reply_empty(struct api_call *call)
{
    http_reply(call->http, 204, NULL, NULL);
}

static void resume(struct http_request *r)
{
    struct api_call *call = r->user;

    if (call->command.status == -ENOENT && call->gone)
        call->gone(call);
    else if (call->command.status < 0)
        call_fail(call, call->command.status, &call->command.err);
    else
        call->then(call);
}

/* On core's thread. */
static void command_done(struct core_command *command)
{
    struct api_call *call = command->user;

    http_resume(call->http, resume);
}

void call_submit(struct api_call *call, enum core_command_kind kind,
                 void (*then)(struct api_call *call))
{
    struct core_command *c = &call->command;

    c->kind = kind;
    c->actor = (struct core_actor){call->user.name, call->user.admin, call->user.teams,
                                   call->user.team_count};
    c->done = command_done;
    c->user = call;
    call->then = then;
    http_defer(call->http);
    core_submit(call->api->config.core, c);
}

static void *side_main(void *arg)
{
    struct api_call *call = arg;
    struct api *api = call->api;

    call->side(call);
    http_resume(call->http, resume);
    pthread_mutex_lock(&api->side_lock);
    api->side_count--;
    pthread_cond_signal(&api->side_idle);
    pthread_mutex_unlock(&api->side_lock);
    return NULL;
}

void call_aside(struct api_call *call, void (*side)(struct api_call *call),
                void (*then)(struct api_call *call))
{
    struct api *api = call->api;
    struct err err = ERR_INIT;
    pthread_attr_t attr;
    pthread_t thread;
    bool full;
    int r = EAGAIN;

    call->side = side;
    call->then = then;
    pthread_mutex_lock(&api->side_lock);
    full = api->side_count >= SIDE_MAX;
    api->side_count += !full;
    pthread_mutex_unlock(&api->side_lock);
    if (!full) {
        http_defer(call->http);
        pthread_attr_init(&attr);
        pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        r = pthread_create(&thread, &attr, side_main, call);
        pthread_attr_destroy(&attr);
    }
    if (r == 0)
        return;
    if (!full) {
        pthread_mutex_lock(&api->side_lock);
        api->side_count--;
        pthread_mutex_unlock(&api->side_lock);
    }
    err_set(&err, -EAGAIN, ERR_UNAVAILABLE, NULL, "ask again shortly",
            "too many requests of this kind at once");
    call_fail(call, -EAGAIN, &err);
}

struct json_object *call_body(struct api_call *call, bool empty_ok)
{
    struct json_object *json = NULL;
    struct err err = ERR_INIT;
    int r;

    if (call->http->body_len == 0 && empty_ok)
        return NULL;
    r = model_json_parse(call->http->body, call->http->body_len, &json, &err);
    if (r == 0 && json)
        return json;
    if (r == 0)
        r = err_set(&err, -EINVAL, ERR_INVALID, NULL, "send an object", "request body is null");
    call_fail(call, r, &err);
    return NULL;
}
