/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "prop_brute.h"
#include "sched/world.h"

#define POKES_MAX 8

/* Nothing is promised and nothing stops. */
static bool all_quiet(const struct prop_world *w)
{
    for (size_t i = 0; i < w->workloads.len; i++) {
        const struct prop_workload *p = w->workloads.items[i];
        if (prop_count(p, PROP_HELD) + prop_count(p, PROP_LEAVING) + prop_count(p, PROP_ENDING) > 0)
            return false;
    }
    return true;
}

static enum sched_reason reason_of(struct prop_world *w, const struct prop_workload *p)
{
    struct sched_explanation x = {0};
    return sched_explain(w->s, p->decl.id, w->now_ms, &x) == 0 ? x.reason : SCHED_REASON_NONE;
}

/* Does a reservation keep it from starting? */
static bool is_reserved_against(struct prop_world *w, const struct prop_workload *p)
{
    return reason_of(w, p) == SCHED_REASON_RESERVED;
}

/* ---- starts ------------------------------------------------------------------------------ */

static bool turn_is_quiet(const struct judge *j)
{
    for (size_t i = 0; i < j->i; i++) {
        if (j->d->items[i].kind != SCHED_START)
            return false;
    }
    return j->quiet && all_quiet(j->w) && judge_now(j)->cause == SCHED_CAUSE_FITS;
}

static bool limits_declared(const struct prop_world *w)
{
    for (size_t i = 0; i < w->workloads.len; i++) {
        if (w->workloads.items[i]->known && w->workloads.items[i]->decl.limit_ms > 0)
            return true;
    }
    return false;
}

/* Has it started in this turn, and made way for another before that was told? */
static bool taken_back(const struct prop_world *w, uint64_t workload)
{
    for (size_t i = 0; i < w->s->taken_back.len; i++) {
        if (w->s->taken_back.items[i].workload == workload)
            return true;
    }
    return false;
}

bool brute_start(const struct judge *j)
{
    struct prop_world *w = j->w;
    uint32_t mine = (uint32_t)(judge_now(j)->workload - 1);
    if (!turn_is_quiet(j) || limits_declared(w) ||
        (j->i > 0 && j->d->items[j->i - 1].workload == judge_now(j)->workload))
        return true; /* only the first task of a gang is asked about */
    for (uint32_t i = 0; i < w->workloads.len; i++) {
        struct prop_workload *p = w->workloads.items[i];
        if (i == mine || p->backing_off || taken_back(w, p->decl.id) || !exact_simple(p) ||
            !exact_before(w, &j->shares, i, mine) || !exact_starts(w, p, NULL, NULL))
            continue;
        char text[80];
        snprintf(text, sizeof(text), "workload %u could start and comes before it", i + 1);
        return judge_bad(j, text);
    }
    w->brute->starts++;
    return true;
}

/* ---- promises ---------------------------------------------------------------------------- */

/* What gave way for the winner in this turn, by workload; false: a move, or too many. */
static bool victims_list(const struct judge *j, struct exact_victims *ret)
{
    *ret = (struct exact_victims){0};
    for (size_t i = 0; i < j->i; i++) {
        const struct sched_decision *d = &j->d->items[i];
        if (d->kind != SCHED_EVICT)
            continue;
        if (d->on_behalf_of != judge_now(j)->workload || d->cause == SCHED_CAUSE_CONSOLIDATE ||
            d->workload > EXACT_WORKLOADS_MAX)
            return false;
        ret->workloads += ret->tasks[d->workload - 1] == 0;
        ret->tasks[d->workload - 1] |= (uint8_t)(1u << d->task);
    }
    return ret->workloads > 0;
}

static void each(const struct judge *j, enum sched_decision_kind kind, enum prop_phase phase)
{
    for (size_t i = 0; i <= j->i; i++) {
        const struct sched_decision *d = &j->d->items[i];
        struct prop_task *t = &judge_subject(j, d->workload)->tasks[d->task];
        if (d->kind != kind)
            continue;
        if (j->w->then.nodes[t->node].open)
            prop_task_move(j->w, (uint32_t)(d->workload - 1), d->task, phase);
        else
            t->phase = phase; /* what it holds there is of no use to anyone */
    }
}

/* Victims run again, and the winner waits; or as it was decided. */
static void turn_back(const struct judge *j, bool back)
{
    if (back)
        each(j, SCHED_HOLD, PROP_PENDING);
    each(j, SCHED_EVICT, back ? PROP_RUNNING : PROP_LEAVING);
    if (!back)
        each(j, SCHED_HOLD, PROP_HELD);
}

bool brute_promise(const struct judge *j)
{
    struct exact_victims victims, fewest;
    uint32_t winner = (uint32_t)(judge_now(j)->workload - 1);
    struct prop_workload *p = j->w->workloads.items[winner];
    if (!exact_simple(p) || !victims_list(j, &victims))
        return true;
    for (size_t i = j->i + 1; i < j->d->count; i++) {
        if (j->d->items[i].kind == SCHED_HOLD && j->d->items[i].workload == p->decl.id)
            return true; /* not the last one */
    }
    for (size_t i = 0; i <= j->i; i++) {
        if (j->d->items[i].kind == SCHED_UNHOLD ||
            (j->d->items[i].kind == SCHED_HOLD && j->d->items[i].workload != p->decl.id))
            return true;
    }
    if (!j->quiet)
        return true;
    turn_back(j, true);
    bool ok = all_quiet(j->w) ? exact_minimal(j->w, winner, &j->shares, &victims) : true;
    if (ok && exact_evicts(j->w, winner, &j->shares, &fewest) == EXACT_YES) {
        j->w->brute->sets++;
        j->w->brute->larger += fewest.workloads < victims.workloads;
    }
    turn_back(j, false);
    return ok;
}

/* ---- rest -------------------------------------------------------------------------------- */

static bool nothing_starts(struct prop_world *w)
{
    for (uint32_t i = 0; i < w->workloads.len; i++) {
        struct prop_workload *p = w->workloads.items[i];
        struct exact_next next;
        if (!exact_next(w, p, &next) || p->backing_off ||
            !(exact_simple(p) || exact_whole(p, &next)))
            continue;
        if (exact_starts(w, p, NULL, NULL) && !is_reserved_against(w, p))
            return prop_fail(w, "workload %u (%u tasks next) could start and waits (%s)", i + 1,
                             next.total, sched_reason_name(reason_of(w, p)));
        w->brute->blocked++;
    }
    return true;
}

/* The first that could start if others went; PROP_NONE if there is none. */
static uint32_t entitled_waiter(struct prop_world *w)
{
    struct naive_shares shares = naive_shares(w);
    for (uint32_t i = 0; i < w->workloads.len; i++) {
        struct prop_workload *p = w->workloads.items[i];
        struct exact_next next;
        struct exact_victims victims;
        if (!exact_next(w, p, &next) || p->backing_off || !exact_simple(p) ||
            w->config.classes[p->decl.class_].idle_only || is_reserved_against(w, p))
            continue;
        enum exact_answer answer = exact_evicts(w, i, &shares, &victims);
        for (uint32_t v = 0; answer == EXACT_YES && v < w->workloads.len; v++) {
            if (victims.tasks[v] != 0)
                prop_trace(w, "%u could start if of %u these tasks went: %x", i + 1, v + 1,
                           victims.tasks[v]);
        }
        if (answer == EXACT_YES)
            return i;
        w->brute->helpless += answer == EXACT_NO;
        w->brute->passed_over += answer == EXACT_TOO_MANY;
    }
    return PROP_NONE;
}

/* Who has just won keeps the place until something happens: it is made to happen, so that what
 * remains undone has no excuse. */
static bool nobody_entitled(struct prop_world *w)
{
    for (int i = 0; i < POKES_MAX; i++) {
        uint32_t waiter = entitled_waiter(w);
        uint64_t evictions = w->evictions;
        if (waiter == PROP_NONE)
            return true;
        prop_outside(w);
        if (prop_topology_tell(w->s) < 0 || !prop_turns(w))
            return prop_fail(w, "the topology is not told again");
        if (w->evictions == evictions)
            return prop_fail(w, "workload %u could have others make way, and waits (%s)",
                             waiter + 1,
                             sched_reason_name(reason_of(w, w->workloads.items[waiter])));
        if (!all_quiet(w))
            return true;
    }
    return prop_fail(w, "no rest after %d outside events without meaning", POKES_MAX);
}

bool brute_rest(struct prop_world *w)
{
    if (!all_quiet(w))
        return true;
    w->brute->rests++;
    return nothing_starts(w) && nobody_entitled(w);
}
