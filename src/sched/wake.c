/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/wake.h"

#include "sched/fit.h"
#include "sched/gang.h"
#include "sched/gate.h"
#include "sched/node.h"
#include "sched/parked.h"
#include "sched/place.h"
#include "sched/queue.h"
#include "sched/team.h"
#include "sched/units.h"

#define SEARCHES 128   /* lines woken at once for their rights alone */
#define TOUCHED_MAX 32 /* beyond that many nodes it is not worth looking */
#define MOVE_TRIES 16  /* lines woken at once because others could be moved for them */
#define TRIES_LEAST 1  /* of both, where many wait and something has happened */

/* ---- places ------------------------------------------------------------------------------ */

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

/* Has all of a fresh one a place, now or once the stopping tasks are gone, that it had not before?
 * Before a window that depends on how long it runs. */
static bool has_place(struct sched *s, struct job_shape *job)
{
    struct gang gang;
    if (s->windows.len > 0)
        return true;
    if (!gang_next(job, NULL, &gang))
        return false;
    bool has = place_gang(s, job, NULL, &gang, MASK_START | MASK_NEAR) ||
               (s->stopping > 0 && place_gang(s, job, NULL, &gang, MASK(VIEW_THEN) | MASK_NEAR));
    gang_done(&gang);
    return has;
}

static void near_mark(struct sched *s, const struct node *n)
{
    while (s->near.len <= s->domains.len)
        vec_push(&s->near, 0);
    for (size_t level = 0; level < s->levels.len; level++)
        s->near.items[n->domain[level]] = s->wake_gen;
}

/* May it have a place that it had not before, because something left? */
static bool gained_place(struct sched *s, struct job_shape *job)
{
    bool chance = s->touched.len > TOUCHED_MAX;
    for (size_t i = 0; i < s->touched.len && !chance; i++)
        chance = node_takes(s->touched.items[i]) && fits_on(s, job, s->touched.items[i]);
    return chance && (wake_few(s) || has_place(s, job));
}

static bool known_placeless(const struct sched *s, const struct job_shape *job)
{
    return job->no_place_epoch == s->freed_epoch &&
           (s->stopping == 0 || job->no_later_epoch == s->freed_epoch);
}

static bool lost_place(struct sched *s, struct job_shape *job)
{
    return known_placeless(s, job) || !has_place(s, job);
}

void wake_shut(struct sched *s, const struct job_shape *job)
{
    if (s->open.items[job->number] && !wake_few(s) && known_placeless(s, job))
        parked_shut(s, lost_place);
}

/* ---- rights ------------------------------------------------------------------------------ */

struct grants { /* of one waking */
    unsigned searches, moves; /* that may still be granted */
    bool cut;                 /* somebody was refused: the next waking begins there */
    bool over;                /* a search was refused */
};

/* What is free in all; it may be scattered. */
static int64_t free_milli(const struct sched *s)
{
    return s->capacity.v[SCHED_GPU_MILLI] - s->root.used[VIEW_THEN].v[SCHED_GPU_MILLI];
}

static bool others_may_move(const struct sched *s, const struct line *line)
{
    int64_t need = line->need.v[SCHED_GPU_MILLI];
    return need > 0 && need <= free_milli(s) &&
           gate_open(line->group, &line->need, MASK(VIEW_THEN), NULL);
}

/* One more of COUNT, or the first that is refused. */
static bool grant(struct sched *s, struct grants *g, unsigned *count, size_t team, size_t lot)
{
    if (*count > 0) {
        --*count;
        return true;
    }
    if (!g->cut) {
        s->search_team = team;
        s->search_lot = lot;
    }
    g->cut = true;
    return false;
}

/* Wakes those of the lots from index FROM to TO of the INDEX-th leaf that may have others make way,
 * as far as it is granted. */
static void leaf_wake(struct sched *s, struct grants *g, size_t index, size_t from, size_t to)
{
    struct team *t = s->queues.items[index];
    bool all = from == 0 && to >= t->lots[0].len, rights = false;
    size_t left = to < t->lots[0].len ? to - from : t->lots[0].len - from;
    int64_t least = INT64_MAX;
    for (size_t i = from; left > 0; left--) {
        struct line *line = t->lots[0].items[i].line;
        bool right = units_may_exist(s, line->group, &line->need), wakes = false;
        int64_t need = line->need.v[SCHED_GPU_MILLI];
        least = need > 0 && need < least ? need : least;
        rights = rights || right;
        if (right && line->searched != s->change_gen) {
            wakes = grant(s, g, &g->searches, index, i);
            g->over = g->over || !wakes;
            line->searched = wakes ? s->change_gen : line->searched;
        } else if (!right && others_may_move(s, line)) {
            wakes = grant(s, g, &g->moves, index, i);
        }
        if (g->over)
            return;
        if (wakes)
            line_wake(s, line); /* it leaves the array */
        else
            i++;
    }
    if (!all)
        return;
    t->searched_gen = s->change_gen;
    t->quiet = rights ? QUIET_NEVER : team_eased(t);
    t->least_milli = least;
}

/* Is there nobody in the leaf who could have anything granted? */
static bool leaf_rests(const struct sched *s, const struct grants *g, const struct team *t)
{
    if (t->lots[0].len == 0)
        return true;
    bool quiet = s->root.idle_running == 0 && t->quiet == team_eased(t);
    return (quiet && (g->moves == 0 || t->least_milli > free_milli(s))) ||
           (!quiet && t->searched_gen == s->change_gen);
}

/* No more searches than the last waking had time for, then more and more again. Where many wait,
 * who has a place goes first: the searches are for the wakings that go on with this one. */
static struct grants grants_make(struct sched *s)
{
    s->search_quota = s->search_cut ? s->search_quota / 2 : 2 * s->search_quota;
    if (s->search_quota < TRIES_LEAST)
        s->search_quota = TRIES_LEAST;
    if (s->search_quota > SEARCHES)
        s->search_quota = SEARCHES;
    s->search_cut = false;
    if (!wake_few(s) && !s->retry_parts)
        return (struct grants){.searches = TRIES_LEAST, .moves = TRIES_LEAST};
    return (struct grants){.searches = s->search_quota, .moves = MOVE_TRIES};
}

/* Once round the leaves, from where the last waking refused somebody. */
static void rights_wake(struct sched *s)
{
    struct grants g = grants_make(s);
    size_t count = s->queues.len, first = s->search_team < count ? s->search_team : 0;
    size_t lot = first == s->search_team ? s->search_lot : 0;
    for (size_t k = 0; k <= count && count > 0 && !g.over; k++) {
        size_t index = (first + k) % count;
        const struct team *t = s->queues.items[index];
        size_t from = k == 0 && lot < t->lots[0].len ? lot : 0;
        size_t to = k == count ? lot : SIZE_MAX;
        if ((k == count && lot == 0) || leaf_rests(s, &g, t))
            continue;
        leaf_wake(s, &g, index, from, to);
    }
    s->wake_soon = s->wake_soon || g.over;
}

/* ---- waking ------------------------------------------------------------------------------ */

/* Those of the leaf's lots whose gate has opened. */
static void limited_wake(struct sched *s, struct team *t)
{
    uint64_t eased = t->limited > 0 ? team_eased(t) : 0;
    if (t->limited == 0 || eased == t->eased_seen)
        return;
    t->eased_seen = eased;
    for (int idle = 0; idle < 2; idle++)
        for (size_t i = 0; i < t->lots[idle].len;) {
            struct line *line = t->lots[idle].items[i].line;
            if (line->reason == SCHED_REASON_TEAM_LIMIT &&
                gate_open(line->group, &line->need, MASK_START, NULL))
                line_wake(s, line); /* it leaves the array */
            else
                i++;
        }
}

/* Forgets the leaves where nothing is parked any more. */
static void queues_tidy(struct sched *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->queues.len; i++) {
        struct team *t = s->queues.items[i];
        t->in_queues = t->parked != NULL || t->lots[0].len + t->lots[1].len > 0;
        if (t->in_queues)
            s->queues.items[kept++] = t;
    }
    s->queues.len = kept;
}

void wake_lines(struct sched *s)
{
    s->wake_gen++;
    s->change_gen += !s->retry_parts;
    s->all_gen += s->retry_all;
    parked_shut(s, NULL);
    queues_tidy(s);
    for (size_t i = 0; i < s->queues.len; i++) {
        queue_wake(s, s->queues.items[i], s->retry_all);
        limited_wake(s, s->queues.items[i]);
    }
    for (size_t i = 0; i < s->touched.len; i++)
        near_mark(s, s->touched.items[i]);
    for (size_t i = 0; i < s->parked_jobs.len && s->touched.len > 0; i++)
        if (gained_place(s, s->parked_jobs.items[i]))
            parked_open(s, s->parked_jobs.items[i]);
    rights_wake(s);
    s->retry = s->retry_all = s->retry_parts = false;
    for (size_t i = 0; i < s->touched.len; i++)
        s->touched.items[i]->touched = false;
    vec_clear(&s->touched);
}

void wake_line(struct sched *s, struct line *line)
{
    if (line->state != LINE_PARKED)
        return;
    line_wake(s, line);
    line->searches = wake_few(s);
}

void wake_again(struct sched *s, struct line *line)
{
    line->searched = 0;
    line->group->team->searched_gen = 0;
    s->search_cut = true;
    s->wake_soon = true;
}
