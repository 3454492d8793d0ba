/* SPDX-License-Identifier: Apache-2.0 */
#include "model/workload_draft.h"

#include <errno.h>
#include <json-c/json.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/check.h"

static int read_tasks(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    return v ? model_json_read_range(v, 1, MODEL_TASKS_MAX, out, err) : 0;
}

static int read_unavailable(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    int64_t value;
    int r = v ? model_json_read_range(v, 1, MODEL_TASKS_MAX, &value, err) : 0;

    if (r == -ERANGE)
        return err_set(err, r, ERR_OUT_OF_RANGE, NULL, MODEL_UNAVAILABLE_BOUNDS,
                       "'%.40s' is out of range", json_object_get_string(v));
    if (r == 0 && v)
        *(int64_t *)out = value;
    return r;
}

static int read_min_tasks(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    return v ? model_json_read_range(v, 0, MODEL_TASKS_MAX, out, err) : 0;
}

static int read_retries(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    return v ? model_json_read_range(v, 0, MODEL_RETRIES_MAX, out, err) : 0;
}

static int read_priority(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    int64_t value = 0;
    int r;

    r = v ? model_json_read_range(v, -MODEL_PRIORITY_MAX, MODEL_PRIORITY_MAX, &value, err) : 0;
    if (r == 0)
        *(int32_t *)out = (int32_t)value;
    return r;
}

/* int: 0, 1, or what it was where null. */
static int read_choice(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    bool value = false;
    int r;

    r = model_json_read_bool(v, a, &value, err);
    if (r == 0 && v)
        *(int *)out = value;
    return r;
}

static int read_topology(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    static const struct model_json_field fields[] = {
        {"required", model_read_label, offsetof(struct model_topology_draft, required)},
        {"preferred", model_read_label, offsetof(struct model_topology_draft, preferred)},
    };

    return v ? model_json_read(v, fields, ARRAY_LEN(fields), a, out, err) : 0;
}

static int read_preemption(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    static const struct model_json_field fields[] = {
        {"handling", model_read_handling, offsetof(struct model_preemption_draft, handling)},
        {"grace", model_json_read_duration, offsetof(struct model_preemption_draft, grace_ms)},
    };

    return v ? model_json_read(v, fields, ARRAY_LEN(fields), a, out, err) : 0;
}

#define GROUP_FIELDS(base, member)                                       \
    {"tasks", read_tasks, offsetof(base, member tasks)},                 \
        {"min_tasks", read_min_tasks, offsetof(base, member min_tasks)}, \
        MODEL_REQUEST_FIELDS(base, member request),                      \
        {"topology", read_topology, offsetof(base, member topology)},    \
        {"command", model_read_command, offsetof(base, member command)}, \
    {                                                                    \
        "env", model_read_env, offsetof(base, member env)                \
    }

static int read_group(struct json_object *v, struct arena *a, struct model_group_draft *g,
                      struct err *err)
{
    static const struct model_json_field fields[] = {
        {"name", model_json_read_name, offsetof(struct model_group_draft, name), true},
        GROUP_FIELDS(struct model_group_draft, ),
    };

    *g = (struct model_group_draft)MODEL_GROUP_DRAFT_INIT;
    return model_json_read(v, fields, ARRAY_LEN(fields), a, g, err);
}

static int refuse_same_name(const struct model_group_draft *groups, size_t count, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(groups[i].name, groups[count].name) == 0)
            return err_set(err, -EINVAL, ERR_INVALID, "name", "give each group its own name",
                           "name '%.60s' is taken by groups[%zu]", groups[i].name, i);
    }
    return 0;
}

/* OUT is the whole draft. */
static int read_groups(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    struct model_draft *d = out;
    size_t count;

    if (v == NULL)
        return 0;
    count = json_object_is_type(v, json_type_array) ? json_object_array_length(v) : 0;
    if (count < 1 || count > MODEL_GROUPS_MAX)
        return err_set(err, -EINVAL, ERR_INVALID, NULL, NULL, "must be an array of 1 to %d groups",
                       MODEL_GROUPS_MAX);
    d->groups = arena_new_array(a, struct model_group_draft, count);
    for (size_t i = 0; i < count; i++) {
        int r;

        r = read_group(json_object_array_get_idx(v, i), a, &d->groups[i], err);
        if (r == 0)
            r = refuse_same_name(d->groups, i, err);
        if (r < 0) {
            model_json_in(err, "[%zu]", i);
            return r;
        }
    }
    d->group_count = (int32_t)count;
    return 0;
}

/* Commands take an id or a name: a name of digits alone would be taken for an id. */
static int read_workload_name(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    const char *name = NULL;
    int r = model_json_read_name(v, a, &name, err);

    if (r == 0 && name && name[strspn(name, "0123456789")] == '\0')
        r = err_set(err, -EINVAL, ERR_INVALID, NULL, "add a letter",
                    "'%s' would be taken for an id", name);
    if (r == 0)
        *(const char **)out = name;
    return r;
}

static const struct model_json_field draft_fields[] = {
    {"name", read_workload_name, offsetof(struct model_draft, name)},
    {"team", model_json_read_name, offsetof(struct model_draft, team)},
    {"kind", model_read_kind, offsetof(struct model_draft, kind)},
    {"class", model_read_class, offsetof(struct model_draft, class_)},
    GROUP_FIELDS(struct model_draft, main.),
    {"image", model_read_image, offsetof(struct model_draft, image)},
    {"workdir", model_read_path, offsetof(struct model_draft, workdir)},
    {"checkpoint_dir", model_read_path, offsetof(struct model_draft, checkpoint_dir)},
    {"priority", read_priority, offsetof(struct model_draft, priority)},
    {"preemptible", read_choice, offsetof(struct model_draft, preemptible)},
    {"burst", read_choice, offsetof(struct model_draft, burst)},
    {"preemption", read_preemption, offsetof(struct model_draft, preemption)},
    {"max_run_time", model_json_read_duration, offsetof(struct model_draft, limit_ms)},
    {"expected_run_time", model_json_read_duration, offsetof(struct model_draft, expected_ms)},
    {"min_run_time", model_json_read_duration, offsetof(struct model_draft, min_run_ms)},
    {"max_unavailable", read_unavailable, offsetof(struct model_draft, max_unavailable)},
    {"max_retries", read_retries, offsetof(struct model_draft, max_retries)},
    {"groups", read_groups, 0},
};

int model_draft_read(struct json_object *json, struct arena *arena, struct model_draft *d,
                     struct err *err)
{
    return model_json_read(json, draft_fields, ARRAY_LEN(draft_fields), arena, d, err);
}
