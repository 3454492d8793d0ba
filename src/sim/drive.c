/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/drive.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/heap.h"
#include "base/map.h"
#include "base/vec.h"

#define TIME_MAX_MS (100LL * 366 * 86400 * 1000) /* its GPU time fits in 63 bits */
#define EMPTY_TURNS_MAX 100000 /* in one instant */

/* In the order of what happens in one instant. */
enum timer_kind { TIMER_END, TIMER_STOP, TIMER_PAUSE, TIMER_RETURN, TIMER_CALL, TIMER_SUBMIT };

struct timer {
    struct heap_node node;
    int64_t at_ms;
    uint64_t order; /* among equals */
    uint8_t kind;   /* enum timer_kind */
};

enum task_state { TASK_WAITING, TASK_RUNNING, TASK_STOPPING, TASK_AWAY, TASK_ENDED };

struct task {
    struct timer timer;
    struct entry *entry;
    uint8_t state;       /* enum task_state */
    uint8_t after_pause; /* this run follows a pause */
    int32_t gpu_milli;   /* charge of this placement */
    uint32_t next_pause; /* index */
    uint32_t starts, evictions, losses, pauses;
    uint64_t node;       /* where it runs */
    int64_t since_ms;    /* when this state began; STOPPING: when it was started */
    int64_t saved_ms;    /* progress that lasts */
    int64_t overhead_ms; /* of this run: no progress before */
    int64_t fallback_ms; /* STOPPING: progress that lasts when it has stopped */
    int64_t first_start_ms, end_ms;
    int64_t queued_ms, held_milli_ms, lost_milli_ms;
};

struct entry { /* of one job */
    struct timer timer;
    const struct drive_job *job;
    struct task *tasks;
    uint32_t away, ended;
    uint8_t end; /* enum drive_end */
    struct sched_refusal refusal;
};

struct call {
    struct timer timer;
    void (*fn)(struct sched *s, void *arg);
    void *arg;
};

struct drive {
    struct sched *s;
    struct drive_observer observer;
    struct arena arena;
    struct heap timers;
    struct map by_id;
    VEC(struct entry *) entries;
    int64_t now_ms;
    uint64_t given, turns, decisions;
    struct err *err;
    int failed; /* negative errno of the run */
};

/* ---- timers ------------------------------------------------------------------------------ */

static bool timer_before(const struct heap_node *a, const struct heap_node *b)
{
    const struct timer *x = heap_entry(a, struct timer, node);
    const struct timer *y = heap_entry(b, struct timer, node);
    if (x->at_ms != y->at_ms)
        return x->at_ms < y->at_ms;
    return x->kind != y->kind ? x->kind < y->kind : x->order < y->order;
}

static void timer_set(struct drive *d, struct timer *t, enum timer_kind kind, int64_t at_ms)
{
    heap_remove(&d->timers, &t->node);
    t->kind = (uint8_t)kind;
    t->at_ms = at_ms;
    heap_push(&d->timers, &t->node);
}

static uint32_t task_index(const struct task *t)
{
    return (uint32_t)(t - t->entry->tasks);
}

static void note(struct drive *d, enum drive_event_kind kind, struct entry *e, const struct task *t,
                 const struct sched_decision *decision)
{
    if (d->observer.note == NULL)
        return;
    struct drive_event event = {.kind = kind,
                                .now_ms = d->now_ms,
                                .job = e->job,
                                .task = t == NULL ? 0 : task_index(t),
                                .gpu_milli = t == NULL ? 0 : t->gpu_milli,
                                .decision = decision};
    d->observer.note(d->observer.arg, &event);
}

/* ---- one task ---------------------------------------------------------------------------- */

static void task_wait(struct drive *d, struct task *t)
{
    t->state = TASK_WAITING;
    t->since_ms = d->now_ms;
}

/* How far it would be if it stopped now. */
static int64_t task_progress(const struct drive *d, const struct task *t)
{
    int64_t ran = d->now_ms - t->since_ms - t->overhead_ms;
    return t->saved_ms + (ran > 0 ? ran : 0);
}

/* Books the time on devices, of which the progress from the last save to PROGRESS is kept. */
static void task_release(struct drive *d, struct task *t, int64_t progress)
{
    int64_t held = d->now_ms - t->since_ms, kept = progress - t->saved_ms;
    t->held_milli_ms += held * t->gpu_milli;
    t->lost_milli_ms += (held - kept) * t->gpu_milli;
    t->saved_ms = progress;
}

static void task_start(struct drive *d, struct task *t, const struct sched_decision *decision)
{
    const struct drive_job *job = t->entry->job;
    t->overhead_ms = t->after_pause ? job->resume_ms : t->starts > 0 ? job->restart_ms : 0;
    t->after_pause = 0;
    t->queued_ms += d->now_ms - t->since_ms;
    t->state = TASK_RUNNING;
    t->since_ms = d->now_ms;
    t->gpu_milli = decision->gpu_milli;
    t->node = decision->node;
    if (t->starts++ == 0)
        t->first_start_ms = d->now_ms;
    bool pause = t->next_pause < job->pause_count;
    int64_t until = pause ? job->pauses[t->next_pause].at_ms : job->run_ms;
    timer_set(d, &t->timer, pause ? TIMER_PAUSE : TIMER_END,
              d->now_ms + t->overhead_ms + until - t->saved_ms);
    note(d, DRIVE_STARTED, t->entry, t, decision);
}

/* The progress that lasts when it stops now. */
static int64_t task_saved(const struct drive *d, const struct task *t)
{
    const struct drive_job *job = t->entry->job;
    int64_t progress = task_progress(d, t);
    int64_t kept = job->checkpoint_ms == 0 ? 0 : progress - progress % job->checkpoint_ms;
    return kept > t->saved_ms ? kept : t->saved_ms;
}

static void task_evict(struct drive *d, struct task *t, const struct sched_decision *decision)
{
    const struct drive_job *job = t->entry->job;
    t->fallback_ms = task_saved(d, t);
    t->state = TASK_STOPPING;
    t->evictions++;
    timer_set(d, &t->timer, TIMER_STOP, d->now_ms + job->grace_ms);
    note(d, DRIVE_EVICTED, t->entry, t, decision);
}

static void task_ended(struct drive *d, struct task *t)
{
    struct entry *e = t->entry;
    t->state = TASK_ENDED;
    t->end_ms = d->now_ms;
    note(d, DRIVE_TASK_ENDED, e, t, NULL);
    if (++e->ended < e->job->workload.task_count)
        return;
    e->end = DRIVE_END_DONE;
    sched_workload_remove(d->s, e->job->workload.id);
    note(d, DRIVE_ENDED, e, NULL, NULL);
}

static void timer_end(struct drive *d, struct task *t)
{
    task_release(d, t, t->entry->job->run_ms);
    sched_task_stopped(d->s, t->entry->job->workload.id, task_index(t), SCHED_STOP_DONE, d->now_ms);
    task_ended(d, t);
}

static void timer_stop(struct drive *d, struct task *t)
{
    task_release(d, t, t->fallback_ms);
    sched_task_stopped(d->s, t->entry->job->workload.id, task_index(t), SCHED_STOP_REQUEUE,
                       d->now_ms);
    task_wait(d, t);
    note(d, DRIVE_STOPPED, t->entry, t, NULL);
}

/* The tasks of a gang go and return together: the last one takes the workload out of the
 * scheduler, or brings it back. */
static void timer_pause(struct drive *d, struct task *t)
{
    struct entry *e = t->entry;
    const struct drive_pause *p = &e->job->pauses[t->next_pause];
    task_release(d, t, p->at_ms);
    t->state = TASK_AWAY;
    t->pauses++;
    sched_task_stopped(d->s, e->job->workload.id, task_index(t), SCHED_STOP_DONE, d->now_ms);
    if (++e->away == e->job->workload.task_count)
        sched_workload_remove(d->s, e->job->workload.id);
    timer_set(d, &t->timer, TIMER_RETURN, d->now_ms + p->length_ms);
    note(d, DRIVE_PAUSED, e, t, NULL);
    t->gpu_milli = 0;
}

static void workload_add(struct drive *d, struct entry *e, const struct sched_workload *w)
{
    int rc = sched_workload_add(d->s, w, &e->refusal);
    if (rc == 0)
        return;
    e->end = DRIVE_END_REFUSED;
    if (rc != -E2BIG && d->failed == 0)
        d->failed =
            err_set(d->err, rc, ERR_INVALID, NULL, NULL, "the scheduler takes no workload %llu: %s",
                    (unsigned long long)w->id, strerror(-rc));
}

static void timer_return(struct drive *d, struct task *t)
{
    struct entry *e = t->entry;
    t->saved_ms += e->job->pauses[t->next_pause++].length_ms;
    e->away--;
    if (t->saved_ms == e->job->run_ms) {
        task_ended(d, t);
        return;
    }
    t->after_pause = 1;
    task_wait(d, t);
    if (e->away == 0) {
        struct sched_workload w = e->job->workload;
        w.accepted = true;
        workload_add(d, e, &w);
    }
    note(d, DRIVE_RETURNED, e, t, NULL);
}

static void timer_submit(struct drive *d, struct entry *e)
{
    workload_add(d, e, &e->job->workload);
    for (uint32_t i = 0; i < e->job->workload.task_count; i++)
        task_wait(d, &e->tasks[i]);
    note(d, e->end == DRIVE_END_REFUSED ? DRIVE_REFUSED : DRIVE_SUBMITTED, e, NULL, NULL);
}

/* ---- the run ----------------------------------------------------------------------------- */

static void fire(struct drive *d, struct timer *timer)
{
    switch ((enum timer_kind)timer->kind) {
    case TIMER_END:
        timer_end(d, heap_entry(timer, struct task, timer));
        break;
    case TIMER_STOP:
        timer_stop(d, heap_entry(timer, struct task, timer));
        break;
    case TIMER_PAUSE:
        timer_pause(d, heap_entry(timer, struct task, timer));
        break;
    case TIMER_RETURN:
        timer_return(d, heap_entry(timer, struct task, timer));
        break;
    case TIMER_CALL: {
        struct call *call = heap_entry(timer, struct call, timer);
        call->fn(d->s, call->arg);
        break;
    }
    case TIMER_SUBMIT:
        timer_submit(d, heap_entry(timer, struct entry, timer));
        break;
    }
}

static int64_t next_timer(const struct drive *d)
{
    const struct heap_node *n = heap_peek(&d->timers);
    return n == NULL ? DRIVE_NEVER : heap_entry(n, struct timer, node)->at_ms;
}

static void turn(struct drive *d)
{
    const struct sched_decisions *list = sched_turn(d->s, d->now_ms);
    d->turns++;
    d->decisions += list->count;
    for (size_t i = 0; i < list->count; i++) {
        const struct sched_decision *decision = &list->items[i];
        struct entry *e = map_get(&d->by_id, decision->workload);
        if (e == NULL)
            continue; /* not one of ours */
        struct task *t = &e->tasks[decision->task];
        if (decision->kind == SCHED_START)
            task_start(d, t, decision);
        else if (decision->kind == SCHED_EVICT)
            task_evict(d, t, decision);
    }
}

int drive_run(struct drive *d, int64_t until_ms, struct err *err)
{
    d->err = err;
    d->failed = 0;
    for (unsigned idle = 0; d->failed == 0;) {
        int64_t next = next_timer(d), due = sched_next_ms(d->s);
        next = due < next ? due : next;
        if (next == DRIVE_NEVER || next > until_ms)
            break;
        idle = next > d->now_ms ? 0 : idle + 1;
        if (idle > EMPTY_TURNS_MAX)
            return err_set(err, -ELOOP, ERR_INTERNAL, NULL, NULL,
                           "the scheduler asks for turns without end at %lld ms",
                           (long long)d->now_ms);
        if (next > d->now_ms)
            d->now_ms = next;
        while (next_timer(d) <= d->now_ms)
            fire(d, heap_entry(heap_pop(&d->timers), struct timer, node));
        turn(d);
    }
    d->err = NULL;
    return d->failed;
}

/* ---- input and output -------------------------------------------------------------------- */

struct drive *drive_create(struct sched *s, const struct drive_observer *observer)
{
    struct drive *d = calloc(1, sizeof(*d));
    if (d == NULL)
        abort();
    d->s = s;
    d->timers = (struct heap)HEAP_INIT(timer_before);
    if (observer != NULL)
        d->observer = *observer;
    return d;
}

void drive_destroy(struct drive *d)
{
    if (d == NULL)
        return;
    heap_done(&d->timers);
    map_done(&d->by_id);
    vec_done(&d->entries);
    arena_done(&d->arena);
    free(d);
}

static int job_check(const struct drive_job *job, struct err *err)
{
    const struct sched_workload *w = &job->workload;
    int64_t times[] = {job->submit_ms,  job->run_ms,    job->checkpoint_ms,
                       job->restart_ms, job->resume_ms, job->grace_ms};
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        if (times[i] < 0 || times[i] > TIME_MAX_MS)
            return err_set(err, -EINVAL, ERR_OUT_OF_RANGE, NULL, NULL,
                           "a time of job %llu is out of range", (unsigned long long)w->id);
    if (job->pause_count > 0 && w->min_tasks != w->task_count)
        return err_set(err, -EINVAL, ERR_INVALID, NULL, NULL, "job %llu is elastic and has pauses",
                       (unsigned long long)w->id);
    int64_t before = 0;
    for (uint32_t i = 0; i < job->pause_count; i++) {
        const struct drive_pause *p = &job->pauses[i];
        if (p->at_ms <= before || p->at_ms >= job->run_ms || p->length_ms <= 0 ||
            p->length_ms > job->run_ms - p->at_ms)
            return err_set(err, -EINVAL, ERR_OUT_OF_RANGE, NULL, NULL,
                           "pause %u of job %llu is out of order", i, (unsigned long long)w->id);
        before = p->at_ms + p->length_ms;
    }
    return 0;
}

int drive_submit(struct drive *d, const struct drive_job *job, struct err *err)
{
    int rc = job_check(job, err);
    if (rc < 0)
        return rc;
    if (map_get(&d->by_id, job->workload.id) != NULL)
        return err_set(err, -EEXIST, ERR_CONFLICT, NULL, NULL, "job %llu was given before",
                       (unsigned long long)job->workload.id);
    struct entry *e = arena_new(&d->arena, struct entry);
    e->job = job;
    e->timer.order = d->given++;
    e->tasks = arena_new_array(&d->arena, struct task, job->workload.task_count);
    for (uint32_t i = 0; i < job->workload.task_count; i++) {
        e->tasks[i].entry = e;
        e->tasks[i].timer.order = d->given++;
        e->tasks[i].first_start_ms = e->tasks[i].end_ms = DRIVE_NEVER;
    }
    map_put(&d->by_id, job->workload.id, e);
    vec_push(&d->entries, e);
    timer_set(d, &e->timer, TIMER_SUBMIT, job->submit_ms);
    return 0;
}

void drive_call(struct drive *d, int64_t at_ms, void (*fn)(struct sched *s, void *arg), void *arg)
{
    struct call *call = arena_new(&d->arena, struct call);
    call->fn = fn;
    call->arg = arg;
    call->timer.order = d->given++;
    timer_set(d, &call->timer, TIMER_CALL, at_ms);
}

static void task_lose(struct drive *d, struct task *t)
{
    task_release(d, t, t->state == TASK_RUNNING ? task_saved(d, t) : t->fallback_ms);
    t->losses++;
    heap_remove(&d->timers, &t->timer.node);
    sched_task_stopped(d->s, t->entry->job->workload.id, task_index(t), SCHED_STOP_REQUEUE,
                       d->now_ms);
    task_wait(d, t);
    note(d, DRIVE_STOPPED, t->entry, t, NULL);
}

void drive_lose_node(struct drive *d, uint64_t node)
{
    for (size_t i = 0; i < d->entries.len; i++) {
        struct entry *e = d->entries.items[i];
        for (uint32_t k = 0; e->end == DRIVE_END_NONE && k < e->job->workload.task_count; k++) {
            struct task *t = &e->tasks[k];
            if ((t->state == TASK_RUNNING || t->state == TASK_STOPPING) && t->node == node)
                task_lose(d, t);
        }
    }
}

int64_t drive_now(const struct drive *d)
{
    return d->now_ms;
}

uint64_t drive_turns(const struct drive *d)
{
    return d->turns;
}

uint64_t drive_decisions(const struct drive *d)
{
    return d->decisions;
}

size_t drive_count(const struct drive *d)
{
    return d->entries.len;
}

static void add_task(struct drive_result *r, const struct task *t)
{
    r->first_start_ms =
        t->first_start_ms < r->first_start_ms ? t->first_start_ms : r->first_start_ms;
    r->end_ms = t->end_ms > r->end_ms ? t->end_ms : r->end_ms;
    r->queued_ms = t->queued_ms > r->queued_ms ? t->queued_ms : r->queued_ms;
    r->starts = t->starts > r->starts ? t->starts : r->starts;
    r->evictions = t->evictions > r->evictions ? t->evictions : r->evictions;
    r->losses = t->losses > r->losses ? t->losses : r->losses;
    r->pauses = t->pauses > r->pauses ? t->pauses : r->pauses;
    r->held_milli_ms += t->held_milli_ms;
    r->lost_milli_ms += t->lost_milli_ms;
}

void drive_result(const struct drive *d, size_t index, struct drive_result *ret_result)
{
    const struct entry *e = d->entries.items[index];
    *ret_result = (struct drive_result){.job = e->job,
                                        .end = (enum drive_end)e->end,
                                        .refusal = e->refusal,
                                        .first_start_ms = DRIVE_NEVER};
    for (uint32_t i = 0; i < e->job->workload.task_count; i++)
        add_task(ret_result, &e->tasks[i]);
}
