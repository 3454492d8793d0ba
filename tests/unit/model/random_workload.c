/* SPDX-License-Identifier: Apache-2.0 */
#include "random_workload.h"

#include "base/cleanup.h"

#include "model/check.h"

static bool chance(struct rng *r)
{
    return rng_below(r, 2);
}

/* 0..MAX, small values and the bounds as likely as the rest. */
static int64_t number(struct rng *r, int64_t max)
{
    switch (rng_below(r, 4)) {
    case 0:
        return max;
    case 1:
        return (int64_t)rng_below(r, (uint64_t)(max < 10 ? max : 10) + 1);
    default:
        return (int64_t)rng_below(r, (uint64_t)max + 1);
    }
}

static const char *word(struct rng *r, struct arena *a, const char *prefix, int i)
{
    static const char *const odd[] = {"", "é", "\"", "\\", "日本", "a b", "{}", "😀", "/x"};

    return arena_printf(a, "%s%d%s", prefix, i, odd[rng_below(r, ARRAY_LEN(odd))]);
}

static const struct model_pair *random_pairs(struct rng *r, struct arena *a, int32_t count,
                                             bool env)
{
    struct model_pair *pairs = arena_new_array(a, struct model_pair, (size_t)count + 1);

    for (int32_t i = 0; i < count; i++) {
        pairs[i].key = env ? arena_printf(a, "V_%02d", i) : arena_printf(a, "zone/%02d", i);
        pairs[i].value = chance(r) ? "" : word(r, a, env ? "x\n\t\x01" : "x", i);
    }
    return pairs;
}

static void random_mig(struct rng *r, struct arena *a, struct model_request *q)
{
    static const char *const profiles[] = {"1g.10gb", "1g.10gb+me", "2g.20gb", "7g.80gb"};
    struct model_mig *mig;

    q->mig_count = 1 + (int32_t)rng_below(r, ARRAY_LEN(profiles));
    mig = arena_new_array(a, struct model_mig, (size_t)q->mig_count);
    for (int32_t i = 0; i < q->mig_count; i++)
        mig[i] = (struct model_mig){profiles[i], 1 + (int32_t)rng_below(r, 256)};
    q->mig = mig;
}

static void random_types(struct rng *r, struct arena *a, struct model_request *q)
{
    const char **types;

    q->gpu_type_count = (int32_t)rng_below(r, MODEL_GPU_TYPES_MAX + 1);
    types = arena_new_array(a, const char *, (size_t)q->gpu_type_count + 1);
    /* Falling numbers: the order is the person's, not the alphabet's. */
    for (int32_t i = 0; i < q->gpu_type_count; i++)
        types[i] = arena_printf(a, "H%d", 900 - i);
    q->gpu_types = types;
}

static void random_request(struct rng *r, struct arena *a, struct model_request *q)
{
    switch (rng_below(r, 5)) {
    case 0:
        q->device_count = 1 + (int32_t)number(r, MODEL_GPUS_MAX - 1);
        q->device_milli = 1000;
        break;
    case 1:
        q->device_count = 1 + (int32_t)number(r, MODEL_GPUS_MAX - 1);
        q->device_milli = 1 + (int32_t)number(r, 998);
        break;
    case 2:
        q->device_count = 1 + (int32_t)number(r, MODEL_GPUS_MAX - 1);
        q->device_memory_bytes = 1 + number(r, MODEL_TASK_BYTES_MAX - 1);
        break;
    case 3:
        random_mig(r, a, q);
        break;
    default:
        break;
    }
    if (q->device_count > 0 || q->mig_count > 0)
        random_types(r, a, q);
    q->cpu_milli = 1 + number(r, MODEL_CPU_MILLI_MAX - 1);
    q->memory_bytes = number(r, MODEL_TASK_BYTES_MAX);
    q->label_count = (int32_t)number(r, MODEL_LABELS_MAX);
    q->labels = random_pairs(r, a, q->label_count, false);
}

static const struct model_group *random_groups(struct rng *r, struct arena *a,
                                               struct model_shape *s)
{
    struct model_group *groups;
    int32_t minima = 0;

    s->group_count = chance(r) ? 1 : 1 + (int32_t)number(r, MODEL_GROUPS_MAX - 1);
    groups = arena_new_array(a, struct model_group, (size_t)s->group_count);
    for (int32_t i = 0; i < s->group_count; i++) {
        struct model_group *g = &groups[i];

        g->name = s->group_count == 1 && chance(r) ? "main" : arena_printf(a, "g%d-é", i);
        g->tasks = 1 + (int32_t)number(r, MODEL_TASKS_MAX / s->group_count - 1);
        g->min_tasks = (int32_t)number(r, g->tasks);
        g->topology_required = chance(r) ? "rack" : NULL;
        random_request(r, a, &g->request);
        s->task_count += g->tasks;
        minima += g->min_tasks;
    }
    s->min_tasks = minima > 0 ? minima : 1;
    if (chance(r))
        s->min_tasks += (int32_t)number(r, s->task_count - s->min_tasks);
    return groups;
}

static const struct model_shape *random_shape(struct rng *r, struct arena *a)
{
    struct model_shape *s = arena_new(a, struct model_shape);

    s->kind = (enum model_kind)rng_below(r, MODEL_KIND_COUNT);
    s->class_ = (enum model_class)rng_below(r, MODEL_CLASS_COUNT);
    if (s->class_ == MODEL_BATCH && s->kind == MODEL_SERVICE)
        s->class_ = MODEL_DEVELOPMENT;
    s->priority = (int32_t)number(r, 2 * MODEL_PRIORITY_MAX) - MODEL_PRIORITY_MAX;
    s->preemptible = s->class_ == MODEL_BATCH || chance(r);
    s->burst = s->class_ != MODEL_PRODUCTION && chance(r);
    s->handling = (enum model_handling)rng_below(r, MODEL_HANDLING_COUNT);
    s->max_retries = (int32_t)number(r, MODEL_RETRIES_MAX);
    s->grace_ms = number(r, MODEL_GRACE_MS_MAX);
    s->limit_ms = number(r, MODEL_RUN_MS_MAX);
    s->expected_ms = number(r, s->limit_ms ? s->limit_ms : MODEL_RUN_MS_MAX);
    s->min_run_ms = number(r, MODEL_RUN_MS_MAX);
    if (s->kind == MODEL_SERVICE && !s->burst)
        s->max_unavailable = (int32_t)number(r, s->task_count);
    s->topology_required = chance(r) ? "zone" : NULL;
    s->topology_preferred = chance(r) ? "nvlink" : NULL;
    s->groups = random_groups(r, a, s);
    return s;
}

static const struct model_launch *random_launch(struct rng *r, struct arena *a, int32_t count)
{
    struct model_launch *l = arena_new(a, struct model_launch);
    struct model_launch_group *groups =
        arena_new_array(a, struct model_launch_group, (size_t)count);

    for (int32_t i = 0; i < count; i++) {
        size_t arguments = 1 + rng_below(r, 8);
        const char **command = arena_new_array(a, const char *, arguments + 1);

        for (size_t j = 0; j < arguments; j++)
            command[j] = j > 0 && chance(r) ? "" : word(r, a, "a\n\x1b", (int)j);
        groups[i].command = command;
        groups[i].env_count = (int32_t)rng_below(r, 20);
        groups[i].env = random_pairs(r, a, groups[i].env_count, true);
    }
    l->image = chance(r) ? "docker://python:3.12" : NULL;
    l->workdir = chance(r) ? "/srv/é/..x" : NULL;
    l->checkpoint_dir = chance(r) ? "/" : NULL;
    l->groups = groups;
    l->group_count = count;
    return l;
}

void random_workload(struct rng *r, struct arena *arena, struct model_workload *ret_workload)
{
    const struct model_shape *shape = random_shape(r, arena);

    *ret_workload = (struct model_workload){
        .id = 1 + rng_below(r, 1000000),
        .name = "dig\"its",
        .team = "nlp",
        .owner = "ada",
        .state = (enum model_workload_state)rng_below(r, MODEL_WORKLOAD_STATE_COUNT),
        .submitted_ms = 1796074199123,
        .started_ms = chance(r) ? 1796074199124 : 0,
        .shape = shape,
        .launch = random_launch(r, arena, shape->group_count),
    };
}
