/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of starts, for pairs of which it is certain.
 */
#include "prop_exact.h"

typedef __int128 wide;

static bool is_idle_only(const struct prop_world *w, const struct prop_workload *p)
{
    return w->config.classes[p->decl.class_].idle_only;
}

/* Surplus it would have; 0 below the minimum. */
static uint32_t round_of(const struct prop_workload *p, const struct exact_next *next)
{
    uint32_t active = prop_count(p, PROP_RUNNING) + prop_count(p, PROP_HELD);
    uint32_t ended = prop_count(p, PROP_DONE);
    uint32_t least = p->decl.min_tasks > ended ? p->decl.min_tasks - ended : 0;
    return next->growth ? 1 + (active > least ? active - least : 0) : 0;
}

/* Inside one team. */
static bool before_here(const struct prop_workload *a, const struct exact_next *na,
                        const struct prop_workload *b, const struct exact_next *nb)
{
    if (a->decl.class_ != b->decl.class_)
        return a->decl.class_ < b->decl.class_;
    if (a->decl.priority != b->decl.priority)
        return a->decl.priority > b->decl.priority;
    uint32_t x = round_of(a, na), y = round_of(b, nb);
    if (x != y)
        return x < y;
    return a->decl.age != b->decl.age ? a->decl.age < b->decl.age : a->decl.id < b->decl.id;
}

struct standing { /* of a team with its candidate */
    bool over_share, over_guarantee;
    int64_t part, whole;
};

static struct standing standing_of(const struct prop_world *w, const struct naive_shares *shares,
                                   const struct naive_sums *sums, uint32_t team,
                                   const struct naive_amounts *need)
{
    struct standing s = {.whole = 1};
    for (int r = 0; r < SCHED_RESOURCES; r++) {
        int64_t before = sums->used[team].v[r], after = before + need->v[r];
        int64_t whole = shares->entitled[team].v[r] > 0 ? shares->entitled[team].v[r] : 1;
        s.over_share |= before > shares->share[team].v[r];
        s.over_guarantee |= after > w->teams[team].decl.guarantee[r];
        if ((wide)after * s.whole > (wide)s.part * whole) {
            s.part = after;
            s.whole = whole;
        }
    }
    return s;
}

/* All that waits in the subtree of TEAM and is of that kind asks for NEED: then it does not
 * matter which of them is the team's candidate. */
static bool all_alike(const struct prop_world *w, uint32_t team, bool idle,
                      const struct naive_amounts *need)
{
    for (size_t i = 0; i < w->workloads.len; i++) {
        const struct prop_workload *p = w->workloads.items[i];
        struct exact_next next;
        if (!naive_within(w, (uint32_t)(p->decl.team - 1), team) || is_idle_only(w, p) != idle ||
            p->backing_off || !exact_next(w, p, &next))
            continue;
        for (int r = 0; r < SCHED_RESOURCES; r++) {
            if (next.need.v[r] != need->v[r])
                return false;
        }
    }
    return true;
}

bool exact_before(const struct prop_world *w, const struct naive_shares *shares, uint32_t a,
                  uint32_t b)
{
    const struct prop_workload *p = w->workloads.items[a], *q = w->workloads.items[b];
    struct exact_next np, nq;
    uint32_t x, y;
    if (!exact_next(w, p, &np) || !exact_next(w, q, &nq))
        return false;
    if (is_idle_only(w, p) != is_idle_only(w, q))
        return !is_idle_only(w, p);
    if (!naive_parting(w, (uint32_t)(p->decl.team - 1), (uint32_t)(q->decl.team - 1), &x, &y))
        return before_here(p, &np, q, &nq);
    if (!exact_simple(p) || !exact_simple(q) || !all_alike(w, x, is_idle_only(w, p), &np.need))
        return false;
    struct naive_sums sums = naive_sums(w, NAIVE_THEN);
    struct standing s = standing_of(w, shares, &sums, x, &np.need);
    struct standing t = standing_of(w, shares, &sums, y, &nq.need);
    if (s.over_share != t.over_share)
        return !s.over_share;
    if (s.over_guarantee != t.over_guarantee)
        return !s.over_guarantee;
    if (w->teams[x].decl.priority != w->teams[y].decl.priority)
        return w->teams[x].decl.priority > w->teams[y].decl.priority;
    wide l = (wide)s.part * t.whole, m = (wide)t.part * s.whole;
    return l != m ? l < m : w->teams[x].decl.age < w->teams[y].decl.age;
}
