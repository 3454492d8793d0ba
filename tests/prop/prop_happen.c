/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may happen in a history: submissions, ends, cancels, failures, lost nodes, edits.
 */
#include <errno.h>
#include <string.h>

#include "prop_world.h"

void prop_outside(struct prop_world *w)
{
    vec_clear(&w->pairs);
    for (size_t i = 0; i < w->workloads.len; i++)
        w->workloads.items[i]->moved = false;
}

static bool refused(struct prop_world *w, const char *what, int rc)
{
    return rc < 0 ? prop_fail(w, "%s is refused: %d", what, rc) : true;
}

static bool submit(struct prop_world *w)
{
    struct prop_workload *p = prop_workload_make(w);
    int rc = prop_report_add(w, &p->decl);
    if (rc == -E2BIG && !p->decl.accepted)
        return true; /* the id is used again by the next one */
    if (rc < 0)
        return prop_fail(w, "workload %llu is refused: %d", (unsigned long long)p->decl.id, rc);
    p->known = true;
    vec_push(&w->workloads, p);
    return true;
}

/* A task in one of the phases of MASK; false if there is none. */
static bool task_pick(struct prop_world *w, uint32_t mask, uint32_t *ret_workload,
                      uint32_t *ret_task)
{
    uint32_t seen = 0;
    for (uint32_t i = 0; i < w->workloads.len; i++) {
        const struct prop_workload *p = w->workloads.items[i];
        for (uint32_t t = 0; t < p->decl.task_count; t++) {
            if ((mask & (1u << p->tasks[t].phase)) == 0 || prop_below(w, ++seen) != 0)
                continue;
            *ret_workload = i;
            *ret_task = t;
        }
    }
    return seen > 0;
}

static bool task_off(struct prop_world *w, uint32_t workload, uint32_t task, enum sched_stop how)
{
    struct prop_workload *p = w->workloads.items[workload];
    bool over = how == SCHED_STOP_DONE || p->tasks[task].phase == PROP_ENDING;
    if (!refused(w, "a stop", prop_report_stopped(w, p->decl.id, task, how)))
        return false;
    bool ok = prop_task_move(w, workload, task, over ? PROP_DONE : PROP_PENDING);
    prop_short_update(w, workload);
    return ok;
}

static void forget(struct prop_workload *p)
{
    p->known = false;
    for (uint32_t t = 0; t < p->decl.task_count; t++) {
        if (p->tasks[t].phase == PROP_PENDING)
            p->tasks[t].phase = PROP_DONE;
    }
}

static bool drop(struct prop_world *w, uint32_t workload)
{
    struct prop_workload *p = w->workloads.items[workload];
    if (!refused(w, "a removal", prop_report_remove(w, p->decl.id)))
        return false;
    for (uint32_t t = 0; t < p->decl.task_count; t++) {
        if (p->tasks[t].phase == PROP_HELD)
            prop_task_move(w, workload, t, PROP_PENDING);
        if (p->tasks[t].phase == PROP_LEAVING)
            p->tasks[t].phase = PROP_ENDING;
    }
    forget(p);
    p->short_since_ms = -1;
    return true;
}

/* All of it ends by itself. */
static bool finish(struct prop_world *w)
{
    uint32_t workload, task;
    if (!task_pick(w, 1u << PROP_RUNNING, &workload, &task))
        return true;
    struct prop_workload *p = w->workloads.items[workload];
    for (uint32_t t = 0; t < p->decl.task_count; t++) {
        enum prop_phase phase = p->tasks[t].phase;
        if ((phase == PROP_RUNNING || phase == PROP_LEAVING) &&
            !task_off(w, workload, t, SCHED_STOP_DONE))
            return false;
    }
    return drop(w, workload);
}

/* One task ends by itself, the others go on. */
static bool finish_task(struct prop_world *w)
{
    uint32_t workload, task;
    if (!task_pick(w, 1u << PROP_RUNNING, &workload, &task))
        return true;
    return task_off(w, workload, task, SCHED_STOP_DONE);
}

static bool cancel(struct prop_world *w)
{
    uint32_t workload, task;
    uint32_t mask = 1u << PROP_PENDING | 1u << PROP_HELD | 1u << PROP_RUNNING;
    if (!task_pick(w, mask, &workload, &task) || !w->workloads.items[workload]->known)
        return true;
    struct prop_workload *p = w->workloads.items[workload];
    for (uint32_t t = 0; t < p->decl.task_count; t++) {
        if (p->tasks[t].phase != PROP_RUNNING)
            continue;
        if (!refused(w, "a cancel", prop_report_stopping(w, p->decl.id, t)))
            return false;
        p->tasks[t].stop_ms = w->now_ms + (int64_t)prop_below(w, 5000);
        prop_task_move(w, workload, t, PROP_ENDING);
    }
    return drop(w, workload);
}

static bool fail_task(struct prop_world *w)
{
    uint32_t workload, task;
    if (!task_pick(w, 1u << PROP_RUNNING, &workload, &task))
        return true;
    return task_off(w, workload, task, SCHED_STOP_REQUEUE);
}

/* One task fails, and the caller stops the others, so that all of it starts anew. */
static bool restart(struct prop_world *w)
{
    uint32_t workload, task;
    if (!task_pick(w, 1u << PROP_RUNNING, &workload, &task))
        return true;
    struct prop_workload *p = w->workloads.items[workload];
    if (!task_off(w, workload, task, SCHED_STOP_REQUEUE))
        return false;
    for (uint32_t t = 0; t < p->decl.task_count; t++) {
        if (p->tasks[t].phase != PROP_RUNNING)
            continue;
        if (!refused(w, "a stop", prop_report_stopping(w, p->decl.id, t)))
            return false;
        p->tasks[t].stop_ms = w->now_ms + (int64_t)prop_below(w, 5000);
        prop_task_move(w, workload, t, PROP_LEAVING);
    }
    prop_short_update(w, workload);
    return true;
}

/* Refuses all tasks of a workload that started just now, as an engine would. */
static bool refuse_launch(struct prop_world *w)
{
    uint32_t workload, task;
    if (!w->refuses_launches || !task_pick(w, 1u << PROP_RUNNING, &workload, &task))
        return true;
    struct prop_workload *p = w->workloads.items[workload];
    w->launch_refused = true;
    p->backing_off = true;
    for (uint32_t t = 0; t < p->decl.task_count; t++) {
        if (p->tasks[t].phase == PROP_RUNNING && !task_off(w, workload, t, SCHED_STOP_REFUSED))
            return false;
    }
    return true;
}

static bool node_tell(struct prop_world *w, uint32_t node)
{
    const struct sched_node *d = &w->nodes[node].decl;
    sim_ledger_node_set(&w->now, node, d);
    sim_ledger_node_set(&w->then, node, d);
    return refused(w, "a node", prop_report_node(w, d));
}

static bool node_flip(struct prop_world *w)
{
    uint32_t node = (uint32_t)prop_below(w, w->node_count);
    struct sched_node *d = &w->nodes[node].decl;
    if (w->windows && prop_chance(w, 50)) {
        d->window_from_ms = w->now_ms + (int64_t)prop_below(w, 30000);
        d->window_until_ms =
            prop_chance(w, 80) ? d->window_from_ms + 1000 + (int64_t)prop_below(w, 20000) : 0;
        return node_tell(w, node);
    }
    if (prop_chance(w, 50)) {
        d->schedulable = !d->schedulable;
        return node_tell(w, node);
    }
    d->up = !d->up;
    if (!node_tell(w, node))
        return false;
    if (d->up)
        return true;
    for (uint32_t i = 0; i < w->workloads.len; i++) { /* confirmed gone */
        struct prop_workload *p = w->workloads.items[i];
        for (uint32_t t = 0; t < p->decl.task_count; t++) {
            enum prop_phase phase = p->tasks[t].phase;
            bool on = phase == PROP_RUNNING || phase == PROP_LEAVING || phase == PROP_ENDING;
            if (on && p->tasks[t].node == node &&
                !task_off(w, i, t, phase == PROP_ENDING ? SCHED_STOP_DONE : SCHED_STOP_REQUEUE))
                return false;
        }
    }
    return true;
}

static bool team_edit(struct prop_world *w)
{
    uint32_t team = (uint32_t)prop_below(w, w->team_count);
    struct sched_team *d = &w->teams[team].decl;
    prop_team_numbers(w, d);
    return refused(w, "a team", prop_report_team(w, d));
}

bool prop_happen(struct prop_world *w)
{
    prop_outside(w);
    uint64_t dice = prop_below(w, 100);
    if (dice < 60)
        return submit(w);
    if (dice < 74)
        return finish(w);
    if (dice < 78)
        return finish_task(w);
    if (dice < 84)
        return cancel(w);
    if (dice < 88)
        return w->restarts ? restart(w) : fail_task(w);
    if (dice < 91)
        return refuse_launch(w);
    if (dice < 96)
        return node_flip(w);
    return team_edit(w);
}

bool prop_make_room(struct prop_world *w)
{
    prop_outside(w);
    return prop_chance(w, 50) ? finish(w) : cancel(w);
}

bool prop_stops_due(struct prop_world *w)
{
    for (uint32_t i = 0; i < w->workloads.len; i++) {
        struct prop_workload *p = w->workloads.items[i];
        for (uint32_t t = 0; t < p->decl.task_count; t++) {
            enum prop_phase phase = p->tasks[t].phase;
            bool stopping = phase == PROP_LEAVING || phase == PROP_ENDING;
            if (!stopping || p->tasks[t].stop_ms > w->now_ms)
                continue;
            if (!task_off(w, i, t, phase == PROP_ENDING ? SCHED_STOP_DONE : SCHED_STOP_REQUEUE))
                return false;
        }
    }
    return true;
}

bool prop_nonsense(struct prop_world *w)
{
    uint32_t workload, task;
    bool picked = task_pick(w, 1u << PROP_PENDING | 1u << PROP_DONE, &workload, &task);
    const struct prop_workload *p = picked ? w->workloads.items[workload] : NULL;
    struct sched_team cycle = w->teams[w->team_count - 1].decl;
    cycle.parent = cycle.id;
    switch (prop_below(w, 8)) {
    case 0:
        return !picked || prop_report_stopped(w, p->decl.id, task, SCHED_STOP_REQUEUE) < 0 ||
               prop_fail(w, "a stop of a task that holds nothing is accepted");
    case 1:
        return !picked || prop_report_stopping(w, p->decl.id, task) < 0 ||
               prop_fail(w, "a cancel of a task that holds nothing is accepted");
    case 2:
        return !picked || !p->known || prop_report_add(w, &p->decl) == -EEXIST ||
               prop_fail(w, "a workload is accepted twice");
    case 3:
        return prop_report_remove(w, 999999) == -ENOENT ||
               prop_fail(w, "an unknown workload is removed");
    case 4:
        return prop_report_stopped(w, 999999, 0, SCHED_STOP_DONE) < 0 ||
               prop_fail(w, "an unknown workload stops");
    case 5:
        return !picked || !p->known ||
               prop_report_stopped(w, p->decl.id, p->decl.task_count, SCHED_STOP_DONE) < 0 ||
               prop_fail(w, "a task beyond the last one stops");
    case 6:
        return prop_report_team(w, &cycle) == -EINVAL || prop_fail(w, "a cycle is accepted");
    default: /* what is known already: no change */
        return refused(w, "a known node", prop_report_node(w, &w->nodes[0].decl)) &&
               refused(w, "a known team", prop_report_team(w, &w->teams[0].decl));
    }
}
