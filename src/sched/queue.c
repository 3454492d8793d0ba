/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/queue.h"

#include <stdlib.h>

#include "sched/parked.h"
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
    line->searches = true;
    team_ready(t, idle, 1);
}

/* A ready line has another head: its place in the order may be another one. */
static void line_moved(struct sched *s, struct line *line)
{
    struct team *t = line->group->team;
    bool idle = group_idle(s, line->group);
    heap_update(&t->ready[idle], &line->node);
    team_ready(t, idle, 0);
}

/* Takes the line out of where it is. */
static void line_leave(struct sched *s, struct line *line)
{
    struct team *t = line->group->team;
    if (line->state == LINE_READY) {
        bool idle = group_idle(s, line->group);
        heap_remove(&t->ready[idle], &line->node);
        team_ready(t, idle, -1);
    } else if (line->calm) {
        parked_remove(s, line);
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

/* Another of the same kind might start, because it ends sooner. */
static bool hangs_on_run_time(enum sched_reason reason)
{
    return reason == SCHED_REASON_RESERVED || reason == SCHED_REASON_MAINTENANCE;
}

static bool stays_calm(const struct line *line)
{
    return line->lot != NULL && line->lot->passed == 0 && !line->group->team->typed_path &&
           !hangs_on_run_time((enum sched_reason)line->reason);
}

/* The line's head is the one that it is to wait with. */
static void park(struct sched *s, struct line *line)
{
    struct team *t = line->group->team;
    line->state = LINE_PARKED;
    line->parked_gen = s->wake_gen;
    if (stays_calm(line)) {
        parked_add(s, line);
        return;
    }
    line->prev = NULL;
    line->next = t->parked;
    if (t->parked != NULL)
        t->parked->prev = line;
    t->parked = line;
    parked_note_team(s, t);
}

/* Puts a group at the head of its lot's line. */
static void lot_head(struct lot *lot, struct group *g)
{
    lot->line.group = g;
    lot->line.head = waiting_entry(tree_at(g->waiting, 0));
    lot->line.need = g->job->least;
}

/* The first group from index FROM on that somebody waits in. */
static struct group *lot_first(const struct lot *lot, uint32_t from)
{
    for (size_t i = from; i < lot->groups.len; i++)
        if (lot->groups.items[i]->waiting != NULL)
            return lot->groups.items[i];
    return NULL;
}

void line_park(struct sched *s, struct line *line, enum sched_reason reason)
{
    struct lot *lot = line->lot;
    line->reason = (uint8_t)reason;
    line->tried = s->turn;
    if (hangs_on_run_time(reason) && lot != NULL) {
        /* Lower work may be free to start where this may not: it can be evicted again, or ends
         * sooner. */
        while (lot->groups.items[lot->passed] != line->group)
            lot->passed++;
        struct group *next = lot_first(lot, ++lot->passed);
        if (next != NULL) {
            bool searches = line->searches;
            line_leave(s, line);
            lot_head(lot, next);
            line_ready(s, line);
            line->searches = searches;
            return;
        }
    }
    line_leave(s, line);
    if (lot != NULL)
        lot_head(lot, line->group); /* a younger one may have been tried */
    park(s, line);
}

void line_wake(struct sched *s, struct line *line)
{
    if (line->state != LINE_PARKED)
        return;
    line_leave(s, line);
    if (line->lot != NULL) {
        line->lot->passed = 0;
        lot_head(line->lot, lot_first(line->lot, 0));
    }
    line_ready(s, line);
}

void queue_wake_first(struct sched *s, struct team *t)
{
    struct line *first = NULL;
    for (struct line *line = t->parked; line != NULL; line = line->next)
        if (line->tried != s->turn && !group_idle(s, line->group) &&
            (first == NULL || line_before(line, first)))
            first = line;
    size_t calm = 0;
    while (calm < t->lots[0].len && t->lots[0].items[calm].line->tried == s->turn)
        calm++;
    if (calm < t->lots[0].len &&
        (first == NULL || line_before(t->lots[0].items[calm].line, first)))
        first = t->lots[0].items[calm].line;
    if (first != NULL)
        line_wake(s, first);
}

void queue_wake(struct sched *s, struct team *t, bool all)
{
    while (t->parked != NULL)
        line_wake(s, t->parked);
    for (int idle = 0; all && idle < 2; idle++)
        while (t->lots[idle].len > 0)
            line_wake(s, t->lots[idle].items[t->lots[idle].len - 1].line);
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
    line->head = w;
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

static bool group_before(const struct group *a, const struct group *b)
{
    return a->class_ != b->class_ ? a->class_ < b->class_ : a->priority > b->priority;
}

static bool same_rights(const struct sched *s, const struct group *a, const struct group *b)
{
    const struct sched_class_rule *x = group_rule(s, a), *y = group_rule(s, b);
    return a->preemptible == b->preemptible && a->may_burst == b->may_burst &&
           x->may_preempt == y->may_preempt && x->may_reclaim == y->may_reclaim &&
           x->idle_only == y->idle_only;
}

static void lot_join(struct sched *s, struct group *g)
{
    struct {
        uint64_t team, job;
    } key = {g->team->id, g->job->hash};
    uint64_t hash = map_hash(&key, sizeof(key));
    struct lot *lot = map_get(&s->lots, hash);
    while (lot != NULL &&
           (lot->groups.items[0]->team != g->team || lot->groups.items[0]->job != g->job ||
            !same_rights(s, lot->groups.items[0], g)))
        lot = lot->next;
    if (lot == NULL) {
        lot = mem_new(1, sizeof(*lot));
        lot->hash = hash;
        lot->line.lot = lot;
        lot->line.group = g;
        lot->next = map_put(&s->lots, hash, lot);
    }
    g->lot = lot;
    if (lot->groups.cap == 0) { /* most lots have one group for ever */
        lot->groups.items = mem_new(1, sizeof(struct group *));
        lot->groups.cap = 1;
    }
    vec_push(&lot->groups, g);
    size_t i = lot->groups.len - 1;
    for (; i > 0 && group_before(g, lot->groups.items[i - 1]); i--)
        lot->groups.items[i] = lot->groups.items[i - 1];
    lot->groups.items[i] = g;
    lot->passed += i < lot->passed;
}

static void lot_free(struct sched *s, struct lot *lot)
{
    struct lot *head = map_get(&s->lots, lot->hash);
    if (head == lot && lot->next == NULL) {
        map_del(&s->lots, lot->hash);
    } else if (head == lot) {
        map_put(&s->lots, lot->hash, lot->next);
    } else {
        while (head->next != lot)
            head = head->next;
        head->next = lot->next;
    }
    vec_done(&lot->groups);
    free(lot);
}

static void lot_quit(struct sched *s, struct group *g)
{
    struct lot *lot = g->lot;
    size_t i = 0;
    while (lot->groups.items[i] != g)
        i++;
    lot->passed -= i < lot->passed;
    for (lot->groups.len--; i < lot->groups.len; i++)
        lot->groups.items[i] = lot->groups.items[i + 1];
    if (lot->groups.len == 0)
        lot_free(s, lot);
    else if (lot->line.group == g)
        lot->line.group = lot->groups.items[0];
}

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
    while (g != NULL && (g->team != team || g->job != job || g->class_ != w->class_ ||
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
        job->refs++;
        g->next = map_put(&s->groups, hash, g);
        lot_join(s, g);
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
    lot_quit(s, g);
    job_shape_put(s, g->job);
    free(g);
}

/* Who waits in the lot changed: its line takes its place in the order anew. A parked line stays
 * parked unless somebody comes with more rights than the one that was tried. */
static void lot_update(struct sched *s, struct lot *lot)
{
    struct line *line = &lot->line;
    struct group *first = lot_first(lot, line->state == LINE_READY ? lot->passed : 0);
    if (first == NULL) {
        first = lot_first(lot, 0);
        bool passed = line->state == LINE_READY && first != NULL;
        line_leave(s, line);
        if (passed) {
            lot_head(lot, first);
            park(s, line);
            return;
        }
        line->head = NULL;
        lot->passed = 0; /* whoever comes next is tried from the first group on */
        return;
    }
    if (line->state == LINE_PARKED) {
        if (group_before(first, line->group)) {
            line_wake(s, line);
            return;
        }
        uint64_t gen = line->parked_gen;
        line_leave(s, line);
        lot_head(lot, first); /* its head may have left */
        park(s, line);
        line->parked_gen = gen;
        return;
    }
    bool ready = line->state == LINE_READY;
    lot_head(lot, first);
    if (ready)
        line_moved(s, line);
    else
        line_ready(s, line);
}

bool line_go_on(struct sched *s, struct line *line, uint32_t depth, line_pick_fn *may)
{
    const struct group *g = line->group;
    uint32_t size = line->lot == NULL ? 0 : tree_size(g->waiting);
    for (uint32_t i = 0; i < size && i < depth; i++) {
        struct workload *w = waiting_entry(tree_at(g->waiting, i));
        if (w->claimed_turn == s->turn || !may(s, line, w))
            continue;
        line->head = w;
        line_moved(s, line);
        return true;
    }
    return false;
}

void group_add(struct sched *s, struct workload *w)
{
    struct group *g = w->group;
    tree_insert(&g->waiting, &w->wait, w->id, waits_before);
    struct line *line = &g->lot->line;
    if (line->state == LINE_PARKED &&
        (s->stopping > 0 || hangs_on_run_time((enum sched_reason)line->reason)))
        line_wake(s, line); /* this one may evict where the others wait for stops, or end in time */
    else if (line->head == NULL || group_before(g, line->group) ||
             (line->group == g && age_before(w, line->head)))
        lot_update(s, g->lot);
}

void group_remove(struct sched *s, struct workload *w)
{
    tree_remove(&w->group->waiting, &w->wait, waits_before);
    if (w->group->lot->line.head == w || w->group->waiting == NULL)
        lot_update(s, w->group->lot);
}

/* ---- running ----------------------------------------------------------------------------- */

void running_add(struct sched *s, struct workload *w)
{
    if (w->in_running)
        return;
    w->in_running = true;
    w->group->team->eased++; /* it may be lower than who waits */
    s->running_count++;
    tree_insert(&w->group->team->running, &w->run, w->id, runs_before);
    const struct job_shape *job = w->group->job;
    w->group->team->elastic_running += job->min_tasks < job->task_count;
    if (group_idle(s, w->group))
        team_idle_running(w->group->team, 1);
}

void running_remove(struct sched *s, struct workload *w)
{
    if (!w->in_running)
        return;
    w->in_running = false;
    s->running_count--;
    tree_remove(&w->group->team->running, &w->run, runs_before);
    const struct job_shape *job = w->group->job;
    w->group->team->elastic_running -= job->min_tasks < job->task_count;
    if (group_idle(s, w->group))
        team_idle_running(w->group->team, -1);
}

/* ---- position ---------------------------------------------------------------------------- */

static uint32_t group_rank(const struct group *g, const struct workload *w)
{
    return tree_rank(g->waiting, &w->wait, waits_before);
}

/* How many of a group come before the probe, a line with W at its head. */
static uint32_t group_ahead(const struct group *g, const struct line *probe,
                            const struct workload *w)
{
    if (group_before(g, probe->group))
        return tree_size(g->waiting);
    if (group_before(probe->group, g))
        return 0;
    return probe->round > 0 ? tree_size(g->waiting) : group_rank(g, w);
}

static void line_count(const struct line *line, const struct line *probe, const struct workload *w,
                       uint32_t *before, uint32_t *pending)
{
    if (line->lot == NULL) {
        *pending += 1;
        *before += line->head != w && line_before(line, probe);
        return;
    }
    for (size_t i = 0; i < line->lot->groups.len; i++) {
        const struct group *g = line->lot->groups.items[i];
        *pending += tree_size(g->waiting);
        *before += g->waiting == NULL ? 0 : group_ahead(g, probe, w);
    }
}

uint32_t queue_position(const struct sched *s, const struct workload *w, uint32_t *ret_pending)
{
    (void)s;
    const struct team *t = w->group->team;
    struct line probe = {.group = w->group,
                         .head = (struct workload *)w,
                         .round = w->own != NULL ? w->own->round : 0};
    uint32_t before = 0, pending = 0;
    for (int idle = 0; idle < 2; idle++)
        for (size_t i = 0; i < t->ready[idle].len; i++)
            line_count(heap_entry(t->ready[idle].items[i], struct line, node), &probe, w, &before,
                       &pending);
    for (const struct line *line = t->parked; line != NULL; line = line->next)
        line_count(line, &probe, w, &before, &pending);
    for (int idle = 0; idle < 2; idle++)
        for (size_t i = 0; i < t->lots[idle].len; i++)
            line_count(t->lots[idle].items[i].line, &probe, w, &before, &pending);
    *ret_pending = pending;
    return before + 1;
}
