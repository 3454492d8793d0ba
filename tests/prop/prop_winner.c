/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "prop_judge.h"

/* Did somebody of another team make way for it in this turn? */
static bool reclaimed(const struct judge *j, uint64_t workload)
{
    for (size_t i = 0; i < j->d->count; i++) {
        const struct sched_decision *d = &j->d->items[i];
        if (d->kind == SCHED_EVICT && d->cause == SCHED_CAUSE_RECLAIM &&
            d->on_behalf_of == workload)
            return true;
    }
    return false;
}

static bool last_on(const struct judge *j, uint64_t workload)
{
    for (size_t i = j->i + 1; i < j->d->count; i++) {
        const struct sched_decision *d = &j->d->items[i];
        if (d->workload == workload && (d->kind == SCHED_START || d->kind == SCHED_HOLD))
            return false;
    }
    return true;
}

/* A winner that reclaimed ends within its share at every level, or within its guarantee. */
static bool winner_within(const struct judge *j)
{
    const struct sched_decision *d = judge_now(j);
    const struct prop_workload *p = judge_subject(j, d->workload);
    if (!reclaimed(j, d->workload) || !last_on(j, d->workload))
        return true;
    struct naive_sums then = naive_sums(j->w, NAIVE_THEN);
    for (uint32_t a = (uint32_t)(p->decl.team - 1); a != PROP_NONE; a = j->w->teams[a].parent) {
        for (int r = 0; r < SCHED_RESOURCES; r++) {
            struct naive_amounts c = naive_charge(j->w, p, d->task);
            int64_t guarantee = j->w->teams[a].decl.guarantee[r];
            if (c.v[r] == 0)
                continue;
            if (p->decl.preemptible && then.used[a].v[r] > j->shares.share[a].v[r])
                return judge_bad(j, "it reclaimed and ends above its fair share");
            if (!p->decl.preemptible && then.firm[a].v[r] > guarantee)
                return judge_bad(j, "it reclaimed and ends above its guarantee");
        }
    }
    return true;
}

/* With MILLI more on NODE, no team that P belongs to is beyond a guarantee of that GPU type. */
static bool types_entitled(const struct judge *j, const struct prop_workload *p, uint32_t node,
                           int64_t milli)
{
    const char *type = j->w->nodes[node].decl.gpu_type;
    for (uint32_t a = (uint32_t)(p->decl.team - 1); a != PROP_NONE; a = j->w->teams[a].parent) {
        const struct sched_team *t = &j->w->teams[a].decl;
        bool promised = false;
        for (uint32_t k = 0; k < t->type_count && type != NULL; k++)
            promised |=
                t->types[k].guarantee != SCHED_UNLIMITED && strcmp(t->types[k].gpu_type, type) == 0;
        if (promised && !naive_type_entitled(j->w, a, type, milli))
            return false;
    }
    return true;
}

/* Would the one task of P, promised just now, also start with what runs and is promised else?
 * Asked strictly: within share and guarantee at every level, as any right to evict may want, and
 * where it took from another team also within the guarantees of the GPU type. */
static bool starts_without(const struct judge *j, struct prop_workload *p)
{
    struct naive_sums then = naive_sums(j->w, NAIVE_THEN);
    const struct sched_request *q = p->decl.tasks[0].request;
    uint16_t devices[PROP_DEVICES_MAX];
    bool took = reclaimed(j, p->decl.id);
    if (!naive_gates_open(j->w, p, 0, &then))
        return false;
    for (uint32_t a = (uint32_t)(p->decl.team - 1); a != PROP_NONE; a = j->w->teams[a].parent) {
        struct naive_amounts c = naive_charge(j->w, p, 0);
        for (int r = 0; r < SCHED_RESOURCES; r++) {
            int64_t after = then.used[a].v[r] + c.v[r];
            if (c.v[r] > 0 &&
                (after > j->shares.share[a].v[r] || after > j->w->teams[a].decl.guarantee[r]))
                return false;
        }
    }
    for (uint32_t n = 0; n < j->w->node_count; n++) {
        if (!naive_node_suits(j->w, q, n) || !naive_leaves_time(j->w, p, n) ||
            !sim_ledger_fit(&j->w->then, n, q, devices))
            continue;
        int64_t milli = naive_placed_milli(j->w, q, n, devices, naive_devices(q));
        if (naive_types_open(j->w, p, n, milli, NAIVE_THEN) &&
            (!took || milli == 0 || types_entitled(j, p, n, milli)))
            return true;
    }
    return false;
}

/* Puts back, or takes away again, what VICTIM gave up for WINNER in this turn. */
static void victim_put(const struct judge *j, uint64_t victim, uint64_t winner,
                       enum prop_phase phase)
{
    for (size_t i = 0; i < j->i; i++) {
        const struct sched_decision *d = &j->d->items[i];
        if (d->kind != SCHED_EVICT || d->workload != victim || d->on_behalf_of != winner)
            continue;
        struct prop_task *t = &judge_subject(j, victim)->tasks[d->task];
        if (j->w->then.nodes[t->node].open)
            prop_task_move(j->w, (uint32_t)(victim - 1), d->task, phase);
        else
            t->phase = phase; /* what it frees there is of no use to anyone */
    }
}

/* Nobody else in this turn, or before it, made others stop: none counts on what they free. */
static bool first_winner(const struct judge *j)
{
    for (size_t i = 0; i < j->i; i++) {
        if (j->d->items[i].kind == SCHED_EVICT &&
            j->d->items[i].on_behalf_of != judge_now(j)->workload)
            return false;
    }
    return j->quiet;
}

/* No victim that is not needed: asked for single tasks, where the answer is simple. */
static bool victims_needed(const struct judge *j)
{
    const struct sched_decision *d = judge_now(j);
    struct prop_workload *p = judge_subject(j, d->workload);
    if (p->decl.task_count != 1 || !first_winner(j))
        return true;
    bool needed = true;
    prop_task_move(j->w, (uint32_t)(d->workload - 1), 0, PROP_PENDING);
    for (size_t i = 0; i < j->i && needed; i++) {
        const struct sched_decision *e = &j->d->items[i];
        if (e->kind != SCHED_EVICT || e->on_behalf_of != d->workload)
            continue;
        victim_put(j, e->workload, d->workload, PROP_RUNNING);
        needed = !starts_without(j, p);
        victim_put(j, e->workload, d->workload, PROP_LEAVING);
        if (!needed)
            prop_fail(j->w, "decision %zu: %llu is evicted for %llu and was not needed", i,
                      (unsigned long long)e->workload, (unsigned long long)d->workload);
    }
    prop_task_move(j->w, (uint32_t)(d->workload - 1), 0, PROP_HELD);
    return needed;
}

bool judge_winner(const struct judge *j)
{
    if (last_on(j, judge_now(j)->workload))
        judge_guards(j);
    return winner_within(j) && (judge_now(j)->kind != SCHED_HOLD || victims_needed(j));
}
