/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens: made for oneself (or, by an admin, for others), shown once, revoked. */
#include "api/internal.h"

#include <errno.h>
#include <json-c/json.h>
#include <sodium.h>
#include <string.h>

#include "api/token.h"
#include "base/cleanup.h"
#include "base/qty.h"
#include "model/json.h"

struct token_list {
    struct json_writer *w; /* NULL: only look */
    uint64_t only;         /* id to look for, 0 = all */
    int found;
};

static int list_token(void *arg, const struct model_token *t)
{
    struct token_list *l = arg;

    if (l->only && t->id != l->only)
        return 0;
    if (l->w)
        model_token_encode(t, l->w);
    l->found++;
    return 0;
}

/* An admin sees everybody's, a member its own. */
static int each_token(struct api_call *call, struct token_list *l, struct err *err)
{
    const struct api_config *config = &call->api->config;

    return config->store->each_token(config->store_ctx, call->user.admin ? NULL : call->user.name,
                                     list_token, l, err);
}

static int write_tokens(struct api_call *call, struct json_writer *w, void *arg, struct err *err)
{
    struct token_list l = {.w = w};

    return each_token(call, &l, err);
}

void handle_token_list(struct api_call *call)
{
    call_reply_list(call, "tokens", write_tokens, NULL);
}

struct token_wish {
    const char *user, *label;
    int64_t expires_in_ms;
};

static int decode_wish(struct api_call *call, struct json_object *json, struct token_wish *ret,
                       struct err *err)
{
    static const struct model_json_field fields[] = {
        {"user", model_json_read_name, offsetof(struct token_wish, user)},
        {"label", model_json_read_name, offsetof(struct token_wish, label)},
        {"expires_in", model_json_read_duration, offsetof(struct token_wish, expires_in_ms)},
    };
    int r = 0;

    *ret = (struct token_wish){0};
    if (json)
        r = model_json_read(json, fields, ARRAY_LEN(fields), call_arena(call), ret, err);
    if (ret->user == NULL)
        ret->user = call->user.name;
    return r;
}

static void reply_created(struct api_call *call)
{
    struct strbuf body = STRBUF_INIT;
    const struct model_token *t = &call->command.token;
    char *secret = call->data;
    struct json_writer w;

    json_writer_init(&w, &body);
    json_begin_object(&w);
    json_key_i64(&w, "id", (int64_t)t->id);
    json_key_string(&w, "user", t->user);
    json_key_string(&w, "label", t->label);
    json_key_time(&w, "created_at", t->created_ms);
    json_key_time(&w, "expires_at", t->expires_ms);
    json_key_string(&w, "token", secret);
    json_end_object(&w);
    sodium_memzero(secret, strlen(secret));
    call_reply(call, 201, &body);
}

void handle_token_create(struct api_call *call)
{
    struct model_token *t = &call->command.token;
    struct json_object *json = NULL;
    struct token_wish wish;
    struct err err = ERR_INIT;
    int r = 0;

    /* A stored reply would keep the secret; nothing is lost by making one more token. */
    if (http_request_header(call->http, "Idempotency-Key"))
        r = err_set(&err, -EINVAL, ERR_UNSUPPORTED, "Idempotency-Key",
                    "leave it out, and revoke a token that you did not receive",
                    "Idempotency-Key is not possible here, because the secret is not kept");
    if (r == 0 && call->http->body_len > 0) {
        json = call_body(call, false);
        if (json == NULL)
            return;
    }
    if (r == 0)
        r = decode_wish(call, json, &wish, &err);
    json_object_put(json);
    if (r < 0) {
        call_fail(call, r, &err);
        return;
    }
    call->data = arena_alloc(call_arena(call), API_TOKEN_MAX);
    api_token_make(call->data);
    api_token_hash(call->data, t->hash);
    t->user = wish.user;
    t->label = wish.label;
    if (wish.expires_in_ms > 0)
        t->expires_ms = core_now_ms(call->api->config.core) + wish.expires_in_ms;
    call_submit(call, CORE_TOKEN_CREATE, reply_created);
}

void handle_token_delete(struct api_call *call)
{
    struct token_list l = {0};
    struct err err = ERR_INIT;
    int64_t id = 0;
    int r = 0;

    if (qty_parse_int(call->args[0], &id, NULL) == 0 && id > 0) {
        l.only = (uint64_t)id;
        r = each_token(call, &l, &err);
    }
    if (r == 0 && l.found == 0)
        r = err_set(&err, -ENOENT, ERR_NOT_FOUND, "id", "see 'allot token list'",
                    "there is no token %.30s of yours", call->args[0]);
    if (r < 0) {
        call_fail(call, r, &err);
        return;
    }
    call->command.id = (uint64_t)id;
    call_submit(call, CORE_TOKEN_DELETE, call_reply_empty);
}
