/* SPDX-License-Identifier: Apache-2.0 */
/* What is free where a workload could run, and who has the rest. */
#include "sched/explain.h"

#include <string.h>

#include "sched/evict.h"
#include "sched/fit.h"
#include "sched/node.h"
#include "sched/place.h"
#include "sched/shape.h"
#include "sched/task.h"
#include "sched/window.h"

#define NAME_MAX_BYTES 256 /* of a domain */

bool explain_serves(const struct asking *a, const struct node *n)
{
    const struct job_shape *job = a->w->group->job;
    for (uint32_t t = 0; t < (job->uniform ? 1 : job->task_count); t++)
        if (fit_accepts(n, job_task(job, t)->shape))
            return true;
    return false;
}

bool explain_alike(const struct job_shape *job)
{
    for (uint32_t t = 1; !job->uniform && t < job->task_count; t++)
        if (job->tasks[t].shape != job->tasks[0].shape)
            return false;
    return job->group_count <= 1;
}

/* ---- free -------------------------------------------------------------------------------- */

/* Compute of a node that the request could use: slices for MIG, else parts of whole GPUs. RET_MOST:
 * what one task could have of it. */
static int64_t node_free_gpu(const struct shape *shape, const struct node *n, int64_t *ret_most)
{
    bool mig = shape->mig_count > 0, whole = shape_whole(shape) > 0;
    int64_t sum = 0, best = 0, idle = 0;
    for (uint32_t d = 0; d < n->device_count; d++) {
        const struct device *dev = &n->devices[d];
        int64_t left = mig ? dev->mig_milli : WHOLE_MILLI - dev->use[VIEW_NOW].milli;
        if ((dev->mig != NULL) != mig || (mig && dev->use[VIEW_NOW].tenants > 0))
            continue;
        sum += left;
        best = explain_max(best, left);
        idle += dev->use[VIEW_NOW].tenants == 0 ? left : 0;
    }
    bool several = shape->device_count > 1 || mig;
    *ret_most = whole ? idle : several ? sum : best;
    return sum;
}

static int64_t left_of(int64_t has, int64_t used)
{
    return has == SCHED_UNLIMITED ? SUM_MAX : has - used;
}

static int64_t room_on(const struct asking *a, const struct node *n, int64_t *ret_most)
{
    int64_t room;
    switch (a->e->resource) {
    case SCHED_GPU_MILLI:
        return node_free_gpu(job_task(a->w->group->job, 0)->shape, n, ret_most);
    case SCHED_CPU_MILLI:
        room = left_of(n->cpu, n->cpu_used[VIEW_NOW]);
        break;
    default:
        room = left_of(n->memory, n->memory_used[VIEW_NOW]);
        break;
    }
    *ret_most = room;
    return room;
}

/* Where cores or memory are short, only what lies beside free devices counts. */
static bool counts(const struct asking *a, const struct node *n)
{
    const struct shape *shape = job_task(a->w->group->job, 0)->shape;
    unsigned lifted = MASK_NO_CPU | MASK_NO_MEMORY;
    struct fit f;
    if (!node_takes(n) || !explain_serves(a, n))
        return false;
    return a->e->resource == SCHED_GPU_MILLI || !shape_has_devices(shape) ||
           fit_node(n, shape, MASK_START | lifted, a->s->placing->trial, &f);
}

void explain_free(const struct asking *a)
{
    struct sched_explanation *e = a->e;
    e->free = e->most = 0;
    for (size_t i = 0; i < a->s->node_list.len; i++) {
        const struct node *n = a->s->node_list.items[i];
        int64_t most;
        if (!counts(a, n))
            continue;
        int64_t part = room_on(a, n, &most);
        e->free = e->free > SUM_MAX - part ? SUM_MAX : e->free + part;
        e->most = explain_max(e->most, most);
    }
}

/* ---- holders ----------------------------------------------------------------------------- */

static bool in_scope(const struct asking *a, const struct workload *v)
{
    const struct team *t = v->group->team;
    if (a->scope == NULL)
        return true;
    if (a->e->firm && v->group->preemptible)
        return false;
    while (t != NULL && t != a->scope)
        t = t->parent;
    return t != NULL;
}

/* Is the task in the way? A closed gate counts all that runs, wherever it is; of one GPU type
 * where it is bounded for that. */
static bool in_the_way(const struct asking *a, const struct task *t)
{
    if (t->node == NULL || t->phase == TASK_DONE || t->workload == a->w)
        return false;
    if (a->scope == NULL)
        return explain_serves(a, t->node);
    return a->e->gpu_type == NULL || t->node->gpu_type == a->e->gpu_type;
}

static int64_t held_by(const struct asking *a, const struct workload *v, uint32_t t)
{
    struct amounts charge = task_charge(v, t);
    return charge.v[a->e->resource];
}

/* Of the resource by V, if T is the first of its tasks that are in the way; else 0. */
static int64_t held_from(const struct asking *a, const struct task *t)
{
    const struct workload *v = t->workload;
    uint32_t first = 0;
    while (!in_the_way(a, &v->tasks[first]))
        first++;
    if (&v->tasks[first] != t)
        return 0;
    int64_t sum = 0;
    for (uint32_t k = first; k < v->group->job->task_count; k++)
        sum += in_the_way(a, &v->tasks[k]) ? held_by(a, v, k) : 0;
    return sum;
}

/* Enters V among the largest. */
static void holder_enter(struct sched_explanation *e, const struct workload *v, int64_t amount)
{
    uint32_t at = 0;
    while (at < e->holder_count && (e->holder_amount[at] > amount ||
                                    (e->holder_amount[at] == amount && e->holders[at] < v->id)))
        at++;
    if (at == SCHED_EXPLAIN_HOLDERS)
        return;
    if (e->holder_count < SCHED_EXPLAIN_HOLDERS)
        e->holder_count++;
    for (uint32_t k = e->holder_count - 1; k > at; k--) {
        e->holders[k] = e->holders[k - 1];
        e->holder_amount[k] = e->holder_amount[k - 1];
    }
    e->holders[at] = v->id;
    e->holder_amount[at] = amount;
}

void explain_holders(const struct asking *a)
{
    for (size_t i = 0; i < a->s->node_list.len; i++)
        for (const struct task *t = a->s->node_list.items[i]->tasks; t != NULL; t = t->next) {
            if (!in_the_way(a, t) || !in_scope(a, t->workload))
                continue;
            int64_t amount = held_from(a, t);
            if (amount > 0)
                holder_enter(a->e, t->workload, amount);
        }
}

/* Does the task stop for W's promise, or on a node where W has one? Without a promise: on a node
 * where W could run. */
static bool leaves_for(const struct asking *a, const struct task *t)
{
    const struct workload *w = a->w;
    bool beside = false;
    if (t->phase != TASK_LEAVING && t->phase != TASK_ENDING)
        return false;
    if (w->count[TASK_HELD] == 0)
        return explain_serves(a, t->node);
    for (uint32_t k = 0; k < w->group->job->task_count && !beside; k++)
        beside = w->tasks[k].phase == TASK_HELD && w->tasks[k].node == t->node;
    return t->behalf == w->id || (beside && (t->behalf == 0 || t->behalf == BEHALF_UNKNOWN));
}

void explain_leavers(const struct asking *a)
{
    for (size_t i = 0; i < a->s->node_list.len; i++)
        for (const struct task *t = a->s->node_list.items[i]->tasks; t != NULL; t = t->next) {
            const struct workload *v = t->workload;
            uint32_t first = 0;
            if (!leaves_for(a, t))
                continue;
            while (!leaves_for(a, &v->tasks[first]))
                first++;
            int64_t sum = 0;
            for (uint32_t k = first; k < v->group->job->task_count; k++)
                sum += leaves_for(a, &v->tasks[k]) ? held_by(a, v, k) : 0;
            if (&v->tasks[first] == t)
                holder_enter(a->e, v, sum);
        }
}

/* Of W, among the victims from the first on that is its. */
static int64_t lost_by(const struct victims *v, const struct workload *w, size_t first)
{
    int64_t sum = 0;
    for (size_t i = first; i < v->list.len; i++)
        if (v->list.items[i].w == w)
            sum += w->tasks[v->list.items[i].task].gpu_milli;
    return sum;
}

void explain_victims(const struct asking *a, const struct victims *v)
{
    for (size_t i = 0; a->e->resource == SCHED_GPU_MILLI && i < v->list.len; i++) {
        const struct workload *w = v->list.items[i].w;
        size_t first = 0;
        while (v->list.items[first].w != w)
            first++;
        if (first == i)
            holder_enter(a->e, w, lost_by(v, w, first));
    }
}

/* ---- gangs and domains ------------------------------------------------------------------- */

/* Is there a place for so many tasks of the gang together? For tasks that are all alike. */
static bool places(const struct asking *a, uint32_t tasks)
{
    struct gang some = {.total = tasks, .grouped = a->gang.grouped};
    for (size_t g = 0; g < a->gang.quota.len; g++) { /* one at most: they are alike */
        uint32_t quota = a->gang.quota.items[g] < tasks ? a->gang.quota.items[g] : tasks;
        vec_push(&some.quota, quota);
    }
    bool fits = place_gang(a->s, a->w->group->job, a->w, &some, MASK_START);
    gang_done(&some);
    return fits;
}

static uint32_t most_tasks(const struct asking *a)
{
    uint32_t fits = 0, beyond = a->gang.total;
    while (fits + 1 < beyond) {
        uint32_t some = fits + (beyond - fits) / 2;
        if (places(a, some))
            fits = some;
        else
            beyond = some;
    }
    return fits;
}

void explain_fitting(const struct asking *a)
{
    if (a->gang.total > 1 && explain_alike(a->w->group->job))
        a->e->fitting = most_tasks(a);
}

static const char *level_of(const struct job_shape *job)
{
    const char *level = job->required;
    for (uint32_t g = 0; g < job->group_count && level == NULL; g++)
        level = job->groups[g].required;
    return level;
}

/* "a/r1" of a path "0:1:a/1:2:r1/"; see node_domains(). Cut where it is longer than anybody reads.
 * There are as many as there are domains, so that they may be kept. */
static const char *domain_name(struct sched *s, const char *path)
{
    char name[NAME_MAX_BYTES];
    size_t used = 0;
    while (*path != '\0') {
        size_t length = 0;
        path = strchr(path, ':') + 1;
        for (; *path != ':'; path++)
            length = length * 10 + (size_t)(*path - '0');
        path++;
        for (size_t i = 0; i < length + 1 && used < sizeof(name); i++)
            name[used++] = path[i];
        path += length + 1;
    }
    name[used > 0 ? used - 1 : 0] = '\0'; /* the last slash */
    return string_intern(s, name);
}

void explain_domain(const struct asking *a)
{
    struct sched_explanation *e = a->e;
    const struct sched *s = a->s;
    e->level = level_of(a->w->group->job);
    int level = e->level == NULL ? -1 : node_level(s, e->level);
    if (level < 0 || e->fitting == 0 || !places(a, e->fitting))
        return;
    uint32_t domain = s->placing->spots.items[0].node->domain[level];
    if (domain == 0)
        return;
    e->domain = domain_name(a->s, s->domains.items[domain - 1]);
    e->domain_fitting = e->fitting;
}

/* ---- nodes ------------------------------------------------------------------------------- */

static void node_enter(struct sched_explanation *e, const struct node *n, bool first)
{
    if (first && e->node_count > 0) {
        uint32_t last = e->node_count < SCHED_EXPLAIN_NODES ? e->node_count++ : e->node_count - 1;
        e->nodes[last] = e->nodes[0];
        e->nodes[0] = n->id;
    } else if (e->node_count < SCHED_EXPLAIN_NODES) {
        e->nodes[e->node_count++] = n->id;
    }
}

static bool could_hold(const struct asking *a, const struct node *n)
{
    const struct job_shape *job = a->w->group->job;
    struct fit f;
    for (uint32_t t = 0; t < (job->uniform ? 1 : job->task_count); t++)
        if (fit_accepts(n, job_task(job, t)->shape) &&
            fit_node(n, job_task(job, t)->shape, MASK(VIEW_EMPTY), a->s->placing->trial, &f))
            return true;
    return false;
}

void explain_away(const struct asking *a)
{
    for (size_t i = 0; i < a->s->node_list.len; i++) {
        const struct node *n = a->s->node_list.items[i];
        if ((!n->up || !n->schedulable) && could_hold(a, n))
            node_enter(a->e, n, false);
    }
}

/* It has no time to run there now, or starts when that window ends. */
static bool in_its_way(const struct asking *a, const struct node *n)
{
    return n->in_window || n->window_until_ms == a->e->start_ms ||
           !window_allows(a->s, n, a->w, a->s->now_ms);
}

void explain_windows(const struct asking *a)
{
    const struct sched *s = a->s;
    int64_t soonest = INT64_MAX;
    for (size_t i = 0; i < s->node_list.len; i++) {
        const struct node *n = s->node_list.items[i];
        if (!n->windowed || !n->up || !n->schedulable || !could_hold(a, n) || !in_its_way(a, n))
            continue;
        /* The last that one may still use, or the one whose end it waits for, or the first. */
        bool binds = a->e->run_ms > 0 ? n->window_from_ms - s->now_ms == a->e->run_ms
                                      : n->window_until_ms == a->e->start_ms;
        int64_t matters = binds ? 0 : n->window_until_ms;
        node_enter(a->e, n, matters < soonest);
        soonest = matters < soonest ? matters : soonest;
    }
}
