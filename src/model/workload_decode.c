/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From what a person wrote to shape and launch: read every field into a draft, then apply the
 * defaults, then let model_shape_check() judge the whole.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/check.h"
#include "model/workload_draft.h"

#define GRACE_DEFAULT_MS 30000

/* ---- groups ----------------------------------------------------------------------------- */

/* Beside "groups", only command, env, topology and min_tasks have a meaning for the whole, and
 * tasks may say the sum. */
static int check_beside_groups(const struct model_group_draft *g, struct err *err)
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

static int make_group(const struct model_group_draft *d, struct model_group *ret_group,
                      struct err *err)
{
    struct model_group g = {.name = d->name ? d->name : "main"};
    int r;

    g.tasks = d->tasks >= 0 ? (int32_t)d->tasks : 1;
    g.min_tasks = d->min_tasks >= 0 ? (int32_t)d->min_tasks : g.tasks;
    g.topology_required = d->topology.required;
    r = model_request_from_draft(&d->request, &g.request, err);
    if (r < 0)
        return r;
    if (d->topology.preferred && d->name)
        return err_set(err, -EINVAL, ERR_INVALID, "topology.preferred",
                       "move it to the top of the workload",
                       "topology.preferred belongs to the whole workload");
    *ret_group = g;
    return 0;
}

static int make_groups(const struct model_draft *d, struct arena *arena, struct model_shape *shape,
                       struct err *err)
{
    const struct model_group_draft *from = d->groups ? d->groups : &d->main;
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
    if (d->groups == NULL && d->main.min_tasks < 0 && shape->max_unavailable < shape->task_count)
        shape->min_tasks = groups[0].min_tasks -= shape->max_unavailable;
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

static int make_shape(const struct model_draft *d, struct arena *arena,
                      const struct model_shape **ret_shape, struct err *err)
{
    struct model_shape *s = arena_new(arena, struct model_shape);
    int r;

    s->kind = d->kind >= 0 ? (enum model_kind)d->kind : MODEL_JOB;
    s->class_ = d->class_ >= 0 ? (enum model_class)d->class_ : default_class(s->kind);
    s->priority = d->priority;
    s->preemptible = d->preemptible >= 0 ? d->preemptible : s->class_ != MODEL_PRODUCTION;
    s->max_unavailable = (int32_t)d->max_unavailable;
    s->burst = d->burst >= 0 ? d->burst : s->class_ != MODEL_PRODUCTION && s->max_unavailable == 0;
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

static int make_launch(const struct model_draft *d, struct arena *arena,
                       const struct model_launch **ret_launch, struct err *err)
{
    const struct model_group_draft *from = d->groups ? d->groups : &d->main;
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
    struct model_draft d = {
        .main = MODEL_GROUP_DRAFT_INIT,
        .team = w->team,
        .kind = -1,
        .class_ = -1,
        .preemptible = -1,
        .burst = -1,
        .preemption = {.handling = -1, .grace_ms = GRACE_DEFAULT_MS},
    };
    int r;

    r = model_draft_read(json, arena, &d, err);
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
