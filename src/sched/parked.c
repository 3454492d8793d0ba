/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/parked.h"

#include <string.h>

#include "sched/gate.h"
#include "sched/queue.h"
#include "sched/team.h"

/* Where LINE is, or belongs. */
static size_t parked_place(const struct parked_lots *lots, const struct line *line)
{
    size_t from = 0, to = lots->len;
    while (from < to) {
        size_t mid = from + (to - from) / 2;
        if (line_before(lots->items[mid].line, line))
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

/* The walk that looks for the first open one has to look again from AT on. */
static void look_from(struct sched *s, struct team *t, bool idle, size_t at)
{
    if (at < t->looked[idle])
        t->looked[idle] = (uint32_t)at;
    team_ready(t, idle, 0);
}

static void shape_add(struct sched *s, struct job_shape *job)
{
    if (job->parked++ > 0)
        return;
    vec_push(&s->parked_jobs, job);
    job->parked_at = (uint32_t)s->parked_jobs.len - 1;
}

static void shape_remove(struct sched *s, struct job_shape *job)
{
    if (--job->parked > 0)
        return;
    struct job_shape *last = vec_pop(&s->parked_jobs);
    if (last == job)
        return;
    s->parked_jobs.items[job->parked_at] = last;
    last->parked_at = job->parked_at;
}

void parked_note_team(struct sched *s, struct team *t)
{
    if (t->in_queues)
        return;
    vec_push(&s->queues, t);
    t->in_queues = true;
}

void parked_add(struct sched *s, struct line *line)
{
    struct team *t = line->group->team;
    struct job_shape *job = line->group->job;
    bool idle = group_idle(s, line->group);
    struct parked_lots *lots = &t->lots[idle];
    size_t at = parked_place(lots, line);
    struct parked_lot new = {line, job->number};
    vec_push(lots, new);
    memmove(&lots->items[at + 1], &lots->items[at], (lots->len - 1 - at) * sizeof(new));
    lots->items[at] = new;
    line->calm = true;
    shape_add(s, job);
    look_from(s, t, idle, at);
    t->quiet = QUIET_NEVER;
    t->searched_gen = 0;
    t->limited += line->reason == SCHED_REASON_TEAM_LIMIT;
    s->lots_parked++;
    parked_note_team(s, t);
}

void parked_remove(struct sched *s, struct line *line)
{
    struct team *t = line->group->team;
    bool idle = group_idle(s, line->group);
    struct parked_lots *lots = &t->lots[idle];
    size_t at = parked_place(lots, line);
    lots->len--;
    memmove(&lots->items[at], &lots->items[at + 1], (lots->len - at) * sizeof(lots->items[0]));
    line->calm = false;
    shape_remove(s, line->group->job);
    t->limited -= line->reason == SCHED_REASON_TEAM_LIMIT;
    s->lots_parked--;
    look_from(s, t, idle, at);
}

struct line *parked_first(const struct sched *s, struct team *t, bool idle)
{
    const struct parked_lots *lots = &t->lots[idle];
    if (t->looked_gen[idle] != s->wake_gen) {
        t->looked_gen[idle] = s->wake_gen;
        t->looked[idle] = 0;
    }
    for (uint32_t i = t->looked[idle]; i < lots->len; i++) {
        const struct parked_lot *lot = &lots->items[i];
        if (!s->open.items[lot->shape] || lot->line->parked_gen == s->wake_gen ||
            (lot->line->reason == SCHED_REASON_TEAM_LIMIT &&
             !gate_open(lot->line->group, &lot->line->need, MASK_START, NULL)))
            continue;
        t->looked[idle] = i;
        return lot->line;
    }
    t->looked[idle] = (uint32_t)lots->len;
    return NULL;
}

void parked_open(struct sched *s, struct job_shape *job)
{
    if (s->open.items[job->number])
        return;
    s->open.items[job->number] = true;
    vec_push(&s->open_jobs, job);
    s->order_epoch++;
}

void parked_shut(struct sched *s, bool (*closed)(struct sched *, struct job_shape *))
{
    size_t kept = 0;
    for (size_t i = 0; i < s->open_jobs.len; i++) {
        struct job_shape *job = s->open_jobs.items[i];
        if (closed == NULL || closed(s, job))
            s->open.items[job->number] = false;
        else
            s->open_jobs.items[kept++] = job;
    }
    if (kept < s->open_jobs.len)
        s->order_epoch++;
    s->open_jobs.len = kept;
}

uint32_t parked_number(struct sched *s)
{
    if (s->free_numbers.len > 0)
        return vec_pop(&s->free_numbers);
    vec_push(&s->open, false);
    return (uint32_t)s->open.len - 1;
}

void parked_number_put(struct sched *s, uint32_t number)
{
    vec_push(&s->free_numbers, number);
}
