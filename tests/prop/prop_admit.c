/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may be made to leave, by trying all sets of victims.
 *
 * A set is a level per workload: which of its running tasks are gone, as bits. The sets that can be
 * reached from the empty one by steps each of which is admitted by the rules are walked; of those,
 * the ones that make enough room are answers.
 */
#include <string.h>

#include "prop_exact.h"
#include "prop_judge.h"

struct victim {
    uint32_t workload;
    enum sched_cause right;
    uint32_t order[PROP_TASKS_MAX]; /* running tasks, the surplus ones first */
    uint32_t surplus, running;
    uint32_t budget;   /* how many may be out at once; PROP_NONE = any number */
    uint32_t last;     /* level: all of it */
    uint32_t spare[2]; /* per group, tasks beyond its minimum */
};

struct walk {
    struct prop_world *w;
    uint32_t requester;
    const struct naive_shares *shares;
    struct naive_amounts need;
    struct victim victims[EXACT_WORKLOADS_MAX];
    uint32_t count;
    uint32_t level[EXACT_WORKLOADS_MAX]; /* as things stand in the books */
    struct naive_sums sums;              /* likewise */
    bool reclaims;                       /* of the set that is looked at */
};

static struct prop_workload *at(const struct walk *k, uint32_t workload)
{
    return k->w->workloads.items[workload];
}

/* ---- who could ------------------------------------------------------------------------------ */

static enum sched_cause right_over(const struct walk *k, const struct prop_workload *v)
{
    const struct prop_workload *p = at(k, k->requester);
    const struct sched_class_rule *mine = &k->w->config.classes[p->decl.class_];
    bool lower = v->decl.class_ != p->decl.class_ ? v->decl.class_ > p->decl.class_
                                                  : v->decl.priority < p->decl.priority;
    if (mine->idle_only)
        return SCHED_CAUSES;
    if (k->w->config.classes[v->decl.class_].idle_only)
        return SCHED_CAUSE_IDLE_ONLY;
    if (v->decl.team == p->decl.team)
        return mine->may_preempt && lower ? SCHED_CAUSE_PREEMPT : SCHED_CAUSES;
    return mine->may_reclaim ? SCHED_CAUSE_RECLAIM : SCHED_CAUSES;
}

static bool is_protected(const struct prop_world *w, const struct prop_workload *v)
{
    int64_t least =
        v->decl.min_run_ms > w->config.min_run_ms ? v->decl.min_run_ms : w->config.min_run_ms;
    for (uint32_t t = 0; t < v->decl.task_count; t++) {
        if (v->tasks[t].phase == PROP_RUNNING && w->now_ms - v->tasks[t].since_ms < least)
            return true;
    }
    return false;
}

static uint32_t group_members(const struct prop_workload *v, uint32_t group)
{
    uint32_t n = 0;
    for (uint32_t t = 0; t < v->decl.task_count; t++) {
        enum prop_phase phase = v->tasks[t].phase;
        n += v->decl.tasks[t].group == group &&
             (phase == PROP_RUNNING || phase == PROP_HELD || phase == PROP_DONE);
    }
    return n;
}

/* Running tasks by rank, then index, both descending: surplus goes in this order. */
static void order_tasks(const struct prop_workload *v, struct victim *out)
{
    for (uint32_t t = 0; t < v->decl.task_count; t++) {
        if (v->tasks[t].phase != PROP_RUNNING)
            continue;
        uint32_t i = out->running++;
        for (; i > 0 && v->decl.tasks[out->order[i - 1]].rank >= v->decl.tasks[t].rank; i--)
            out->order[i] = out->order[i - 1];
        out->order[i] = t;
    }
    uint32_t ended = prop_count(v, PROP_DONE);
    uint32_t least = v->decl.min_tasks > ended ? v->decl.min_tasks - ended : 0;
    out->surplus = out->running > least ? out->running - least : 0;
    out->spare[0] = out->spare[1] = out->running;
    for (uint32_t g = 0; g < v->decl.group_count; g++) {
        uint32_t members = group_members(v, g);
        out->spare[g] =
            members > v->decl.groups[g].min_tasks ? members - v->decl.groups[g].min_tasks : 0;
    }
    out->last = (1u << out->running) - 1;
    out->budget = PROP_NONE;
    if (v->decl.max_unavailable > 0) {
        uint32_t down = v->decl.task_count - ended - prop_count(v, PROP_ENDING) - out->running;
        out->budget = down < v->decl.max_unavailable ? v->decl.max_unavailable - down : 0;
    }
}

/* All of it, or as many as are surplus; which of them it is, is judged by what they are for. */
static bool level_allowed(const struct prop_workload *v, const struct victim *x, uint32_t level)
{
    uint32_t gone = 0, from[2] = {0};
    for (uint32_t n = 0; n < x->running; n++) {
        if ((level & 1u << n) == 0)
            continue;
        gone++;
        from[v->decl.tasks[x->order[n]].group % 2]++;
    }
    if (gone > x->budget)
        return false;
    if (level == x->last)
        return true;
    if (gone > x->surplus ||
        (v->decl.group_count > 0 && (from[0] > x->spare[0] || from[1] > x->spare[1])))
        return false;
    return true;
}

/* False: too many sets. */
static bool collect(struct walk *k)
{
    uint64_t states = 1;
    for (uint32_t i = 0; i < k->w->workloads.len; i++) {
        const struct prop_workload *v = at(k, i);
        enum sched_cause right = i == k->requester ? SCHED_CAUSES : right_over(k, v);
        if (right == SCHED_CAUSES || !v->known || !v->decl.preemptible ||
            prop_count(v, PROP_RUNNING) == 0 || prop_count(v, PROP_HELD) > 0 ||
            is_protected(k->w, v))
            continue;
        struct victim *x = &k->victims[k->count];
        *x = (struct victim){.workload = i, .right = right};
        order_tasks(v, x);
        k->count++;
        states *= x->last + 1;
        if (states > EXACT_STATES_MAX || k->count == EXACT_WORKLOADS_MAX)
            return false;
    }
    return true;
}

/* ---- the books as if some had gone ------------------------------------------------------- */

static void task_set(struct walk *k, struct prop_workload *v, uint32_t t, bool gone)
{
    struct prop_task *task = &v->tasks[t];
    const struct sched_request *q = v->decl.tasks[t].request;
    struct sim_ledger *l = &k->w->then;
    if (gone && l->nodes[task->node].open)
        sim_ledger_release(l, task->node, q, task->devices, task->device_count);
    if (!gone && l->nodes[task->node].open)
        sim_ledger_take(l, task->node, q, task->devices, task->device_count, NULL);
    task->phase = gone ? PROP_LEAVING : PROP_RUNNING;
}

static void level_set(struct walk *k, uint32_t i, uint32_t level)
{
    struct victim *x = &k->victims[i];
    for (uint32_t n = 0; n < x->running; n++) {
        if (((level ^ k->level[i]) & 1u << n) != 0)
            task_set(k, at(k, x->workload), x->order[n], (level & 1u << n) != 0);
    }
    k->level[i] = level;
}

static void state_load(struct walk *k, uint32_t state)
{
    for (uint32_t i = 0; i < k->count; state /= k->victims[i++].last + 1)
        level_set(k, i, state % (k->victims[i].last + 1));
    k->sums = naive_sums(k->w, NAIVE_THEN);
}

/* ---- rules --------------------------------------------------------------------------------- */

static bool above(const struct walk *k, uint32_t team, const struct naive_amounts *unit,
                  bool guarantee)
{
    for (int r = 0; r < SCHED_RESOURCES; r++) {
        int64_t bound =
            guarantee ? k->w->teams[team].decl.guarantee[r] : k->shares->share[team].v[r];
        if (k->need.v[r] == 0 || unit->v[r] == 0)
            continue;
        if (k->sums.used[team].v[r] > bound)
            return true;
        if (r == SCHED_GPU_MILLI)
            return false; /* GPUs decide where both have them */
    }
    return false;
}

static bool within(const struct walk *k, uint32_t team, const struct naive_amounts *ask,
                   bool guarantee)
{
    for (int r = 0; r < SCHED_RESOURCES; r++) {
        int64_t bound =
            guarantee ? k->w->teams[team].decl.guarantee[r] : k->shares->share[team].v[r];
        if (ask->v[r] > 0 && bound != SCHED_UNLIMITED &&
            k->sums.used[team].v[r] + ask->v[r] > bound)
            return false;
    }
    return true;
}

/* Does A give way before B, of the same team, if both go whole? */
static bool goes_before(const struct prop_workload *a, const struct prop_workload *b)
{
    if (a->decl.class_ != b->decl.class_)
        return a->decl.class_ > b->decl.class_;
    if (a->decl.priority != b->decl.priority)
        return a->decl.priority < b->decl.priority;
    return a->decl.age != b->decl.age ? a->decl.age > b->decl.age : a->decl.id > b->decl.id;
}

/* Has one of its team gone already that is to go after it? Surplus of equal rank goes in turns. */
static bool comes_too_late(const struct walk *k, uint32_t index, uint32_t level)
{
    const struct prop_workload *v = at(k, k->victims[index].workload);
    for (uint32_t i = 0; i < k->count; i++) {
        const struct prop_workload *u = at(k, k->victims[i].workload);
        bool equal = u->decl.class_ == v->decl.class_ && u->decl.priority == v->decl.priority;
        bool whole = level == k->victims[index].last && k->level[i] == k->victims[i].last;
        if (k->level[i] > 0 && u != v && u->decl.team == v->decl.team && (!equal || whole) &&
            goes_before(v, u))
            return true;
    }
    return false;
}

/* May victim I go on from its level in the books to LEVEL? */
static bool may_step(struct walk *k, uint32_t i, uint32_t level)
{
    const struct victim *x = &k->victims[i];
    const struct prop_workload *v = at(k, x->workload), *p = at(k, k->requester);
    struct naive_amounts unit = {0};
    uint32_t theirs, mine;
    if (!level_allowed(v, x, level) || comes_too_late(k, i, level))
        return false;
    if (!naive_parting(k->w, (uint32_t)(v->decl.team - 1), (uint32_t)(p->decl.team - 1), &theirs,
                       &mine))
        return true;
    bool by_type = false;
    for (uint32_t n = 0; n < x->running; n++) {
        if ((level & ~k->level[i] & 1u << n) == 0)
            continue;
        struct naive_amounts c = naive_charge(k->w, v, x->order[n]);
        const char *type = k->w->nodes[v->tasks[x->order[n]].node].decl.gpu_type;
        for (int r = 0; r < SCHED_RESOURCES; r++)
            unit.v[r] += c.v[r];
        if (c.v[SCHED_GPU_MILLI] == 0)
            continue;
        if (naive_type_keeps(k->w, theirs, type))
            return false;
        by_type |= k->need.v[SCHED_GPU_MILLI] > 0 &&
                   naive_type_entitled(k->w, mine, type, k->need.v[SCHED_GPU_MILLI]);
    }
    if (x->right == SCHED_CAUSE_IDLE_ONLY)
        return above(k, theirs, &unit, true);
    bool gpus = k->need.v[SCHED_GPU_MILLI] > 0 && unit.v[SCHED_GPU_MILLI] > 0;
    bool guarded = prop_guarded(k->w, k->shares, k->requester, x->workload, gpus);
    return by_type || (above(k, theirs, &unit, false) && !guarded) ||
           (above(k, theirs, &unit, true) && within(k, mine, &k->need, true));
}

static bool ends_within_share(void *user, const struct naive_amounts *charge)
{
    const struct walk *k = user;
    uint32_t team = (uint32_t)(at(k, k->requester)->decl.team - 1);
    for (; k->reclaims && team != PROP_NONE; team = k->w->teams[team].parent) {
        if (!within(k, team, charge, false))
            return false;
    }
    return true;
}

/* Does it start, as the books stand? */
static bool enough(struct walk *k)
{
    k->reclaims = false;
    for (uint32_t i = 0; i < k->count; i++)
        k->reclaims |= k->level[i] > 0 && k->victims[i].right == SCHED_CAUSE_RECLAIM;
    return ends_within_share(k, &k->need) &&
           exact_starts(k->w, at(k, k->requester), ends_within_share, k);
}

/* ---- walking --------------------------------------------------------------------------------- */

static uint32_t state_count(const struct walk *k)
{
    uint32_t n = 1;
    for (uint32_t i = 0; i < k->count; i++)
        n *= k->victims[i].last + 1;
    return n;
}

/* The core goes after the surplus; where the surplus would be of no help, that is not demanded of
 * what was decided. */
static bool surplus_is_gone(const struct victim *x, uint32_t level)
{
    uint32_t gone = 0;
    for (uint32_t n = 0; n < x->running; n++)
        gone += (level & 1u << n) != 0;
    return gone >= x->surplus || gone == x->spare[0] + x->spare[1];
}

/* Marks all sets that can be reached from those marked, upward; states only ever grow. */
static void reach_from(struct walk *k, uint32_t state, uint8_t *reached, const uint32_t *bound)
{
    uint32_t step = 1;
    for (uint32_t i = 0; i < k->count; step *= k->victims[i++].last + 1) {
        uint32_t here = k->level[i], last = k->victims[i].last;
        uint32_t most = bound == NULL ? last : bound[i];
        bool all_surplus = k->victims[i].surplus == k->victims[i].running;
        for (uint32_t bit = 1; bit <= last; bit <<= 1) {
            if ((here & bit) == 0 && ((here | bit) != last || all_surplus) && (most & bit) != 0 &&
                may_step(k, i, here | bit))
                reached[state + bit * step] = 1;
        }
        if (here < last && !all_surplus && most == last &&
            (bound != NULL || surplus_is_gone(&k->victims[i], here)) && may_step(k, i, last))
            reached[state + (last - here) * step] = 1;
    }
}

static bool prepare(struct walk *k, struct prop_world *w, uint32_t p,
                    const struct naive_shares *shares)
{
    struct exact_next next;
    *k = (struct walk){.w = w, .requester = p, .shares = shares};
    if (w->workloads.len > EXACT_WORKLOADS_MAX || !exact_next(w, w->workloads.items[p], &next))
        return false;
    k->need = next.need;
    return collect(k);
}

static uint32_t victims_of(const struct walk *k)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < k->count; i++)
        n += k->level[i] > 0;
    return n;
}

static void set_note(const struct walk *k, struct exact_victims *ret)
{
    *ret = (struct exact_victims){.workloads = victims_of(k)};
    for (uint32_t i = 0; i < k->count; i++) {
        const struct victim *x = &k->victims[i];
        for (uint32_t n = 0; n < x->running; n++)
            ret->tasks[x->workload] |=
                (uint8_t)((k->level[i] & 1u << n) != 0 ? 1u << x->order[n] : 0);
    }
}

/* The level that stands for these tasks. */
static uint32_t level_of(const struct victim *x, uint32_t tasks)
{
    uint32_t level = 0;
    for (uint32_t n = 0; n < x->running; n++)
        level |= (tasks & 1u << x->order[n]) != 0 ? 1u << n : 0;
    return level;
}

enum exact_answer exact_evicts(struct prop_world *w, uint32_t p, const struct naive_shares *shares,
                               struct exact_victims *ret_fewest)
{
    static uint8_t reached[EXACT_STATES_MAX];
    struct walk k;
    enum exact_answer answer = EXACT_NO;
    if (!prepare(&k, w, p, shares))
        return EXACT_TOO_MANY;
    uint32_t states = state_count(&k);
    memset(reached, 0, states);
    reached[0] = 1;
    for (uint32_t state = 0; state < states; state++) {
        if (!reached[state])
            continue;
        state_load(&k, state);
        reach_from(&k, state, reached, NULL);
        uint32_t fewer = victims_of(&k);
        if (state == 0 || (answer == EXACT_YES && fewer >= ret_fewest->workloads) || !enough(&k))
            continue;
        answer = EXACT_YES;
        set_note(&k, ret_fewest);
    }
    state_load(&k, 0);
    return answer;
}

bool exact_minimal(struct prop_world *w, uint32_t p, const struct naive_shares *shares,
                   const struct exact_victims *victims)
{
    static uint8_t reached[EXACT_STATES_MAX];
    struct walk k;
    uint32_t bound[EXACT_WORKLOADS_MAX], last = 0, step = 1;
    if (!prepare(&k, w, p, shares))
        return true;
    uint32_t states = state_count(&k);
    for (uint32_t i = 0; i < k.count; step *= k.victims[i++].last + 1) {
        bound[i] = level_of(&k.victims[i], victims->tasks[k.victims[i].workload]);
        if (!level_allowed(w->workloads.items[k.victims[i].workload], &k.victims[i], bound[i]))
            return prop_fail(w, "a part of workload %u goes that may not go without the rest",
                             k.victims[i].workload + 1);
        last += bound[i] * step;
    }
    memset(reached, 0, states);
    reached[0] = 1;
    bool needed = true;
    for (uint32_t state = 0; state <= last && needed; state++) {
        if (!reached[state])
            continue;
        state_load(&k, state);
        reach_from(&k, state, reached, bound);
        if (state != last && enough(&k))
            needed = prop_fail(w, "%u of %u victims for workload %u would do", victims_of(&k),
                               victims->workloads, p + 1);
    }
    state_load(&k, last);
    bool makes_room = enough(&k);
    state_load(&k, 0);
    if (needed && !reached[last])
        return prop_fail(w, "the victims for workload %u may not go in any order", p + 1);
    if (needed && !makes_room)
        return prop_fail(w, "the victims for workload %u do not make room", p + 1);
    return needed;
}
