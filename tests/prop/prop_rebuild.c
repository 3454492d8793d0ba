/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State that is rebuilt from what a store would keep equals the state that lived on.
 *
 * Not restored are the back-off of refused launches, for whom a task stops, since when a gang is
 * short, who has just won a place (and keeps it until something happens), and whom a reservation
 * was given to; where one of these matters the rebuilt scheduler may have something to decide.
 */
#include <stdio.h>
#include <string.h>

#include "prop_judge.h"
#include "sched/world.h"

#define WAITING_MAX 100

static bool restore_task(struct prop_world *w, struct sched *s, const struct prop_workload *p,
                         uint32_t t)
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
    int rc = sched_task_restore(s, p->decl.id, t, state, placed ? task->node + 1 : 0, task->devices,
                                placed ? task->device_count : 0, since);
    if (rc < 0)
        return prop_fail(w, "task %llu/%u in state %d is not restored: %d",
                         (unsigned long long)p->decl.id, t, (int)state, rc);
    return true;
}

static bool restore_workload(struct prop_world *w, struct sched *s, const struct prop_workload *p)
{
    struct sched_workload decl = p->decl;
    decl.accepted = true;
    if (!p->known && prop_count(p, PROP_ENDING) == 0)
        return true;
    int rc = sched_workload_add(s, &decl, NULL);
    if (rc < 0)
        return prop_fail(w, "workload %llu is not restored: %d", (unsigned long long)decl.id, rc);
    for (uint32_t t = 0; t < decl.task_count; t++) {
        if (!restore_task(w, s, p, t))
            return false;
    }
    rc = p->known ? 0 : sched_workload_remove(s, decl.id);
    return rc == 0 || prop_fail(w, "a restored workload is not removed: %d", rc);
}

static bool usage_alike(struct prop_world *w, struct sched *rebuilt)
{
    for (uint32_t t = 0; t < w->team_count; t++) {
        struct sched_team_usage a, b;
        memset(&a, 0, sizeof(a)); /* what pads it as well */
        memset(&b, 0, sizeof(b));
        if (sched_team_usage(w->s, t + 1, &a) < 0 || sched_team_usage(rebuilt, t + 1, &b) < 0 ||
            memcmp(&a, &b, sizeof(a)) != 0)
            return prop_fail(w, "team %u has other sums after a rebuild", t);
    }
    return true;
}

/* What has started since the last event is not evicted; a new scheduler does not know of it. */
static bool just_started(const struct prop_world *w, const struct prop_workload *p)
{
    for (uint32_t t = 0; t < p->decl.task_count; t++) {
        if (p->tasks[t].phase == PROP_RUNNING && p->tasks[t].epoch == w->s->outside_epoch)
            return true;
    }
    return false;
}

/* Is all that decisions depend on restored? */
static bool exact(const struct prop_world *w)
{
    if (w->launch_refused || w->pairs.len > 0 || prop_guards_matter(w))
        return false;
    uint32_t waiting = 0;
    for (size_t i = 0; i < w->workloads.len; i++) {
        const struct prop_workload *p = w->workloads.items[i];
        waiting += p->known && prop_count(p, PROP_PENDING) > 0;
        if (p->short_since_ms >= 0 || just_started(w, p) ||
            (p->decl.limit_ms > 0 && prop_count(p, PROP_RUNNING) > 0) ||
            prop_count(p, PROP_LEAVING) + prop_count(p, PROP_ENDING) + prop_count(p, PROP_HELD) > 0)
            return false;
    }
    return waiting <= WAITING_MAX; /* beyond, searches are spread over turns */
}

/* The one that lived on is at rest, and so must this one be. */
static bool at_rest(struct prop_world *w, struct sched *rebuilt)
{
    const struct sched_decisions *d = sched_turn(rebuilt, w->now_ms);
    for (size_t i = 0; i < d->count; i++)
        prop_trace_decision(w, "rebuilt: ", &d->items[i]);
    return d->count == 0 ||
           prop_fail(w, "after a rebuild %zu decisions are made at rest", d->count);
}

static bool rebuild(struct prop_world *w, struct sched *s)
{
    if (prop_topology_tell(s) < 0)
        return prop_fail(w, "the topology is not restored");
    for (uint32_t t = 0; t < w->team_count; t++) {
        if (sched_team_set(s, &w->teams[t].decl) < 0)
            return prop_fail(w, "team %u is not restored", t);
    }
    for (uint32_t n = 0; n < w->node_count; n++) {
        if (sched_node_set(s, &w->nodes[n].decl) < 0)
            return prop_fail(w, "node %u is not restored", n);
    }
    for (size_t i = 0; i < w->workloads.len; i++) {
        if (!restore_workload(w, s, w->workloads.items[i]))
            return false;
    }
    char what[200] = "";
    if (sched_verify(s, what, sizeof(what)) < 0)
        return prop_fail(w, "sched_verify after a rebuild: %s", what);
    return w->windows || usage_alike(w, s); /* windows begin with the first turn */
}

static void epochs_forget(struct prop_world *w)
{
    for (size_t i = 0; i < w->workloads.len; i++) {
        for (uint32_t t = 0; t < PROP_TASKS_MAX; t++)
            w->workloads.items[i]->tasks[t].epoch = 0;
    }
}

bool prop_rebuild(struct prop_world *w)
{
    struct sched *s = sched_create(&w->config);
    s->lots_few = w->s->lots_few;
    bool ok = rebuild(w, s);
    bool go_on = ok && prop_chance(w, 50);
    if (ok && !go_on && exact(w))
        ok = at_rest(w, s);
    if (go_on) { /* as after a restart, which is an event from outside */
        struct sched *former = w->s;
        w->s = s;
        s = former;
        prop_outside(w);
        vec_clear(&w->guards);
        epochs_forget(w);
        prop_trace(w, "the history goes on with a rebuilt scheduler");
    }
    sched_destroy(s);
    return ok && (!go_on || prop_turns(w));
}
