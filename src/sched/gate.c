/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/gate.h"

#include "sched/team.h"

static bool exceeds(int64_t used, int64_t need, int64_t bound)
{
    return need > 0 && bound != SCHED_UNLIMITED && used + need > bound;
}

/* May not burst, or not while work that may not is promised a place. */
static bool stays_within(const struct group *g, enum view view, int r)
{
    bool soon = view == VIEW_NOW || view == VIEW_THEN;
    return !g->may_burst || (soon && g->team->held_within[r] > 0);
}

static bool team_open(const struct group *g, const struct team *t, const struct amounts *need,
                      enum view view, struct gate *gate)
{
    gate->team = (struct team *)t;
    for (int r = 0; r < SCHED_RESOURCES; r++) {
        gate->resource = (enum sched_resource)r;
        gate->guarantee = gate->firm = false;
        if (exceeds(t->used[view].v[r], need->v[r], t->limit[r]))
            return false;
        gate->guarantee = gate->firm = true;
        if (!g->preemptible && exceeds(t->firm[view].v[r], need->v[r], t->guarantee[r]))
            return false;
        gate->firm = false;
        if (stays_within(g, view, r) && t == g->team &&
            exceeds(t->used[view].v[r], need->v[r], t->guarantee[r]))
            return false;
    }
    return true;
}

bool gate_open(const struct group *g, const struct amounts *need, unsigned mask,
               struct gate *ret_gate)
{
    struct gate gate;
    for (const struct team *t = g->team; t->parent != NULL; t = t->parent)
        for (int v = 0; v < VIEWS; v++) {
            if (!(mask & MASK(v)) || team_open(g, t, need, (enum view)v, &gate))
                continue;
            if (ret_gate != NULL)
                *ret_gate = gate;
            return false;
        }
    return true;
}

bool gate_still_open(const struct group *g, const struct amounts *need)
{
    team_use(g->team, VIEW_THEN, need, !g->preemptible, -1);
    bool open = gate_open(g, need, MASK(VIEW_THEN), NULL);
    team_use(g->team, VIEW_THEN, need, !g->preemptible, 1);
    return open;
}

bool gate_within_share(const struct team *t, const struct amounts *need)
{
    for (int r = 0; r < SCHED_RESOURCES; r++)
        if (exceeds(t->used[VIEW_THEN].v[r] + t->claimed.v[r], need->v[r], t->share.v[r]))
            return false;
    return true;
}

bool gate_within_guarantee(const struct team *t, const struct amounts *need)
{
    for (int r = 0; r < SCHED_RESOURCES; r++)
        if (exceeds(t->used[VIEW_THEN].v[r] + t->claimed.v[r], need->v[r], t->guarantee[r]))
            return false;
    return true;
}
