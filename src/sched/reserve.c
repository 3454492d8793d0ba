/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/reserve.h"

#include "base/qty.h"
#include "sched/fit.h"
#include "sched/gate.h"
#include "sched/place.h"
#include "sched/plan.h"
#include "sched/queue.h"
#include "sched/team.h"
#include "sched/tree.h"
#include "sched/units.h"
#include "sched/workload.h"

#define DEPTH_MAX 64   /* of a group that is looked through for work that ends in time */
#define ATTEMPTS_MAX 8 /* plans a turn, for blocked workloads whose start cannot be computed */

/* Is there anything that a plan could wait for? */
static bool something_ends(const struct sched *s)
{
    return s->ending_running > 0 || s->windows.len > 0;
}

void reserve_begin(struct sched *s)
{
    struct workload *w = workload_find(s, s->reserved.last);
    s->reserved = (struct reservation){.before = s->reserved.last,
                                       .before_ms = s->reserved.start_ms,
                                       .wake_gen = s->wake_gen};
    /* The first blocked ones are asked in every turn: what they wait for may have an end now. */
    for (size_t i = 0; i < s->queues.len && something_ends(s); i++)
        queue_wake_first(s, s->queues.items[i]);
    if (w == NULL)
        return;
    if (w->place == PLACE_GROUP)
        line_wake(s, &w->group->lot->line);
    else if (w->place == PLACE_LINE)
        line_wake(s, w->own);
}

void reserve_end(struct sched *s)
{
    s->reserved.workload = NULL;
}

bool reserve_changed(const struct sched *s)
{
    const struct reservation *r = &s->reserved;
    if (r->before == 0)
        return false;
    if (r->workload == NULL)
        return true;
    return r->wake_gen == s->wake_gen && (r->last != r->before || r->start_ms != r->before_ms);
}

void reserve_for(struct sched *s, struct workload *w, const struct gang *gang,
                 const struct amounts *need)
{
    struct reservation *r = &s->reserved;
    if (r->workload != NULL || r->attempts >= ATTEMPTS_MAX || gang->round > 0 || !something_ends(s))
        return;
    r->attempts++;
    struct plan plan;
    if (!plan_earliest(s, w, gang, need, &plan) || plan.start_ms <= s->now_ms) {
        queue_wake_first(s, w->group->team); /* the next of its team */
        return;
    }
    place_take(s, VIEW_PLAN, 1);
    place_types_use(s, w->group, VIEW_PLAN);
    team_use(w->group->team, VIEW_PLAN, need, !w->group->preemptible, 1);
    r->workload = w;
    r->last = w->id;
    r->start_ms = plan.start_ms;
}

static bool outlasts(const struct sched *s, const struct workload *w)
{
    return w->limit_ms == 0 || qty_add_sat(s->now_ms, w->limit_ms) > s->reserved.start_ms;
}

/* Could the reserved workload evict W once it runs? */
static bool evictable(const struct sched *s, const struct workload *w, const struct amounts *need)
{
    const struct group *mine = s->reserved.workload->group, *g = w->group;
    if (plan_gives_way(s, mine, g))
        return true;
    if (!g->preemptible || plan_keeps_some(g->job) || g->team == mine->team ||
        !group_rule(s, mine)->may_reclaim)
        return false;
    for (const struct team *t = mine->team; t->parent != NULL; t = t->parent)
        if (!gate_within_share(t, &mine->job->least))
            return false;
    struct team *ours, *theirs;
    team_part(mine->team, g->team, &ours, &theirs);
    return !gate_within_share(theirs, need);
}

bool reserve_binds(const struct sched *s, const struct workload *w, const struct amounts *need)
{
    return s->reserved.workload != NULL && outlasts(s, w) && !evictable(s, w, need);
}

static bool ends_in_time(struct sched *s, const struct line *line, const struct workload *w)
{
    return w != line->head && !outlasts(s, w);
}

bool reserve_backfill(struct sched *s, struct line *line)
{
    return line_go_on(s, line, DEPTH_MAX, ends_in_time);
}

void reserve_started(struct sched *s, const struct workload *w)
{
    if (s->reserved.workload == NULL || !outlasts(s, w))
        return;
    struct amounts need = place_charge(s);
    if (evictable(s, w, &need))
        return;
    place_take(s, VIEW_PLAN, 1);
    place_types_use(s, w->group, VIEW_PLAN);
    team_use(w->group->team, VIEW_PLAN, &need, !w->group->preemptible, 1);
}
