/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What would be? The state is changed on trial, asked, and put back.
 *
 * A smaller request counts in the shares of all teams, so that the trial lowers the demand of its
 * team as well; and to ask for less is an event, after which trades may be made that were made
 * before (trade.h). What follows is judged as at the beginning of the next turn.
 */
#include "sched/explain.h"

#include <limits.h>
#include <stdlib.h>

#include "base/qty.h"
#include "sched/evict.h"
#include "sched/fit.h"
#include "sched/gate.h"
#include "sched/move.h"
#include "sched/place.h"
#include "sched/plan.h"
#include "sched/shape.h"
#include "sched/share.h"
#include "sched/team.h"
#include "sched/window.h"
#include "sched/workload.h"

#define SEARCHES 12       /* for victims, in one explanation of a small cluster */
#define NODES_SMALL 4096  /* nodes and searches of a larger one come to this, but one is made */
#define RUNNING_SMALL 256 /* so much runs at most where a list looks for protection */
#define WINDOWS_MAX 32    /* lengths of a run that are tried */

/* ---- undoing ----------------------------------------------------------------------------- */

/* What searches remember from one to the next, and what a trial pretends. */
struct spared {
    unsigned place_searches, set_searches, leaf_looks, move_searches;
    struct look look;
    size_t move_cursor;
    bool search_denied, put_off, wake_soon, retry;
    int64_t protected_until_ms;
    uint64_t passed_epoch, outside_epoch, turn;
};

static struct spared spare(struct sched *s)
{
    struct spared kept = {
        s->place_searches, s->set_searches, s->leaf_looks,         s->move_searches,
        s->look,           s->move_cursor,  s->search_denied,      s->put_off,
        s->wake_soon,      s->retry,        s->protected_until_ms, s->passed_epoch,
        s->outside_epoch,  s->turn};
    s->place_searches = s->set_searches = s->leaf_looks = s->move_searches = 0;
    s->turn++;
    return kept;
}

static void restore(struct sched *s, const struct spared *kept)
{
    s->place_searches = kept->place_searches;
    s->set_searches = kept->set_searches;
    s->leaf_looks = kept->leaf_looks;
    s->move_searches = kept->move_searches;
    s->look = kept->look;
    s->move_cursor = kept->move_cursor;
    s->search_denied = kept->search_denied;
    s->put_off = kept->put_off;
    s->wake_soon = kept->wake_soon;
    s->retry = kept->retry;
    s->protected_until_ms = kept->protected_until_ms;
    s->passed_epoch = kept->passed_epoch;
    s->outside_epoch = kept->outside_epoch;
    s->turn = kept->turn;
}

/* ---- a start ----------------------------------------------------------------------------- */

struct trial {
    struct asking *a;
    unsigned searches; /* for victims that may still be made */
    bool reserved;     /* VIEW_PLAN stands at the start of the reserved workload */
    bool asks_anew;    /* as an event: trades may be made that were made before */
    int64_t takes;     /* milli-GPU of the victims of the last start that was found */
};

/* Whoever had the reservation has it on trial, as it had in the last turn. */
static void reserve_again(struct trial *t)
{
    struct sched *s = t->a->s;
    struct workload *w = workload_find(s, s->reserved.last);
    struct gang gang;
    if (w == NULL || w == t->a->w || w->removed || !gang_next(w->group->job, w, &gang))
        return;
    struct amounts need = gang_charge(w->group->job, w, &gang);
    struct plan plan;
    if (plan_earliest(s, w, &gang, &need, &plan) && plan.start_ms > s->now_ms) {
        place_take(s, VIEW_PLAN, 1);
        place_types_use(s, w->group, VIEW_PLAN);
        team_use(w->group->team, VIEW_PLAN, &need, !w->group->preemptible, 1);
        t->reserved = true;
    }
    gang_done(&gang);
}

bool explain_delays_reserved(struct asking *a, int64_t start_ms)
{
    struct sched *s = a->s;
    struct trial t = {.a = a};
    int64_t limit_ms = a->w->limit_ms;
    if (limit_ms > 0 && qty_add_sat(start_ms, limit_ms) <= s->reserved.start_ms)
        return false;
    reserve_again(&t);
    return t.reserved && !place_within_gates(s, a->w, &a->gang, MASK(VIEW_PLAN));
}

static bool outlasts(const struct sched *s, const struct workload *w)
{
    return w->limit_ms == 0 || w->limit_ms > s->reserved.start_ms - s->now_ms;
}

static bool starts_free(struct trial *t, struct workload *w, const struct gang *gang)
{
    struct sched *s = t->a->s;
    return !t->reserved || !outlasts(s, w) ||
           place_within_gates(s, w, gang, MASK_START | MASK(VIEW_PLAN));
}

static bool starts_by_force(struct trial *t, struct workload *w, const struct gang *gang,
                            const struct amounts *need)
{
    struct sched *s = t->a->s;
    struct victims victims = {0};
    struct move_plan plan = {0};
    if (t->searches == 0 || group_idle(s, w->group))
        return false;
    t->searches--;
    s->set_searches = UINT_MAX; /* sets out of order: others may have used that up by then */
    s->look = (struct look){0}; /* nor are the nodes that it was looked for on */
    bool evicts = evict_find(s, w, gang, need, &victims);
    bool moves = move_find(s, w, gang, need, &plan) &&
                 (!evicts || plan.price_ms <= victims.price_ms); /* as in a turn */
    t->takes = 0;
    for (size_t i = 0; !moves && i < victims.list.len; i++)
        t->takes += victims.list.items[i].w->tasks[victims.list.items[i].task].gpu_milli;
    if (!moves && w == t->a->w && t->a->fresh)
        explain_victims(t->a, &victims);
    move_plan_done(&plan);
    victims_done(&victims);
    return evicts || moves;
}

/* Would W start in the next turn, or be promised a place by evicting? */
static bool would_start(struct trial *t, struct workload *w)
{
    struct sched *s = t->a->s;
    struct gang gang;
    if (!gang_next(w->group->job, w, &gang))
        return false;
    struct amounts need = gang_charge(w->group->job, w, &gang);
    bool starts;
    if (gate_open(w->group, &need, MASK_START, NULL) &&
        place_within_gates(s, w, &gang, MASK_START)) {
        t->takes = 0;
        starts = starts_free(t, w, &gang);
    } else if (s->stopping > 0 && place_within_gates(s, w, &gang, MASK(VIEW_THEN))) {
        starts = false; /* not now, but when others have stopped */
    } else {
        struct spared kept = spare(s);
        s->outside_epoch += t->asks_anew;
        starts = starts_by_force(t, w, &gang, &need);
        restore(s, &kept);
    }
    gang_done(&gang);
    return starts;
}

/* Where others are stopping, who waits for that may take what a trial found free. */
static bool begin(struct trial *t, struct asking *a)
{
    size_t nodes = a->s->node_list.len;
    *t = (struct trial){.a = a, .searches = SEARCHES, .asks_anew = true};
    if (nodes * SEARCHES > NODES_SMALL)
        t->searches = nodes < NODES_SMALL ? (unsigned)(NODES_SMALL / nodes) : 1;
    if (a->s->stopping > 0 || a->s->holding.len > a->s->holding_gaps || a->s->moving.len > 0)
        return false;
    reserve_again(t);
    return true;
}

/* ---- less -------------------------------------------------------------------------------- */

struct cut { /* what a smaller request asks for */
    uint32_t tasks, devices;
    int32_t milli;
    int64_t cpu, memory;
};

static int job_cut(struct sched *s, const struct job_shape *job, const struct cut *c,
                   struct job_shape **ret_job)
{
    const struct shape *shape = job->tasks[0].shape;
    struct sched_label *labels = mem_new(shape->label_count, sizeof(*labels));
    for (uint32_t i = 0; i < shape->label_count; i++)
        labels[i] = (struct sched_label){shape->labels[i].key, shape->labels[i].value};
    struct sched_mig_request *mig = mem_new(shape->mig_count, sizeof(*mig));
    for (uint32_t i = 0; i < shape->mig_count; i++)
        mig[i] = (struct sched_mig_request){shape->mig[i].profile, shape->mig[i].count};
    struct sched_request request = {
        .device_count = c->devices,
        .device_milli = c->milli,
        .device_memory_bytes = shape->device_milli > 0 ? 0 : shape->device_memory,
        .mig = mig,
        .mig_count = shape->mig_count,
        .cpu_milli = c->cpu,
        .memory_bytes = c->memory,
        .gpu_types = shape->types,
        .gpu_type_count = shape->type_count,
        .gpu_types_equal = shape->types_equal,
        .labels = labels,
        .label_count = shape->label_count,
        .only_node = shape->only_node,
    };
    bool rigid = job->min_tasks == job->task_count;
    uint32_t count = rigid ? c->tasks : job->task_count;
    struct sched_task *tasks = mem_new(count, sizeof(*tasks));
    for (uint32_t i = 0; i < count; i++)
        tasks[i] = (struct sched_task){.request = &request, .rank = job_task(job, i)->rank};
    struct sched_group group = {.min_tasks = c->tasks};
    if (job->group_count > 0 && job->groups[0].min_tasks < c->tasks)
        group.min_tasks = job->groups[0].min_tasks;
    if (job->group_count > 0)
        group.required = job->groups[0].required;
    struct sched_workload w = {.tasks = tasks,
                               .task_count = count,
                               .min_tasks = c->tasks,
                               .groups = &group,
                               .group_count = job->group_count,
                               .spread = job->spread,
                               .topology_required = job->required,
                               .topology_preferred = job->preferred,
                               .min_run_ms = job->min_run_ms,
                               .restart_cost_ms = job->restart_cost_ms};
    int r = job_shape_get(s, &w, ret_job);
    free(tasks);
    free(mig);
    free(labels);
    return r;
}

/* The shares follow. */
static void demand_less(struct sched *s, struct team *t, const struct amounts *less, int sign)
{
    team_demand(t, less, sign);
    s->shares_stale = true;
    share_refresh(s);
}

/* Would it start if it asked for C? */
static bool cut_starts(struct trial *t, const struct cut *c)
{
    struct sched *s = t->a->s;
    const struct workload *w = t->a->w;
    struct group group = *w->group;
    if (job_cut(s, w->group->job, c, &group.job) < 0)
        return false;
    struct workload smaller = {.id = w->id,
                               .age = w->age,
                               .limit_ms = w->limit_ms,
                               .expected_ms = w->expected_ms,
                               .group = &group,
                               .timer_ms = INT64_MAX,
                               .place = PLACE_NONE};
    smaller.count[TASK_PENDING] = group.job->task_count;
    struct amounts less = w->group->job->total;
    amounts_add(&less, &group.job->total, -1);
    bool retry = s->retry;
    demand_less(s, group.team, &less, -1);
    bool starts = would_start(t, &smaller);
    demand_less(s, group.team, &less, 1);
    s->retry = retry;
    job_shape_put(s, group.job);
    return starts;
}

/* Its tasks are all alike, none of them has a place, and they may be fewer or smaller. */
static bool can_be_cut(const struct workload *w)
{
    const struct job_shape *job = w->group->job;
    return explain_alike(job) && job->max_unavailable == 0 &&
           job->tasks[0].shape->only_devices == NULL && w->count[TASK_PENDING] == job->task_count;
}

enum cut_by { CUT_NOTHING, CUT_TASKS, CUT_DEVICES, CUT_PART };

static enum cut_by cut_by(const struct asking *a)
{
    const struct shape *shape = a->w->group->job->tasks[0].shape;
    if (a->gang.total > 1)
        return CUT_TASKS;
    if (shape->device_count > 1)
        return CUT_DEVICES;
    return shape->device_count == 1 && shape->device_milli > 1 ? CUT_PART : CUT_NOTHING;
}

static struct cut cut_to(const struct asking *a, enum cut_by by, uint32_t size)
{
    const struct job_shape *job = a->w->group->job;
    const struct shape *shape = job->tasks[0].shape;
    struct cut c = {job->min_tasks, shape->device_count, shape->device_milli, shape->cpu,
                    shape->memory};
    if (by == CUT_TASKS)
        c.tasks = size;
    else if (by == CUT_DEVICES)
        c.devices = size;
    else if (by == CUT_PART)
        c.milli = (int32_t)size;
    return c;
}

/* The largest size below ASKED that starts; 0 if there is none. A size that starts was tried; that
 * no larger one does is taken from those that were. FREE of them have room without force, and no
 * more; 0 = unknown. */
static uint32_t largest_cut(struct trial *t, enum cut_by by, uint32_t asked, uint32_t free)
{
    uint32_t starts = 0, beyond = asked, size = free > 0 ? free : asked / 2;
    int64_t takes = 0;
    while (starts + 1 < beyond && (size <= free || free == 0 || t->searches > 0)) {
        struct cut c = cut_to(t->a, by, size);
        if (cut_starts(t, &c)) {
            starts = size;
            takes = t->takes;
        } else {
            beyond = size;
        }
        size = starts + (beyond - starts) / 2;
    }
    t->takes = takes;
    return starts;
}

static void less_devices(struct trial *t)
{
    struct asking *a = t->a;
    const struct shape *shape = a->w->group->job->tasks[0].shape;
    enum cut_by by = cut_by(a);
    uint32_t asked = by == CUT_TASKS     ? a->gang.total
                     : by == CUT_DEVICES ? shape->device_count
                     : by == CUT_PART    ? (uint32_t)shape->device_milli
                                         : 0;
    uint32_t free = by == CUT_TASKS ? a->e->fitting : 0;
    uint32_t size = asked > 1 ? largest_cut(t, by, asked, free) : 0;
    if (size == 0)
        return;
    int64_t each = by == CUT_PART ? 1 : a->e->asked / asked;
    a->e->less = (int64_t)(asked - size) * each;
    a->e->less_tasks = by == CUT_TASKS ? asked - size : 0;
    a->e->takes = t->takes;
}

/* Cores or memory of each task, down to what one could have. */
static void less_host(struct trial *t)
{
    struct asking *a = t->a;
    struct sched_explanation *e = a->e;
    bool gate = a->scope != NULL;
    int64_t could = gate ? e->free / a->gang.total : e->most;
    struct cut c = cut_to(a, CUT_NOTHING, 0);
    int64_t *amount = e->resource == SCHED_CPU_MILLI ? &c.cpu : &c.memory;
    int64_t each = *amount;
    if (could <= 0 || could >= each)
        return;
    *amount = could;
    if (!cut_starts(t, &c))
        return;
    e->less = (each - could) * a->gang.total;
    e->takes = t->takes;
}

void explain_less(struct asking *a)
{
    struct trial t;
    if (a->brief || !can_be_cut(a->w) || !begin(&t, a))
        return;
    if (a->e->resource == SCHED_GPU_MILLI)
        less_devices(&t);
    else
        less_host(&t);
}

bool explain_force(struct asking *a)
{
    struct trial t;
    if (!begin(&t, a) || !would_start(&t, a->w))
        return false;
    a->e->takes = t.takes;
    return true;
}

/* ---- shorter ----------------------------------------------------------------------------- */

static bool starts_within(struct trial *t, int64_t limit_ms)
{
    struct workload *w = t->a->w;
    int64_t limit = w->limit_ms;
    w->limit_ms = limit_ms;
    bool starts = would_start(t, w);
    w->limit_ms = limit;
    return starts;
}

/* The time until windows begin, longest first; each once. */
static uint32_t window_spans(const struct asking *a, int64_t *spans)
{
    uint32_t count = 0;
    for (size_t i = 0; i < a->s->windows.len; i++) {
        int64_t span = a->s->windows.items[i]->window_from_ms - a->s->now_ms;
        uint32_t at = 0;
        while (at < count && spans[at] > span)
            at++;
        if (span <= 0 || (at < count && spans[at] == span) || at == WINDOWS_MAX)
            continue;
        count += count < WINDOWS_MAX;
        for (uint32_t k = count - 1; k > at; k--)
            spans[k] = spans[k - 1];
        spans[at] = span;
    }
    return count;
}

/* Work that differs in its run time alone is tried for what is free only (window_backfill()): the
 * first of its kind alone may evict. */
static bool first_of_kind(const struct workload *w)
{
    return w->own != NULL || w->group->lot->line.head == w;
}

bool explain_shorter(struct asking *a)
{
    bool cheap = !a->brief || a->s->running_count <= RUNNING_SMALL;
    struct trial t = {.a = a, .searches = cheap && first_of_kind(a->w) ? SEARCHES : 0};
    return a->s->windows.len > 0 && starts_within(&t, 1);
}

void explain_longest(struct asking *a, int64_t most_ms)
{
    int64_t spans[WINDOWS_MAX];
    uint32_t count = window_spans(a, spans), i = 0;
    struct trial t;
    if (a->brief || most_ms <= 0 || !begin(&t, a))
        return;
    t.searches = first_of_kind(a->w) ? t.searches : 0;
    int64_t span = most_ms;
    while (span == INT64_MAX || !starts_within(&t, span)) {
        while (i < count && spans[i] >= most_ms)
            i++;
        if (i == count)
            return;
        span = spans[i++];
    }
    a->e->run_ms = span;
}

/* ---- protection -------------------------------------------------------------------------- */

struct lifted {
    struct job_shape *job;
    int64_t min_run_ms;
    uint32_t max_unavailable;
};

struct lift {
    VEC(struct lifted) jobs;
    int64_t min_run_ms; /* of the configuration */
};

/* Takes the minimum run times of all that runs away, and with BUDGETS the budgets. */
static void lift(struct sched *s, struct lift *l, bool budgets)
{
    l->min_run_ms = s->config.min_run_ms;
    s->config.min_run_ms = 0;
    for (size_t i = 0; i < s->node_list.len; i++)
        for (struct task *t = s->node_list.items[i]->tasks; t != NULL; t = t->next) {
            struct job_shape *job = t->workload->group->job;
            if (job->min_run_ms == 0 && (!budgets || job->max_unavailable == 0))
                continue;
            struct lifted was = {job, job->min_run_ms, job->max_unavailable};
            vec_push(&l->jobs, was);
            job->min_run_ms = 0;
            job->max_unavailable = budgets ? 0 : job->max_unavailable;
        }
}

static void lower(struct sched *s, struct lift *l)
{
    s->config.min_run_ms = l->min_run_ms;
    for (size_t i = 0; i < l->jobs.len; i++) {
        l->jobs.items[i].job->min_run_ms = l->jobs.items[i].min_run_ms;
        l->jobs.items[i].job->max_unavailable = l->jobs.items[i].max_unavailable;
    }
    vec_done(&l->jobs);
}

static bool finds_victims(struct asking *a, bool budgets, struct victims *ret_victims)
{
    struct sched *s = a->s;
    struct lift l = {0};
    struct spared kept = spare(s);
    lift(s, &l, budgets);
    bool worth = l.min_run_ms > 0 || l.jobs.len > 0;
    s->look = (struct look){0};
    bool found = worth && evict_find(s, a->w, &a->gang, &a->need, ret_victims);
    lower(s, &l);
    restore(s, &kept);
    return found;
}

/* When the last of them has had its minimum run time; false if all have. */
static bool protected_until(struct asking *a, const struct victims *v)
{
    struct sched_explanation *e = a->e;
    int64_t last_ms = a->s->now_ms;
    for (size_t i = 0; i < v->list.len; i++) {
        const struct workload *victim = v->list.items[i].w;
        int64_t min_run = explain_max(victim->group->job->min_run_ms, a->s->config.min_run_ms);
        int64_t until = qty_add_sat(victim->tasks[v->list.items[i].task].since_ms, min_run);
        if (until <= last_ms)
            continue;
        e->basis = SCHED_START_PROTECTED;
        e->start_ms = last_ms = until;
        e->waits_for = victim->id;
    }
    return last_ms > a->s->now_ms;
}

static bool budget_of(struct asking *a, const struct victims *v)
{
    for (size_t i = 0; i < v->list.len && a->e->waits_for == 0; i++)
        if (v->list.items[i].w->group->job->max_unavailable > 0)
            a->e->waits_for = v->list.items[i].w->id;
    return a->e->waits_for != 0;
}

enum sched_reason explain_protection(struct asking *a)
{
    struct victims victims = {0};
    enum sched_reason reason = SCHED_REASON_NONE;
    if (group_idle(a->s, a->w->group) || (a->brief && a->s->running_count > RUNNING_SMALL))
        return reason;
    if (finds_victims(a, false, &victims) && protected_until(a, &victims))
        reason = SCHED_REASON_PROTECTED;
    else if (finds_victims(a, true, &victims) && budget_of(a, &victims))
        reason = SCHED_REASON_BUDGET;
    victims_done(&victims);
    return reason;
}
