/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/scenario_check.h"

#include <stdarg.h>
#include <string.h>

struct check {
    struct sim_world *w;
    const struct sim_expect *e;
    const char *when;
    struct strbuf *out;
    uint32_t differences;
};

static void differs(struct check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void differs(struct check *c, const char *fmt, ...)
{
    c->differences++;
    strbuf_addf(c->out, "# %s: ", c->when);
    va_list ap;
    va_start(ap, fmt);
    strbuf_addv(c->out, fmt, ap);
    va_end(ap);
    strbuf_addc(c->out, '\n');
}

/* " (no_capacity)": why the scheduler says it waits. */
static const char *why_pending(struct check *c, uint32_t workload, char *text, size_t size)
{
    struct sched_explanation x;
    text[0] = '\0';
    if (sim_world_state(c->w, workload) == SIM_STATE_PENDING &&
        sched_explain(c->w->sched, (uint64_t)workload + 1, SIM_EPOCH_MS + c->w->now_ms, &x) == 0)
        snprintf(text, size, " (%s)", sched_reason_name(x.reason));
    return text;
}

static void check_workload_node(struct check *c, const struct sim_expect_item *it)
{
    const struct sim_scenario *s = c->w->scenario;
    uint32_t running = 0;
    for (uint32_t t = 0; t < s->workloads[it->workload].task_count; t++) {
        if (sim_world_task_state(c->w, it->workload, t) != SIM_STATE_RUNNING)
            continue;
        running++;
        uint32_t node = c->w->workloads[it->workload].tasks[t].node;
        if (node != it->node)
            differs(c, "task '%s/%u' is on node '%s', expected '%s'", it->key, t,
                    s->nodes[node].name, it->node_name);
    }
    if (running == 0)
        differs(c, "workload '%s' runs nowhere, expected on node '%s'", it->key, it->node_name);
}

static void check_amount(struct check *c, const char *workload, const char *what, int64_t is,
                         int64_t wanted)
{
    if (wanted != SIM_UNSET && is != wanted)
        differs(c, "workload '%s' is told %s %lld, expected %lld", workload, what, (long long)is,
                (long long)wanted);
}

/* What it is told of its wait. */
static void check_explanation(struct check *c, const struct sim_expect_item *it)
{
    const struct sim_scenario *s = c->w->scenario;
    struct sched_explanation x = {0};
    if (it->reason == NULL)
        return;
    if (sched_explain(c->w->sched, (uint64_t)it->workload + 1, SIM_EPOCH_MS + c->w->now_ms, &x) <
        0) {
        differs(c, "workload '%s' does not wait, expected %s", it->key, it->reason);
        return;
    }
    const char *waits_for = x.waits_for > 0 && x.waits_for <= s->workload_count
                                ? s->workloads[x.waits_for - 1].name
                                : "";
    if (strcmp(sched_reason_name(x.reason), it->reason) != 0)
        differs(c, "workload '%s' waits for %s, expected %s", it->key, sched_reason_name(x.reason),
                it->reason);
    if (it->waits_for != NULL && strcmp(waits_for, it->waits_for) != 0)
        differs(c, "workload '%s' waits for '%s', expected '%s'", it->key, waits_for,
                it->waits_for);
    check_amount(c, it->key, "that less would do:", x.less, it->less_milli);
    check_amount(c, it->key, "that it starts at (ms)",
                 x.start_ms > 0 ? x.start_ms - SIM_EPOCH_MS : 0, it->start_ms);
    check_amount(c, it->key, "how long it may run (ms):", x.run_ms, it->run_ms);
}

static void check_workload(struct check *c, const struct sim_expect_item *it)
{
    char why[64];
    enum sim_state state = sim_world_state(c->w, it->workload);
    if (it->state != SIM_STATE_ANY && state != it->state)
        differs(c, "workload '%s' is %s%s, expected %s", it->key, sim_state_name(state),
                why_pending(c, it->workload, why, sizeof(why)), sim_state_name(it->state));
    uint32_t running = sim_world_running_tasks(c->w, it->workload);
    if (it->running_tasks != SIM_UNSET && running != it->running_tasks)
        differs(c, "workload '%s' runs %u tasks, expected %lld", it->key, running,
                (long long)it->running_tasks);
    if (it->node != SIM_NO_INDEX)
        check_workload_node(c, it);
    check_explanation(c, it);
}

static void check_task(struct check *c, const struct sim_expect_item *it)
{
    enum sim_state state = sim_world_task_state(c->w, it->workload, it->task);
    if (it->state != SIM_STATE_ANY && state != it->state)
        differs(c, "task '%s' is %s, expected %s", it->key, sim_state_name(state),
                sim_state_name(it->state));
    if (it->node == SIM_NO_INDEX)
        return;
    if (state != SIM_STATE_RUNNING) {
        differs(c, "task '%s' runs nowhere, expected on node '%s'", it->key, it->node_name);
        return;
    }
    uint32_t node = c->w->workloads[it->workload].tasks[it->task].node;
    if (node != it->node)
        differs(c, "task '%s' is on node '%s', expected '%s'", it->key,
                c->w->scenario->nodes[node].name, it->node_name);
}

static bool team_within(const struct sim_scenario *s, uint32_t team, uint32_t ancestor)
{
    for (; team != SIM_NO_INDEX; team = s->teams[team].parent) {
        if (team == ancestor)
            return true;
    }
    return false;
}

static void check_per_team(struct check *c, const struct sim_count *want)
{
    const struct sim_scenario *s = c->w->scenario;
    uint32_t running = 0;
    for (uint32_t i = 0; i < s->workload_count; i++)
        running += team_within(s, s->workloads[i].team, want->index) &&
                   sim_world_state(c->w, i) == SIM_STATE_RUNNING;
    if (running != want->count)
        differs(c, "%u workloads of team '%s' run, expected %u", running, want->key, want->count);
}

static void check_per_prefix(struct check *c, const struct sim_count *want)
{
    const struct sim_scenario *s = c->w->scenario;
    uint32_t running = 0;
    for (uint32_t i = 0; i < s->workload_count; i++)
        running += strncmp(s->workloads[i].name, want->key, strlen(want->key)) == 0 &&
                   sim_world_state(c->w, i) == SIM_STATE_RUNNING;
    if (running != want->count)
        differs(c, "%u workloads named '%s...' run, expected %u", running, want->key, want->count);
}

static uint32_t placed_on(const struct check *c, uint32_t workload, uint32_t node)
{
    uint32_t placed = 0;
    for (uint32_t t = 0; t < c->w->scenario->workloads[workload].task_count; t++)
        placed += sim_world_task_state(c->w, workload, t) == SIM_STATE_RUNNING &&
                  c->w->workloads[workload].tasks[t].node == node;
    return placed;
}

static void check_placement(struct check *c, const struct sim_expect_placement *p)
{
    const struct sim_scenario *s = c->w->scenario;
    for (uint32_t n = 0; n < s->node_count; n++) {
        uint32_t want = 0, placed = placed_on(c, p->workload, n);
        for (uint32_t i = 0; i < p->node_count; i++)
            want += p->nodes[i].index == n ? p->nodes[i].count : 0;
        if (placed != want)
            differs(c, "%u tasks of workload '%s' are on node '%s', expected %u", placed, p->key,
                    s->nodes[n].name, want);
    }
}

static bool was_evicted(const struct sim_world *w, const char *name)
{
    for (size_t i = 0; i < w->evicted.len; i++) {
        if (strcmp(w->scenario->workloads[w->evicted.items[i]].name, name) == 0)
            return true;
    }
    return false;
}

static bool is_listed(const struct sim_expect *e, const char *name)
{
    for (uint32_t i = 0; i < e->evicted_count; i++) {
        if (strcmp(e->evicted[i], name) == 0)
            return true;
    }
    return false;
}

static void check_evictions(struct check *c)
{
    const struct sim_world *w = c->w;
    const struct sim_expect *e = c->e;
    if (e->evictions_total != SIM_UNSET && w->evictions_total != (uint64_t)e->evictions_total)
        differs(c, "%llu evictions, expected %lld", (unsigned long long)w->evictions_total,
                (long long)e->evictions_total);
    if (e->max_evictions_per_round != SIM_UNSET &&
        w->round_evictions_max > (uint64_t)e->max_evictions_per_round)
        differs(c, "%llu tasks evicted in one round, expected at most %lld",
                (unsigned long long)w->round_evictions_max, (long long)e->max_evictions_per_round);
    if (!e->has_evicted)
        return;
    for (uint32_t i = 0; i < e->evicted_count; i++) {
        if (!was_evicted(w, e->evicted[i]))
            differs(c, "workload '%s' was not evicted, expected to be", e->evicted[i]);
    }
    for (size_t i = 0; i < w->evicted.len; i++) {
        const char *name = w->scenario->workloads[w->evicted.items[i]].name;
        if (!is_listed(e, name))
            differs(c, "workload '%s' was evicted, expected not to be", name);
    }
}

uint32_t sim_check(struct sim_world *w, const struct sim_expect *e, const char *when,
                   struct strbuf *out)
{
    struct check c = {.w = w, .e = e, .when = when, .out = out};
    for (uint32_t i = 0; i < e->workload_count; i++)
        check_workload(&c, &e->workloads[i]);
    for (uint32_t i = 0; i < e->task_count; i++)
        check_task(&c, &e->tasks[i]);
    for (uint32_t i = 0; i < e->per_team_count; i++)
        check_per_team(&c, &e->per_team[i]);
    for (uint32_t i = 0; i < e->per_prefix_count; i++)
        check_per_prefix(&c, &e->per_prefix[i]);
    for (uint32_t i = 0; i < e->placement_count; i++)
        check_placement(&c, &e->placement[i]);
    check_evictions(&c);
    return c.differences;
}
