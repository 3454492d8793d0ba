/* SPDX-License-Identifier: Apache-2.0 */
/* Teams: stored quotas beside live figures. */
#include "api/internal.h"

#include <errno.h>
#include <json-c/json.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/qty.h"
#include "base/text.h"
#include "model/amount.h"
#include "model/team.h"

static const struct core_team_usage *usage_of(const struct core_command *c, const char *name)
{
    size_t low = 0, high = c->ret_team_count;

    /* Core sorts them by name. */
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = strcmp(c->ret_team_usage[mid].name, name);

        if (order == 0)
            return &c->ret_team_usage[mid];
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

static void encode_amounts(struct json_writer *w, const char *key, const int64_t *amounts)
{
    json_key(w, key);
    json_begin_object(w);
    for (int i = 0; i < MODEL_RESOURCE_COUNT; i++)
        model_amount_encode(w, model_resource_name((enum model_resource)i), (enum model_resource)i,
                            amounts[i]);
    json_end_object(w);
}

static void encode_team(const struct core_command *c, const struct model_team *t,
                        struct json_writer *w)
{
    const struct core_team_usage *u = usage_of(c, t->name);

    json_begin_object(w);
    model_team_encode_fields(t, w);
    if (u) {
        encode_amounts(w, "used", u->used);
        json_key_i64(w, "past_gpu_ms", u->past_gpu_ms);
        model_milli_encode(w, "weight_bias", u->bias_milli);
        json_key(w, "used_gpu_types");
        json_begin_object(w);
        for (int32_t i = 0; i < u->type_count; i++)
            model_milli_encode(w, u->types[i].type, u->types[i].used);
        json_end_object(w);
        encode_amounts(w, "demand", u->demand);
        encode_amounts(w, "share", u->share);
        encode_amounts(w, "entitled", u->entitled);
        json_key_i64(w, "pending", u->pending);
        json_key_i64(w, "running", u->running);
    }
    json_end_object(w);
}

/* ---- list ----------------------------------------------------------------------------------- */

struct team_list {
    struct api_call *call;
    struct json_writer *w;
    const char *const *teams;
    int32_t count;
};

static int list_team(void *arg, const struct model_team *t)
{
    struct team_list *l = arg;

    if (api_teams_have(l->teams, l->count, t->name))
        encode_team(&l->call->command, t, l->w);
    return 0;
}

static int write_teams(struct api_call *call, struct json_writer *w, void *arg, struct err *err)
{
    const struct api_config *config = &call->api->config;
    struct team_list l = {.call = call, .w = w};
    int r = call_visible_teams(call, &l.teams, &l.count, err);

    return r < 0 ? r : config->store->each_team(config->store_ctx, list_team, &l, err);
}

static void reply_list(struct api_call *call)
{
    call_reply_list(call, "teams", write_teams, NULL);
}

void handle_team_list(struct api_call *call)
{
    call_submit(call, CORE_TEAM_USAGE, reply_list);
}

/* ---- one ------------------------------------------------------------------------------------ */

static int read_team(struct api_call *call, struct model_team *ret, struct err *err)
{
    const struct api_config *config = &call->api->config;
    const char *name = call->args[0];
    int r = call_sees_team(call, name, err);

    if (r > 0)
        r = config->store->get_team(config->store_ctx, name, call_arena(call), ret, err);
    else if (r == 0)
        r = -ENOENT;
    if (r == -ENOENT)
        return err_set(err, r, ERR_NOT_FOUND, "name", "see 'allot team list'",
                       "there is no team '%.100s'", name);
    return r;
}

static void reply_team(struct api_call *call)
{
    struct strbuf body = STRBUF_INIT;
    struct model_team team;
    struct err err = ERR_INIT;
    struct json_writer w;
    int r = read_team(call, &team, &err);

    if (r < 0) {
        call_fail(call, r, &err);
        return;
    }
    json_writer_init(&w, &body);
    encode_team(&call->command, &team, &w);
    http_reply_header(call->http, "ETag",
                      arena_printf(call_arena(call), "\"%llu\"", (unsigned long long)team.version));
    call_reply(call, 200, &body);
}

void handle_team_get(struct api_call *call)
{
    call_submit(call, CORE_TEAM_USAGE, reply_team);
}

/* ---- writing -------------------------------------------------------------------------------- */

/* If-Match: "3" asks that the version is still 3. */
static int read_if_match(struct api_call *call, uint64_t *ret_version, struct err *err)
{
    const char *text = http_request_header(call->http, "If-Match");
    size_t n = text ? strlen(text) : 0;
    int64_t version = 0;

    if (text == NULL)
        return 0;
    if (n > 2 && text[0] == '"' && text[n - 1] == '"')
        text = arena_strndup(call_arena(call), text + 1, n - 2);
    if (qty_parse_int(text, &version, NULL) < 0 || version == 0)
        return err_set(err, -EINVAL, ERR_INVALID, "If-Match", "send back the ETag as it came",
                       "If-Match '%.60s' is not a version", text);
    *ret_version = (uint64_t)version;
    return 0;
}

static int decode_team(struct api_call *call, struct json_object *json, struct model_team *t,
                       struct err *err)
{
    int r;

    model_team_init(t);
    t->name = call->args[0];
    r = model_team_decode(json, call_arena(call), t, err);
    if (r == 0)
        r = text_check_name(call->args[0], strlen(call->args[0]), "team name", err);
    if (r == 0 && strcmp(t->name, call->args[0]) != 0)
        return err_set(err, -EINVAL, ERR_INVALID, "name", "names cannot change: leave it out",
                       "name '%.100s' is not the team of the path", t->name);
    if (r == 0)
        r = read_if_match(call, &call->command.if_match, err);
    return r;
}

static void reply_put(struct api_call *call)
{
    const struct model_team *t = call->command.ret_team;
    struct strbuf body = STRBUF_INIT;
    struct json_writer w;

    json_writer_init(&w, &body);
    json_begin_object(&w);
    model_team_encode_fields(t, &w);
    call_encode_quota_warnings(call, t, &w);
    json_end_object(&w);
    http_reply_header(call->http, "ETag",
                      arena_printf(call_arena(call), "\"%llu\"", (unsigned long long)t->version));
    call_reply(call, t->version == 1 ? 201 : 200, &body);
}

void handle_team_put(struct api_call *call)
{
    struct json_object *json = call_body(call, false);
    struct model_team *t = arena_new(call_arena(call), struct model_team);
    struct err err = ERR_INIT;
    int r;

    if (json == NULL)
        return;
    r = decode_team(call, json, t, &err);
    json_object_put(json);
    if (r < 0) {
        call_fail(call, r, &err);
        return;
    }
    call->command.team = t;
    call_submit(call, CORE_TEAM_PUT, reply_put);
}

void handle_team_delete(struct api_call *call)
{
    call->command.name = call->args[0];
    call_submit(call, CORE_TEAM_DELETE, call_reply_empty);
}
