/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/trade.h"

#include "sched/team.h"
#include "sched/workload.h"

struct trade {
    struct trade *next; /* same hash */
    uint64_t victim, winner;
    uint64_t turn; /* of the eviction */
    uint32_t has;  /* tasks of the winner that ran then */
};

static uint64_t trade_hash(uint64_t victim, uint64_t winner)
{
    uint64_t key[] = {victim, winner};
    return map_hash(key, sizeof(key));
}

static struct trade *trade_find(const struct sched *s, uint64_t victim, uint64_t winner)
{
    struct trade *t = map_get(&s->trades, trade_hash(victim, winner));
    while (t != NULL && (t->victim != victim || t->winner != winner))
        t = t->next;
    return t;
}

/* What was before the last event from outside is forgotten. */
static void trades_refresh(struct sched *s)
{
    if (s->trades_epoch == s->outside_epoch)
        return;
    s->trades_epoch = s->outside_epoch;
    map_done(&s->trades);
    s->trades = (struct map)MAP_INIT;
    arena_reset(&s->trade_arena);
}

void trade_note(struct sched *s, const struct workload *victim, uint64_t winner)
{
    const struct workload *w = workload_find(s, winner);
    trades_refresh(s);
    struct trade *t = trade_find(s, victim->id, winner);
    if (t == NULL) {
        uint64_t hash = trade_hash(victim->id, winner);
        t = arena_new(&s->trade_arena, struct trade);
        t->victim = victim->id;
        t->winner = winner;
        t->next = map_put(&s->trades, hash, t);
    }
    t->turn = s->turn;
    t->has = w == NULL ? 0 : w->count[TASK_RUNNING];
}

bool trade_is_closed(struct sched *s, const struct workload *v, const struct workload *w)
{
    if (s->trades_epoch != s->outside_epoch || s->trades.len == 0)
        return false;
    const struct trade *t = trade_find(s, v->id, w->id);
    /* What has started in a turn is not evicted in it: a start in that of the trade came later. */
    if (t == NULL || v->started_turn < t->turn || w->count[TASK_RUNNING] > t->has)
        return false;
    trade_passed(s);
    return true;
}

void trade_passed(struct sched *s)
{
    s->passed_epoch = s->outside_epoch;
}

bool trade_reopened(struct sched *s)
{
    if (s->passed_epoch == 0 || s->passed_epoch == s->outside_epoch)
        return false;
    s->passed_epoch = 0;
    return true;
}

/* ---- won by guarantee -------------------------------------------------------------------- */

#define GUARDS_MAX 4096

struct guard {
    struct guard *next; /* same hash */
    uint64_t loser, winner;
    uint32_t has; /* tasks of the winner, with those that it won */
    struct amounts loser_share, winner_share, winner_guarantee; /* where their paths part */
};

static void guard_fill(struct guard *g, const struct workload *loser, const struct workload *winner)
{
    struct team *theirs, *mine;
    team_part(loser->group->team, winner->group->team, &theirs, &mine);
    g->loser = loser->id;
    g->winner = winner->id;
    g->loser_share = theirs->share;
    g->winner_share = mine->share;
    for (int r = 0; r < SCHED_RESOURCES; r++)
        g->winner_guarantee.v[r] = mine->guarantee[r];
}

static struct guard *guard_find(const struct sched *s, uint64_t loser, uint64_t winner)
{
    struct guard *g = map_get(&s->guards, trade_hash(loser, winner));
    while (g != NULL && (g->loser != loser || g->winner != winner))
        g = g->next;
    return g;
}

static void guards_forget(struct sched *s)
{
    map_done(&s->guards);
    s->guards = (struct map)MAP_INIT;
    arena_reset(&s->guard_arena);
}

void trade_guard(struct sched *s, const struct workload *loser, const struct workload *winner,
                 uint32_t gained)
{
    struct guard *g = guard_find(s, loser->id, winner->id);
    if (g == NULL) {
        if (s->guards.len >= GUARDS_MAX)
            guards_forget(s);
        g = arena_new(&s->guard_arena, struct guard);
        g->next = map_put(&s->guards, trade_hash(loser->id, winner->id), g);
    }
    guard_fill(g, loser, winner);
    g->has = winner->count[TASK_RUNNING] + winner->count[TASK_HELD] + gained;
}

bool trade_is_guarded(struct sched *s, const struct workload *v, const struct workload *w,
                      bool gpus)
{
    if (s->guards.len == 0)
        return false;
    const struct guard *g = guard_find(s, w->id, v->id);
    struct guard now = {0};
    if (g == NULL || v->count[TASK_RUNNING] > g->has)
        return false;
    guard_fill(&now, w, v);
    /* Where it is about GPUs, shares of CPU and memory are not asked: they follow the demand. */
    for (int r = 0; r < (gpus ? SCHED_GPU_MILLI + 1 : SCHED_RESOURCES); r++)
        if (now.loser_share.v[r] != g->loser_share.v[r] ||
            now.winner_share.v[r] != g->winner_share.v[r] ||
            now.winner_guarantee.v[r] != g->winner_guarantee.v[r])
            return false;
    return true;
}

/* ------------------------------------------------------------------------------------------ */

void trade_done(struct sched *s)
{
    map_done(&s->trades);
    arena_done(&s->trade_arena);
    map_done(&s->guards);
    arena_done(&s->guard_arena);
}
