/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "prop_judge.h"
#include "sched/world.h"

static bool lower(const struct sched_workload *victim, const struct sched_workload *winner)
{
    if (victim->class_ != winner->class_)
        return victim->class_ > winner->class_;
    return victim->priority < winner->priority;
}

/* All the winner asks for that it does not have yet. */
static struct naive_amounts asks(const struct judge *j, const struct prop_workload *p)
{
    struct naive_amounts sum = {0};
    for (uint32_t t = 0; t < p->decl.task_count; t++) {
        struct naive_amounts c = naive_charge(j->w, p, t);
        for (int r = 0; r < SCHED_RESOURCES; r++)
            sum.v[r] += p->tasks[t].phase == PROP_PENDING ? c.v[r] : 0;
    }
    return sum;
}

/* A unit goes whole: what follows the first task of it needs no test of its own. */
static bool unit_goes_on(const struct judge *j)
{
    const struct sched_decision *d = judge_now(j);
    uint32_t left = 0;
    if (j->i == 0 || d[-1].kind != SCHED_EVICT || d[-1].workload != d->workload)
        return false;
    for (size_t i = j->i; i < j->d->count; i++)
        left += j->d->items[i].kind == SCHED_EVICT && j->d->items[i].workload == d->workload;
    return left == prop_count(judge_subject(j, d->workload), PROP_RUNNING);
}

/* What this workload gives up from here on in this turn. */
static struct naive_amounts gives(const struct judge *j, const struct prop_workload *p)
{
    struct naive_amounts sum = {0};
    for (size_t i = j->i; i < j->d->count; i++) {
        const struct sched_decision *d = &j->d->items[i];
        if (d->kind != SCHED_EVICT || d->workload != p->decl.id)
            continue;
        struct naive_amounts c = naive_charge(j->w, p, d->task);
        for (int r = 0; r < SCHED_RESOURCES; r++)
            sum.v[r] += c.v[r];
    }
    return sum;
}

static bool reclaim_victim_may(const struct judge *j, const struct prop_workload *victim,
                               const struct prop_workload *winner)
{
    uint32_t v, r;
    if (!naive_parting(j->w, (uint32_t)(victim->decl.team - 1), (uint32_t)(winner->decl.team - 1),
                       &v, &r))
        return judge_bad(j, "reclaimed inside a team");
    if (unit_goes_on(j))
        return true;
    struct naive_sums then = naive_sums(j->w, NAIVE_THEN);
    struct naive_amounts wants = asks(j, winner), has = gives(j, victim);
    for (int i = 0; i < SCHED_RESOURCES; i++) {
        if (has.v[i] == 0 || wants.v[i] == 0)
            continue;
        int64_t used = then.used[v].v[i];
        if (used > j->shares.share[v].v[i] || used > j->w->teams[v].decl.guarantee[i])
            return true;
    }
    /* A guarantee of the type that is given up; what it is in need of, it has when it is placed. */
    for (size_t i = j->i; i < j->d->count; i++) {
        const struct sched_decision *d = &j->d->items[i];
        if (d->kind == SCHED_EVICT && d->workload == victim->decl.id && wants.v[0] > 0 &&
            naive_type_entitled(j->w, r, j->w->nodes[victim->tasks[d->task].node].decl.gpu_type, 1))
            return true;
    }
    char text[160];
    int i = has.v[0] > 0 && wants.v[0] > 0 ? 0 : has.v[1] > 0 && wants.v[1] > 0 ? 1 : 2;
    snprintf(text, sizeof(text),
             "team %u uses %lld of resource %d, its share is %lld, its guarantee %lld", v,
             (long long)then.used[v].v[i], i, (long long)j->shares.share[v].v[i],
             (long long)j->w->teams[v].decl.guarantee[i]);
    return judge_bad(j, text);
}

static bool evict_for(const struct judge *j, struct prop_workload *victim)
{
    const struct sched_decision *d = judge_now(j);
    if (d->on_behalf_of == 0 || d->on_behalf_of > j->w->workloads.len)
        return judge_bad(j, "for nobody");
    const struct prop_workload *winner = judge_subject(j, d->on_behalf_of);
    const struct sched_class_rule *mine = &j->w->config.classes[winner->decl.class_];
    const struct sched_class_rule *his = &j->w->config.classes[victim->decl.class_];
    switch (d->cause) {
    case SCHED_CAUSE_PREEMPT:
        if (victim->decl.team != winner->decl.team || !mine->may_preempt ||
            !lower(&victim->decl, &winner->decl))
            return judge_bad(j, "not lower work of the same team");
        return true;
    case SCHED_CAUSE_RECLAIM:
        if (!mine->may_reclaim)
            return judge_bad(j, "the winner's class reclaims nothing");
        return reclaim_victim_may(j, victim, winner);
    case SCHED_CAUSE_IDLE_ONLY:
        return (his->idle_only && !mine->idle_only) || judge_bad(j, "it is no idle-only work");
    case SCHED_CAUSE_CONSOLIDATE:
        return true; /* needs no right over it, but a new place: prop_rest.c asks for that */
    default:
        return judge_bad(j, "not a cause of an eviction");
    }
}

/* Neither evictions nor moves leave more tasks without a place than the budget says. */
static bool budget_allows(const struct prop_workload *p)
{
    uint32_t out = 1; /* this one */
    for (uint32_t t = 0; t < p->decl.task_count; t++)
        out += p->tasks[t].phase == PROP_PENDING || p->tasks[t].phase == PROP_HELD ||
               p->tasks[t].phase == PROP_LEAVING;
    return p->decl.max_unavailable == 0 || out <= p->decl.max_unavailable;
}

static bool pair_note(const struct judge *j)
{
    const struct sched_decision *d = judge_now(j);
    struct prop_world *w = j->w;
    uint32_t has = prop_count(judge_subject(j, d->on_behalf_of), PROP_RUNNING);
    for (size_t i = 0; i < w->pairs.len; i++) {
        struct prop_pair *p = &w->pairs.items[i];
        if (p->victim + 1 != d->workload || p->winner + 1 != d->on_behalf_of)
            continue;
        if (p->returned && has <= p->has)
            return judge_bad(j,
                             "it made way for the same winner before, and nothing happened since");
        if (p->returned)
            *p = (struct prop_pair){p->victim, p->winner, has, false}; /* the winner has grown */
        return true;
    }
    struct prop_pair *p = vec_add(&w->pairs);
    p->victim = (uint32_t)(d->workload - 1);
    p->winner = (uint32_t)(d->on_behalf_of - 1);
    p->has = has;
    return true;
}

static bool runs_in_window(const struct judge *j, const struct prop_workload *p)
{
    for (uint32_t t = 0; t < p->decl.task_count; t++) {
        const struct sched_node *n = &j->w->nodes[p->tasks[t].node].decl;
        bool on = p->tasks[t].phase == PROP_RUNNING || p->tasks[t].phase == PROP_LEAVING;
        if (on && n->window_from_ms <= j->w->now_ms && j->w->now_ms < n->window_until_ms)
            return true;
    }
    return false;
}

/* Has anything of the workload started earlier in this turn? */
static bool just_started(const struct judge *j, uint64_t workload)
{
    for (size_t i = 0; i < j->i; i++)
        if (j->d->items[i].kind == SCHED_START && j->d->items[i].workload == workload)
            return true;
    return false;
}

/* Has nothing come from outside since it started? Then it was not to start. Where many wait, the
 * searches are spread over turns, and that may be. */
static bool start_was_vain(const struct judge *j, const struct prop_task *t)
{
    return t->epoch == j->w->s->outside_epoch && j->w->s->lots_few > 0;
}

bool judge_evict(const struct judge *j)
{
    const struct sched_decision *d = judge_now(j);
    struct prop_workload *p = judge_subject(j, d->workload);
    struct prop_task *t = &p->tasks[d->task];
    if (t->phase != PROP_RUNNING)
        return judge_bad(j, "it does not run");
    if (just_started(j, d->workload))
        return judge_bad(j, "something of it has started in this very turn");
    if (d->cause == SCHED_CAUSE_STALE_GANG) {
        if (p->short_since_ms < 0 || j->w->now_ms - p->short_since_ms < j->w->config.stale_gang_ms)
            return judge_bad(j, "it is not below its minimum, or not for long enough");
    } else if (d->cause == SCHED_CAUSE_MAINTENANCE) {
        if (!p->decl.preemptible || !runs_in_window(j, p))
            return judge_bad(j, "nothing of it runs on a node under maintenance, or it may stay");
    } else {
        int64_t least = p->decl.min_run_ms > 0 ? p->decl.min_run_ms : j->w->config.min_run_ms;
        if (!p->decl.preemptible)
            return judge_bad(j, "it is not preemptible");
        if (j->w->now_ms - t->since_ms < least)
            return judge_bad(j, "it has not run for its minimum");
        if (!budget_allows(p))
            return judge_bad(j, "its disruption budget is used up");
        if (start_was_vain(j, t))
            return judge_bad(j, "nothing has happened since it started");
        if (!evict_for(j, p) || !pair_note(j))
            return false;
    }
    t->stop_ms = j->w->now_ms + (prop_chance(j->w, 50) ? 0 : (int64_t)prop_below(j->w, 8000));
    j->w->evictions++;
    j->w->moves += d->cause == SCHED_CAUSE_CONSOLIDATE;
    p->moved = d->cause == SCHED_CAUSE_CONSOLIDATE;
    return prop_task_move(j->w, (uint32_t)(d->workload - 1), d->task, PROP_LEAVING);
}
