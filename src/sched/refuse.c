/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/refuse.h"

#include <errno.h>

#include "base/qty.h"
#include "sched/fit.h"
#include "sched/gang.h"
#include "sched/place.h"
#include "sched/shape.h"
#include "sched/types.h"

/* The most that one node of the right kind has. */
struct most {
    bool accepts;    /* some node carries the labels and the type */
    bool fits;       /* some node holds it alone */
    int64_t devices; /* whole devices, or those large enough for a memory request */
    int64_t device_memory;
    int64_t slices; /* of the first profile that is short everywhere */
    int64_t cpu, memory;
};

static int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t slices_of(const struct node *n, const char *profile)
{
    int64_t count = 0;
    for (uint32_t d = 0; d < n->device_count; d++)
        count += n->devices[d].mig == profile;
    return count;
}

static void most_add(struct sched *s, const struct node *n, const struct shape *shape,
                     struct most *m)
{
    struct fit f;
    if (!fit_accepts(n, shape))
        return;
    m->accepts = true;
    m->fits = m->fits || fit_node(n, shape, MASK(VIEW_EMPTY), s->placing->trial, &f);
    m->cpu = max64(m->cpu, n->cpu);
    m->memory = max64(m->memory, n->memory);
    m->devices = max64(m->devices, n->whole_count);
    for (uint32_t d = 0; d < n->device_count; d++)
        if (n->devices[d].mig == NULL)
            m->device_memory = max64(m->device_memory, n->devices[d].memory);
    if (shape->mig_count > 0)
        m->slices = max64(m->slices, slices_of(n, shape->mig[0].profile));
}

static void refuse(struct sched_refusal *ret, enum sched_reason reason, enum sched_resource r,
                   int64_t asked, int64_t available)
{
    ret->reason = reason;
    ret->resource = r;
    ret->asked = (uint64_t)asked;
    ret->available = (uint64_t)available;
}

/* Why no single node can hold the shape. */
static void refuse_shape(const struct shape *shape, const struct most *m, struct sched_refusal *ret)
{
    int64_t gpu = shape->charge.v[SCHED_GPU_MILLI];
    if (!m->accepts || (shape->device_count > 0 && m->devices == 0) ||
        (shape->mig_count > 0 && m->slices == 0))
        refuse(ret, SCHED_REASON_NO_SUCH_DEVICE, SCHED_GPU_MILLI, gpu, 0);
    else if (shape->cpu > m->cpu)
        refuse(ret, SCHED_REASON_TOO_LARGE, SCHED_CPU_MILLI, shape->cpu, m->cpu);
    else if (shape->memory > m->memory)
        refuse(ret, SCHED_REASON_TOO_LARGE, SCHED_MEMORY_BYTES, shape->memory, m->memory);
    else if (shape->device_memory > m->device_memory)
        refuse(ret, SCHED_REASON_TOO_LARGE, SCHED_MEMORY_BYTES, shape->device_memory,
               m->device_memory);
    else
        refuse(ret, SCHED_REASON_TOO_LARGE, SCHED_GPU_MILLI, gpu,
               shape->mig_count > 0 ? m->slices * mig_profile_milli(shape->mig[0].profile)
                                    : m->devices * WHOLE_MILLI);
}

static int refuse_inventory(struct sched *s, const struct job_shape *job, struct sched_refusal *ret)
{
    const struct shape *last = NULL;
    for (uint32_t t = 0; t < (job->uniform ? 1 : job->task_count); t++) {
        const struct shape *shape = job_task(job, t)->shape;
        struct most m = {0};
        if (shape == last)
            continue;
        last = shape;
        for (size_t i = 0; i < s->node_list.len && !m.fits; i++)
            most_add(s, s->node_list.items[i], shape, &m);
        if (m.fits)
            continue;
        refuse_shape(shape, &m, ret);
        ret->task = t;
        return -E2BIG;
    }
    int64_t have = 0;
    for (size_t i = 0; i < s->node_list.len; i++) {
        const struct node *n = s->node_list.items[i];
        for (uint32_t d = 0; d < n->device_count; d++)
            have += n->devices[d].mig != NULL ? n->devices[d].mig_milli : WHOLE_MILLI;
    }
    refuse(ret, SCHED_REASON_TOO_LARGE, SCHED_GPU_MILLI, job->least.v[SCHED_GPU_MILLI], have);
    return -E2BIG;
}

static int refuse_team(const struct group *g, const struct team *t, struct sched_refusal *ret)
{
    for (int r = 0; r < SCHED_RESOURCES; r++) {
        int64_t need = g->job->least.v[r];
        ret->team = t->id;
        if (need > t->limit[r]) {
            refuse(ret, SCHED_REASON_ABOVE_LIMIT, (enum sched_resource)r, need, t->limit[r]);
            return -E2BIG;
        }
        bool within = !g->preemptible || (!g->may_burst && t == g->team);
        if (within && need > t->guarantee[r]) {
            refuse(ret, SCHED_REASON_ABOVE_GUARANTEE, (enum sched_resource)r, need,
                   t->guarantee[r]);
            return -E2BIG;
        }
    }
    return 0;
}

/* What the team can ever have of the types that SHAPE accepts, in sum; RET says of the first. */
static int64_t types_sum(const struct sched *s, const struct group *g, const struct shape *shape,
                         struct sched_refusal *ret, bool *ret_guarantee)
{
    int64_t sum = 0;
    VEC(const char *) seen = {0};
    for (size_t i = 0; i < s->node_list.len && sum != SCHED_UNLIMITED; i++) {
        const struct node *n = s->node_list.items[i];
        const struct team *team;
        bool guarantee = false, known = false;
        for (size_t k = 0; k < seen.len && !known; k++)
            known = seen.items[k] == n->gpu_type;
        if (known || n->device_count == 0 || !fit_accepts(n, shape))
            continue;
        vec_push(&seen, n->gpu_type);
        int64_t most = types_most(g, n->gpu_type, &team, &guarantee);
        sum = most == SCHED_UNLIMITED ? SCHED_UNLIMITED : qty_add_sat(sum, most);
        if (ret->team != 0 || most == SCHED_UNLIMITED)
            continue;
        ret->team = team->id;
        ret->gpu_type = n->gpu_type;
        *ret_guarantee = guarantee;
    }
    vec_done(&seen);
    return sum;
}

/* More than the limits of all acceptable GPU types together? A gang whose tasks accept different
 * types is judged task by task. */
static int refuse_types(const struct sched *s, const struct group *g, struct sched_refusal *ret)
{
    const struct job_shape *job = g->job;
    for (uint32_t t = 0; t < (job->uniform ? 1 : job->task_count); t++) {
        struct sched_refusal refusal = {.task = t};
        bool guarantee = false;
        int64_t need = job->uniform ? job->least.v[SCHED_GPU_MILLI]
                                    : job_task(job, t)->shape->charge.v[SCHED_GPU_MILLI];
        int64_t most = types_sum(s, g, job_task(job, t)->shape, &refusal, &guarantee);
        if (need == 0 || need <= most)
            continue;
        refuse(&refusal, guarantee ? SCHED_REASON_ABOVE_GUARANTEE : SCHED_REASON_ABOVE_LIMIT,
               SCHED_GPU_MILLI, need, most);
        *ret = refusal;
        return -E2BIG;
    }
    return 0;
}

/* Would its minimum have room if nothing else were there? */
static bool possible(struct sched *s, struct job_shape *job, uint32_t more)
{
    struct gang gang;
    bool fits =
        gang_next(job, NULL, &gang) && place_gang(s, job, NULL, &gang, MASK(VIEW_EMPTY) | more);
    gang_done(&gang);
    return fits;
}

/* The level that the job insists on, or else the first of its groups that insists on one. */
static const char *required_level(const struct job_shape *job)
{
    const char *level = job->required;
    for (uint32_t i = 0; i < job->group_count && level == NULL; i++)
        level = job->groups[i].required;
    return level;
}

static int refuse_place(struct sched *s, struct job_shape *job, struct sched_refusal *ret)
{
    const char *level = required_level(job);
    if (level == NULL || !possible(s, job, MASK_NO_TOPOLOGY))
        return refuse_inventory(s, job, ret);
    refuse(ret, SCHED_REASON_TOPOLOGY, SCHED_GPU_MILLI, job->least.v[SCHED_GPU_MILLI], 0);
    ret->level = level;
    return -E2BIG;
}

int refuse_check(struct sched *s, const struct group *g, struct sched_refusal *ret_refusal)
{
    struct job_shape *job = g->job;
    *ret_refusal = (struct sched_refusal){0};
    if (job->possible_epoch != s->inventory_epoch + 1) {
        if (!possible(s, job, 0))
            return refuse_place(s, job, ret_refusal);
        job->possible_epoch = s->inventory_epoch + 1;
    }
    for (const struct team *t = g->team; t->parent != NULL; t = t->parent)
        if (refuse_team(g, t, ret_refusal) < 0)
            return -E2BIG;
    if (!g->team->typed_path)
        return 0;
    ret_refusal->team = 0;
    return refuse_types(s, g, ret_refusal);
}
