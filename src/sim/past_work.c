/* SPDX-License-Identifier: Apache-2.0 */
/* What follows from a record: who is who, how long work takes, how much there was. */
#include <stdlib.h>
#include <string.h>

#include "core/shape.h"
#include "sim/past_internal.h"

#define NODE_LOSS_MS 60000 /* until what ran there is known to be lost */

struct past_team *past_team_by_id(const struct past *p, uint64_t id)
{
    uintptr_t index = (uintptr_t)map_get(&p->team_ids, id);
    return index ? &p->teams.items[index - 1] : NULL;
}

struct past_team *past_team_by_name(const struct past *p, const char *name)
{
    for (size_t i = 0; i < p->teams.len; i++)
        if (!p->teams.items[i].deleted && strcmp(p->teams.items[i].row.name, name) == 0)
            return &p->teams.items[i];
    return NULL;
}

int64_t past_node_capacity(const struct model_node *node)
{
    int64_t milli = 0;

    for (int32_t k = 0; k < node->device_count; k++)
        milli += node->devices[k].mig_profile ? node->devices[k].mig_milli : 1000;
    return milli;
}

int64_t past_capacity(const struct past *p)
{
    int64_t milli = 0;

    for (size_t i = 0; i < p->nodes.len; i++)
        milli += past_node_capacity(&p->nodes.items[i].row);
    return milli;
}

__int128 past_gpu_time(const struct past *p)
{
    __int128 sum = 0;

    for (size_t i = 0; i < p->nodes.len; i++) {
        const struct past_node *n = &p->nodes.items[i];
        if (!n->absent)
            sum += (__int128)past_node_capacity(&n->first) * (p->until_ms - p->from_ms);
    }
    /* What each change adds or takes away for the rest of the time. */
    for (size_t i = 0; i < p->changes.len; i++) {
        const struct past_change *c = &p->changes.items[i];
        if (c->of_node)
            sum += (__int128)c->more_milli * (p->until_ms - c->at_ms);
    }
    return sum;
}

bool past_can_add_up(const struct past *p, __int128 milli)
{
    return milli * (p->until_ms - p->from_ms) <= GPU_TIME_MAX;
}

int64_t past_first_start(const struct past_job *job)
{
    if (job->run_count == 0)
        return 0;
    return job->runs[0].start_ms > job->submitted_ms ? job->runs[0].start_ms : job->submitted_ms;
}

/* What the runs of one task come to. */
struct task_work {
    int64_t saved_ms;  /* in this segment, which ends with a failure or the job */
    int64_t before_ms; /* of the failed segments */
    int64_t gpu_milli;
    uint32_t failures, losses;
    int32_t attempt;
    size_t last; /* index of its last run */
};

static bool is_failure(enum model_release how)
{
    return how == MODEL_RELEASE_FAILED || how == MODEL_RELEASE_REFUSED || how == MODEL_RELEASE_LOST;
}

/* How many changes there were before AT. */
static size_t changes_before(const struct past *p, int64_t at_ms)
{
    size_t low = 0, high = p->changes.len;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (p->changes.items[mid].at_ms < at_ms)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Was its node lost while it ran, or when that was found out? */
static bool lost_its_node(const struct past *p, const struct past_run *run)
{
    if (run->how != MODEL_RELEASE_LOST)
        return false;
    for (size_t i = changes_before(p, run->start_ms); i < p->changes.len; i++) {
        const struct past_change *c = &p->changes.items[i];
        if (c->at_ms > run->end_ms + NODE_LOSS_MS)
            break;
        if (c->of_node && p->nodes.items[c->index].row.id == run->node &&
            c->node.state == MODEL_NODE_DOWN)
            return true;
    }
    return false;
}

/* Was RUN, which is not the LAST one of its task, tried again after a failure of its own? */
static bool was_retried(const struct past *p, const struct past_run *run,
                        const struct past_run *last)
{
    return run != last && is_failure(run->how) && !lost_its_node(p, run);
}

static void add_time(int64_t *sum_ms, int64_t ms)
{
    if (*sum_ms <= TIME_MAX_MS) /* else it is refused in the end */
        *sum_ms += ms;
}

/* For how long it worked: until it was asked to stop. */
static int64_t worked_ms(const struct past_run *run)
{
    bool asked = run->stopping_ms > 0 && run->how != MODEL_RELEASE_ENDED;

    return (asked ? run->stopping_ms : run->end_ms) - run->start_ms;
}

/* What lasts of a run that was cut short. */
static void cut_short(struct task_work *t, const struct past_run *run, int64_t checkpoint_ms)
{
    int64_t progress = t->saved_ms;

    add_time(&progress, worked_ms(run));
    if (checkpoint_ms > 0 && progress - progress % checkpoint_ms > t->saved_ms)
        t->saved_ms = progress - progress % checkpoint_ms;
}

/* A run that failed: what came before it in its segment, and itself. */
static int64_t failed_segment(struct task_work *t, const struct past_run *run)
{
    int64_t ms = t->saved_ms;

    add_time(&ms, run->end_ms - run->start_ms);
    t->saved_ms = 0;
    return ms > 0 ? ms : 1;
}

/* Failed runs one by one, of the task that failed most. */
static void list_failures(struct past *p, struct past_job *job, int32_t task, uint32_t count,
                          int64_t checkpoint_ms)
{
    int64_t *failed_ms = arena_new_array(&p->arena, int64_t, count);
    struct task_work t = {0};

    for (size_t i = 0; i < job->run_count && job->failed_count < count; i++) {
        const struct past_run *run = &job->runs[i];
        if (run->task != task)
            continue;
        if (is_failure(run->how) && !lost_its_node(p, run))
            failed_ms[job->failed_count++] = failed_segment(&t, run);
        else
            cut_short(&t, run, checkpoint_ms);
    }
    job->failed_ms = failed_ms;
}

/* All of one task's runs but the last; then that one. Rigid gangs go through their failures. */
static void add_run(struct past *p, const struct past_job *job, struct task_work *t, size_t index,
                    int64_t checkpoint_ms)
{
    const struct past_run *run = &job->runs[index];
    const struct model_shape *m = job->shape->model;
    int64_t ms;

    if (index == t->last) {
        add_time(&t->saved_ms, run->end_ms - run->start_ms);
    } else if (was_retried(p, run, &job->runs[t->last])) {
        ms = failed_segment(t, run);
        t->failures++;
        if (m->min_tasks == m->task_count)
            add_time(&t->before_ms, ms);
    } else {
        cut_short(t, run, checkpoint_ms);
        t->losses += lost_its_node(p, run);
    }
}

/* Why it was started again: after failures, with its node, or else it gave way. */
static void count_restarts(struct past_job *job, uint32_t failures)
{
    job->retries = failures < job->restarts ? failures : job->restarts;
    if (job->losses > job->restarts - job->retries)
        job->losses = job->restarts - job->retries;
}

/* Fills in what TASKS, which have been gone through, come to. */
static void sum_up(struct past *p, struct past_job *job, const struct task_work *tasks, bool known,
                   int64_t checkpoint_ms)
{
    const struct model_shape *m = job->shape->model;
    int32_t worst = 0;

    for (int32_t i = 0; i < m->task_count; i++) {
        const struct task_work *t = &tasks[i];
        int64_t work_ms = t->saved_ms;
        add_time(&work_ms, t->before_ms);
        job->work_ms = work_ms > job->work_ms ? work_ms : job->work_ms;
        job->gpu_milli += t->gpu_milli;
        if ((uint32_t)t->attempt > job->restarts)
            job->restarts = (uint32_t)t->attempt;
        job->losses = t->losses > job->losses ? t->losses : job->losses;
        worst = t->failures > tasks[worst].failures ? i : worst;
    }
    count_restarts(job, known ? tasks[worst].failures : (uint32_t)job->failures);
    if (tasks[worst].failures > 0 && m->min_tasks == m->task_count)
        list_failures(p, job, worst, tasks[worst].failures, checkpoint_ms);
}

static void measure(struct past *p, struct past_job *job, int64_t checkpoint_ms)
{
    const struct model_shape *m = job->shape->model;
    struct task_work *tasks = calloc((size_t)m->task_count, sizeof(*tasks));
    bool known = true;

    if (tasks == NULL)
        abort();
    if (m->handling == MODEL_RESTART)
        checkpoint_ms = 0;
    job->work_ms = job->gpu_milli = 0;
    job->restarts = job->retries = job->losses = job->failed_count = 0;
    for (size_t i = 0; i < job->run_count; i++)
        tasks[job->runs[i].task].last = i;
    for (size_t i = 0; i < job->run_count; i++) {
        const struct past_run *run = &job->runs[i];
        struct task_work *t = &tasks[run->task];
        t->gpu_milli = run->gpu_milli;
        t->attempt = run->attempt > t->attempt ? run->attempt : t->attempt;
        known &= run->open || run->how != MODEL_RELEASE_NONE;
        add_run(p, job, t, i, checkpoint_ms);
    }
    sum_up(p, job, tasks, known, checkpoint_ms);
    if (job->run_count == 0)
        job->gpu_milli = job->shape->gpu_milli;
    free(tasks);
}

static int compare_i64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static int64_t median_work(const struct past *p)
{
    VEC(int64_t) all = {0};
    int64_t median = 0;

    for (size_t i = 0; i < p->jobs.len; i++)
        if (p->jobs.items[i].run_count > 0)
            vec_push(&all, p->jobs.items[i].work_ms);
    if (all.len > 0) {
        qsort(all.items, all.len, sizeof(*all.items), compare_i64);
        median = all.items[all.len / 2];
    }
    vec_done(&all);
    return median;
}

static void know_work(struct past *p, struct past_job *job, int64_t checkpoint_ms)
{
    const struct model_shape *m = job->shape->model;
    bool open = false;

    for (size_t i = 0; i < job->run_count; i++)
        open |= job->runs[i].open;
    job->guess = PAST_KNOWN;
    measure(p, job, checkpoint_ms);
    job->left_out = job->run_count == 0 && job->ended_ms != 0;
    if (!open && job->ended_ms != 0)
        return;
    job->guess = job->run_count > 0 ? PAST_CENSORED : PAST_GUESSED;
    if (job->run_count > 0 && m->expected_ms > job->work_ms)
        job->work_ms = m->expected_ms;
}

void past_work_window(struct past *p)
{
    for (size_t i = 0; i < p->runs.len; i++) {
        struct past_run *run = &p->runs.items[i];
        int64_t last = run->open ? run->start_ms : run->end_ms;
        p->until_ms = last > p->until_ms ? last : p->until_ms;
    }
    for (size_t i = 0; i < p->jobs.len; i++)
        if (p->jobs.items[i].submitted_ms > p->until_ms)
            p->until_ms = p->jobs.items[i].submitted_ms;
    for (size_t i = 0; i < p->runs.len; i++)
        if (p->runs.items[i].open)
            p->runs.items[i].end_ms = p->until_ms;
    p->from_ms = p->until_ms;
    for (size_t i = 0; i < p->jobs.len; i++) {
        struct past_job *job = &p->jobs.items[i];
        job->runs = p->runs.items + job->first_run;
        p->from_ms = job->submitted_ms < p->from_ms ? job->submitted_ms : p->from_ms;
    }
}

void past_assume(struct past *p, int64_t checkpoint_ms)
{
    for (size_t i = 0; i < p->jobs.len; i++)
        know_work(p, &p->jobs.items[i], checkpoint_ms);
    int64_t median = median_work(p);
    for (size_t i = 0; i < p->jobs.len; i++) {
        struct past_job *job = &p->jobs.items[i];
        const struct model_shape *m = job->shape->model;
        if (job->guess == PAST_GUESSED)
            job->work_ms = m->expected_ms ? m->expected_ms : m->limit_ms ? m->limit_ms : median;
    }
}

int64_t past_stop_ms(const struct past *p, size_t *ret_count)
{
    VEC(int64_t) all = {0};
    int64_t median = -1;

    for (size_t i = 0; i < p->runs.len; i++) {
        const struct past_run *run = &p->runs.items[i];
        if (run->how == MODEL_RELEASE_GAVE_WAY && run->stopping_ms > 0)
            vec_push(&all, run->end_ms - run->stopping_ms);
    }
    if (all.len > 0) {
        qsort(all.items, all.len, sizeof(*all.items), compare_i64);
        median = all.items[all.len / 2];
    }
    *ret_count = all.len;
    vec_done(&all);
    return median;
}
