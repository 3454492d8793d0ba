/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interned shapes. Equal shapes have equal canonical JSON; each is kept once, with the form that
 * the scheduler takes beside it. Stored shapes are decoded when a live workload first needs
 * them, so start-up pays for what is alive and not for history.
 */
#include "core/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/convert.h"

static enum sched_class sched_class_of(enum model_class c)
{
    static const enum sched_class classes[MODEL_CLASS_COUNT] = {
        [MODEL_PRODUCTION] = SCHED_CLASS_PRODUCTION,
        [MODEL_TRAINING] = SCHED_CLASS_TRAINING,
        [MODEL_DEVELOPMENT] = SCHED_CLASS_DEVELOPMENT,
        [MODEL_BATCH] = SCHED_CLASS_BATCH,
    };
    return classes[c];
}

static const struct sched_request *convert_request(const struct model_request *r,
                                                   struct arena *arena)
{
    struct sched_request *q = arena_new(arena, struct sched_request);
    struct sched_mig_request *mig =
        arena_new_array(arena, struct sched_mig_request, (size_t)r->mig_count);

    for (int32_t i = 0; i < r->mig_count; i++)
        mig[i] = (struct sched_mig_request){r->mig[i].profile, (uint32_t)r->mig[i].count};
    *q = (struct sched_request){
        .device_count = (uint32_t)r->device_count,
        .device_milli = r->device_milli,
        .device_memory_bytes = r->device_memory_bytes,
        .mig = mig,
        .mig_count = (uint32_t)r->mig_count,
        .cpu_milli = r->cpu_milli,
        .memory_bytes = r->memory_bytes,
        .gpu_types = r->gpu_types,
        .gpu_type_count = (uint32_t)r->gpu_type_count,
        .labels = core_sched_labels(r->labels, r->label_count, arena),
        .label_count = (uint32_t)r->label_count,
    };
    return q;
}

static void convert(struct core_shape *s)
{
    const struct model_shape *m = s->model;
    struct sched_task *tasks = arena_new_array(&s->arena, struct sched_task, (size_t)m->task_count);
    struct sched_group *groups =
        arena_new_array(&s->arena, struct sched_group, (size_t)m->group_count);
    uint32_t n = 0;

    s->gpu_milli = 0;
    for (int32_t g = 0; g < m->group_count; g++) {
        const struct model_group *group = &m->groups[g];
        const struct sched_request *request = convert_request(&group->request, &s->arena);

        groups[g] =
            (struct sched_group){group->name, (uint32_t)group->min_tasks, group->topology_required};
        s->gpu_milli += group->tasks * model_request_gpu_milli(&group->request, 0);
        for (int32_t i = 0; i < group->tasks; i++, n++)
            tasks[n] = (struct sched_task){request, (uint32_t)g, m->task_count - (int32_t)n};
    }
    s->sched = (struct sched_workload){
        .class_ = sched_class_of(m->class_),
        .priority = m->priority,
        .preemptible = m->preemptible,
        /* What is not preemptible stays within the guarantee by a gate of its own, which does not
         * count the preemptible work beside it: with the other one it would evict that in vain. */
        .may_burst = m->burst || !m->preemptible,
        .tasks = tasks,
        .task_count = (uint32_t)m->task_count,
        .min_tasks = (uint32_t)m->min_tasks,
        .groups = groups,
        .group_count = m->group_count > 1 ? (uint32_t)m->group_count : 0,
        .topology_required = m->topology_required,
        .topology_preferred = m->topology_preferred,
        .limit_ms = m->limit_ms,
        .expected_ms = m->expected_ms,
        .min_run_ms = m->min_run_ms,
        .max_unavailable = (uint32_t)m->max_unavailable,
        .spread = m->kind == MODEL_SERVICE,
    };
}

int core_shape_ready(struct core_shape *s, struct err *err)
{
    int r;

    if (s->model)
        return 0;
    r = model_shape_decode(s->json, strlen(s->json), &s->arena, &s->model, err);
    if (r < 0)
        return r;
    convert(s);
    return 0;
}

int core_shape_add_stored(struct core *core, uint64_t id, const char *json)
{
    struct core_shape *s = calloc(1, sizeof(*s));

    if (s == NULL)
        return -ENOMEM;
    s->id = id;
    s->stored = true;
    s->json = arena_strdup(&s->arena, json);
    map_put_str(&core->shapes, s->json, s);
    map_put(&core->shape_ids, id, s);
    if (id > core->last_shape)
        core->last_shape = id;
    return 0;
}

void core_shape_let_go(struct core *core, struct core_shape *shape)
{
    if (shape == NULL || shape->stored || shape->uses > 0)
        return;
    map_del_str(&core->shapes, shape->json);
    map_del(&core->shape_ids, shape->id);
    arena_done(&shape->arena);
    free(shape);
}

struct core_shape *core_shape_intern(struct core *core, const struct model_shape *shape)
{
    struct strbuf text = STRBUF_INIT;
    struct json_writer w;
    struct core_shape *s;

    json_writer_init(&w, &text);
    model_shape_encode(shape, &w);
    s = map_get_str(&core->shapes, strbuf_str(&text));
    if (s == NULL && core_shape_add_stored(core, core->last_shape + 1, strbuf_str(&text)) == 0) {
        s = map_get(&core->shape_ids, core->last_shape);
        s->stored = false;
    }
    strbuf_done(&text);
    if (s && core_shape_ready(s, NULL) < 0) {
        core_shape_let_go(core, s);
        return NULL;
    }
    return s;
}

void core_shape_sched(const struct core_shape *s, uint64_t id, uint64_t team, bool accepted,
                      struct sched_workload *ret)
{
    *ret = s->sched;
    ret->id = id;
    ret->age = id;
    ret->team = team;
    ret->accepted = accepted;
}

const char *core_shape_only_type(const struct core_shape *s)
{
    const char *only = NULL;

    for (int32_t g = 0; g < s->model->group_count; g++) {
        const struct model_request *r = &s->model->groups[g].request;

        if (r->gpu_type_count != 1 || (only && strcmp(only, r->gpu_types[0]) != 0))
            return NULL;
        only = r->gpu_types[0];
    }
    return only;
}
