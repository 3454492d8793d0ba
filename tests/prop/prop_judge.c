/* SPDX-License-Identifier: Apache-2.0 */
#include "prop_judge.h"

#include <string.h>

#include "prop_brute.h"
#include "sched/world.h"

bool judge_bad(const struct judge *j, const char *what)
{
    const struct sched_decision *d = judge_now(j);
    return prop_fail(j->w, "decision %zu (kind %d, cause %s) on task %llu/%u, for %llu: %s", j->i,
                     (int)d->kind, sched_cause_name(d->cause), (unsigned long long)d->workload,
                     d->task, (unsigned long long)d->on_behalf_of, what);
}

static bool place(const struct judge *j, struct prop_workload *p)
{
    const struct sched_decision *d = judge_now(j);
    struct prop_task *t = &p->tasks[d->task];
    const struct sched_request *q = p->decl.tasks[d->task].request;
    if (d->node == 0 || d->node > j->w->node_count || d->device_count > PROP_DEVICES_MAX)
        return judge_bad(j, "no such node or devices");
    uint32_t node = (uint32_t)(d->node - 1);
    if (!naive_node_suits(j->w, q, node))
        return judge_bad(j, "the node has another type, label or name");
    if (t->phase == PROP_HELD &&
        (t->node != node || t->device_count != d->device_count ||
         (d->device_count > 0 && memcmp(t->devices, d->devices, d->device_count * 2) != 0))) {
        /* a better place was found: the promise goes first */
        prop_task_move(j->w, (uint32_t)(d->workload - 1), d->task, PROP_PENDING);
    }
    t->node = node;
    t->device_count = d->device_count;
    if (d->device_count > 0)
        memcpy(t->devices, d->devices, d->device_count * sizeof(uint16_t));
    t->gpu_milli = naive_placed_milli(j->w, q, node, t->devices, t->device_count);
    if (t->gpu_milli != d->gpu_milli)
        return judge_bad(j, "the charge is not that of the devices");
    return true;
}

static bool start(const struct judge *j)
{
    const struct sched_decision *d = judge_now(j);
    struct prop_workload *p = judge_subject(j, d->workload);
    struct prop_task *t = &p->tasks[d->task];
    if (t->phase != PROP_PENDING && t->phase != PROP_HELD)
        return judge_bad(j, "it does not wait");
    if (!place(j, p))
        return false;
    /* asked of the gates while it is not yet counted, with the charge of its place */
    enum prop_phase was = t->phase;
    t->phase = PROP_HELD;
    struct naive_sums now = naive_sums(j->w, NAIVE_NOW);
    bool open = naive_gates_open(j->w, p, d->task, &now);
    bool type_open = naive_types_open(j->w, p, t->node, t->gpu_milli, NAIVE_NOW);
    t->phase = was;
    if (!naive_leaves_time(j->w, p, t->node))
        return judge_bad(j, "it would not end before the maintenance of the node");
    if (!type_open)
        return judge_bad(j, "a limit or guarantee of the GPU type does not allow it");
    if (!open)
        return judge_bad(j, "a limit or guarantee does not allow it");
    if (!prop_task_move(j->w, (uint32_t)(d->workload - 1), d->task, PROP_RUNNING))
        return false;
    t->since_ms = j->w->now_ms;
    t->epoch = j->w->s->outside_epoch;
    p->backing_off = false;
    j->w->starts++;
    for (size_t i = 0; i < j->w->pairs.len; i++) {
        if (j->w->pairs.items[i].victim + 1 == d->workload)
            j->w->pairs.items[i].returned = true;
    }
    return true;
}

static bool hold(const struct judge *j)
{
    const struct sched_decision *d = judge_now(j);
    struct prop_workload *p = judge_subject(j, d->workload);
    struct prop_task *t = &p->tasks[d->task];
    if (t->phase == PROP_HELD) { /* only its expiry is new */
        t->until_ms = d->until_ms;
        return true;
    }
    if (t->phase != PROP_PENDING)
        return judge_bad(j, "it does not wait");
    if (!place(j, p) || !prop_task_move(j->w, (uint32_t)(d->workload - 1), d->task, PROP_HELD))
        return false;
    t->until_ms = d->until_ms;
    j->w->holds++;
    return true;
}

static bool unhold(const struct judge *j)
{
    const struct sched_decision *d = judge_now(j);
    if (judge_subject(j, d->workload)->tasks[d->task].phase != PROP_HELD)
        return judge_bad(j, "nothing is held");
    return prop_task_move(j->w, (uint32_t)(d->workload - 1), d->task, PROP_PENDING);
}

bool judge_decision(struct judge *j)
{
    const struct sched_decision *d = judge_now(j);
    if (d->workload == 0 || d->workload > j->w->workloads.len ||
        d->task >= judge_subject(j, d->workload)->decl.task_count ||
        (!judge_subject(j, d->workload)->known))
        return prop_fail(j->w, "a decision about an unknown task %llu/%u",
                         (unsigned long long)d->workload, d->task);
    switch (d->kind) {
    case SCHED_START:
        return (j->w->brute == NULL || brute_start(j)) && start(j) && judge_winner(j);
    case SCHED_HOLD:
        return hold(j) && judge_winner(j) && (j->w->brute == NULL || brute_promise(j));
    case SCHED_UNHOLD:
        return unhold(j);
    case SCHED_EVICT:
        return judge_evict(j);
    }
    return judge_bad(j, "no known kind");
}
