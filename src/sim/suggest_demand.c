/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/suggest_demand.h"

#include <stdlib.h>
#include <string.h>

#include "core/shape.h"

/* A change of demand at an instant. */
struct step {
    int64_t at_ms, milli;
};

static int compare_steps(const void *a, const void *b)
{
    const struct step *x = a, *y = b;
    return x->at_ms < y->at_ms ? -1 : x->at_ms > y->at_ms;
}

static int compare_levels(const void *a, const void *b)
{
    const struct demand_level *x = a, *y = b;
    return x->milli < y->milli ? -1 : x->milli > y->milli;
}

static const char *type_of_node(const struct past *p, uint64_t id)
{
    size_t low = 0, high = p->nodes.len; /* by id */

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (p->nodes.items[mid].row.id < id)
            low = mid + 1;
        else
            high = mid;
    }
    return low < p->nodes.len && p->nodes.items[low].row.id == id ? p->nodes.items[low].row.gpu_type
                                                                  : NULL;
}

/* What it ran on, or prefers; NULL = any. */
static const char *type_of_job(const struct past *p, const struct past_job *job)
{
    const struct model_request *r = &job->shape->model->groups[0].request;

    if (job->run_count > 0)
        return type_of_node(p, job->runs[0].node);
    return r->gpu_type_count > 0 ? r->gpu_types[0] : NULL;
}

static bool takes(const struct past *p, const struct past_job *job,
                  const struct demand_filter *filter)
{
    const char *type;

    if (job->left_out || job->gpu_milli == 0 || (filter->firm && job->shape->model->preemptible))
        return false;
    if (filter->type == NULL)
        return true;
    type = type_of_job(p, job);
    return type && strcmp(type, filter->type) == 0;
}

static size_t looked_at(const struct past *p, const struct demand_filter *filter)
{
    return filter->jobs ? filter->count : p->jobs.len;
}

static const struct past_job *job_at(const struct past *p, const struct demand_filter *filter,
                                     size_t i)
{
    return &p->jobs.items[filter->jobs ? filter->jobs[i] : i];
}

size_t demand_jobs(const struct past *p, const struct demand_filter *filter)
{
    size_t n = 0;

    for (size_t i = 0; i < looked_at(p, filter); i++)
        n += takes(p, job_at(p, filter, i), filter);
    return n;
}

void demand_collect(const struct past *p, const struct demand_filter *filter, struct demand *ret)
{
    VEC(struct step) steps = {0};
    int64_t at = p->from_ms, milli = 0;

    ret->window_ms = p->until_ms - p->from_ms;
    for (size_t i = 0; i < looked_at(p, filter); i++) {
        const struct past_job *job = job_at(p, filter, i);
        int64_t end = job->submitted_ms + job->work_ms;
        if (!takes(p, job, filter))
            continue;
        vec_push(&steps, ((struct step){job->submitted_ms, job->gpu_milli}));
        vec_push(&steps, ((struct step){end < p->until_ms ? end : p->until_ms, -job->gpu_milli}));
    }
    if (steps.len > 0)
        qsort(steps.items, steps.len, sizeof(*steps.items), compare_steps);
    for (size_t i = 0; i < steps.len; i++) {
        if (steps.items[i].at_ms > at)
            vec_push(&ret->levels, ((struct demand_level){milli, steps.items[i].at_ms - at}));
        at = steps.items[i].at_ms > at ? steps.items[i].at_ms : at;
        milli += steps.items[i].milli;
    }
    if (p->until_ms > at)
        vec_push(&ret->levels, ((struct demand_level){milli, p->until_ms - at}));
    if (ret->levels.len > 0)
        qsort(ret->levels.items, ret->levels.len, sizeof(*ret->levels.items), compare_levels);
    vec_done(&steps);
}

void demand_done(struct demand *d)
{
    vec_done(&d->levels);
}

int64_t demand_percentile(const struct demand *d, int64_t percent)
{
    __int128 want = (__int128)d->window_ms * percent;
    int64_t ms = 0;

    for (size_t i = 0; i < d->levels.len; i++) {
        ms += d->levels.items[i].ms;
        if ((__int128)ms * 100 >= want)
            return d->levels.items[i].milli;
    }
    return 0;
}

int64_t demand_peak(const struct demand *d)
{
    return d->levels.len > 0 ? d->levels.items[d->levels.len - 1].milli : 0;
}

int64_t demand_within(const struct demand *d, int64_t milli)
{
    __int128 all = 0, part = 0;

    for (size_t i = 0; i < d->levels.len; i++) {
        const struct demand_level *l = &d->levels.items[i];
        all += (__int128)l->milli * l->ms;
        part += (__int128)(l->milli < milli ? l->milli : milli) * l->ms;
    }
    return all > 0 ? (int64_t)(part * 1000 / all) : 1000;
}
