/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns, and a judgement on every decision.
 *
 * Decisions are carried out in the books one by one, in the order given, and each is judged
 * against the books as they are just before it. Shares are computed once a turn: what runs and
 * what waits together do not change by a decision.
 */
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "prop_naive.h"

#define TURNS_MAX 300

struct judge {
    struct prop_world *w;
    struct naive_shares shares;
    const struct sched_decisions *d;
    size_t i;   /* the decision that is judged */
    bool quiet; /* nothing was stopping when the turn began: nobody waits for a stop */
};

static const struct sched_decision *now_at(const struct judge *j)
{
    return &j->d->items[j->i];
}

static struct prop_workload *subject(const struct judge *j, uint64_t id)
{
    return j->w->workloads.items[id - 1];
}

static bool bad(const struct judge *j, const char *what)
{
    const struct sched_decision *d = now_at(j);
    return prop_fail(j->w, "decision %zu (kind %d, cause %s) on task %llu/%u, for %llu: %s", j->i,
                     (int)d->kind, sched_cause_name(d->cause), (unsigned long long)d->workload,
                     d->task, (unsigned long long)d->on_behalf_of, what);
}

/* ---- starts and holds -------------------------------------------------------------------- */

static bool place(const struct judge *j, struct prop_workload *p)
{
    const struct sched_decision *d = now_at(j);
    struct prop_task *t = &p->tasks[d->task];
    const struct sched_request *q = p->decl.tasks[d->task].request;
    if (d->node == 0 || d->node > j->w->node_count || d->device_count > PROP_DEVICES_MAX)
        return bad(j, "no such node or devices");
    uint32_t node = (uint32_t)(d->node - 1);
    if (!naive_node_suits(j->w, q, node))
        return bad(j, "the node has another type, label or name");
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
        return bad(j, "the charge is not that of the devices");
    return true;
}

static bool start(const struct judge *j)
{
    const struct sched_decision *d = now_at(j);
    struct prop_workload *p = subject(j, d->workload);
    struct prop_task *t = &p->tasks[d->task];
    if (t->phase != PROP_PENDING && t->phase != PROP_HELD)
        return bad(j, "it does not wait");
    if (!place(j, p))
        return false;
    /* asked of the gates while it is not yet counted, with the charge of its place */
    enum prop_phase was = t->phase;
    t->phase = PROP_HELD;
    struct naive_sums now = naive_sums(j->w, NAIVE_NOW);
    bool open = naive_gates_open(j->w, p, d->task, &now);
    t->phase = was;
    if (!open)
        return bad(j, "a limit or guarantee does not allow it");
    if (!prop_task_move(j->w, (uint32_t)(d->workload - 1), d->task, PROP_RUNNING))
        return false;
    t->since_ms = j->w->now_ms;
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
    const struct sched_decision *d = now_at(j);
    struct prop_workload *p = subject(j, d->workload);
    struct prop_task *t = &p->tasks[d->task];
    if (t->phase == PROP_HELD) { /* only its expiry is new */
        t->until_ms = d->until_ms;
        return true;
    }
    if (t->phase != PROP_PENDING)
        return bad(j, "it does not wait");
    if (!place(j, p) || !prop_task_move(j->w, (uint32_t)(d->workload - 1), d->task, PROP_HELD))
        return false;
    t->until_ms = d->until_ms;
    j->w->holds++;
    return true;
}

static bool unhold(const struct judge *j)
{
    const struct sched_decision *d = now_at(j);
    if (subject(j, d->workload)->tasks[d->task].phase != PROP_HELD)
        return bad(j, "nothing is held");
    return prop_task_move(j->w, (uint32_t)(d->workload - 1), d->task, PROP_PENDING);
}

/* ---- evictions --------------------------------------------------------------------------- */

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
    const struct sched_decision *d = now_at(j);
    uint32_t left = 0;
    if (j->i == 0 || d[-1].kind != SCHED_EVICT || d[-1].workload != d->workload)
        return false;
    for (size_t i = j->i; i < j->d->count; i++)
        left += j->d->items[i].kind == SCHED_EVICT && j->d->items[i].workload == d->workload;
    return left == prop_count(subject(j, d->workload), PROP_RUNNING);
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
        return bad(j, "reclaimed inside a team");
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
    char text[160];
    int i = has.v[0] > 0 && wants.v[0] > 0 ? 0 : has.v[1] > 0 && wants.v[1] > 0 ? 1 : 2;
    snprintf(text, sizeof(text),
             "team %u uses %lld of resource %d, its share is %lld, its guarantee %lld", v,
             (long long)then.used[v].v[i], i, (long long)j->shares.share[v].v[i],
             (long long)j->w->teams[v].decl.guarantee[i]);
    return bad(j, text);
}

static bool evict_for(const struct judge *j, struct prop_workload *victim)
{
    const struct sched_decision *d = now_at(j);
    if (d->on_behalf_of == 0 || d->on_behalf_of > j->w->workloads.len)
        return bad(j, "for nobody");
    const struct prop_workload *winner = subject(j, d->on_behalf_of);
    const struct sched_class_rule *mine = &j->w->config.classes[winner->decl.class_];
    const struct sched_class_rule *his = &j->w->config.classes[victim->decl.class_];
    switch (d->cause) {
    case SCHED_CAUSE_PREEMPT:
        if (victim->decl.team != winner->decl.team || !mine->may_preempt ||
            !lower(&victim->decl, &winner->decl))
            return bad(j, "not lower work of the same team");
        return true;
    case SCHED_CAUSE_RECLAIM:
        if (!mine->may_reclaim)
            return bad(j, "the winner's class reclaims nothing");
        return reclaim_victim_may(j, victim, winner);
    case SCHED_CAUSE_IDLE_ONLY:
        return (his->idle_only && !mine->idle_only) || bad(j, "it is no idle-only work");
    case SCHED_CAUSE_CONSOLIDATE:
        return true;
    default:
        return bad(j, "not a cause of an eviction");
    }
}

static bool pair_note(const struct judge *j)
{
    const struct sched_decision *d = now_at(j);
    struct prop_world *w = j->w;
    uint32_t has = prop_count(subject(j, d->on_behalf_of), PROP_RUNNING);
    for (size_t i = 0; i < w->pairs.len; i++) {
        struct prop_pair *p = &w->pairs.items[i];
        if (p->victim + 1 != d->workload || p->winner + 1 != d->on_behalf_of)
            continue;
        if (p->returned && has <= p->has)
            return bad(j, "it made way for the same winner before, and nothing happened since");
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

static bool evict(const struct judge *j)
{
    const struct sched_decision *d = now_at(j);
    struct prop_workload *p = subject(j, d->workload);
    struct prop_task *t = &p->tasks[d->task];
    if (t->phase != PROP_RUNNING)
        return bad(j, "it does not run");
    if (d->cause == SCHED_CAUSE_STALE_GANG) {
        if (p->short_since_ms < 0 || j->w->now_ms - p->short_since_ms < j->w->config.stale_gang_ms)
            return bad(j, "it is not below its minimum, or not for long enough");
    } else {
        int64_t least = p->decl.min_run_ms > 0 ? p->decl.min_run_ms : j->w->config.min_run_ms;
        if (!p->decl.preemptible)
            return bad(j, "it is not preemptible");
        if (j->w->now_ms - t->since_ms < least)
            return bad(j, "it has not run for its minimum");
        if (!evict_for(j, p) || !pair_note(j))
            return false;
    }
    t->stop_ms = j->w->now_ms + (prop_chance(j->w, 50) ? 0 : (int64_t)prop_below(j->w, 8000));
    j->w->evictions++;
    return prop_task_move(j->w, (uint32_t)(d->workload - 1), d->task, PROP_LEAVING);
}

/* ---- after the last decision on a winner -------------------------------------------------- */

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
    const struct sched_decision *d = now_at(j);
    const struct prop_workload *p = subject(j, d->workload);
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
                return bad(j, "it reclaimed and ends above its fair share");
            if (!p->decl.preemptible && then.firm[a].v[r] > guarantee)
                return bad(j, "it reclaimed and ends above its guarantee");
        }
    }
    return true;
}

/* Would the one task of P, promised just now, also start with what runs and is promised else?
 * Asked strictly: within share and guarantee at every level, as any right to evict may want. */
static bool starts_without(const struct judge *j, struct prop_workload *p)
{
    struct naive_sums then = naive_sums(j->w, NAIVE_THEN);
    const struct sched_request *q = p->decl.tasks[0].request;
    uint16_t devices[PROP_DEVICES_MAX];
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
        if (naive_node_suits(j->w, q, n) && sim_ledger_fit(&j->w->then, n, q, devices))
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
        struct prop_task *t = &subject(j, victim)->tasks[d->task];
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
            j->d->items[i].on_behalf_of != now_at(j)->workload)
            return false;
    }
    return j->quiet;
}

/* No victim that is not needed: asked for single tasks, where the answer is simple. */
static bool victims_needed(const struct judge *j)
{
    const struct sched_decision *d = now_at(j);
    struct prop_workload *p = subject(j, d->workload);
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

static bool decide(struct judge *j)
{
    const struct sched_decision *d = now_at(j);
    if (d->workload == 0 || d->workload > j->w->workloads.len ||
        d->task >= subject(j, d->workload)->decl.task_count || (!subject(j, d->workload)->known))
        return prop_fail(j->w, "a decision about an unknown task %llu/%u",
                         (unsigned long long)d->workload, d->task);
    switch (d->kind) {
    case SCHED_START:
        return start(j) && winner_within(j);
    case SCHED_HOLD:
        return hold(j) && winner_within(j) && victims_needed(j);
    case SCHED_UNHOLD:
        return unhold(j);
    case SCHED_EVICT:
        return evict(j);
    }
    return bad(j, "no known kind");
}

/* ---- gangs, once the turn is over --------------------------------------------------------- */

/* Are all tasks of GROUP (PROP_NONE: of all) that run or are promised in one zone? */
static bool in_one_zone(const struct prop_world *w, const struct prop_workload *p, uint32_t group)
{
    const char *zone = NULL;
    for (uint32_t t = 0; t < p->decl.task_count; t++) {
        enum prop_phase phase = p->tasks[t].phase;
        if ((phase != PROP_RUNNING && phase != PROP_HELD) ||
            (group != PROP_NONE && p->decl.tasks[t].group != group))
            continue;
        const char *here = w->nodes[p->tasks[t].node].decl.labels[0].value;
        if (zone != NULL && strcmp(zone, here) != 0)
            return false;
        zone = here;
    }
    return true;
}

static bool domains_kept(const struct prop_world *w, const struct prop_workload *p)
{
    if (p->decl.topology_required != NULL && !in_one_zone(w, p, PROP_NONE))
        return false;
    for (uint32_t g = 0; g < p->decl.group_count; g++) {
        if (p->decl.groups[g].required != NULL && !in_one_zone(w, p, g))
            return false;
    }
    return true;
}

static bool gangs_whole(const struct judge *j)
{
    for (size_t i = 0; i < j->d->count; i++) {
        const struct sched_decision *d = &j->d->items[i];
        const struct prop_workload *p = subject(j, d->workload);
        if (d->kind == SCHED_START && !prop_minimum_met(p, false))
            return prop_fail(j->w, "workload %llu started a part of its gang",
                             (unsigned long long)d->workload);
        if (d->kind == SCHED_HOLD && prop_count(p, PROP_HELD) > 0 && !prop_minimum_met(p, true))
            return prop_fail(j->w, "a part of the gang of workload %llu is promised",
                             (unsigned long long)d->workload);
    }
    for (uint32_t i = 0; i < j->w->workloads.len; i++) {
        if (!domains_kept(j->w, j->w->workloads.items[i]))
            return prop_fail(j->w, "workload %u is not in one zone", i + 1);
        prop_short_update(j->w, i);
    }
    return true;
}

/* ---- turns ------------------------------------------------------------------------------- */

static void hash_decision(struct prop_world *w, const struct sched_decision *d)
{
    uint64_t parts[] = {(uint64_t)d->kind,
                        (uint64_t)d->cause,
                        d->workload,
                        d->task,
                        d->node,
                        d->device_count,
                        (uint64_t)d->gpu_milli,
                        d->on_behalf_of,
                        (uint64_t)d->until_ms,
                        (uint64_t)d->price_ms,
                        d->team};
    w->hash = w->hash * 31 + map_hash(parts, sizeof(parts));
    if (d->device_count > 0)
        w->hash = w->hash * 31 + map_hash(d->devices, d->device_count * sizeof(uint16_t));
}

void prop_trace_decision(const struct prop_world *w, const char *who,
                         const struct sched_decision *d)
{
    static const char *const kinds[] = {"start", "hold", "unhold", "evict"};
    prop_trace(w, "%s%s %llu/%u (%s) on node %llu, %d milli, for %llu", who, kinds[d->kind],
               (unsigned long long)d->workload, d->task, sched_cause_name(d->cause),
               (unsigned long long)d->node, d->gpu_milli, (unsigned long long)d->on_behalf_of);
}

static bool same_decision(const struct sched_decision *a, const struct sched_decision *b)
{
    return a->kind == b->kind && a->cause == b->cause && a->workload == b->workload &&
           a->task == b->task && a->node == b->node && a->device_count == b->device_count &&
           a->on_behalf_of == b->on_behalf_of &&
           (a->device_count == 0 ||
            memcmp(a->devices, b->devices, a->device_count * sizeof(uint16_t)) == 0);
}

static bool rebuilt_alike(struct prop_world *w, const struct sched_decisions *d)
{
    if (w->s[1] == NULL)
        return true;
    const struct sched_decisions *other = sched_turn(w->s[1], w->now_ms);
    for (size_t i = 0; i < d->count && other->count != d->count; i++)
        prop_trace_decision(w, "the one that lived on: ", &d->items[i]);
    for (size_t i = 0; i < other->count && other->count != d->count; i++)
        prop_trace_decision(w, "the rebuilt one: ", &other->items[i]);
    if (other->count != d->count)
        return prop_fail(w, "the rebuilt scheduler makes %zu decisions, the other %zu",
                         other->count, d->count);
    for (size_t i = 0; i < d->count; i++) {
        if (same_decision(&d->items[i], &other->items[i]))
            continue;
        prop_trace_decision(w, "the one that lived on: ", &d->items[i]);
        prop_trace_decision(w, "the rebuilt one: ", &other->items[i]);
        return prop_fail(w,
                         "the rebuilt scheduler decides otherwise: decision %zu is kind %d "
                         "on %llu/%u, the other's kind %d on %llu/%u",
                         i, (int)other->items[i].kind, (unsigned long long)other->items[i].workload,
                         other->items[i].task, (int)d->items[i].kind,
                         (unsigned long long)d->items[i].workload, d->items[i].task);
    }
    return true;
}

static bool verified(struct prop_world *w)
{
    char what[200] = "";
    for (int i = 0; i < 2; i++) {
        if (w->s[i] != NULL && sched_verify(w->s[i], what, sizeof(what)) < 0)
            return prop_fail(w, "sched_verify of scheduler %d: %s", i, what);
    }
    return true;
}

static bool turn(struct prop_world *w, size_t *ret_count)
{
    struct judge j = {.w = w, .shares = naive_shares(w), .quiet = true};
    for (size_t i = 0; i < w->workloads.len; i++)
        j.quiet &= prop_count(w->workloads.items[i], PROP_LEAVING) +
                       prop_count(w->workloads.items[i], PROP_ENDING) ==
                   0;
    j.d = sched_turn(w->s[0], w->now_ms);
    *ret_count = j.d->count;
    if (!rebuilt_alike(w, j.d))
        return false;
    for (j.i = 0; j.i < j.d->count; j.i++) {
        hash_decision(w, now_at(&j));
        prop_trace_decision(w, "", now_at(&j));
        w->decisions++;
        if (!decide(&j))
            return false;
    }
    return gangs_whole(&j) && verified(w);
}

bool prop_turns(struct prop_world *w)
{
    for (int i = 0; i < TURNS_MAX; i++) {
        size_t count;
        if (!verified(w) || !turn(w, &count))
            return false;
        if (count == 0)
            return true;
        if (!prop_stops_due(w))
            return false;
    }
    return prop_fail(w, "no rest after %d turns without an event", TURNS_MAX);
}
