/* SPDX-License-Identifier: Apache-2.0 */
#include "model/user.h"

#include <errno.h>
#include <json-c/json.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/check.h"
#include "model/json.h"

static int read_role(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    const char *role = NULL;
    int r;

    r = model_json_read_string(v, a, &role, err);
    if (r < 0 || role == NULL)
        return r;
    if (strcmp(role, "admin") != 0 && strcmp(role, "member") != 0)
        return err_set(err, -EINVAL, ERR_INVALID, NULL, "use admin or member",
                       "'%.40s' is not a role", role);
    *(bool *)out = role[0] == 'a';
    return 0;
}

/* OUT is the whole user. */
static int read_teams(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    struct model_user *u = out;

    return v ? model_json_read_strings(v, MODEL_USER_TEAMS_MAX, model_check_name, a, &u->teams,
                                       &u->team_count, err)
             : 0;
}

int model_user_decode(struct json_object *json, struct arena *arena, struct model_user *u,
                      struct err *err)
{
    static const struct model_json_field fields[] = {
        {"name", model_json_read_name, offsetof(struct model_user, name)},
        {"role", read_role, offsetof(struct model_user, admin)},
        {"teams", read_teams, 0},
    };
    struct model_user user = *u;
    int r;

    r = model_json_read(json, fields, ARRAY_LEN(fields), arena, &user, err);
    if (r < 0)
        return r;
    if (user.name == NULL)
        return err_set(err, -EINVAL, ERR_MISSING, "name", "add it", "name is missing");
    *u = user;
    return 0;
}

void model_user_encode(const struct model_user *u, struct json_writer *w)
{
    json_begin_object(w);
    json_key_string(w, "name", u->name);
    json_key_string(w, "role", u->admin ? "admin" : "member");
    json_key(w, "teams");
    json_begin_array(w);
    for (int32_t i = 0; i < u->team_count; i++)
        json_string(w, u->teams[i]);
    json_end_array(w);
    json_end_object(w);
}

void model_token_encode(const struct model_token *t, struct json_writer *w)
{
    json_begin_object(w);
    json_key_i64(w, "id", (int64_t)t->id);
    json_key_string(w, "user", t->user);
    json_key_string(w, "label", t->label);
    json_key_time(w, "created_at", t->created_ms);
    json_key_time(w, "expires_at", t->expires_ms);
    json_end_object(w);
}
