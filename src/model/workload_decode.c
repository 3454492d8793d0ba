/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From what a person wrote to shape and launch: read every field into a draft, then apply the
 * defaults, then let model_shape_check() judge the whole.
 */
#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/check.h"
#include "model/request_read.h"

#define GRACE_DEFAULT_MS 30000

struct topology {
    const char *required, *preferred;
};

struct preemption {
    int handling; /* enum model_handling; -1 = not given */
    int64_t grace_ms;
};

struct group_draft {
    const char *name;
    int64_t tasks, min_tasks; /* -1 = not given */
    struct request_draft request;
    struct topology topology;
    struct model_strings command;
    struct model_pairs env;
};

#define GROUP_DRAFT_INIT                                            \
    {                                                               \
        .tasks = -1, .min_tasks = -1, .request = REQUEST_DRAFT_INIT \
    }

struct draft {
    struct group_draft main; /* the fields of the single group */
    const char *name, *team;
    int kind, class_;       /* -1 = not given */
    int preemptible, burst; /* likewise */
    int32_t priority;
    int64_t max_retries, limit_ms, expected_ms, min_run_ms;
    struct preemption preemption;
    const char *image, *workdir, *checkpoint_dir;
    struct group_draft *groups;
    int32_t group_count;
};

/* ---- readers ---------------------------------------------------------------------------- */

static int read_tasks(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    return v ? model_json_read_range(v, 1, MODEL_TASKS_MAX, out, err) : 0;
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
        {"required", model_read_label, offsetof(struct topology, required)},
        {"preferred", model_read_label, offsetof(struct topology, preferred)},
    };

    return v ? model_json_read(v, fields, ARRAY_LEN(fields), a, out, err) : 0;
}

static int read_preemption(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    static const struct model_json_field fields[] = {
        {"handling", model_read_handling, offsetof(struct preemption, handling)},
        {"grace", model_json_read_duration, offsetof(struct preemption, grace_ms)},
    };

    return v ? model_json_read(v, fields, ARRAY_LEN(fields), a, out, err) : 0;
}

#define GROUP_FIELDS(base, member)                                       \
    {"tasks", read_tasks, offsetof(base, member tasks)},                 \
        {"min_tasks", read_min_tasks, offsetof(base, member min_tasks)}, \
        REQUEST_FIELDS(base, member request),                            \
        {"topology", read_topology, offsetof(base, member topology)},    \
        {"command", model_read_command, offsetof(base, member command)}, \
    {                                                                    \
        "env", model_read_env, offsetof(base, member env)                \
    }

static int read_group(struct json_object *v, struct arena *a, struct group_draft *g,
                      struct err *err)
{
    static const struct model_json_field fields[] = {
        {"name", model_json_read_name, offsetof(struct group_draft, name), true},
        GROUP_FIELDS(struct group_draft, ),
    };

    *g = (struct group_draft)GROUP_DRAFT_INIT;
    return model_json_read(v, fields, ARRAY_LEN(fields), a, g, err);
}

static int refuse_same_name(const struct group_draft *groups, size_t count, struct err *err)
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
    struct draft *d = out;
    size_t count;

    if (v == NULL)
        return 0;
    count = json_object_is_type(v, json_type_array) ? json_object_array_length(v) : 0;
    if (count < 1 || count > MODEL_GROUPS_MAX)
        return err_set(err, -EINVAL, ERR_INVALID, NULL, NULL, "must be an array of 1 to %d groups",
                       MODEL_GROUPS_MAX);
    d->groups = arena_new_array(a, struct group_draft, count);
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

static const struct model_json_field draft_fields[] = {
    {"name", model_json_read_name, offsetof(struct draft, name)},
    {"team", model_json_read_name, offsetof(struct draft, team)},
    {"kind", model_read_kind, offsetof(struct draft, kind)},
    {"class", model_read_class, offsetof(struct draft, class_)},
    GROUP_FIELDS(struct draft, main.),
    {"image", model_read_image, offsetof(struct draft, image)},
    {"workdir", model_read_path, offsetof(struct draft, workdir)},
    {"checkpoint_dir", model_read_path, offsetof(struct draft, checkpoint_dir)},
    {"priority", read_priority, offsetof(struct draft, priority)},
    {"preemptible", read_choice, offsetof(struct draft, preemptible)},
    {"burst", read_choice, offsetof(struct draft, burst)},
    {"preemption", read_preemption, offsetof(struct draft, preemption)},
    {"max_run_time", model_json_read_duration, offsetof(struct draft, limit_ms)},
    {"expected_run_time", model_json_read_duration, offsetof(struct draft, expected_ms)},
    {"min_run_time", model_json_read_duration, offsetof(struct draft, min_run_ms)},
    {"max_retries", read_retries, offsetof(struct draft, max_retries)},
    {"groups", read_groups, 0},
};

/* ---- groups ----------------------------------------------------------------------------- */

/* Beside "groups", only command, env, topology and min_tasks have a meaning for the whole, and
 * tasks may say the sum. */
static int check_beside_groups(const struct group_draft *g, struct err *err)
{
    const struct {
        const char *name;
        bool given;
    } fields[] = {
        {"gpus", g->request.gpus >= 0},
        {"gpu", g->request.gpu >= 0},
        {"gpu_memory", g->request.gpu_memory >= 0},
        {"mig", g->request.mig.count > 0},
        {"gpu_count", g->request.gpu_count >= 0},
        {"gpu_type", g->request.gpu_types.items != NULL},
        {"cpu", g->request.cpu >= 0},
        {"memory", g->request.memory >= 0},
        {"node_labels", g->request.labels.items != NULL},
    };

    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        if (fields[i].given)
            return err_set(err, -EINVAL, ERR_INVALID, fields[i].name, "move it into each group",
                           "%s cannot stand beside groups", fields[i].name);
    }
    return 0;
}

static int make_group(const struct group_draft *d, struct model_group *ret_group, struct err *err)
{
    struct model_group g = {.name = d->name ? d->name : "main"};
    int r;

    g.tasks = d->tasks >= 0 ? (int32_t)d->tasks : 1;
    g.min_tasks = d->min_tasks >= 0 ? (int32_t)d->min_tasks : g.tasks;
    g.topology_required = d->topology.required;
    r = request_from_draft(&d->request, &g.request, err);
    if (r < 0)
        return r;
    if (d->topology.preferred && d->name)
        return err_set(err, -EINVAL, ERR_INVALID, "topology.preferred",
                       "move it to the top of the workload",
                       "topology.preferred belongs to the whole workload");
    *ret_group = g;
    return 0;
}

static int make_groups(const struct draft *d, struct arena *arena, struct model_shape *shape,
                       struct err *err)
{
    const struct group_draft *from = d->groups ? d->groups : &d->main;
    int32_t count = d->groups ? d->group_count : 1;
    struct model_group *groups = arena_new_array(arena, struct model_group, (size_t)count);
    int64_t tasks = 0, minima = 0;
    int r = 0;

    if (d->groups)
        r = check_beside_groups(&d->main, err);
    for (int32_t i = 0; i < count && r == 0; i++) {
        r = make_group(&from[i], &groups[i], err);
        if (r < 0 && d->groups)
            model_json_in(err, "groups[%d]", i);
        tasks += groups[i].tasks;
        minima += groups[i].min_tasks;
    }
    if (r < 0)
        return r;
    if (d->groups && d->main.tasks >= 0 && d->main.tasks != tasks)
        return err_set(err, -EINVAL, ERR_INVALID, "tasks", "leave it out beside groups",
                       "tasks %" PRId64 " is not the sum of the groups, %" PRId64, d->main.tasks,
                       tasks);
    if (d->groups == NULL)
        groups[0].topology_required = NULL; /* one group: the workload says it */
    shape->groups = groups;
    shape->group_count = count;
    /* At most 64 * 10,000; the check bounds the sum. */
    shape->task_count = (int32_t)tasks;
    shape->min_tasks = (int32_t)(d->groups && d->main.min_tasks >= 0 ? d->main.min_tasks : minima);
    return 0;
}

/* ---- the whole -------------------------------------------------------------------------- */

static enum model_class default_class(enum model_kind kind)
{
    switch (kind) {
    case MODEL_NOTEBOOK:
        return MODEL_DEVELOPMENT;
    case MODEL_SERVICE:
        return MODEL_PRODUCTION;
    default:
        return MODEL_TRAINING;
    }
}

static int make_shape(const struct draft *d, struct arena *arena,
                      const struct model_shape **ret_shape, struct err *err)
{
    struct model_shape *s = arena_new(arena, struct model_shape);
    int r;

    s->kind = d->kind >= 0 ? (enum model_kind)d->kind : MODEL_JOB;
    s->class_ = d->class_ >= 0 ? (enum model_class)d->class_ : default_class(s->kind);
    s->priority = d->priority;
    s->preemptible = d->preemptible >= 0 ? d->preemptible : s->class_ != MODEL_PRODUCTION;
    s->burst = d->burst >= 0 ? d->burst : s->class_ != MODEL_PRODUCTION;
    s->handling = d->preemption.handling >= 0 ? (enum model_handling)d->preemption.handling
                  : s->kind == MODEL_JOB      ? MODEL_CHECKPOINT
                                              : MODEL_RESTART;
    s->max_retries = (int32_t)d->max_retries;
    s->grace_ms = d->preemption.grace_ms;
    s->limit_ms = d->limit_ms;
    s->expected_ms = d->expected_ms;
    s->min_run_ms = d->min_run_ms;
    s->topology_required = d->main.topology.required;
    s->topology_preferred = d->main.topology.preferred;
    r = make_groups(d, arena, s, err);
    if (r == 0)
        r = model_shape_check(s, err);
    if (r < 0)
        return r;
    *ret_shape = s;
    return 0;
}

/* Sets of variables that pass one by one may be too large together. */
static int check_env_size(struct model_pairs env, struct err *err)
{
    size_t bytes = 0;

    for (int32_t i = 0; i < env.count; i++)
        bytes += strlen(env.items[i].key) + strlen(env.items[i].value) + 2;
    if (env.count <= MODEL_ENV_MAX && bytes <= MODEL_COMMAND_BYTES_MAX)
        return 0;
    return err_set(err, -E2BIG, ERR_TOO_LARGE, "env", "put long values into a file",
                   "env of a group is too large together with env beside groups");
}

/* TOP's variables, with those of the group over them; both are sorted. */
static int merge_env(struct model_pairs top, struct model_pairs own, struct arena *arena,
                     struct model_pairs *ret_env, struct err *err)
{
    struct model_pair *items;
    int32_t n = 0, i = 0, j = 0;

    items = arena_new_array(arena, struct model_pair, (size_t)top.count + (size_t)own.count + 1);
    while (i < top.count || j < own.count) {
        int order = i == top.count   ? 1
                    : j == own.count ? -1
                                     : strcmp(top.items[i].key, own.items[j].key);

        items[n++] = order < 0 ? top.items[i] : own.items[j];
        i += order <= 0;
        j += order >= 0;
    }
    *ret_env = (struct model_pairs){items, n};
    return check_env_size(*ret_env, err);
}

static int make_launch(const struct draft *d, struct arena *arena,
                       const struct model_launch **ret_launch, struct err *err)
{
    const struct group_draft *from = d->groups ? d->groups : &d->main;
    int32_t count = d->groups ? d->group_count : 1;
    struct model_launch *l = arena_new(arena, struct model_launch);
    struct model_launch_group *groups =
        arena_new_array(arena, struct model_launch_group, (size_t)count);

    for (int32_t i = 0; i < count; i++) {
        const char *const *command =
            from[i].command.items ? from[i].command.items : d->main.command.items;
        struct model_pairs env = from[i].env;
        int r;

        if (command == NULL)
            return err_set(err, -EINVAL, ERR_MISSING, "command",
                           "give the program and its arguments: [\"python3\", \"train.py\"]",
                           "command is missing%s%s", from[i].name ? " in group " : "",
                           from[i].name ? from[i].name : "");
        r = d->groups ? merge_env(d->main.env, from[i].env, arena, &env, err) : 0;
        if (r < 0)
            return r;
        groups[i] = (struct model_launch_group){command, env.items, env.count};
    }
    *l = (struct model_launch){d->image, d->workdir, d->checkpoint_dir, groups, count};
    *ret_launch = l;
    return 0;
}

int model_workload_decode(struct json_object *json, struct arena *arena, struct model_workload *w,
                          struct err *err)
{
    const struct model_launch *launch = NULL;
    const struct model_shape *shape = NULL;
    struct draft d = {
        .main = GROUP_DRAFT_INIT,
        .team = w->team,
        .kind = -1,
        .class_ = -1,
        .preemptible = -1,
        .burst = -1,
        .preemption = {.handling = -1, .grace_ms = GRACE_DEFAULT_MS},
    };
    int r;

    r = model_json_read(json, draft_fields, ARRAY_LEN(draft_fields), arena, &d, err);
    if (r == 0 && d.team == NULL)
        r = err_set(err, -EINVAL, ERR_MISSING, "team", "name the team that it runs for",
                    "team is missing");
    if (r == 0)
        r = make_shape(&d, arena, &shape, err);
    if (r == 0)
        r = make_launch(&d, arena, &launch, err);
    if (r < 0)
        return r;
    w->name = d.name;
    w->team = d.team;
    w->shape = shape;
    w->launch = launch;
    return 0;
}
