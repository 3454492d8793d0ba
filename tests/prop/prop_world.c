/* SPDX-License-Identifier: Apache-2.0 */
#include "prop_world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "prop_naive.h"
#include "sched/world.h"

bool prop_fail(struct prop_world *w, const char *fmt, ...)
{
    if (prop_ok(w)) {
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(w->failure, sizeof(w->failure), fmt, ap);
        va_end(ap);
    }
    return false;
}

void prop_trace(const struct prop_world *w, const char *fmt, ...)
{
    if (!w->trace)
        return;
    printf("# step %u, %lld ms: ", w->step, (long long)w->now_ms);
    va_list ap;
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
}

struct prop_world *prop_create(uint64_t seed, bool trace, struct brute_counts *brute)
{
    struct prop_world *w = calloc(1, sizeof(*w));
    if (w == NULL)
        abort();
    w->seed = seed;
    w->trace = trace;
    w->brute = brute;
    w->now_ms = 1000000;
    rng_seed(&w->rng, seed & ~PROP_TYPED);
    sched_config_default(&w->config);
    w->config.min_run_ms = prop_chance(w, 30) ? 5000 : 0;
    w->config.stale_gang_ms = prop_chance(w, 20) ? 0 : 10000;
    w->refuses_launches = prop_chance(w, 30);
    w->config.window_lead_ms = 10000;
    w->restarts = seed % 8 == 3;
    w->windows = brute == NULL && seed % 8 == 5; /* not modelled by brute force */
    w->s = sched_create(&w->config);
    if (seed % 2 == 1)
        w->s->lots_few = 0; /* as where many wait */
    if (w->s == NULL)
        abort();
    prop_make(w);
    return w;
}

void prop_destroy(struct prop_world *w)
{
    sched_destroy(w->s);
    sim_ledger_done(&w->now);
    sim_ledger_done(&w->then);
    vec_done(&w->workloads);
    vec_done(&w->pairs);
    vec_done(&w->guards);
    arena_done(&w->arena);
    free(w);
}

/* ---- reports ----------------------------------------------------------------------------- */

static int answered(struct prop_world *w, int rc)
{
    w->hash = w->hash * 31 + (uint64_t)(uint32_t)rc;
    return rc;
}

/* -1 = no bound. */
static long long bound(int64_t amount, int64_t unit)
{
    return amount == SCHED_UNLIMITED ? -1 : (long long)(amount / unit);
}

int prop_report_team(struct prop_world *w, const struct sched_team *team)
{
    prop_trace(w,
               "team %llu below %llu: guarantee %lld gpu %lld cpu %lld GiB, limit %lld gpu %lld "
               "cpu %lld GiB, weight %lld, priority %d",
               (unsigned long long)team->id, (unsigned long long)team->parent,
               bound(team->guarantee[0], 1), bound(team->guarantee[1], 1),
               bound(team->guarantee[2], 1 << 30), bound(team->limit[0], 1),
               bound(team->limit[1], 1), bound(team->limit[2], 1 << 30), (long long)team->weight,
               team->priority);
    for (uint32_t i = 0; i < team->type_count; i++)
        prop_trace(w, "    of type %s: guarantee %lld, limit %lld", team->types[i].gpu_type,
                   bound(team->types[i].guarantee, 1), bound(team->types[i].limit, 1));
    return answered(w, sched_team_set(w->s, team));
}

int prop_report_node(struct prop_world *w, const struct sched_node *node)
{
    prop_trace(w,
               "node %llu: %s, %s, away %lld..%lld; %u devices of %lld GiB, %s, cpu %lld, memory "
               "%lld GiB, zone %s",
               (unsigned long long)node->id, node->up ? "up" : "down",
               node->schedulable ? "open" : "drained", (long long)node->window_from_ms,
               (long long)node->window_until_ms, node->device_count,
               node->device_count > 0 ? (long long)(node->devices[0].memory_bytes >> 30) : 0,
               node->gpu_type, bound(node->cpu_milli, 1), bound(node->memory_bytes, 1 << 30),
               node->labels[0].value);
    return answered(w, sched_node_set(w->s, node));
}

int prop_report_add(struct prop_world *w, const struct sched_workload *decl)
{
    struct sched_refusal refusal;
    prop_trace(w, "submit %llu to team %llu: class %d, priority %d, %s, %u of %u tasks",
               (unsigned long long)decl->id, (unsigned long long)decl->team, (int)decl->class_,
               decl->priority, decl->preemptible ? "preemptible" : "non-preemptible",
               decl->min_tasks, decl->task_count);
    for (uint32_t t = 0; t < decl->task_count; t++) {
        const struct sched_request *q = decl->tasks[t].request;
        if (t == 0 || q != decl->tasks[t - 1].request || decl->group_count > 0 ||
            decl->tasks[t].rank != decl->tasks[t - 1].rank)
            prop_trace(w,
                       "    %u: %u x %d milli or %lld GiB, %u of mig, cpu %lld, memory %lld GiB, "
                       "type %s, label %s, node %llu, group %u, rank %d; %s %s",
                       t, q->device_count, q->device_milli,
                       (long long)(q->device_memory_bytes >> 30), q->mig_count,
                       (long long)q->cpu_milli, (long long)(q->memory_bytes >> 30),
                       q->gpu_type_count > 0 ? q->gpu_types[0] : "any",
                       q->label_count > 0 ? q->labels[0].value : "any",
                       (unsigned long long)q->only_node, decl->tasks[t].group, decl->tasks[t].rank,
                       decl->topology_required != NULL ? "one zone" : "",
                       decl->may_burst ? "" : "no burst");
    }
    return answered(w, sched_workload_add(w->s, decl, &refusal));
}

int prop_report_remove(struct prop_world *w, uint64_t workload)
{
    prop_trace(w, "remove %llu", (unsigned long long)workload);
    return answered(w, sched_workload_remove(w->s, workload));
}

int prop_report_stopped(struct prop_world *w, uint64_t workload, uint32_t task, enum sched_stop how)
{
    prop_trace(w, "stopped %llu/%u, how %d", (unsigned long long)workload, task, (int)how);
    return answered(w, sched_task_stopped(w->s, workload, task, how, w->now_ms));
}

int prop_report_stopping(struct prop_world *w, uint64_t workload, uint32_t task)
{
    prop_trace(w, "cancel %llu/%u", (unsigned long long)workload, task);
    return answered(w, sched_task_stopping(w->s, workload, task, w->now_ms));
}

/* ---- books ------------------------------------------------------------------------------- */

static bool holds_now(enum prop_phase phase)
{
    return phase == PROP_RUNNING || phase == PROP_LEAVING || phase == PROP_ENDING;
}

static bool holds_then(enum prop_phase phase)
{
    return phase == PROP_RUNNING || phase == PROP_HELD;
}

static bool ledger_move(struct prop_world *w, struct sim_ledger *l, const char *when,
                        uint32_t workload, uint32_t task, bool was, bool is)
{
    struct prop_workload *p = w->workloads.items[workload];
    struct prop_task *t = &p->tasks[task];
    const struct sched_request *q = p->decl.tasks[task].request;
    if (was && !is)
        sim_ledger_release(l, t->node, q, t->devices, t->device_count);
    if (was || !is)
        return true;
    struct err err = ERR_INIT;
    if (sim_ledger_take(l, t->node, q, t->devices, t->device_count, &err) < 0)
        return prop_fail(w, "workload %u task %u on node %u, %s: %s", workload, task, t->node, when,
                         err.text);
    return true;
}

bool prop_task_move(struct prop_world *w, uint32_t workload, uint32_t task, enum prop_phase phase)
{
    struct prop_task *t = &w->workloads.items[workload]->tasks[task];
    enum prop_phase was = t->phase;
    bool ok = ledger_move(w, &w->now, "now", workload, task, holds_now(was), holds_now(phase)) &&
              ledger_move(w, &w->then, "once others have stopped", workload, task, holds_then(was),
                          holds_then(phase));
    t->phase = phase;
    return ok;
}

uint32_t prop_count(const struct prop_workload *p, enum prop_phase phase)
{
    uint32_t n = 0;
    for (uint32_t t = 0; t < p->decl.task_count; t++)
        n += p->tasks[t].phase == phase;
    return n;
}

bool prop_minimum_met(const struct prop_workload *p, bool held)
{
    uint32_t all = 0;
    for (uint32_t g = 0; g < (p->decl.group_count > 0 ? p->decl.group_count : 1); g++) {
        uint32_t members = 0;
        for (uint32_t t = 0; t < p->decl.task_count; t++) {
            enum prop_phase phase = p->tasks[t].phase;
            bool on = phase == PROP_RUNNING || phase == PROP_DONE || (held && phase == PROP_HELD);
            members += on && (p->decl.group_count == 0 || p->decl.tasks[t].group == g);
        }
        if (p->decl.group_count > 0 && members < p->decl.groups[g].min_tasks)
            return false;
        all += members;
    }
    return all >= p->decl.min_tasks;
}

bool prop_is_short(const struct prop_workload *p)
{
    return prop_count(p, PROP_RUNNING) > 0 && !prop_minimum_met(p, false);
}

void prop_short_update(struct prop_world *w, uint32_t workload)
{
    struct prop_workload *p = w->workloads.items[workload];
    if (!prop_is_short(p))
        p->short_since_ms = -1;
    else if (p->short_since_ms < 0)
        p->short_since_ms = w->now_ms;
}
