/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State that is rebuilt from what a store would keep equals the state that lived on.
 */
#include <stdio.h>
#include <string.h>

#include "prop_world.h"

#define WAITING_MAX 100

static bool restore_task(struct prop_world *w, const struct prop_workload *p, uint32_t t)
{
    const struct prop_task *task = &p->tasks[t];
    enum sched_task_state state = SCHED_TASK_PENDING;
    int64_t since = task->since_ms;
    switch (task->phase) {
    case PROP_PENDING:
        return true;
    case PROP_HELD:
        state = SCHED_TASK_HELD;
        since = task->until_ms;
        break;
    case PROP_RUNNING:
        state = SCHED_TASK_RUNNING;
        break;
    case PROP_LEAVING:
    case PROP_ENDING:
        state = SCHED_TASK_STOPPING;
        break;
    case PROP_DONE:
        state = SCHED_TASK_DONE;
        break;
    }
    bool placed = state != SCHED_TASK_DONE;
    int rc = sched_task_restore(w->s[1], p->decl.id, t, state, placed ? task->node + 1 : 0,
                                task->devices, placed ? task->device_count : 0, since);
    if (rc < 0)
        return prop_fail(w, "task %llu/%u in state %d is not restored: %d",
                         (unsigned long long)p->decl.id, t, (int)state, rc);
    return true;
}

static bool restore_workload(struct prop_world *w, const struct prop_workload *p)
{
    struct sched_workload decl = p->decl;
    decl.accepted = true;
    if (!p->known && prop_count(p, PROP_ENDING) == 0)
        return true;
    int rc = sched_workload_add(w->s[1], &decl, NULL);
    if (rc < 0)
        return prop_fail(w, "workload %llu is not restored: %d", (unsigned long long)decl.id, rc);
    for (uint32_t t = 0; t < decl.task_count; t++) {
        if (!restore_task(w, p, t))
            return false;
    }
    rc = p->known ? 0 : sched_workload_remove(w->s[1], decl.id);
    return rc == 0 || prop_fail(w, "a restored workload is not removed: %d", rc);
}

static bool usage_alike(struct prop_world *w)
{
    for (uint32_t t = 0; t < w->team_count; t++) {
        struct sched_team_usage a, b;
        if (sched_team_usage(w->s[0], t + 1, &a) < 0 || sched_team_usage(w->s[1], t + 1, &b) < 0 ||
            memcmp(&a, &b, sizeof(a)) != 0)
            return prop_fail(w, "team %u has other sums after a rebuild", t);
    }
    return true;
}

static void rebuilt_drop(struct prop_world *w)
{
    if (w->s[1] != NULL)
        sched_destroy(w->s[1]);
    w->s[1] = NULL;
}

/* Which part of the searches a turn makes depends on the turns before. */
static bool too_many_wait(const struct prop_world *w)
{
    uint32_t waiting = 0;
    for (size_t i = 0; i < w->workloads.len; i++)
        waiting += w->workloads.items[i]->known &&
                   prop_count(w->workloads.items[i], PROP_PENDING) > 0;
    return waiting > WAITING_MAX;
}

/* Whom a reservation was given to before, and what it held back, is not restored. */
static bool may_reserve(const struct prop_world *w)
{
    for (size_t i = 0; i < w->workloads.len; i++) {
        const struct prop_workload *p = w->workloads.items[i];
        if (p->decl.limit_ms > 0 && prop_count(p, PROP_RUNNING) > 0)
            return true;
    }
    return false;
}

void prop_rebuilt_review(struct prop_world *w)
{
    if (w->s[1] != NULL && (too_many_wait(w) || may_reserve(w)))
        rebuilt_drop(w);
}

bool prop_rebuild_exact(const struct prop_world *w)
{
    if (w->launch_refused)
        return false; /* back-off is not part of what is restored */
    if (w->pairs.len > 0 || too_many_wait(w) || may_reserve(w))
        return false; /* nor is who has just won a place, which he keeps until something happens */
    for (size_t i = 0; i < w->workloads.len; i++) {
        const struct prop_workload *p = w->workloads.items[i];
        /* for whom a task stops, and since when a gang is short, is not restored either */
        if (p->short_since_ms >= 0 ||
            prop_count(p, PROP_LEAVING) + prop_count(p, PROP_ENDING) + prop_count(p, PROP_HELD) > 0)
            return false;
    }
    return true;
}

bool prop_rebuild(struct prop_world *w)
{
    rebuilt_drop(w);
    w->s[1] = sched_create(&w->config);
    if (prop_topology_tell(w->s[1]) < 0)
        return prop_fail(w, "the topology is not restored");
    for (uint32_t t = 0; t < w->team_count; t++) {
        if (sched_team_set(w->s[1], &w->teams[t].decl) < 0)
            return prop_fail(w, "team %u is not restored", t);
    }
    for (uint32_t n = 0; n < w->node_count; n++) {
        if (sched_node_set(w->s[1], &w->nodes[n].decl) < 0)
            return prop_fail(w, "node %u is not restored", n);
    }
    for (size_t i = 0; i < w->workloads.len; i++) {
        if (!restore_workload(w, w->workloads.items[i]))
            return false;
    }
    char what[200] = "";
    if (sched_verify(w->s[1], what, sizeof(what)) < 0)
        return prop_fail(w, "sched_verify after a rebuild: %s", what);
    if (!usage_alike(w))
        return false;
    if (!prop_rebuild_exact(w)) { /* it stands on its own, but need not decide the same */
        rebuilt_drop(w);
        return true;
    }
    /* the one that lived on is at rest, and so must this one be */
    const struct sched_decisions *d = sched_turn(w->s[1], w->now_ms);
    for (size_t i = 0; i < d->count; i++)
        prop_trace_decision(w, "rebuilt: ", &d->items[i]);
    return d->count == 0 ||
           prop_fail(w, "after a rebuild %zu decisions are made at rest", d->count);
}
