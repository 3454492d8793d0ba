/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/team.h"

#include <errno.h>
#include <stdlib.h>

#include "sched/past.h"
#include "sched/queue.h"
#include "sched/shape.h"
#include "sched/share.h"
#include "sched/types.h"

#define DEPTH_MAX 64
#define WEIGHT_MAX 1000000000

void team_root_init(struct sched *s)
{
    struct team *root = &s->root;
    for (int r = 0; r < SCHED_RESOURCES; r++)
        root->guarantee[r] = root->limit[r] = SCHED_UNLIMITED;
    queue_team_init(root);
}

void team_free(struct team *t)
{
    vec_done(&t->children);
    vec_done(&t->types);
    vec_done(&t->lots[0]);
    vec_done(&t->lots[1]);
    heap_done(&t->ready[0]);
    heap_done(&t->ready[1]);
    if (t->parent != NULL)
        free(t);
}

struct team *team_find(const struct sched *s, uint64_t id)
{
    return map_get(&s->teams, id);
}

void team_use(struct team *t, enum view view, const struct amounts *a, bool firm, int sign)
{
    for (; t != NULL; t = t->parent) {
        amounts_add(&t->used[view], a, sign);
        if (firm)
            amounts_add(&t->firm[view], a, sign);
        if (view == VIEW_THEN)
            t->next_epoch[0] = t->next_epoch[1] = 0;
        t->eased += sign < 0;
    }
}

uint64_t team_eased(const struct team *t)
{
    uint64_t sum = 0;
    for (; t != NULL; t = t->parent)
        sum += t->eased;
    return sum;
}

void team_demand(struct team *t, const struct amounts *a, int sign)
{
    for (; t != NULL; t = t->parent) {
        amounts_add(&t->demand, a, sign);
        t->demand_changed = true;
    }
}

void team_ready(struct team *t, bool idle, int change)
{
    for (; t != NULL; t = t->parent) {
        t->ready_count[idle] += (uint32_t)change;
        t->next_epoch[idle] = 0;
    }
}

void team_idle_running(struct team *t, int change)
{
    for (; t != NULL; t = t->parent)
        t->idle_running += (uint32_t)change;
}

void team_part(struct team *a, struct team *b, struct team **ret_a, struct team **ret_b)
{
    while (a->depth > b->depth && a->parent != b)
        a = a->parent;
    while (b->depth > a->depth && b->parent != a)
        b = b->parent;
    while (a->parent != b->parent) {
        if (a->depth >= b->depth)
            a = a->parent;
        else
            b = b->parent;
    }
    *ret_a = a;
    *ret_b = b;
}

static bool child_before(const struct team *a, const struct team *b)
{
    return a->age != b->age ? a->age < b->age : a->id < b->id;
}

static void child_insert(struct team *parent, struct team *t)
{
    vec_push(&parent->children, t);
    size_t i = parent->children.len - 1;
    for (; i > 0 && child_before(t, parent->children.items[i - 1]); i--)
        parent->children.items[i] = parent->children.items[i - 1];
    parent->children.items[i] = t;
}

static void child_remove(struct team *parent, struct team *t)
{
    size_t i = 0;
    while (parent->children.items[i] != t)
        i++;
    for (parent->children.len--; i < parent->children.len; i++)
        parent->children.items[i] = parent->children.items[i + 1];
}

/* Adds all sums of T to PARENT and above, or takes them away. */
static void team_attach(struct team *parent, const struct team *t, int sign)
{
    for (int v = 0; v < VIEWS; v++) {
        struct amounts soft = t->used[v];
        amounts_add(&soft, &t->firm[v], -1);
        team_use(parent, (enum view)v, &soft, false, sign);
        team_use(parent, (enum view)v, &t->firm[v], true, sign);
    }
    team_demand(parent, &t->demand, sign);
    for (struct team *p = parent; p != NULL; p = p->parent)
        amounts_add(&p->moving, &t->moving, sign);
    team_ready(parent, false, sign * (int)t->ready_count[0]);
    team_ready(parent, true, sign * (int)t->ready_count[1]);
    team_idle_running(parent, sign * (int)t->idle_running);
}

static uint32_t height(const struct team *t)
{
    uint32_t h = 0;
    for (size_t i = 0; i < t->children.len; i++) {
        uint32_t below = 1 + height(t->children.items[i]);
        h = below > h ? below : h;
    }
    return h;
}

static void depth_set(struct team *t)
{
    t->depth = t->parent->depth + 1;
    for (size_t i = 0; i < t->children.len; i++)
        depth_set(t->children.items[i]);
}

static bool team_ok(const struct sched_team *team)
{
    if (team->id == 0 || team->id == team->parent || team->weight < 0 || team->weight > WEIGHT_MAX)
        return false;
    for (int r = 0; r < SCHED_RESOURCES; r++)
        if (team->guarantee[r] < 0 || team->limit[r] < 0)
            return false;
    return types_ok(team);
}

static int parent_check(const struct sched *s, const struct team *t, const struct team *parent)
{
    if (parent != &s->root && parent->workloads > 0)
        return -EINVAL;
    for (const struct team *p = parent; t != NULL && p != NULL; p = p->parent)
        if (p == t)
            return -EINVAL;
    uint32_t below = t == NULL ? 0 : height(t);
    return parent->depth + 1 + below > DEPTH_MAX ? -EINVAL : 0;
}

int sched_team_set(struct sched *s, const struct sched_team *team)
{
    if (!team_ok(team))
        return -EINVAL;
    struct team *parent = team->parent == 0 ? &s->root : team_find(s, team->parent);
    if (parent == NULL)
        return -ENOENT;
    struct team *t = team_find(s, team->id);
    int r = parent_check(s, t, parent);
    if (r < 0)
        return r;
    if (t == NULL) {
        t = mem_new(1, sizeof(*t));
        t->id = team->id;
        for (int k = 0; k < SCHED_RESOURCES; k++)
            t->bias[k] = PAST_EIGHTHS;
        queue_team_init(t);
        map_put(&s->teams, t->id, t);
    } else {
        child_remove(t->parent, t);
        team_attach(t->parent, t, -1);
    }
    t->parent = parent;
    t->age = team->age;
    t->weight = team->weight;
    t->priority = team->priority;
    t->eased++;
    for (int k = 0; k < SCHED_RESOURCES; k++) {
        t->guarantee[k] = team->guarantee[k];
        t->limit[k] = team->limit[k];
    }
    child_insert(parent, t);
    team_attach(parent, t, 1);
    depth_set(t);
    types_set(s, t, team);
    types_recount(s);
    past_rebias(s);
    s->shares_stale = s->quotas_stale = true;
    s->outside_epoch++;
    s->retry = s->retry_all = true;
    return 0;
}

int sched_team_remove(struct sched *s, uint64_t id)
{
    struct team *t = team_find(s, id);
    if (t == NULL)
        return -ENOENT;
    if (t->children.len > 0 || t->workloads > 0)
        return -EBUSY;
    child_remove(t->parent, t);
    for (size_t i = 0; i < s->queues.len && t->in_queues; i++)
        if (s->queues.items[i] == t) {
            vec_remove_swap(&s->queues, i);
            t->in_queues = false;
        }
    map_del(&s->teams, id);
    team_free(t);
    s->shares_stale = s->quotas_stale = true;
    s->outside_epoch++;
    return 0;
}

int sched_team_usage(struct sched *s, uint64_t id, struct sched_team_usage *ret_usage)
{
    const struct team *t = team_find(s, id);
    if (t == NULL)
        return -ENOENT;
    share_refresh(s);
    for (int r = 0; r < SCHED_RESOURCES; r++) {
        ret_usage->used[r] = t->used[VIEW_NOW].v[r];
        ret_usage->used_nonpreemptible[r] = t->firm[VIEW_NOW].v[r];
        ret_usage->demand[r] = t->demand.v[r];
        ret_usage->share[r] = t->share.v[r];
        ret_usage->entitled[r] = t->entitled.v[r];
        ret_usage->past[r] = t->past[r];
        ret_usage->bias_milli[r] = t->bias[r] * (1000 / PAST_EIGHTHS);
    }
    return 0;
}

int sched_team_type_used(struct sched *s, uint64_t id, const char *gpu_type, int64_t *ret_used)
{
    const struct team *t = team_find(s, id);
    const struct type_quota *q =
        t == NULL || gpu_type == NULL ? NULL : types_find(t, string_intern(s, gpu_type));
    if (q == NULL)
        return -ENOENT;
    *ret_used = q->used[VIEW_NOW];
    return 0;
}
