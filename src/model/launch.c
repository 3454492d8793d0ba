/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The canonical text of a launch. Unlike a shape it is stored once a workload, so what is not
 * given is left out.
 */
#include <errno.h>
#include <json-c/json.h>

#include "base/cleanup.h"
#include "model/launch.h"
#include "model/request_read.h"

DEFINE_CLEANUP(struct json_object *, json_object_put, json_object_putp)

void model_launch_encode_group(const struct model_launch_group *g, struct json_writer *w)
{
    json_key(w, "command");
    json_begin_array(w);
    for (const char *const *p = g->command; *p; p++)
        json_string(w, *p);
    json_end_array(w);
    if (g->env_count == 0)
        return;
    json_key(w, "env");
    json_begin_object(w);
    for (int32_t i = 0; i < g->env_count; i++)
        json_key_string(w, g->env[i].key, g->env[i].value);
    json_end_object(w);
}

void model_launch_encode_paths(const struct model_launch *l, struct json_writer *w)
{
    if (l->image)
        json_key_string(w, "image", l->image);
    if (l->workdir)
        json_key_string(w, "workdir", l->workdir);
    if (l->checkpoint_dir)
        json_key_string(w, "checkpoint_dir", l->checkpoint_dir);
}

void model_launch_encode(const struct model_launch *l, struct json_writer *w)
{
    json_begin_object(w);
    model_launch_encode_paths(l, w);
    json_key(w, "groups");
    json_begin_array(w);
    for (int32_t i = 0; i < l->group_count; i++) {
        json_begin_object(w);
        model_launch_encode_group(&l->groups[i], w);
        json_end_object(w);
    }
    json_end_array(w);
    json_end_object(w);
}

struct group_row {
    struct model_strings command;
    struct model_pairs env;
};

/* OUT is the whole launch. */
static int read_groups(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    static const struct model_json_field fields[] = {
        {"command", model_read_command, offsetof(struct group_row, command), true},
        {"env", model_read_env, offsetof(struct group_row, env)},
    };
    struct model_launch *l = out;
    struct model_launch_group *groups;
    size_t count;

    count = json_object_is_type(v, json_type_array) ? json_object_array_length(v) : 0;
    if (count < 1 || count > MODEL_GROUPS_MAX)
        return err_set(err, -EINVAL, ERR_INVALID, NULL, NULL, "must be an array of 1 to %d groups",
                       MODEL_GROUPS_MAX);
    groups = arena_new_array(a, struct model_launch_group, count);
    for (size_t i = 0; i < count; i++) {
        struct group_row row = {0};
        int r;

        r = model_json_read(json_object_array_get_idx(v, i), fields, ARRAY_LEN(fields), a, &row,
                            err);
        if (r < 0) {
            model_json_in(err, "[%zu]", i);
            return r;
        }
        groups[i] = (struct model_launch_group){row.command.items, row.env.items, row.env.count};
    }
    l->groups = groups;
    l->group_count = (int32_t)count;
    return 0;
}

int model_launch_decode(const char *text, size_t len, struct arena *arena,
                        const struct model_launch **ret_launch, struct err *err)
{
    static const struct model_json_field fields[] = {
        {"image", model_read_image, offsetof(struct model_launch, image)},
        {"workdir", model_read_path, offsetof(struct model_launch, workdir)},
        {"checkpoint_dir", model_read_path, offsetof(struct model_launch, checkpoint_dir)},
        {"groups", read_groups, 0, true},
    };
    _cleanup_(json_object_putp) struct json_object *json = NULL;
    struct model_launch *l = arena_new(arena, struct model_launch);
    int r;

    r = model_json_parse(text, len, &json, err);
    if (r == 0)
        r = model_json_read(json, fields, ARRAY_LEN(fields), arena, l, err);
    if (r < 0)
        return r;
    *ret_launch = l;
    return 0;
}
