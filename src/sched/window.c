/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/window.h"

#include "base/qty.h"
#include "sched/decide.h"
#include "sched/gang.h"
#include "sched/node.h"
#include "sched/queue.h"
#include "sched/states.h"
#include "sched/tree.h"
#include "sched/workload.h"

#define DEPTH_MAX 64 /* of a group that is looked through for work that ends in time */

int64_t window_span(const struct sched *s, const struct workload *w)
{
    if (w != NULL && w->limit_ms > 0)
        return w->limit_ms;
    if (w != NULL && w->expected_ms > 0)
        return w->expected_ms;
    return s->config.window_lead_ms;
}

bool window_leaves_time(const struct sched *s, const struct node *n, const struct workload *w,
                        int64_t at_ms)
{
    return at_ms >= n->window_until_ms ||
           qty_add_sat(at_ms, window_span(s, w)) <= n->window_from_ms;
}

static bool inside(const struct sched *s, const struct node *n)
{
    return n->window_from_ms <= s->now_ms && s->now_ms < n->window_until_ms;
}

void window_changed(struct sched *s, struct node *n, bool gone)
{
    size_t i = 0;
    while (i < s->windows.len && s->windows.items[i] != n)
        i++;
    bool listed = i < s->windows.len, lists = !gone && n->window_until_ms > s->now_ms;
    n->in_window = lists && inside(s, n);
    n->windowed = lists;
    states_note(n);
    if (lists && !listed)
        vec_push(&s->windows, n);
    if (lists || !listed)
        return;
    for (s->windows.len--; i < s->windows.len; i++)
        s->windows.items[i] = s->windows.items[i + 1];
}

/* ---- beginning --------------------------------------------------------------------------- */

static uint32_t tasks_inside(const struct workload *w)
{
    uint32_t count = 0;
    for (uint32_t t = 0; t < w->group->job->task_count; t++)
        count += w->tasks[t].phase == TASK_RUNNING && w->tasks[t].node->in_window;
    return count;
}

/* Some of W runs in a window: that much goes, or all of it where the rest would be no gang. */
static void leave(struct sched *s, struct workload *w)
{
    static const struct eviction why = {.cause = SCHED_CAUSE_MAINTENANCE};
    bool part = w->group->job->group_count == 0 && gang_surplus(w) >= tasks_inside(w);
    if (!part) {
        decide_evict_all(s, w, SCHED_CAUSE_MAINTENANCE);
        return;
    }
    for (uint32_t t = 0; t < w->group->job->task_count; t++)
        if (w->tasks[t].phase == TASK_RUNNING && w->tasks[t].node->in_window)
            decide_evict(s, w, t, &why);
    workload_requeue(s, w);
}

static void clear(struct sched *s, const struct node *n)
{
    for (const struct task *t = n->tasks; t != NULL; t = t->next)
        if (t->phase == TASK_RUNNING && t->workload->group->preemptible)
            leave(s, t->workload);
}

void window_step(struct sched *s)
{
    bool changed = false;
    for (size_t i = 0; i < s->windows.len; i++) {
        struct node *n = s->windows.items[i];
        changed = changed || inside(s, n) != n->in_window;
        n->in_window = inside(s, n);
        if (s->now_ms < n->window_until_ms)
            continue;
        window_changed(s, n, true);
        changed = true;
        i--;
    }
    if (changed)
        node_use_changed(s);
    for (size_t i = 0; i < s->windows.len; i++)
        if (s->windows.items[i]->in_window)
            clear(s, s->windows.items[i]);
}

int64_t window_next_ms(const struct sched *s)
{
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < s->windows.len; i++) {
        const struct node *n = s->windows.items[i];
        int64_t due = n->in_window ? n->window_until_ms : n->window_from_ms;
        next = due < next ? due : next;
    }
    return next;
}

static bool ends_sooner(struct sched *s, const struct line *line, const struct workload *w)
{
    return window_span(s, w) < window_span(s, line->head);
}

bool window_backfill(struct sched *s, struct line *line)
{
    return line_go_on(s, line, DEPTH_MAX, ends_sooner);
}
