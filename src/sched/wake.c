/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/wake.h"

#include "sched/fit.h"
#include "sched/gate.h"
#include "sched/node.h"
#include "sched/place.h"
#include "sched/queue.h"
#include "sched/units.h"

#define SEARCHES 128   /* lines woken at once for their rights alone */
#define TOUCHED_MAX 32 /* beyond that many nodes it is not worth looking */
#define MOVE_TRIES 16  /* lines woken at once because others could be moved for them */

static bool fits_on(struct sched *s, const struct job_shape *job, const struct node *n)
{
    struct fit f;
    for (uint32_t t = 0; t < (job->uniform ? 1 : job->task_count); t++) {
        const struct shape *shape = job_task(job, t)->shape;
        if (fit_accepts(n, shape) && fit_node(n, shape, MASK_START, s->placing->trial, &f))
            return true;
    }
    return false;
}

/* Few have a right to evict: whoever is woken may use it. */
static bool all_may_search(const struct sched *s)
{
    return s->search_parts == 1;
}

/* Has all of a fresh one a place, now or once the stopping tasks are gone? Before a window that
 * depends on how long it runs. */
static bool has_place(struct sched *s, struct job_shape *job)
{
    struct gang gang;
    if (s->windows.len > 0)
        return true;
    if (!gang_next(job, NULL, &gang))
        return false;
    bool now = place_gang(s, job, NULL, &gang, MASK_START);
    bool later = !now && s->stopping > 0 && place_gang(s, job, NULL, &gang, MASK(VIEW_THEN));
    gang_done(&gang);
    if (!now)
        job->no_place_epoch = s->freed_epoch;
    return now || later;
}

/* May it have a place that it had not before, because something left? Asked once a waking for
 * each shape. */
static bool gained_place(struct sched *s, struct job_shape *job)
{
    if (job->chance_gen == s->wake_gen)
        return job->chance;
    bool chance = s->touched.len > TOUCHED_MAX;
    for (size_t i = 0; i < s->touched.len && !chance; i++)
        chance = node_takes(s->touched.items[i]) && fits_on(s, job, s->touched.items[i]);
    job->chance_gen = s->wake_gen;
    job->chance = chance && (all_may_search(s) || has_place(s, job));
    return job->chance;
}

/* Enough may be free in all, but scattered. */
static bool others_may_move(const struct sched *s, const struct line *line)
{
    int64_t need = line->need.v[SCHED_GPU_MILLI];
    int64_t free = s->capacity.v[SCHED_GPU_MILLI] - s->root.used[VIEW_THEN].v[SCHED_GPU_MILLI];
    return need > 0 && need <= free && !group_idle(s, line->group) &&
           gate_open(line->group, &line->need, MASK(VIEW_THEN), NULL);
}

/* May others make way for it, and is it its turn to look for them? */
static bool search_due(struct sched *s, struct line *line)
{
    if (!units_may_exist(s, line->group, &line->need))
        return others_may_move(s, line) &&
               s->movables++ % s->move_parts == s->wake_gen % s->move_parts;
    s->claimants++;
    if (line->searched == s->change_gen)
        return false;
    if (line->lot->hash % s->search_parts != s->wake_gen % s->search_parts) {
        s->wake_soon = true;
        return false;
    }
    line->searched = s->change_gen;
    return true;
}

static enum chance chance_of(struct sched *s, struct line *line)
{
    if (line->lot == NULL || line->reason == SCHED_REASON_RESERVED ||
        line->reason == SCHED_REASON_MAINTENANCE)
        return CHANCE_ALL;
    if (line->group->team->typed_path) /* what left may have left room on other nodes of its type */
        return CHANCE_ALL;
    if (line->reason == SCHED_REASON_TEAM_LIMIT &&
        gate_open(line->group, &line->need, MASK_START, NULL))
        return CHANCE_ALL;
    bool place = gained_place(s, line->group->job);
    if ((place && all_may_search(s)) || search_due(s, line))
        return CHANCE_ALL;
    return place ? CHANCE_PLACE : CHANCE_NONE;
}

void wake_lines(struct sched *s)
{
    s->wake_gen++;
    s->change_gen += !s->retry_parts;
    s->search_parts = 1 + s->claimants / SEARCHES;
    s->claimants = 0;
    s->move_parts = 1 + s->movables / MOVE_TRIES;
    s->movables = 0;
    queue_wake(s, s->retry_all ? NULL : chance_of);
    s->retry = s->retry_all = s->retry_parts = false;
    for (size_t i = 0; i < s->touched.len; i++)
        s->touched.items[i]->touched = false;
    vec_clear(&s->touched);
}
