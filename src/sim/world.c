/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/world.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

/* Turns at one instant before it is said that the scheduler does not come to rest. */
#define ROUNDS_AT_ONCE_MAX 10000
#define EMPTY_TURNS_MAX 256

struct timer {
    struct heap_node node;
    int64_t at_ms;
    uint64_t seq; /* equals in the order they were made */
    enum sim_timer kind;
    uint32_t index, task, stamp;
};

static bool timer_before(const struct heap_node *a, const struct heap_node *b)
{
    const struct timer *x = heap_entry(a, const struct timer, node);
    const struct timer *y = heap_entry(b, const struct timer, node);
    return x->at_ms != y->at_ms ? x->at_ms < y->at_ms : x->seq < y->seq;
}

void sim_world_timer(struct sim_world *w, int64_t at_ms, enum sim_timer kind, uint32_t index,
                     uint32_t task, uint32_t stamp)
{
    struct timer *t = arena_new(&w->arena, struct timer);
    *t = (struct timer){.at_ms = at_ms,
                        .seq = w->next_seq++,
                        .kind = kind,
                        .index = index,
                        .task = task,
                        .stamp = stamp};
    w->open_events += kind != SIM_TIMER_END;
    heap_push(&w->events, &t->node);
}

static const struct timer *timer_first(const struct sim_world *w)
{
    const struct heap_node *n = heap_peek(&w->events);
    return n == NULL ? NULL : heap_entry(n, const struct timer, node);
}

/* ---- creation ---------------------------------------------------------------------------- */

static struct sched *sched_build(const struct sim_scenario *s)
{
    struct sched_config config;
    sched_config_default(&config);
    config.stale_gang_ms = s->stale_gang_ms;
    config.min_run_ms = 0;
    if (s->hold_ms != SIM_UNSET)
        config.hold_ms = s->hold_ms;
    if (s->moves_max != SIM_NO_INDEX)
        config.moves_max = s->moves_max;
    config.past_half_life_ms = s->past_half_life_ms;
    if (s->window_lead_ms != SIM_UNSET)
        config.window_lead_ms = s->window_lead_ms;
    return sched_create(&config);
}

static void timers_build(struct sim_world *w)
{
    const struct sim_scenario *s = w->scenario;
    for (uint32_t i = 0; i < s->event_count; i++)
        sim_world_timer(w, s->events[i].at_ms, SIM_TIMER_EVENT, i, 0, 0);
    for (uint32_t i = 0; i < s->workload_count; i++) {
        if (s->workloads[i].at_ms != SIM_AT_START)
            sim_world_timer(w, s->workloads[i].at_ms, SIM_TIMER_SUBMIT, i, 0, 0);
    }
}

static int world_fill(struct sim_world *w, struct err *err)
{
    int r = sim_world_build(w, err);
    for (uint32_t i = 0; r == 0 && i < w->scenario->workload_count; i++) {
        if (w->scenario->workloads[i].at_ms == SIM_AT_START)
            r = sim_world_submit(w, i, err);
    }
    if (r == 0)
        r = sim_world_place(w, err);
    if (r == 0)
        timers_build(w);
    return r;
}

int sim_world_create(const struct sim_scenario *scenario, FILE *trace, struct sim_world **ret_world,
                     struct err *err)
{
    struct sim_world *w = calloc(1, sizeof(*w));
    if (w == NULL)
        return -ENOMEM;
    w->scenario = scenario;
    w->trace = trace;
    w->events = (struct heap)HEAP_INIT(timer_before);
    w->workloads =
        arena_new_array(&w->arena, struct sim_world_workload, scenario->workload_count + 1);
    w->sched = sched_build(scenario);
    int r = w->sched == NULL ? -ENOMEM : world_fill(w, err);
    if (r < 0) {
        sim_world_destroy(w);
        return r;
    }
    *ret_world = w;
    return 0;
}

void sim_world_destroy(struct sim_world *w)
{
    if (w == NULL)
        return;
    if (w->sched != NULL)
        sched_destroy(w->sched);
    heap_done(&w->events);
    vec_done(&w->evicted);
    sim_ledger_done(&w->ledger);
    arena_done(&w->arena);
    free(w);
}

/* ---- events ------------------------------------------------------------------------------ */

static int node_change(struct sim_world *w, uint32_t node, bool up, bool schedulable,
                       struct err *err)
{
    struct sched_node *decl = &w->nodes[node].decl;
    decl->up = up;
    decl->schedulable = schedulable;
    sim_ledger_node_set(&w->ledger, node, decl);
    int r = sched_node_set(w->sched, decl);
    if (r < 0)
        return err_set(err, r, ERR_INTERNAL, NULL, NULL, "the change of node '%.80s' fails: %s",
                       w->scenario->nodes[node].name, strerror(-r));
    sim_trace(w, "node %s is %s", w->scenario->nodes[node].name,
              !up ? "down" : (schedulable ? "up" : "drained"));
    return 0;
}

/* In this world a lost node is confirmed gone at once, so its tasks are pending again. */
static int node_tasks_lost(struct sim_world *w, uint32_t node, struct err *err)
{
    for (uint32_t i = 0; i < w->scenario->workload_count; i++) {
        struct sim_world_workload *book = &w->workloads[i];
        if (book->tasks == NULL)
            continue;
        for (uint32_t t = 0; t < w->scenario->workloads[i].task_count; t++) {
            struct sim_world_task *task = &book->tasks[t];
            bool on = task->phase == SIM_TASK_RUNNING || task->phase == SIM_TASK_STOPPING;
            if (!on || task->node != node)
                continue;
            bool over = book->life == SIM_LIFE_OVER;
            int r = sim_world_task_off(w, i, t, over ? SCHED_STOP_DONE : SCHED_STOP_REQUEUE, err);
            if (r < 0)
                return r;
        }
        sim_world_run_time(w, i, w->now_ms);
    }
    return 0;
}

static int task_failed(struct sim_world *w, uint32_t workload, uint32_t task, struct err *err)
{
    if (w->workloads[workload].life != SIM_LIFE_KNOWN ||
        w->workloads[workload].tasks[task].phase != SIM_TASK_RUNNING)
        return err_set(err, -EINVAL, ERR_INVALID, NULL, NULL,
                       "task '%.80s/%u' is to fail but does not run",
                       w->scenario->workloads[workload].name, task);
    int r = sim_world_task_off(w, workload, task, SCHED_STOP_REQUEUE, err);
    sim_world_run_time(w, workload, w->now_ms);
    return r;
}

static int event_happens(struct sim_world *w, const struct sim_event *e, struct err *err)
{
    const struct sched_node *decl = &w->nodes[e->index].decl;
    int r;
    switch (e->kind) {
    case SIM_EVENT_NODE_DOWN:
        r = node_change(w, e->index, false, decl->schedulable, err);
        return r < 0 ? r : node_tasks_lost(w, e->index, err);
    case SIM_EVENT_NODE_UP:
        return node_change(w, e->index, true, decl->schedulable, err);
    case SIM_EVENT_NODE_DRAIN:
        return node_change(w, e->index, decl->up, false, err);
    case SIM_EVENT_NODE_UNDRAIN:
        return node_change(w, e->index, decl->up, true, err);
    case SIM_EVENT_CANCEL:
        return sim_world_workload_cancel(w, e->index, err);
    case SIM_EVENT_TASK_FAILED:
        return task_failed(w, e->index, e->task, err);
    case SIM_EVENT_TEAM:
        sim_trace(w, "team %s has new numbers", e->team.name);
        return sim_world_team_edit(w, e, err);
    case SIM_EVENT_NONE:
        break;
    }
    return 0;
}

static int task_stopped(struct sim_world *w, const struct timer *t, struct err *err)
{
    struct sim_world_workload *book = &w->workloads[t->index];
    struct sim_world_task *task = &book->tasks[t->task];
    if (task->phase != SIM_TASK_STOPPING || task->generation != t->stamp)
        return 0;
    bool over = book->life == SIM_LIFE_OVER;
    return sim_world_task_off(w, t->index, t->task, over ? SCHED_STOP_DONE : SCHED_STOP_REQUEUE,
                              err);
}

static int task_refused(struct sim_world *w, const struct timer *t, struct err *err)
{
    struct sim_world_workload *book = &w->workloads[t->index];
    struct sim_world_task *task = &book->tasks[t->task];
    if (book->life != SIM_LIFE_KNOWN || task->phase != SIM_TASK_RUNNING ||
        task->generation != t->stamp)
        return 0;
    int r = sim_world_task_off(w, t->index, t->task, SCHED_STOP_REFUSED, err);
    sim_world_run_time(w, t->index, w->now_ms);
    return r;
}

static int timer_fires(struct sim_world *w, const struct timer *t, struct err *err)
{
    switch (t->kind) {
    case SIM_TIMER_SUBMIT:
        return sim_world_submit(w, t->index, err);
    case SIM_TIMER_EVENT:
        return event_happens(w, &w->scenario->events[t->index], err);
    case SIM_TIMER_END:
        if (w->workloads[t->index].life != SIM_LIFE_KNOWN || !w->workloads[t->index].complete ||
            w->workloads[t->index].run != t->stamp)
            return 0;
        return sim_world_workload_end(w, t->index, err);
    case SIM_TIMER_STOPPED:
        return task_stopped(w, t, err);
    case SIM_TIMER_REFUSED:
        return task_refused(w, t, err);
    }
    return 0;
}

static int timers_due(struct sim_world *w, uint64_t *ret_fired, struct err *err)
{
    uint64_t fired = 0;
    const struct timer *t;
    while ((t = timer_first(w)) != NULL && t->at_ms <= w->now_ms) {
        heap_pop(&w->events);
        w->open_events -= t->kind != SIM_TIMER_END;
        int r = timer_fires(w, t, err);
        if (r < 0)
            return r;
        fired++;
    }
    *ret_fired = fired;
    return 0;
}

/* ---- rounds ------------------------------------------------------------------------------ */

static int books_compare(struct sim_world *w, struct err *err)
{
    static const enum sched_task_state same[] = {
        [SIM_TASK_PENDING] = SCHED_TASK_PENDING, [SIM_TASK_HELD] = SCHED_TASK_HELD,
        [SIM_TASK_RUNNING] = SCHED_TASK_RUNNING, [SIM_TASK_STOPPING] = SCHED_TASK_STOPPING,
        [SIM_TASK_ENDED] = SCHED_TASK_DONE,
    };
    char what[200] = "";
    int r = sched_verify(w->sched, what, sizeof(what));
    if (r < 0)
        return err_set(err, -EUCLEAN, ERR_INTERNAL, NULL, NULL,
                       "the scheduler's sums are wrong: %s", what);
    for (uint32_t i = 0; i < w->scenario->workload_count; i++) {
        if (w->workloads[i].life != SIM_LIFE_KNOWN)
            continue;
        for (uint32_t t = 0; t < w->scenario->workloads[i].task_count; t++) {
            enum sched_task_state state;
            r = sched_task_state(w->sched, (uint64_t)i + 1, t, &state, NULL);
            if (r < 0 || state != same[w->workloads[i].tasks[t].phase])
                return err_set(err, -EUCLEAN, ERR_INTERNAL, NULL, NULL,
                               "the scheduler has another state for task '%.80s/%u' than its "
                               "decisions say",
                               w->scenario->workloads[i].name, t);
        }
    }
    return 0;
}

/* Tasks evicted in this turn, and the workloads they belong to. */
static void evictions_count(struct sim_world *w, const struct sched_decisions *d)
{
    uint64_t tasks = 0;
    for (size_t i = 0; i < d->count; i++) {
        if (d->items[i].kind != SCHED_EVICT)
            continue;
        tasks++;
        bool seen = false;
        for (size_t j = 0; j < i && !seen; j++)
            seen = d->items[j].kind == SCHED_EVICT && d->items[j].workload == d->items[i].workload;
        w->evictions_total += !seen;
    }
    if (tasks > w->round_evictions_max)
        w->round_evictions_max = tasks;
}

static int round_run(struct sim_world *w, uint64_t *ret_decisions, struct err *err)
{
    const struct sched_decisions *d = sched_turn(w->sched, SIM_EPOCH_MS + w->now_ms);
    w->rounds++;
    evictions_count(w, d);
    for (size_t i = 0; i < d->count; i++) {
        sim_trace_decision(w, &d->items[i]);
        int r = sim_world_act(w, &d->items[i], err);
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < d->count; i++)
        sim_world_run_time(w, (uint32_t)(d->items[i].workload - 1), w->now_ms);
    *ret_decisions = d->count;
    return books_compare(w, err);
}

static int instant_run(struct sim_world *w, struct err *err)
{
    uint32_t empty = 0;
    for (uint32_t round = 0; round < ROUNDS_AT_ONCE_MAX; round++) {
        uint64_t fired, decided;
        int r = timers_due(w, &fired, err);
        if (r == 0)
            r = round_run(w, &decided, err);
        if (r < 0)
            return r;
        const struct timer *t = timer_first(w);
        empty = decided == 0 ? empty + 1 : 0;
        if (decided > 0 || (t != NULL && t->at_ms <= w->now_ms))
            continue;
        /* a large turn may be given in parts: the scheduler says that more is due at once */
        if (sched_next_ms(w->sched) > SIM_EPOCH_MS + w->now_ms || empty > EMPTY_TURNS_MAX)
            return 0;
    }
    return err_set(err, -ELOOP, ERR_INTERNAL, NULL, NULL,
                   "the scheduler does not come to rest within %d turns", ROUNDS_AT_ONCE_MAX);
}

static int64_t next_instant(struct sim_world *w, int64_t at_ms)
{
    int64_t next = at_ms;
    const struct timer *t = timer_first(w);
    if (t != NULL && t->at_ms < next)
        next = t->at_ms;
    int64_t due = sched_next_ms(w->sched);
    /* a turn that is due now was just given and had nothing to do */
    if (due != INT64_MAX && due - SIM_EPOCH_MS > w->now_ms && due - SIM_EPOCH_MS < next)
        next = due - SIM_EPOCH_MS;
    return next;
}

int sim_world_advance(struct sim_world *w, int64_t at_ms, struct err *err)
{
    for (;;) {
        int r = instant_run(w, err);
        if (r < 0 || w->now_ms >= at_ms)
            return r;
        w->now_ms = next_instant(w, at_ms);
    }
}

int sim_world_settle(struct sim_world *w, struct err *err)
{
    int r = instant_run(w, err);
    while (r == 0 && w->open_events > 0)
        r = sim_world_advance(w, timer_first(w)->at_ms, err);
    return r;
}

int sim_world_rounds(struct sim_world *w, uint32_t count, struct err *err)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t ignored;
        int r = timers_due(w, &ignored, err);
        if (r == 0)
            r = round_run(w, &ignored, err);
        if (r < 0)
            return r;
    }
    return 0;
}
