/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /v1/workloads/{id}/tasks/{task}/exec with "Upgrade: allot-exec": runs a command inside a
 * running task's sandbox and joins its connection with the client's. What is said there is
 * net/exec_protocol.h; nothing of it is understood here. A session ends with its caller's rights.
 */
#include "api/internal.h"

#include <errno.h>
#include <json-c/json.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/qty.h"
#include "model/json.h"

#define PROTOCOL "allot-exec"

struct exec {
    struct api_session session; /* first */
    const char *team;
    const char *const *command;
    int32_t command_count;
    bool tty;
    uint64_t workload;
    int32_t task;
    char intent[MODEL_INTENT_MAX];
    int fd; /* ours until the relay takes it */
};

static int read_command(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    struct exec *e = out;

    return model_json_read_strings(v, MODEL_COMMAND_MAX, NULL, a, &e->command, &e->command_count,
                                   err);
}

static int decode(struct api_call *call, struct json_object *json, struct exec *e, struct err *err)
{
    static const struct model_json_field fields[] = {
        {"command", read_command, 0, true},
        {"tty", model_json_read_bool, offsetof(struct exec, tty)},
    };
    int r = model_json_read(json, fields, ARRAY_LEN(fields), call_arena(call), e, err);

    if (r == 0 && e->command_count == 0)
        return err_set(err, -EINVAL, ERR_MISSING, "command", "name a program", "command is empty");
    return r;
}

static int not_running(uint64_t workload, int32_t task, struct err *err)
{
    return err_set(err, -EBUSY, ERR_CONFLICT, NULL, "wait until it runs ('allot show')",
                   "task %d of workload %llu is not running", task, (unsigned long long)workload);
}

static int has_ended(uint64_t workload, int32_t task, struct err *err)
{
    return err_set(err, -EBUSY, ERR_CONFLICT, NULL,
                   "what it wrote is there yet ('allot logs'); submit it again to look inside",
                   "task %d of workload %llu has ended", task, (unsigned long long)workload);
}

static int find_intent(struct api_call *call, struct exec *e, struct err *err)
{
    struct model_workload w;
    struct api_task t;
    int64_t index;
    int r = call_find_workload(call, call->args[0], &w, err);

    if (r < 0)
        return r;
    if (qty_parse_int(call->args[1], &index, NULL) < 0 || index >= w.shape->task_count)
        return err_set(err, -ENOENT, ERR_NOT_FOUND, NULL, NULL, "workload %llu has no task %.30s",
                       (unsigned long long)w.id, call->args[1]);
    r = api_find_task(call->api, w.id, (int32_t)index, &t, err);
    if (r < 0)
        return r;
    if (model_task_state_is_final(t.state))
        return has_ended(w.id, t.index, err);
    if (!t.runs)
        return not_running(w.id, t.index, err);
    e->workload = w.id;
    e->task = t.index;
    model_intent_format(w.id, t.index, t.attempt, e->intent);
    e->team = w.team;
    return 0;
}

/* On a thread of its own: reaching the task may take a moment. */
static void run(struct api_call *call)
{
    const struct api_config *config = &call->api->config;
    struct core_command *c = &call->command;
    struct exec *e = call->data;

    c->status =
        config->engine->exec(config->engine_ctx, e->intent, e->command, e->tty, &e->fd, &c->err);
    if (c->status == -ENOENT) /* it has ended since its row was read */
        c->status = not_running(e->workload, e->task, &c->err);
    if (c->status < 0 && c->err.code == NULL)
        err_set(&c->err, c->status, ERR_UNAVAILABLE, NULL, NULL, "task %s cannot be reached: %s",
                e->intent, strerror(-c->status));
}

static void join(struct api_call *call)
{
    struct exec *e = call->data;
    struct err err = ERR_INIT;
    int r;

    api_guard_init(&e->session.guard, call, &e->team, 1);
    r = api_session_add(call->api, &e->session, e->fd);
    if (r < 0) {
        err_set(&err, r, ERR_UNAVAILABLE, NULL, "ask again shortly", "too many open sessions");
        call_fail(call, -EAGAIN, &err);
        return;
    }
    http_reply_upgrade(call->http, PROTOCOL, steal_fd(&e->fd));
}

static void exec_free(struct api_call *call)
{
    struct exec *e = call->data;

    api_session_remove(&e->session);
    if (e->fd >= 0)
        close(e->fd);
}

static int check_upgrade(struct api_call *call, struct err *err)
{
    const char *upgrade = http_request_header(call->http, "Upgrade");

    if (upgrade && strcasecmp(upgrade, PROTOCOL) == 0)
        return 0;
    http_reply_header(call->http, "Upgrade", PROTOCOL);
    return err_set(err, -EPROTOTYPE, ERR_UNSUPPORTED, "Upgrade",
                   "send 'Connection: Upgrade' and 'Upgrade: " PROTOCOL "', or use 'allot exec'",
                   "this needs an upgraded connection");
}

void handle_task_exec(struct api_call *call)
{
    struct exec *e = arena_new(call_arena(call), struct exec);
    struct json_object *json;
    struct err err = ERR_INIT;
    int r = check_upgrade(call, &err);

    e->fd = -1;
    if (r == 0) {
        json = call_body(call, false);
        if (json == NULL)
            return;
        r = decode(call, json, e, &err);
        json_object_put(json);
    }
    if (r == 0)
        r = find_intent(call, e, &err);
    if (r < 0) {
        call_fail(call, r, &err);
        return;
    }
    call->data = e;
    call->cleanup = exec_free;
    call_aside(call, run, join);
}
