/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/shape.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sched/fit.h"
#include "sched/gang.h"
#include "sched/parked.h"

const char *string_intern(struct sched *s, const char *text)
{
    if (text == NULL)
        return NULL;
    char *copy = map_get_str(&s->strings, text);
    if (copy != NULL)
        return copy;
    size_t size = strlen(text) + 1;
    copy = mem_new(size, 1);
    memcpy(copy, text, size);
    map_put_str(&s->strings, copy, copy);
    if (s->checking)
        vec_push(&s->fresh, copy);
    return copy;
}

void strings_check_begin(struct sched *s)
{
    s->checking = true;
}

void strings_check_end(struct sched *s)
{
    s->checking = false;
    for (size_t i = 0; i < s->fresh.len; i++)
        free(map_del_str(&s->strings, s->fresh.items[i]));
    vec_clear(&s->fresh);
}

static void *copy_array(const void *items, size_t count, size_t size)
{
    if (count == 0)
        return NULL;
    void *copy = mem_new(count, size);
    memcpy(copy, items, count * size);
    return copy;
}

static uint64_t hash_add(uint64_t h, const void *data, size_t size)
{
    uint64_t pair[2] = {h, size > 0 ? map_hash(data, size) : 0};
    return map_hash(pair, sizeof(pair));
}

#define HASH(h, x) hash_add((h), &(x), sizeof(x))

/* ---- requests ---------------------------------------------------------------------------- */

static bool request_devices_ok(const struct sched_request *r)
{
    if (r->mig_count > 0) {
        if (r->device_count > 0 || r->device_milli != 0 || r->device_memory_bytes != 0)
            return false;
        uint64_t slices = 0;
        for (uint32_t i = 0; i < r->mig_count; i++) {
            if (r->mig[i].profile == NULL || r->mig[i].count == 0)
                return false;
            slices += r->mig[i].count;
        }
        return r->mig_count <= DEVICES_MAX && slices <= UINT16_MAX;
    }
    if (r->device_count == 0)
        return r->device_milli == 0 && r->device_memory_bytes == 0;
    if (r->device_count > UINT16_MAX || r->device_milli < 0 || r->device_milli > WHOLE_MILLI)
        return false;
    if (r->device_milli > 0)
        return r->device_memory_bytes == 0;
    return r->device_memory_bytes > 0 && r->device_memory_bytes <= BYTES_MAX;
}

/* Devices and slices that it asks for. */
static uint32_t request_devices(const struct sched_request *r)
{
    uint32_t count = r->device_count;
    for (uint32_t i = 0; i < r->mig_count; i++)
        count += r->mig[i].count;
    return count;
}

/* Named with their node, and each once. */
static bool only_devices_ok(const struct sched_request *r)
{
    uint32_t count = request_devices(r);
    if (r->only_node == 0 || count == 0)
        return false;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (r->only_devices[i] == r->only_devices[k])
                return false;
    return true;
}

static bool request_ok(const struct sched_request *r)
{
    if (!request_devices_ok(r))
        return false;
    if (r->cpu_milli < 0 || r->cpu_milli > CPU_MAX || r->memory_bytes < 0 ||
        r->memory_bytes > BYTES_MAX)
        return false;
    if (r->gpu_type_count > DEVICES_MAX || r->label_count > DEVICES_MAX)
        return false;
    for (uint32_t i = 0; i < r->gpu_type_count; i++)
        if (r->gpu_types[i] == NULL)
            return false;
    for (uint32_t i = 0; i < r->label_count; i++)
        if (r->labels[i].key == NULL || r->labels[i].value == NULL)
            return false;
    return r->only_devices == NULL || only_devices_ok(r);
}

/* Interned lists of one request, before it is known whether the shape exists. */
struct shape_lists {
    VEC(struct mig_need) mig;
    VEC(const char *) types;
    VEC(struct label) labels;
};

static void shape_lists_done(struct shape_lists *l)
{
    vec_done(&l->mig);
    vec_done(&l->types);
    vec_done(&l->labels);
}

static void shape_lists_fill(struct sched *s, const struct sched_request *r, struct shape_lists *l)
{
    for (uint32_t i = 0; i < r->mig_count; i++) {
        struct mig_need *need = vec_add(&l->mig);
        need->profile = string_intern(s, r->mig[i].profile);
        need->count = r->mig[i].count;
    }
    for (uint32_t i = 0; i < r->gpu_type_count; i++)
        vec_push(&l->types, string_intern(s, r->gpu_types[i]));
    for (uint32_t i = 0; i < r->label_count; i++) {
        struct label *label = vec_add(&l->labels);
        label->key = string_intern(s, r->labels[i].key);
        label->value = string_intern(s, r->labels[i].value);
    }
}

static uint64_t shape_hash(const struct sched_request *r, const struct shape_lists *l)
{
    uint64_t h = 1;
    h = HASH(h, r->device_count);
    h = HASH(h, r->device_milli);
    h = HASH(h, r->device_memory_bytes);
    h = HASH(h, r->cpu_milli);
    h = HASH(h, r->memory_bytes);
    h = HASH(h, r->only_node);
    if (r->only_devices != NULL)
        h = hash_add(h, r->only_devices, request_devices(r) * sizeof(*r->only_devices));
    /* By content, not by address: iteration must not depend on where things lie. */
    for (size_t i = 0; i < l->mig.len; i++) {
        h = hash_add(h, l->mig.items[i].profile, strlen(l->mig.items[i].profile));
        h = HASH(h, l->mig.items[i].count);
    }
    for (size_t i = 0; i < l->types.len; i++)
        h = hash_add(h, l->types.items[i], strlen(l->types.items[i]));
    for (size_t i = 0; i < l->labels.len; i++) {
        h = hash_add(h, l->labels.items[i].key, strlen(l->labels.items[i].key));
        h = hash_add(h, l->labels.items[i].value, strlen(l->labels.items[i].value));
    }
    return h;
}

static bool shape_lists_equal(const struct shape *shape, const struct shape_lists *l)
{
    if (shape->mig_count != l->mig.len || shape->type_count != l->types.len ||
        shape->label_count != l->labels.len)
        return false;
    for (size_t i = 0; i < l->mig.len; i++)
        if (shape->mig[i].profile != l->mig.items[i].profile ||
            shape->mig[i].count != l->mig.items[i].count)
            return false;
    for (size_t i = 0; i < l->types.len; i++)
        if (shape->types[i] != l->types.items[i])
            return false;
    for (size_t i = 0; i < l->labels.len; i++)
        if (shape->labels[i].key != l->labels.items[i].key ||
            shape->labels[i].value != l->labels.items[i].value)
            return false;
    return true;
}

/* Of two requests for equal amounts. */
static bool only_devices_equal(const struct shape *shape, const struct sched_request *r)
{
    if (shape->only_devices == NULL || r->only_devices == NULL)
        return shape->only_devices == NULL && r->only_devices == NULL;
    return memcmp(shape->only_devices, r->only_devices,
                  request_devices(r) * sizeof(*r->only_devices)) == 0;
}

static bool shape_equal(const struct shape *shape, const struct sched_request *r,
                        const struct shape_lists *l)
{
    return shape->device_count == r->device_count && shape->device_milli == r->device_milli &&
           shape->device_memory == r->device_memory_bytes && shape->cpu == r->cpu_milli &&
           shape->memory == r->memory_bytes && shape->only_node == r->only_node &&
           shape->types_equal == r->gpu_types_equal &&
           shape_lists_equal(shape, l) && only_devices_equal(shape, r);
}

static struct amounts shape_charge(const struct sched *s, const struct shape *shape)
{
    struct amounts charge;
    charge.v[SCHED_GPU_MILLI] = fit_pending_charge(s, shape);
    charge.v[SCHED_CPU_MILLI] = shape->cpu;
    charge.v[SCHED_MEMORY_BYTES] = shape->memory;
    return charge;
}

int shape_get(struct sched *s, const struct sched_request *r, struct shape **ret_shape)
{
    if (r == NULL || !request_ok(r))
        return -EINVAL;
    struct shape_lists lists = {0};
    shape_lists_fill(s, r, &lists);
    uint64_t hash = shape_hash(r, &lists);
    struct shape *shape = map_get(&s->shapes, hash);
    while (shape != NULL && !shape_equal(shape, r, &lists))
        shape = shape->next;
    if (shape == NULL) {
        shape = mem_new(1, sizeof(*shape));
        *shape = (struct shape){
            .hash = hash,
            .device_count = r->device_count,
            .device_milli = r->device_milli,
            .device_memory = r->device_memory_bytes,
            .cpu = r->cpu_milli,
            .memory = r->memory_bytes,
            .only_node = r->only_node,
            .types_equal = r->gpu_types_equal,
            .mig_count = (uint32_t)lists.mig.len,
            .type_count = (uint32_t)lists.types.len,
            .label_count = (uint32_t)lists.labels.len,
            .mig = copy_array(lists.mig.items, lists.mig.len, sizeof(struct mig_need)),
            .types = copy_array(lists.types.items, lists.types.len, sizeof(const char *)),
            .labels = copy_array(lists.labels.items, lists.labels.len, sizeof(struct label)),
        };
        if (r->only_devices != NULL)
            shape->only_devices = copy_array(r->only_devices, request_devices(r), sizeof(uint16_t));
        shape->charge = shape_charge(s, shape);
        shape->next = map_put(&s->shapes, hash, shape);
    }
    shape_lists_done(&lists);
    shape->refs++;
    *ret_shape = shape;
    return 0;
}

void shape_put(struct sched *s, struct shape *shape)
{
    if (--shape->refs > 0)
        return;
    struct shape *head = map_get(&s->shapes, shape->hash);
    if (head == shape && shape->next == NULL) {
        map_del(&s->shapes, shape->hash);
    } else if (head == shape) {
        map_put(&s->shapes, shape->hash, shape->next);
    } else {
        while (head->next != shape)
            head = head->next;
        head->next = shape->next;
    }
    free(shape->mig);
    free(shape->types);
    free(shape->labels);
    free(shape->only_devices);
    free(shape);
}

int32_t mig_profile_milli(const char *profile)
{
    int32_t slices = 0;
    while (*profile >= '0' && *profile <= '9' && slices < 10)
        slices = slices * 10 + (*profile++ - '0');
    if (*profile != 'g' || slices < 1 || slices > 7)
        return 0;
    return slices * WHOLE_MILLI / 7;
}

/* ---- workloads --------------------------------------------------------------------------- */

/* The parts of a workload that its shape is made of, interned. */
struct job_parts {
    VEC(struct job_task) tasks;
    VEC(struct job_group) groups;
    const char *required, *preferred;
    bool uniform;
};

static void job_parts_done(struct sched *s, struct job_parts *p)
{
    for (size_t i = 0; i < p->tasks.len; i++)
        shape_put(s, p->tasks.items[i].shape);
    vec_done(&p->tasks);
    vec_done(&p->groups);
}

static int job_parts_tasks(struct sched *s, const struct sched_workload *w, struct job_parts *p)
{
    const struct sched_request *last_request = NULL;
    int64_t memory = 0; /* the one sum that TASKS_MAX alone does not bound */
    p->uniform = true;
    for (uint32_t i = 0; i < w->task_count; i++) {
        const struct sched_task *t = &w->tasks[i];
        if (t->group > 0 && t->group >= w->group_count)
            return -EINVAL;
        struct shape *shape;
        if (i > 0 && t->request == last_request) {
            shape = p->tasks.items[p->tasks.len - 1].shape;
            shape->refs++;
        } else {
            int r = shape_get(s, t->request, &shape);
            if (r < 0)
                return r;
        }
        last_request = t->request;
        struct job_task task = {.shape = shape, .group = t->group, .rank = t->rank};
        const struct job_task *first = i > 0 ? &p->tasks.items[0] : &task;
        p->uniform = p->uniform && first->shape == shape && first->group == task.group &&
                     first->rank == task.rank;
        vec_push(&p->tasks, task);
        memory += shape->memory;
        if (memory > SUM_MAX)
            return -EINVAL;
    }
    while (p->uniform && p->tasks.len > 1)
        shape_put(s, vec_pop(&p->tasks).shape);
    return 0;
}

static int job_parts_fill(struct sched *s, const struct sched_workload *w, struct job_parts *p)
{
    if (w->task_count == 0 || w->task_count > TASKS_MAX || w->min_tasks == 0 ||
        w->min_tasks > w->task_count || w->group_count > w->task_count ||
        w->group_count > GROUPS_MAX || w->min_run_ms < 0 || w->restart_cost_ms < 0)
        return -EINVAL;
    int r = job_parts_tasks(s, w, p);
    if (r < 0)
        return r;
    for (uint32_t g = 0; g < w->group_count; g++) {
        uint32_t members = 0;
        for (uint32_t i = 0; i < w->task_count; i++)
            members += w->tasks[i].group == g;
        if (w->groups[g].min_tasks > members)
            return -EINVAL;
        struct job_group *group = vec_add(&p->groups);
        group->name = string_intern(s, w->groups[g].name);
        group->required = string_intern(s, w->groups[g].required);
        group->min_tasks = w->groups[g].min_tasks;
    }
    p->required = string_intern(s, w->topology_required);
    p->preferred = string_intern(s, w->topology_preferred);
    return 0;
}

static uint64_t hash_text(uint64_t h, const char *text)
{
    return text == NULL ? HASH(h, h) : hash_add(h, text, strlen(text));
}

static uint64_t job_hash(const struct sched_workload *w, const struct job_parts *p)
{
    uint64_t h = 2;
    h = HASH(h, w->task_count);
    h = HASH(h, w->min_tasks);
    h = HASH(h, w->min_run_ms);
    h = HASH(h, w->restart_cost_ms);
    h = HASH(h, w->spread);
    h = hash_text(hash_text(h, p->required), p->preferred);
    for (size_t i = 0; i < p->tasks.len; i++) {
        h = HASH(h, p->tasks.items[i].shape->hash);
        h = HASH(h, p->tasks.items[i].group);
        h = HASH(h, p->tasks.items[i].rank);
    }
    for (size_t i = 0; i < p->groups.len; i++) {
        h = hash_text(hash_text(h, p->groups.items[i].name), p->groups.items[i].required);
        h = HASH(h, p->groups.items[i].min_tasks);
    }
    return h;
}

static bool job_equal(const struct job_shape *job, const struct sched_workload *w,
                      const struct job_parts *p)
{
    if (job->task_count != w->task_count || job->min_tasks != w->min_tasks ||
        job->uniform != p->uniform || job->spread != w->spread ||
        job->group_count != p->groups.len || job->required != p->required ||
        job->preferred != p->preferred || job->max_unavailable != w->max_unavailable ||
        job->min_run_ms != w->min_run_ms || job->restart_cost_ms != w->restart_cost_ms)
        return false;
    for (size_t i = 0; i < p->tasks.len; i++)
        if (job->tasks[i].shape != p->tasks.items[i].shape ||
            job->tasks[i].group != p->tasks.items[i].group ||
            job->tasks[i].rank != p->tasks.items[i].rank)
            return false;
    for (size_t i = 0; i < p->groups.len; i++)
        if (job->groups[i].name != p->groups.items[i].name ||
            job->groups[i].required != p->groups.items[i].required ||
            job->groups[i].min_tasks != p->groups.items[i].min_tasks)
            return false;
    return true;
}

typedef bool (*task_not_after_fn)(const struct job_task *a, const struct job_task *b);

static bool starts_not_after(const struct job_task *a, const struct job_task *b)
{
    return a->rank >= b->rank;
}

/* How hard a request is to place: where it may go, then its size. */
static int hardness_compare(const struct shape *a, const struct shape *b)
{
    int64_t x[] = {a->only_node != 0,
                   a->label_count + a->type_count,
                   (int64_t)shape_whole(a) + a->mig_count,
                   a->device_count,
                   a->device_milli,
                   a->device_memory,
                   a->memory,
                   a->cpu};
    int64_t y[] = {b->only_node != 0,
                   b->label_count + b->type_count,
                   (int64_t)shape_whole(b) + b->mig_count,
                   b->device_count,
                   b->device_milli,
                   b->device_memory,
                   b->memory,
                   b->cpu};
    for (size_t i = 0; i < sizeof(x) / sizeof(x[0]); i++)
        if (x[i] != y[i])
            return x[i] > y[i] ? -1 : 1;
    return 0;
}

static bool packs_not_after(const struct job_task *a, const struct job_task *b)
{
    return a->shape == b->shape || hardness_compare(a->shape, b->shape) <= 0;
}

/* Stable merge sort, bottom up. */
static void order_merge(const struct job_task *tasks, uint32_t *order, uint32_t *scratch,
                        uint32_t count, task_not_after_fn not_after)
{
    for (uint32_t width = 1; width < count; width *= 2) {
        for (uint32_t at = 0; at < count; at += 2 * width) {
            uint32_t mid = at + width < count ? at + width : count;
            uint32_t end = at + 2 * width < count ? at + 2 * width : count;
            uint32_t a = at, b = mid;
            for (uint32_t k = at; k < end; k++) {
                bool left = a < mid && (b >= end || not_after(&tasks[order[a]], &tasks[order[b]]));
                scratch[k] = left ? order[a++] : order[b++];
            }
        }
        memcpy(order, scratch, count * sizeof(*order));
    }
}

/* The indices in order; NULL when that is 0, 1, 2, ... */
static uint32_t *task_order(const struct job_task *tasks, uint32_t count,
                            task_not_after_fn not_after)
{
    bool sorted = true;
    for (uint32_t i = 1; i < count; i++)
        sorted = sorted && not_after(&tasks[i - 1], &tasks[i]);
    if (sorted)
        return NULL;
    uint32_t *order = mem_new(count, sizeof(*order));
    uint32_t *scratch = mem_new(count, sizeof(*scratch));
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    order_merge(tasks, order, scratch, count, not_after);
    free(scratch);
    return order;
}

static void job_charge(struct job_shape *job)
{
    job->total = (struct amounts){0};
    for (uint32_t t = 0; t < job->task_count; t++)
        amounts_add(&job->total, &job_task(job, t)->shape->charge, 1);
    job->least = gang_least(job);
}

static struct job_shape *job_shape_new(const struct sched_workload *w, const struct job_parts *p,
                                       uint64_t hash)
{
    struct job_shape *job = mem_new(1, sizeof(*job));
    *job = (struct job_shape){
        .hash = hash,
        .task_count = w->task_count,
        .min_tasks = w->min_tasks,
        .group_count = (uint32_t)p->groups.len,
        .uniform = p->uniform,
        .spread = w->spread,
        .tasks = copy_array(p->tasks.items, p->tasks.len, sizeof(struct job_task)),
        .groups = copy_array(p->groups.items, p->groups.len, sizeof(struct job_group)),
        .required = p->required,
        .preferred = p->preferred,
        .max_unavailable = w->max_unavailable,
        .min_run_ms = w->min_run_ms,
        .restart_cost_ms = w->restart_cost_ms,
    };
    for (size_t i = 0; i < p->tasks.len; i++)
        p->tasks.items[i].shape->refs++;
    if (!p->uniform) {
        job->order = task_order(job->tasks, job->task_count, starts_not_after);
        job->pack = task_order(job->tasks, job->task_count, packs_not_after);
    }
    job_charge(job);
    return job;
}

int job_shape_get(struct sched *s, const struct sched_workload *w, struct job_shape **ret_job)
{
    struct job_parts parts = {0};
    int r = job_parts_fill(s, w, &parts);
    if (r == 0) {
        uint64_t hash = job_hash(w, &parts);
        struct job_shape *job = map_get(&s->job_shapes, hash);
        while (job != NULL && !job_equal(job, w, &parts))
            job = job->next;
        if (job == NULL) {
            job = job_shape_new(w, &parts, hash);
            job->number = parked_number(s);
            job->next = map_put(&s->job_shapes, hash, job);
        }
        job->refs++;
        *ret_job = job;
    }
    job_parts_done(s, &parts);
    return r;
}

void job_shape_put(struct sched *s, struct job_shape *job)
{
    if (--job->refs > 0)
        return;
    struct job_shape *head = map_get(&s->job_shapes, job->hash);
    if (head == job && job->next == NULL) {
        map_del(&s->job_shapes, job->hash);
    } else if (head == job) {
        map_put(&s->job_shapes, job->hash, job->next);
    } else {
        while (head->next != job)
            head = head->next;
        head->next = job->next;
    }
    parked_number_put(s, job->number);
    for (uint32_t i = 0; i < (job->uniform ? 1 : job->task_count); i++)
        shape_put(s, job->tasks[i].shape);
    free(job->tasks);
    free(job->order);
    free(job->pack);
    free(job->groups);
    free(job);
}

bool shape_charges_refresh(struct sched *s)
{
    bool changed = false;
    size_t it = 0;
    for (struct shape *shape; (shape = map_next(&s->shapes, &it)) != NULL;)
        for (; shape != NULL; shape = shape->next) {
            struct amounts charge = shape_charge(s, shape);
            changed = changed || memcmp(&charge, &shape->charge, sizeof(charge)) != 0;
            shape->charge = charge;
        }
    if (!changed)
        return false;
    it = 0;
    for (struct job_shape *job; (job = map_next(&s->job_shapes, &it)) != NULL;)
        for (; job != NULL; job = job->next)
            job_charge(job);
    return true;
}
