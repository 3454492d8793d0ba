/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is won by guarantee: who lost a place to work whose team stayed within its guarantee does
 * not get it back by its mere share, as long as both are entitled to what they were then.
 */
#include <string.h>

#include "prop_judge.h"

/* What the teams of LOSER and WINNER, where they part, are entitled to. */
static bool entitled(const struct prop_world *w, const struct naive_shares *shares, uint32_t loser,
                     uint32_t winner, struct prop_guard *ret)
{
    const struct prop_workload *l = w->workloads.items[loser], *v = w->workloads.items[winner];
    uint32_t theirs, mine;
    memset(ret, 0, sizeof(*ret));
    if (!naive_parting(w, (uint32_t)(l->decl.team - 1), (uint32_t)(v->decl.team - 1), &theirs,
                       &mine))
        return false;
    ret->loser = loser;
    ret->winner = winner;
    ret->winner_team = mine;
    for (int r = 0; r < SCHED_RESOURCES; r++) {
        ret->loser_share[r] = shares->share[theirs].v[r];
        ret->winner_share[r] = shares->share[mine].v[r];
        ret->winner_guarantee[r] = w->teams[mine].decl.guarantee[r];
    }
    return true;
}

static struct prop_guard *find(const struct prop_world *w, uint32_t loser, uint32_t winner)
{
    for (size_t i = 0; i < w->guards.len; i++) {
        struct prop_guard *g = &w->guards.items[i];
        if (g->loser == loser && g->winner == winner)
            return g;
    }
    return NULL;
}

/* Nothing that the winner asks for takes TEAM beyond its guarantee. */
static bool within_guarantee(const struct judge *j, uint32_t team)
{
    const struct prop_workload *p = judge_subject(j, judge_now(j)->workload);
    struct naive_sums then = naive_sums(j->w, NAIVE_THEN);
    for (uint32_t t = 0; t < p->decl.task_count; t++) {
        if (p->tasks[t].phase != PROP_HELD)
            continue;
        struct naive_amounts c = naive_charge(j->w, p, t);
        for (int r = 0; r < SCHED_RESOURCES; r++) {
            int64_t guarantee = j->w->teams[team].decl.guarantee[r];
            if (c.v[r] > 0 && guarantee != SCHED_UNLIMITED && then.used[team].v[r] > guarantee)
                return false;
        }
    }
    return true;
}

void judge_guards(const struct judge *j)
{
    uint32_t winner = (uint32_t)(judge_now(j)->workload - 1);
    for (size_t i = 0; i < j->i; i++) {
        const struct sched_decision *d = &j->d->items[i];
        struct prop_guard now, *g;
        if (d->kind != SCHED_EVICT || d->cause != SCHED_CAUSE_RECLAIM ||
            d->on_behalf_of != judge_now(j)->workload ||
            !entitled(j->w, &j->shares, (uint32_t)(d->workload - 1), winner, &now) ||
            !within_guarantee(j, now.winner_team))
            continue;
        g = find(j->w, now.loser, winner);
        now.has = prop_count(judge_subject(j, winner + 1), PROP_RUNNING) +
                  prop_count(judge_subject(j, winner + 1), PROP_HELD);
        if (g != NULL)
            *g = now;
        else
            vec_push(&j->w->guards, now);
    }
}

bool prop_guarded(const struct prop_world *w, const struct naive_shares *shares, uint32_t loser,
                  uint32_t winner, bool gpus)
{
    const struct prop_guard *g = find(w, loser, winner);
    struct prop_guard now;
    if (g == NULL || prop_count(w->workloads.items[winner], PROP_RUNNING) > g->has ||
        !entitled(w, shares, loser, winner, &now))
        return false;
    for (int r = 0; r < (gpus ? 1 : SCHED_RESOURCES); r++)
        if (now.loser_share[r] != g->loser_share[r] || now.winner_share[r] != g->winner_share[r] ||
            now.winner_guarantee[r] != g->winner_guarantee[r])
            return false;
    return true;
}

bool prop_guards_matter(const struct prop_world *w)
{
    for (size_t i = 0; i < w->guards.len; i++)
        if (prop_count(w->workloads.items[w->guards.items[i].loser], PROP_PENDING) > 0 &&
            prop_count(w->workloads.items[w->guards.items[i].winner], PROP_RUNNING) > 0)
            return true;
    return false;
}
