/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/node.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/qty.h"
#include "sched/mix.h"
#include "sched/move.h"
#include "sched/queue.h"
#include "sched/shape.h"
#include "sched/states.h"
#include "sched/task.h"
#include "sched/types.h"
#include "sched/window.h"

#define LEVELS_MAX 16
#define PATH_MAX_BYTES 4096
#define REFUSALS_MAX 6 /* doublings of the time a node is avoided */

struct node *node_find(const struct sched *s, uint64_t id)
{
    return map_get(&s->nodes, id);
}

void node_free(struct node *n)
{
    free(n->devices);
    free(n->labels);
    free(n->domain);
    free(n);
}

void node_touch(struct sched *s, struct node *n)
{
    s->freed_epoch++;
    if (n->touched)
        return;
    n->touched = true;
    vec_push(&s->touched, n);
}

static void node_untouch(struct sched *s, struct node *n)
{
    for (size_t i = 0; n->touched && i < s->touched.len; i++)
        if (s->touched.items[i] == n)
            vec_remove_swap(&s->touched, i);
}

static bool node_ok(const struct sched_node *node)
{
    if (node->id == 0 || node->device_count > DEVICES_MAX || node->label_count > DEVICES_MAX ||
        node->cpu_milli < 0 || node->memory_bytes < 0)
        return false;
    if (node->window_from_ms < 0 ||
        (node->window_until_ms != 0 && node->window_until_ms <= node->window_from_ms))
        return false;
    if ((node->cpu_milli > CPU_MAX && node->cpu_milli != SCHED_UNLIMITED) ||
        (node->memory_bytes > BYTES_MAX && node->memory_bytes != SCHED_UNLIMITED))
        return false;
    for (uint32_t i = 0; i < node->device_count; i++) {
        const struct sched_device *d = &node->devices[i];
        if (d->memory_bytes < 0 || d->memory_bytes > BYTES_MAX || d->mig_milli < 0 ||
            d->mig_milli > WHOLE_MILLI)
            return false;
    }
    for (uint32_t i = 0; i < node->label_count; i++)
        if (node->labels[i].key == NULL || node->labels[i].value == NULL)
            return false;
    return true;
}

static bool device_in_use(const struct device *d)
{
    return d->use[VIEW_NOW].tenants > 0 || d->use[VIEW_THEN].tenants > 0;
}

static bool device_same(const struct device *d, const struct sched_device *new, const char *mig)
{
    return d->mig == mig && d->memory == new->memory_bytes &&
           (mig == NULL || d->mig_milli == new->mig_milli);
}

/* Installs the devices; -EBUSY when one in use would go or change. RET_CHANGED: charges and fits
 * may be different from here on. */
static int node_devices(struct sched *s, struct node *n, const struct sched_node *node,
                        bool *ret_changed)
{
    bool changed = n->device_count != node->device_count;
    for (uint32_t i = 0; i < n->device_count; i++) {
        bool same =
            i < node->device_count && device_same(&n->devices[i], &node->devices[i],
                                                  string_intern(s, node->devices[i].mig_profile));
        if (!same && device_in_use(&n->devices[i]))
            return -EBUSY;
        changed = changed || !same;
    }
    *ret_changed = changed;
    if (!changed)
        return 0;
    struct device *devices = mem_new(node->device_count, sizeof(*devices));
    n->whole_count = 0;
    uint32_t idle[VIEWS] = {0};
    memset(n->milli_used, 0, sizeof(n->milli_used));
    for (uint32_t i = 0; i < node->device_count; i++) {
        struct device *d = &devices[i];
        if (i < n->device_count)
            memcpy(d->use, n->devices[i].use, sizeof(d->use));
        d->mig = string_intern(s, node->devices[i].mig_profile);
        d->memory = node->devices[i].memory_bytes;
        d->mig_milli = d->mig != NULL ? node->devices[i].mig_milli : 0;
        n->whole_count += d->mig == NULL;
        for (int v = 0; v < VIEWS && d->mig == NULL; v++) {
            idle[v] += d->use[v].tenants == 0;
            n->milli_used[v] += d->use[v].milli;
        }
    }
    memcpy(n->idle, idle, sizeof(idle));
    free(n->devices);
    n->devices = devices;
    n->device_count = node->device_count;
    return 0;
}

static void node_labels(struct sched *s, struct node *n, const struct sched_node *node)
{
    free(n->labels);
    n->labels = mem_new(node->label_count, sizeof(*n->labels));
    n->label_count = node->label_count;
    for (uint32_t i = 0; i < node->label_count; i++) {
        n->labels[i].key = string_intern(s, node->labels[i].key);
        n->labels[i].value = string_intern(s, node->labels[i].value);
    }
}

/* ---- topology ---------------------------------------------------------------------------- */

int node_level(const struct sched *s, const char *key)
{
    for (size_t l = 0; l < s->levels.len; l++)
        if (s->levels.items[l] == key)
            return (int)l;
    return -1;
}

static const char *node_label(const struct node *n, const char *key)
{
    for (uint32_t i = 0; i < n->label_count; i++)
        if (n->labels[i].key == key)
            return n->labels[i].value;
    return NULL;
}

static uint32_t domain_number(struct sched *s, const char *path)
{
    const char *text = string_intern(s, path);
    for (size_t i = 0; i < s->domains.len; i++)
        if (s->domains.items[i] == text)
            return (uint32_t)i + 1;
    vec_push(&s->domains, text);
    return (uint32_t)s->domains.len;
}

/* Numbers the domains of one node. A label that is missing leaves the node out of that level and
 * of those inside it. */
static void node_domains(struct sched *s, struct node *n)
{
    free(n->domain);
    n->domain = mem_new(s->levels.len, sizeof(*n->domain));
    char path[PATH_MAX_BYTES];
    size_t used = 0;
    for (size_t l = 0; l < s->levels.len; l++) {
        const char *value = node_label(n, s->levels.items[l]);
        if (value == NULL)
            return;
        int more =
            snprintf(path + used, sizeof(path) - used, "%zu:%zu:%s/", l, strlen(value), value);
        if (more < 0 || (size_t)more >= sizeof(path) - used)
            return;
        used += (size_t)more;
        n->domain[l] = domain_number(s, path);
    }
}

int sched_topology_set(struct sched *s, const char *const *levels, uint32_t count)
{
    if (count > LEVELS_MAX)
        return -EINVAL;
    for (uint32_t i = 0; i < count; i++)
        if (levels[i] == NULL)
            return -EINVAL;
    vec_clear(&s->levels);
    vec_clear(&s->domains);
    for (uint32_t i = 0; i < count; i++)
        vec_push(&s->levels, string_intern(s, levels[i]));
    for (size_t i = 0; i < s->node_list.len; i++)
        node_domains(s, s->node_list.items[i]);
    s->inventory_epoch++;
    s->outside_epoch++;
    s->freed_epoch++;
    s->retry = s->retry_all = true;
    return 0;
}

/* ---- set and remove ---------------------------------------------------------------------- */

bool node_before(const struct node *a, const struct node *b)
{
    return a->order != b->order ? a->order < b->order : a->id < b->id;
}

static void node_list_insert(struct sched *s, struct node *n)
{
    vec_push(&s->node_list, n);
    size_t i = s->node_list.len - 1;
    for (; i > 0 && node_before(n, s->node_list.items[i - 1]); i--)
        s->node_list.items[i] = s->node_list.items[i - 1];
    s->node_list.items[i] = n;
}

static void node_list_remove(struct sched *s, struct node *n)
{
    size_t i = 0;
    while (s->node_list.items[i] != n)
        i++;
    for (s->node_list.len--; i < s->node_list.len; i++)
        s->node_list.items[i] = s->node_list.items[i + 1];
}

void node_use_changed(struct sched *s)
{
    s->capacity_stale = true;
    s->shares_stale = true;
    s->move_room_stale = true;
    s->outside_epoch++;
    s->freed_epoch++;
    s->retry = s->retry_all = true;
}

static void node_list_move(struct sched *s, struct node *n, bool is_new, uint64_t order)
{
    if (!is_new)
        node_list_remove(s, n);
    n->order = order;
    node_list_insert(s, n);
    s->nodes_epoch++;
}

static void inventory_changed(struct sched *s, bool charges)
{
    if (charges && shape_charges_refresh(s))
        task_demand_rebuild(s);
    s->inventory_epoch++;
    node_use_changed(s);
}

int sched_node_set(struct sched *s, const struct sched_node *node)
{
    if (!node_ok(node))
        return -EINVAL;
    struct node *n = node_find(s, node->id);
    bool is_new = n == NULL, changed;
    if (is_new) {
        n = mem_new(1, sizeof(*n));
        n->id = node->id;
        n->states = s->states;
    }
    int r = node_devices(s, n, node, &changed);
    if (r < 0)
        return r;
    const char *type = string_intern(s, node->gpu_type);
    if (is_new)
        map_put(&s->nodes, n->id, n);
    if (is_new || n->order != node->order)
        node_list_move(s, n, is_new, node->order);
    else if (type != n->gpu_type)
        s->nodes_epoch++;
    states_note(n);
    bool retyped = type != n->gpu_type;
    changed = changed || retyped || node->label_count > 0 || n->label_count > 0;
    n->gpu_type = type;
    n->cpu = node->cpu_milli;
    n->memory = node->memory_bytes;
    n->schedulable = node->schedulable;
    n->window_from_ms = node->window_from_ms;
    n->window_until_ms = node->window_until_ms;
    window_changed(s, n, false);
    node_labels(s, n, node);
    node_domains(s, n);
    mix_kind_set(s, n);
    if (n->up != node->up) {
        n->up = node->up;
        task_node_lost(s, n, !node->up);
    }
    if (retyped)
        types_recount(s);
    inventory_changed(s, changed);
    return 0;
}

int sched_node_remove(struct sched *s, uint64_t id)
{
    struct node *n = node_find(s, id);
    if (n == NULL)
        return -ENOENT;
    for (const struct task *t = n->tasks; t != NULL; t = t->next)
        if (t->phase != TASK_HELD)
            return -EBUSY;
    task_node_unhold(s, n);
    for (size_t i = 0; i < s->moving.len; i++)
        if (s->moving.items[i].node == n) {
            move_drop(s, s->moving.items[i].workload);
            i = SIZE_MAX; /* the list has changed: from the start */
        }
    node_untouch(s, n);
    window_changed(s, n, true);
    node_list_remove(s, n);
    s->nodes_epoch++;
    map_del(&s->nodes, id);
    node_free(n);
    inventory_changed(s, true);
    return 0;
}

/* ---- capacity ---------------------------------------------------------------------------- */

static void capacity_add(struct amounts *sum, enum sched_resource r, int64_t amount)
{
    sum->v[r] = qty_add_sat(sum->v[r], amount);
}

static void capacity_of(const struct node *n, struct amounts *sum)
{
    for (uint32_t d = 0; d < n->device_count; d++)
        capacity_add(sum, SCHED_GPU_MILLI,
                     n->devices[d].mig != NULL ? n->devices[d].mig_milli : WHOLE_MILLI);
    capacity_add(sum, SCHED_CPU_MILLI, n->cpu);
    capacity_add(sum, SCHED_MEMORY_BYTES, n->memory);
}

static void capacity_in_use(const struct node *n, struct amounts *sum)
{
    for (const struct task *t = n->tasks; t != NULL; t = t->next) {
        if (t->phase != TASK_RUNNING)
            continue;
        struct amounts charge = task_charge(t->workload, (uint32_t)(t - t->workload->tasks));
        for (int r = 0; r < SCHED_RESOURCES; r++)
            capacity_add(sum, (enum sched_resource)r, charge.v[r]);
    }
}

void node_capacity_refresh(struct sched *s)
{
    if (!s->capacity_stale)
        return;
    struct amounts sum = {0};
    for (size_t i = 0; i < s->node_list.len; i++) {
        const struct node *n = s->node_list.items[i];
        if (node_takes(n))
            capacity_of(n, &sum);
        else if (n->up)
            capacity_in_use(n, &sum);
    }
    s->capacity_stale = false;
    if (memcmp(&sum, &s->capacity, sizeof(sum)) != 0) {
        s->capacity = sum;
        s->shares_stale = s->quotas_stale = true;
    }
}

/* ---- launches ---------------------------------------------------------------------------- */

void node_refused(struct sched *s, struct node *n, uint64_t workload)
{
    if (n->refused_by != workload)
        n->refusals++;
    n->refused_by = workload;
    if (n->refusals < 2)
        return;
    uint32_t doublings = n->refusals - 2;
    doublings = doublings < REFUSALS_MAX ? doublings : REFUSALS_MAX;
    n->avoid_until_ms =
        qty_add_sat(s->now_ms, qty_mul_div(s->config.backoff_ms, (int64_t)1 << doublings, 1));
    states_avoided(s, n, n->avoid_until_ms);
}

void node_launched(struct node *n)
{
    n->refused_by = 0;
    n->refusals = 0;
    if (n->avoid_until_ms == 0)
        return;
    n->avoid_until_ms = 0;
    states_note(n);
}
