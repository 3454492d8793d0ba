/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/queue.h"

#include <stdlib.h>

#include "sched/shape.h"
#include "sched/team.h"

#define waiting_entry(n) tree_entry(n, struct workload, wait)
#define running_entry(n) tree_entry(n, struct workload, run)

static bool age_before(const struct workload *a, const struct workload *b)
{
    return a->age != b->age ? a->age < b->age : a->id < b->id;
}

static bool waits_before(const struct tree_node *a, const struct tree_node *b)
{
    return age_before(waiting_entry(a), waiting_entry(b));
}

static bool runs_before(const struct tree_node *a, const struct tree_node *b)
{
    const struct workload *x = running_entry(a), *y = running_entry(b);
    if (x->group->class_ != y->group->class_)
        return x->group->class_ < y->group->class_;
    if (x->group->priority != y->group->priority)
        return x->group->priority > y->group->priority;
    return age_before(x, y);
}

bool line_before(const struct line *a, const struct line *b)
{
    if (a->group->class_ != b->group->class_)
        return a->group->class_ < b->group->class_;
    if (a->group->priority != b->group->priority)
        return a->group->priority > b->group->priority;
    if (a->round != b->round)
        return a->round < b->round;
    return age_before(a->head, b->head);
}

static bool ready_before(const struct heap_node *a, const struct heap_node *b)
{
    return line_before(heap_entry(a, struct line, node), heap_entry(b, struct line, node));
}

void queue_team_init(struct team *t)
{
    t->ready[0] = (struct heap)HEAP_INIT(ready_before);
    t->ready[1] = (struct heap)HEAP_INIT(ready_before);
}

/* ---- lines ------------------------------------------------------------------------------- */

static void line_ready(struct sched *s, struct line *line)
{
    struct team *t = line->group->team;
    bool idle = group_idle(s, line->group);
    heap_push(&t->ready[idle], &line->node);
    line->state = LINE_READY;
    team_ready(t, idle, 1);
}

/* Takes the line out of where it is. */
static void line_leave(struct sched *s, struct line *line)
{
    struct team *t = line->group->team;
    if (line->state == LINE_READY) {
        bool idle = group_idle(s, line->group);
        heap_remove(&t->ready[idle], &line->node);
        team_ready(t, idle, -1);
    } else if (line->state == LINE_PARKED) {
        if (line->prev != NULL)
            line->prev->next = line->next;
        else
            t->parked = line->next;
        if (line->next != NULL)
            line->next->prev = line->prev;
        line->prev = line->next = NULL;
    }
    line->state = LINE_EMPTY;
}

void line_park(struct sched *s, struct line *line, enum sched_reason reason)
{
    struct team *t = line->group->team;
    line_leave(s, line);
    line->state = LINE_PARKED;
    line->reason = (uint8_t)reason;
    line->prev = NULL;
    line->next = t->parked;
    if (t->parked != NULL)
        t->parked->prev = line;
    t->parked = line;
}

void line_wake(struct sched *s, struct line *line)
{
    if (line->state != LINE_PARKED)
        return;
    line_leave(s, line);
    line_ready(s, line);
}

void queue_wake_all(struct sched *s)
{
    size_t it = 0;
    for (struct team *t; (t = map_next(&s->teams, &it)) != NULL;) {
        while (t->parked != NULL)
            line_wake(s, t->parked);
    }
}

struct line *queue_first(const struct team *t, bool idle)
{
    struct heap_node *n = heap_peek(&t->ready[idle]);
    return n == NULL ? NULL : heap_entry(n, struct line, node);
}

void line_own(struct sched *s, struct workload *w, uint32_t round, const struct amounts *need)
{
    line_disown(s, w);
    struct line *line = mem_new(1, sizeof(*line));
    line->group = w->group;
    line->own = line->head = w;
    line->round = round;
    line->need = *need;
    w->own = line;
    line_ready(s, line);
}

void line_disown(struct sched *s, struct workload *w)
{
    if (w->own == NULL)
        return;
    line_leave(s, w->own);
    free(w->own);
    w->own = NULL;
}

/* ---- groups ------------------------------------------------------------------------------ */

static uint64_t group_hash(const struct team *team, const struct job_shape *job,
                           const struct sched_workload *w)
{
    struct {
        uint64_t team, job;
        int64_t class_, priority, flags;
    } key = {team->id, job->hash, w->class_, w->priority, w->preemptible * 2 + w->may_burst};
    return map_hash(&key, sizeof(key));
}

struct group *group_get(struct sched *s, struct team *team, struct job_shape *job,
                        const struct sched_workload *w)
{
    uint64_t hash = group_hash(team, job, w);
    struct group *g = map_get(&s->groups, hash);
    while (g != NULL &&
           (g->team != team || g->job != job || g->class_ != w->class_ ||
            g->priority != w->priority || g->preemptible != w->preemptible ||
            g->may_burst != w->may_burst))
        g = g->next;
    if (g == NULL) {
        g = mem_new(1, sizeof(*g));
        g->hash = hash;
        g->team = team;
        g->job = job;
        g->class_ = w->class_;
        g->priority = w->priority;
        g->preemptible = w->preemptible;
        g->may_burst = w->may_burst;
        g->line.group = g;
        job->refs++;
        g->next = map_put(&s->groups, hash, g);
    }
    g->refs++;
    return g;
}

void group_put(struct sched *s, struct group *g)
{
    if (--g->refs > 0)
        return;
    struct group *head = map_get(&s->groups, g->hash);
    if (head == g && g->next == NULL) {
        map_del(&s->groups, g->hash);
    } else if (head == g) {
        map_put(&s->groups, g->hash, g->next);
    } else {
        while (head->next != g)
            head = head->next;
        head->next = g->next;
    }
    job_shape_put(s, g->job);
    free(g);
}

/* The head of the group changed: the line takes its place in the order anew. A parked line stays
 * parked: what stopped the old head stops the new one, which differs in id and age only. */
static void group_head(struct sched *s, struct group *g)
{
    struct tree_node *first = tree_at(g->waiting, 0);
    struct line *line = &g->line;
    if (first == NULL) {
        line_leave(s, line);
        line->head = NULL;
        return;
    }
    line->head = waiting_entry(first);
    line->need = g->job->least;
    if (line->state == LINE_EMPTY)
        line_ready(s, line);
    else if (line->state == LINE_READY)
        heap_update(&g->team->ready[group_idle(s, g)], &line->node);
}

void group_add(struct sched *s, struct workload *w)
{
    tree_insert(&w->group->waiting, &w->wait, w->id, waits_before);
    if (w->group->line.head == NULL || age_before(w, w->group->line.head))
        group_head(s, w->group);
}

void group_remove(struct sched *s, struct workload *w)
{
    tree_remove(&w->group->waiting, &w->wait, waits_before);
    if (w->group->line.head == w)
        group_head(s, w->group);
}

/* ---- running ----------------------------------------------------------------------------- */

void running_add(struct sched *s, struct workload *w)
{
    if (w->in_running)
        return;
    w->in_running = true;
    tree_insert(&w->group->team->running, &w->run, w->id, runs_before);
    if (group_idle(s, w->group))
        team_idle_running(w->group->team, 1);
}

void running_remove(struct sched *s, struct workload *w)
{
    if (!w->in_running)
        return;
    w->in_running = false;
    tree_remove(&w->group->team->running, &w->run, runs_before);
    if (group_idle(s, w->group))
        team_idle_running(w->group->team, -1);
}

/* ---- position ---------------------------------------------------------------------------- */

static void line_count(const struct line *line, const struct line *mine,
                       const struct workload *w, uint32_t *before, uint32_t *pending)
{
    const struct group *g = line->group;
    uint32_t size = line->own != NULL ? 1 : tree_size(g->waiting);
    *pending += size;
    if (line == mine) {
        *before += line->own != NULL ? 0 : tree_rank(g->waiting, &w->wait, waits_before);
        return;
    }
    struct line probe = *mine; /* as if W were the head of its line */
    probe.head = (struct workload *)w;
    if (line->own != NULL) {
        *before += line_before(line, &probe);
        return;
    }
    struct workload oldest = {0}, youngest = {.age = UINT64_MAX, .id = UINT64_MAX};
    struct line first = *line, last = *line;
    first.head = &oldest;
    last.head = &youngest;
    if (line_before(&last, &probe))
        *before += size;
    else if (line_before(&first, &probe)) /* same band: those that are older */
        *before += tree_rank(g->waiting, &w->wait, waits_before);
}

uint32_t queue_position(const struct sched *s, const struct workload *w, uint32_t *ret_pending)
{
    const struct team *t = w->group->team;
    const struct line *mine = w->own != NULL ? w->own : &w->group->line;
    uint32_t before = 0, pending = 0;
    for (int idle = 0; idle < 2; idle++)
        for (size_t i = 0; i < t->ready[idle].len; i++)
            line_count(heap_entry(t->ready[idle].items[i], struct line, node), mine, w, &before,
                       &pending);
    for (const struct line *line = t->parked; line != NULL; line = line->next)
        line_count(line, mine, w, &before, &pending);
    *ret_pending = pending;
    return before + 1;
}
