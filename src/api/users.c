/* SPDX-License-Identifier: Apache-2.0 */
/* Users. A member sees itself only. */
#include "api/internal.h"

#include <errno.h>
#include <json-c/json.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

struct user_list {
    struct json_writer *w;
    const char *only; /* name, or NULL = all */
    int found;
};

static int list_user(void *arg, const struct model_user *u)
{
    struct user_list *l = arg;

    if (l->only && strcmp(u->name, l->only) != 0)
        return 0;
    model_user_encode(u, l->w);
    l->found++;
    return 0;
}

static int each_user(struct api_call *call, struct user_list *l, struct err *err)
{
    const struct api_config *config = &call->api->config;

    return config->store->each_user(config->store_ctx, list_user, l, err);
}

static int write_users(struct api_call *call, struct json_writer *w, void *arg, struct err *err)
{
    struct user_list l = {.w = w, .only = call->user.admin ? NULL : call->user.name};

    return each_user(call, &l, err);
}

void handle_user_list(struct api_call *call)
{
    call_reply_list(call, "users", write_users, NULL);
}

void handle_user_get(struct api_call *call)
{
    _cleanup_strbuf_ struct strbuf body = STRBUF_INIT;
    struct json_writer w;
    struct user_list l = {.w = &w, .only = call->args[0]};
    struct err err = ERR_INIT;
    int r = 0;

    json_writer_init(&w, &body);
    if (call->user.admin || strcmp(call->user.name, call->args[0]) == 0)
        r = each_user(call, &l, &err);
    if (r == 0 && l.found == 0)
        r = err_set(&err, -ENOENT, ERR_NOT_FOUND, "name", "see 'allot user list'",
                    "there is no user '%.100s'", call->args[0]);
    if (r < 0)
        call_fail(call, r, &err);
    else
        call_reply(call, 200, &body);
}

static void reply_put(struct api_call *call)
{
    struct strbuf body = STRBUF_INIT;
    struct json_writer w;

    json_writer_init(&w, &body);
    model_user_encode(call->command.user_row, &w);
    call_reply(call, 200, &body);
}

void handle_user_put(struct api_call *call)
{
    struct json_object *json = call_body(call, false);
    struct model_user *u = arena_new(call_arena(call), struct model_user);
    struct err err = ERR_INIT;
    int r;

    if (json == NULL)
        return;
    u->name = call->args[0];
    r = model_user_decode(json, call_arena(call), u, &err);
    json_object_put(json);
    if (r == 0)
        r = text_check_name(call->args[0], strlen(call->args[0]), "user name", &err);
    if (r == 0 && strcmp(u->name, call->args[0]) != 0)
        r = err_set(&err, -EINVAL, ERR_INVALID, "name", "names cannot change: leave it out",
                    "name '%.100s' is not the user of the path", u->name);
    if (r < 0) {
        call_fail(call, r, &err);
        return;
    }
    call->command.user_row = u;
    call_submit(call, CORE_USER_PUT, reply_put);
}

void handle_user_delete(struct api_call *call)
{
    call->command.name = call->args[0];
    call_submit(call, CORE_USER_DELETE, call_reply_empty);
}
