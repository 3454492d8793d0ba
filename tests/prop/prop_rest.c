/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must hold when nothing moves: sums and shares as computed the slow way, nobody waiting
 * for what is free, and an answer for each who waits.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "prop_naive.h"

static bool amounts_same(struct prop_world *w, uint32_t team, const char *what,
                         const int64_t *theirs, const struct naive_amounts *ours)
{
    for (int r = 0; r < SCHED_RESOURCES; r++) {
        if (theirs[r] != ours->v[r])
            return prop_fail(w, "team %u, resource %d: %s is %" PRId64 ", computed %" PRId64, team,
                             r, what, theirs[r], ours->v[r]);
    }
    return true;
}

static bool usage_check(struct prop_world *w)
{
    struct naive_sums now = naive_sums(w, NAIVE_NOW);
    struct naive_shares sh = naive_shares(w);
    for (uint32_t t = 0; t < w->team_count; t++) {
        struct sched_team_usage u;
        int rc = sched_team_usage(w->s, t + 1, &u);
        if (rc < 0)
            return prop_fail(w, "usage of team %u: %d", t, rc);
        if (!amounts_same(w, t, "used", u.used, &now.used[t]) ||
            !amounts_same(w, t, "non-preemptible use", u.used_nonpreemptible, &now.firm[t]) ||
            !amounts_same(w, t, "demand", u.demand, &sh.demand[t]) ||
            !amounts_same(w, t, "share", u.share, &sh.share[t]) ||
            !amounts_same(w, t, "entitled", u.entitled, &sh.entitled[t]))
            return false;
    }
    return true;
}

static bool states_check(struct prop_world *w)
{
    static const enum sched_task_state same[] = {
        [PROP_PENDING] = SCHED_TASK_PENDING, [PROP_HELD] = SCHED_TASK_HELD,
        [PROP_RUNNING] = SCHED_TASK_RUNNING, [PROP_LEAVING] = SCHED_TASK_STOPPING,
        [PROP_ENDING] = SCHED_TASK_STOPPING, [PROP_DONE] = SCHED_TASK_DONE,
    };
    for (size_t i = 0; i < w->workloads.len; i++) {
        const struct prop_workload *p = w->workloads.items[i];
        for (uint32_t t = 0; p->known && t < p->decl.task_count; t++) {
            enum sched_task_state state;
            uint64_t node = 0;
            if (sched_task_state(w->s, p->decl.id, t, &state, &node) < 0)
                return prop_fail(w, "workload %zu is lost", i);
            if (state != same[p->tasks[t].phase])
                return prop_fail(w, "task %zu/%u has another state than decided", i, t);
            if (p->tasks[t].phase == PROP_RUNNING && node != p->tasks[t].node + 1)
                return prop_fail(w, "task %zu/%u is on another node than decided", i, t);
        }
    }
    return true;
}

/* Nothing is promised and nothing stops, so that what is free is free. */
static bool all_quiet(const struct prop_world *w)
{
    for (size_t i = 0; i < w->workloads.len; i++) {
        const struct prop_workload *p = w->workloads.items[i];
        if (prop_count(p, PROP_HELD) + prop_count(p, PROP_LEAVING) + prop_count(p, PROP_ENDING) > 0)
            return false;
    }
    return true;
}

static bool fits_somewhere(const struct prop_world *w, const struct prop_workload *p)
{
    const struct sched_request *q = p->decl.tasks[0].request;
    uint16_t devices[PROP_DEVICES_MAX];
    for (uint32_t n = 0; n < w->node_count; n++) {
        if (naive_node_suits(w, q, n) && naive_leaves_time(w, p, n) &&
            sim_ledger_fit(&w->now, n, q, devices) &&
            naive_types_open(w, p, n, naive_placed_milli(w, q, n, devices, naive_devices(q)),
                             NAIVE_NOW))
            return true;
    }
    return false;
}

/* A single task that fits, with open gates, does not wait. */
static bool idle_check(struct prop_world *w)
{
    if (!all_quiet(w))
        return true;
    struct naive_sums now = naive_sums(w, NAIVE_NOW);
    for (size_t i = 0; i < w->workloads.len; i++) {
        struct prop_workload *p = w->workloads.items[i];
        if (!p->known || p->backing_off || p->decl.task_count != 1 ||
            p->tasks[0].phase != PROP_PENDING)
            continue;
        struct sched_explanation x = {0};
        if (!naive_gates_open(w, p, 0, &now) || !fits_somewhere(w, p))
            continue;
        if (sched_explain(w->s, p->decl.id, w->now_ms, &x) == 0 &&
            x.reason == SCHED_REASON_RESERVED)
            continue; /* it would delay the one that has a reservation */
        return prop_fail(w, "workload %zu fits, its gates are open, and it waits (%s)", i,
                         sched_reason_name(x.reason));
    }
    return true;
}

/* Whatever was moved has found its new place, once all that was to stop has stopped. */
static bool moved_check(struct prop_world *w)
{
    if (!all_quiet(w) || w->windows) /* maintenance may come between */
        return true;
    for (size_t i = 0; i < w->workloads.len; i++) {
        const struct prop_workload *p = w->workloads.items[i];
        if (p->moved && !prop_minimum_met(p, false))
            return prop_fail(w, "workload %zu was moved and has no new place", i);
    }
    return true;
}

static bool explain_check(struct prop_world *w)
{
    for (size_t i = 0; i < w->workloads.len; i++) {
        const struct prop_workload *p = w->workloads.items[i];
        struct sched_explanation x;
        uint32_t waiting = prop_count(p, PROP_PENDING) + prop_count(p, PROP_HELD);
        if (!p->known || !prop_chance(w, 20))
            continue;
        int rc = sched_explain(w->s, p->decl.id, w->now_ms, &x);
        if (waiting == 0 && prop_count(p, PROP_LEAVING) == 0 && rc != -EINVAL)
            return prop_fail(w, "workload %zu does not wait and is explained: %d", i, rc);
        if (waiting == 0)
            continue;
        if (rc < 0 || x.reason >= SCHED_REASONS || sched_reason_name(x.reason) == NULL)
            return prop_fail(w, "workload %zu waits and is not explained: %d", i, rc);
        if (x.reason == SCHED_REASON_NONE)
            return prop_fail(w, "workload %zu waits for nothing", i);
        bool queued = x.reason != SCHED_REASON_HELD && x.reason != SCHED_REASON_BACKOFF &&
                      x.reason != SCHED_REASON_STOPPING && /* or on its way to a new place */
                      prop_count(p, PROP_LEAVING) + prop_count(p, PROP_ENDING) == 0;
        if ((queued && x.position == 0) || x.position > x.pending)
            return prop_fail(w, "workload %zu (%s) is number %u of %u", i,
                             sched_reason_name(x.reason), x.position, x.pending);
        if (x.holder_count > SCHED_EXPLAIN_HOLDERS || x.missing < 0 || x.free < 0)
            return prop_fail(w, "workload %zu (%s): missing %" PRId64 ", free %" PRId64, i,
                             sched_reason_name(x.reason), x.missing, x.free);
    }
    return true;
}

bool prop_rest_check(struct prop_world *w)
{
    int64_t due = sched_next_ms(w->s);
    if (due <= w->now_ms)
        return prop_fail(w, "a turn is due at %" PRId64 " and was given at %" PRId64, due,
                         w->now_ms);
    return usage_check(w) && states_check(w) && idle_check(w) && moved_check(w) && explain_check(w);
}
