/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/decide.h"

#include "base/qty.h"
#include "sched/place.h"
#include "sched/reserve.h"
#include "sched/task.h"
#include "sched/types.h"
#include "sched/trade.h"
#include "sched/workload.h"

static struct sched_decision *decision_add(struct sched *s, enum sched_decision_kind kind,
                                           enum sched_cause cause, const struct workload *w,
                                           uint32_t t)
{
    struct sched_decision *d = vec_add(&s->decisions);
    const struct task *task = &w->tasks[t];
    d->kind = kind;
    d->cause = cause;
    d->workload = w->id;
    d->task = t;
    d->node = task->node->id;
    d->gpu_milli = task->gpu_milli;
    d->device_count = task->device_count;
    d->devices = arena_memdup(&s->arena, task_devices(task), task->device_count * sizeof(uint16_t));
    return d;
}

/* Does the task take a team past what it keeps of a GPU type? */
static bool type_crossed(const struct team *t, const struct task *task)
{
    const struct type_quota *q = types_find(t, task->node->gpu_type);
    if (q == NULL || q->guarantee == SCHED_UNLIMITED)
        return false;
    int64_t used = q->used[VIEW_THEN];
    return used > q->guarantee && used - task->gpu_milli <= q->guarantee;
}

/* A team that passes its share or guarantee upward makes its own work eligible for reclaim. */
static void crossing_note(struct sched *s, const struct workload *w, uint32_t t)
{
    struct amounts charge = task_charge(w, t);
    for (const struct team *team = w->group->team; team->parent != NULL; team = team->parent)
        s->retry = s->retry || type_crossed(team, &w->tasks[t]);
    for (const struct team *team = w->group->team; team->parent != NULL; team = team->parent)
        for (int r = 0; r < SCHED_RESOURCES; r++) {
            int64_t after = team->used[VIEW_THEN].v[r], before = after - charge.v[r];
            int64_t share = team->share.v[r], guarantee = team->guarantee[r];
            if ((before <= share && after > share) || (before <= guarantee && after > guarantee))
                s->retry = true;
        }
}

/* W is about to start tasks. Those may be taken back that fit, of what did not run before. */
static void start_note(struct sched *s, struct workload *w, enum sched_cause cause)
{
    if (w->started_turn != s->turn) {
        w->started_at = s->decisions.len;
        w->stands = w->count[TASK_RUNNING] > 0;
    }
    w->stands = w->stands || cause == SCHED_CAUSE_PROMISED;
    w->started_turn = s->turn;
    if (w->placed_epoch != s->outside_epoch)
        w->placed_ms = s->now_ms;
    w->placed_epoch = s->outside_epoch;
    /* Its disruption budget grows: who waited for that may have another of its tasks. */
    s->retry = s->retry || w->group->job->max_unavailable > 0;
}

void decide_start_spots(struct sched *s, struct workload *w, enum sched_cause cause)
{
    const struct placing *p = s->placing;
    reserve_started(s, w);
    start_note(s, w, cause);
    for (size_t i = 0; i < p->spots.len; i++) {
        const struct spot *spot = &p->spots.items[i];
        task_place(s, w, spot->task, TASK_RUNNING, spot->node, spot_devices(p, spot), spot->count,
                   s->now_ms);
        crossing_note(s, w, spot->task);
        decision_add(s, SCHED_START, cause, w, spot->task);
    }
    workload_requeue(s, w);
}

void decide_hold_spots(struct sched *s, struct workload *w, enum sched_cause cause)
{
    const struct placing *p = s->placing;
    for (size_t i = 0; i < p->spots.len; i++) {
        const struct spot *spot = &p->spots.items[i];
        task_place(s, w, spot->task, TASK_HELD, spot->node, spot_devices(p, spot), spot->count, 0);
        crossing_note(s, w, spot->task);
        decision_add(s, SCHED_HOLD, cause, w, spot->task)->until_ms = INT64_MAX;
    }
    w->hold_cause = (uint8_t)cause;
    if (cause == SCHED_CAUSE_RECLAIM)
        w->won_epoch = s->outside_epoch;
    workload_timer_set(s, w, INT64_MAX);
    workload_requeue(s, w);
}

void decide_start_held(struct sched *s, struct workload *w)
{
    start_note(s, w, SCHED_CAUSE_PROMISED);
    for (uint32_t t = 0; t < w->group->job->task_count; t++) {
        if (w->tasks[t].phase != TASK_HELD)
            continue;
        w->tasks[t].since_ms = s->now_ms;
        task_turn(s, w, t, TASK_RUNNING);
        decision_add(s, SCHED_START, SCHED_CAUSE_PROMISED, w, t);
    }
    w->victims = 0;
    s->retry = true; /* it may be a victim now; the team of one that may not burst may again */
    workload_timer_set(s, w, INT64_MAX);
    workload_requeue(s, w);
}

void decide_unhold(struct sched *s, struct workload *w, enum sched_cause cause)
{
    for (uint32_t t = 0; t < w->group->job->task_count; t++)
        if (w->tasks[t].phase == TASK_HELD)
            decision_add(s, SCHED_UNHOLD, cause, w, t);
    workload_unhold(s, w);
    s->wake_soon = true; /* what it kept is free for moves as well, which begin with a turn */
}

int64_t decide_price_ms(const struct sched *s, const struct workload *w, uint32_t t)
{
    const struct task *task = &w->tasks[t];
    if (w->started_turn == s->turn && task->since_ms == s->now_ms)
        return 0; /* it can be taken back */
    int64_t ran = s->now_ms > task->since_ms ? s->now_ms - task->since_ms : 0;
    int64_t lost = qty_add_sat(ran, w->group->job->restart_cost_ms);
    return qty_mul_div(lost, task->gpu_milli > 0 ? task->gpu_milli : 1, WHOLE_MILLI);
}

void decide_evict(struct sched *s, struct workload *w, uint32_t t, const struct eviction *why)
{
    struct sched_decision *d = decision_add(s, SCHED_EVICT, why->cause, w, t);
    d->on_behalf_of = why->behalf;
    d->team = why->team;
    d->price_ms = decide_price_ms(s, w, t);
    s->evicted_at = s->decisions.len;
    task_turn(s, w, t, TASK_LEAVING);
    w->tasks[t].behalf = why->behalf;
    if (why->behalf != 0)
        trade_note(s, w, why->behalf);
    s->retry = true;
}

/* The start of the task in this turn; NULL: it started before. */
static struct sched_decision *start_find(struct sched *s, const struct workload *w, uint32_t t)
{
    for (size_t i = w->started_turn == s->turn ? s->decisions.len : 0; i-- > 0;) {
        struct sched_decision *d = &s->decisions.items[i];
        if (d->workload == w->id && d->task == t && d->kind == SCHED_START)
            return d;
    }
    return NULL;
}

bool decide_take_back(struct sched *s, struct workload *w, uint32_t t, uint64_t behalf)
{
    struct sched_decision *d = start_find(s, w, t);
    if (d == NULL)
        return false;
    d->workload = 0; /* left out by decide_end() */
    task_release(s, w, t, TASK_PENDING);
    trade_note(s, w, behalf);
    struct taken_back note = {w->id, behalf};
    vec_push(&s->taken_back, note);
    s->retry = true;
    return true;
}

void decide_end(struct sched *s)
{
    size_t kept = 0;
    if (s->taken_back.len == 0)
        return;
    for (size_t i = 0; i < s->decisions.len; i++)
        if (s->decisions.items[i].workload != 0)
            s->decisions.items[kept++] = s->decisions.items[i];
    s->decisions.len = kept;
}

void decide_evict_all(struct sched *s, struct workload *w, enum sched_cause cause)
{
    struct eviction why = {.cause = cause};
    for (uint32_t t = 0; t < w->group->job->task_count; t++)
        if (w->tasks[t].phase == TASK_RUNNING)
            decide_evict(s, w, t, &why);
    workload_requeue(s, w);
}
