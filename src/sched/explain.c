/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why does it wait, on whom, and until when? See explain.h.
 *
 * The questions are asked in the order of enum sched_reason, the most binding first: could it
 * ever start, do its team's gates admit it, is there room, and if not, what is missing. Costs a
 * placement for each question, a bounded number of trials, and one look at the running tasks,
 * whatever the length of the queue.
 */
#include "sched/explain.h"

#include <errno.h>

#include "sched/gate.h"
#include "sched/node.h"
#include "sched/order.h"
#include "sched/past.h"
#include "sched/place.h"
#include "sched/plan.h"
#include "sched/queue.h"
#include "sched/refuse.h"
#include "sched/share.h"
#include "sched/team.h"
#include "sched/types.h"
#include "sched/workload.h"

static void team_figures(struct sched_explanation *e, const struct team *t)
{
    int r = (int)e->resource;
    e->team = t->id;
    e->used = t->used[VIEW_NOW].v[r];
    e->guarantee = t->guarantee[r];
    e->limit = t->limit[r];
    e->share = t->share.v[r];
}

/* The resource that the request is about: GPUs if it asks for any. */
static enum sched_resource main_resource(const struct amounts *need)
{
    for (int r = 0; r < SCHED_RESOURCES; r++)
        if (need->v[r] > 0)
            return (enum sched_resource)r;
    return SCHED_GPU_MILLI;
}

/* The binding resource, and what is asked of it. */
static void ask_for(struct asking *a, enum sched_resource r)
{
    const struct shape *shape = job_task(a->w->group->job, 0)->shape;
    const int64_t each[] = {shape->charge.v[SCHED_GPU_MILLI], shape->cpu, shape->memory};
    a->e->resource = r;
    a->e->asked = a->need.v[r];
    a->e->each = each[r];
}

/* ---- when -------------------------------------------------------------------------------- */

static bool in_scope(const struct asking *a, const struct team *t)
{
    while (t != NULL && t != a->scope)
        t = t->parent;
    return a->scope == NULL || t != NULL;
}

static uint64_t someone_stopping(const struct asking *a)
{
    for (size_t i = 0; i < a->s->node_list.len; i++) {
        const struct node *n = a->s->node_list.items[i];
        for (const struct task *t = n->tasks; t != NULL; t = t->next)
            if ((t->phase == TASK_LEAVING || t->phase == TASK_ENDING) &&
                (a->scope != NULL || explain_serves(a, n)) && in_scope(a, t->workload->group->team))
                return t->workload->id;
    }
    return 0;
}

/* From run times that were declared or are expected. Whoever has the reservation is not delayed;
 * of the others nobody knows who comes first. */
static void estimate(struct asking *a)
{
    struct sched_explanation *e = a->e;
    struct plan plan;
    if (e->basis != SCHED_START_UNKNOWN)
        return;
    if (!plan_earliest(a->s, a->w, &a->gang, &a->need, &plan))
        return;
    if (plan.start_ms <= a->s->now_ms) { /* what is stopping is enough */
        e->waits_for = someone_stopping(a);
        e->basis = e->waits_for != 0 ? SCHED_START_VICTIMS : SCHED_START_UNKNOWN;
        return;
    }
    e->waits_for = plan.waits_for;
    e->start_ms = plan.start_ms;
    e->basis = plan.declared ? SCHED_START_LIMITS : SCHED_START_EXPECTED;
    if (plan.waits_for == 0)
        e->basis = SCHED_START_WINDOW;
    uint64_t reserved = a->s->reserved.last;
    if (reserved == a->w->id)
        return;
    if (reserved != 0 && explain_delays_reserved(a, plan.start_ms)) {
        e->waits_for = reserved;
        e->basis = SCHED_START_RESERVED;
        e->start_ms = explain_max(plan.start_ms, a->s->reserved.start_ms);
    } else if (e->basis == SCHED_START_LIMITS && (reserved != 0 || e->position > 1)) {
        e->basis = SCHED_START_BEHIND;
    }
}

/* It starts when a window ends. Is that what it waits for: would somebody's end be enough, if its
 * run were short enough to fit in before? */
static bool waits_for_window(struct asking *a)
{
    struct sched_explanation *e = a->e;
    struct workload *w = a->w;
    int64_t limit_ms = w->limit_ms;
    struct plan plan;
    if (e->basis != SCHED_START_WINDOW)
        return false;
    w->limit_ms = 1;
    bool sooner = plan_earliest(a->s, w, &a->gang, &a->need, &plan) && plan.start_ms < e->start_ms;
    w->limit_ms = limit_ms;
    if (sooner && e->reason != SCHED_REASON_MAINTENANCE)
        e->waits_for = plan.waits_for;
    return sooner;
}

/* ---- refused today ----------------------------------------------------------------------- */

static bool place_with(struct asking *a, unsigned mask)
{
    return place_gang(a->s, a->w->group->job, a->w, &a->gang, mask);
}

static bool explain_refusal(struct asking *a)
{
    struct sched_explanation *e = a->e;
    struct sched_refusal refusal;
    if (refuse_check(a->s, a->w->group, &refusal) == 0)
        return false;
    e->reason = refusal.reason;
    e->resource = refusal.resource;
    e->asked = (int64_t)refusal.asked;
    e->gpu_type = refusal.gpu_type;
    e->most = (int64_t)refusal.available;
    e->missing = refusal.asked > refusal.available ? (int64_t)(refusal.asked - refusal.available)
                                                   : 1; /* enough in all, but never together */
    const struct team *t = refusal.team != 0 ? team_find(a->s, refusal.team) : NULL;
    team_figures(e, t != NULL ? t : a->w->group->team);
    if (refusal.gpu_type != NULL)
        e->limit = e->guarantee = (int64_t)refusal.available;
    return true;
}

/* ---- gates ------------------------------------------------------------------------------- */

static void gate_figures(struct asking *a, struct team *t, bool guarantee, bool firm, int64_t room)
{
    struct sched_explanation *e = a->e;
    a->scope = t;
    e->reason = guarantee ? SCHED_REASON_TEAM_GUARANTEE : SCHED_REASON_TEAM_LIMIT;
    e->firm = firm;
    e->free = e->most = explain_max(0, room);
    e->missing = explain_max(1, e->asked - e->free);
}

static bool explain_gate(struct asking *a, const struct amounts *need)
{
    struct gate gate;
    if (gate_open(a->w->group, need, MASK_START, &gate))
        return false;
    struct sched_explanation *e = a->e;
    int r = (int)gate.resource;
    ask_for(a, gate.resource);
    e->asked = need->v[r];
    team_figures(e, gate.team);
    const struct amounts *now = gate.firm ? gate.team->firm : gate.team->used;
    int64_t used = explain_max(now[VIEW_NOW].v[r], now[VIEW_THEN].v[r]);
    e->used = now[VIEW_NOW].v[r];
    gate_figures(a, gate.team, gate.guarantee, gate.firm,
                 (gate.guarantee ? e->guarantee : e->limit) - used);
    return true;
}

/* Would it start if only its team could use more of a GPU type? The bound of the first acceptable
 * type is named: that is the one it would rather have. */
static bool explain_types(struct asking *a)
{
    struct sched_explanation *e = a->e;
    const struct group *g = a->w->group;
    if (!g->team->typed_path || !place_with(a, MASK_START | MASK_NO_TYPES))
        return false;
    const char *type = a->s->placing->spots.items[0].node->gpu_type;
    int64_t room;
    bool guarantee;
    struct team *team = types_tightest(g, type, &room, &guarantee);
    if (team == NULL)
        return false;
    const struct type_quota *q = types_find(team, type);
    ask_for(a, SCHED_GPU_MILLI);
    team_figures(e, team);
    e->gpu_type = type;
    e->used = guarantee ? q->firm[VIEW_NOW] : q->used[VIEW_NOW];
    e->limit = q->limit;
    e->guarantee = q->guarantee == SCHED_UNLIMITED ? 0 : q->guarantee;
    gate_figures(a, team, guarantee, guarantee && !g->preemptible, room);
    return true;
}

/* What holds the bound, when it comes free, how much less would do. */
static void explain_bound(struct asking *a)
{
    if (a->brief)
        return;
    explain_holders(a);
    explain_less(a);
    if (a->e->less_tasks > 0)
        a->e->fitting = a->gang.total - a->e->less_tasks;
    explain_protection(a);
    estimate(a);
}

/* ---- room -------------------------------------------------------------------------------- */

/* CPU or host memory: what would be enough if only that were not asked for. */
static bool explain_host(struct asking *a)
{
    static const struct {
        unsigned flags;
        enum sched_reason reason;
        enum sched_resource resource;
    } hosts[] = {
        {MASK_NO_CPU, SCHED_REASON_CPU, SCHED_CPU_MILLI},
        {MASK_NO_MEMORY, SCHED_REASON_MEMORY, SCHED_MEMORY_BYTES},
        {MASK_NO_CPU | MASK_NO_MEMORY, SCHED_REASON_CPU, SCHED_CPU_MILLI},
    };
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        if (a->need.v[hosts[i].resource] == 0 || !place_with(a, MASK_START | hosts[i].flags))
            continue;
        a->e->reason = hosts[i].reason;
        ask_for(a, hosts[i].resource);
        return true;
    }
    return false;
}

/* Maintenance is in the way if a shorter run would start, or if no window would. */
static bool explain_window(struct asking *a)
{
    if (a->s->windows.len == 0 ||
        (!explain_shorter(a) && !place_with(a, MASK_START | MASK_NO_WINDOW)))
        return false;
    a->e->reason = SCHED_REASON_MAINTENANCE;
    explain_longest(a, INT64_MAX);
    return true;
}

static bool explain_nodes(struct asking *a)
{
    if (place_with(a, MASK(VIEW_EMPTY) | MASK_USABLE))
        return false;
    bool window =
        a->s->windows.len > 0 && place_with(a, MASK(VIEW_EMPTY) | MASK_USABLE | MASK_NO_WINDOW);
    a->e->reason = window ? SCHED_REASON_MAINTENANCE : SCHED_REASON_NODES_DOWN;
    return true;
}

/* Who is promised something where it could run. */
static uint64_t someone_promised(const struct asking *a)
{
    for (size_t i = 0; i < a->s->node_list.len; i++) {
        const struct node *n = a->s->node_list.items[i];
        for (const struct task *t = n->tasks; t != NULL; t = t->next)
            if (t->phase == TASK_HELD && explain_serves(a, n))
                return t->workload->id;
    }
    return 0;
}

/* Do guarantees add up to more than there is, at its team's level or above? */
static bool overcommitted(struct asking *a)
{
    struct sched_explanation *e = a->e;
    int r = (int)e->resource;
    const struct team *own = a->w->group->team;
    if (group_idle(a->s, a->w->group) || own->guarantee[r] == 0 ||
        !gate_within_guarantee(own, &a->need))
        return false;
    for (const struct team *t = own->parent; t != NULL; t = t->parent) {
        bool whole = t->parent == NULL || t->guarantee[r] == SCHED_UNLIMITED;
        int64_t has = whole ? a->s->capacity.v[r] : t->guarantee[r], sum = 0;
        for (size_t i = 0; i < t->children.len; i++) {
            int64_t part = t->children.items[i]->guarantee[r];
            sum += part < SUM_MAX / 1024 ? part : a->s->capacity.v[r];
        }
        if (sum <= has)
            continue;
        e->guarantees = sum;
        e->capacity = has;
        e->over_team = t->id;
        return true;
    }
    return false;
}

/* Everything that fits is in use: by whom it may not evict, or not yet. */
static void explain_taken(struct asking *a)
{
    struct sched_explanation *e = a->e;
    enum sched_reason kept = explain_protection(a);
    if (kept != SCHED_REASON_NONE)
        e->reason = kept;
    else if (e->missing > 0 && overcommitted(a))
        e->reason = SCHED_REASON_OVERCOMMITTED;
    else if (e->missing > 0)
        e->reason = SCHED_REASON_NO_CAPACITY;
    else
        e->reason = SCHED_REASON_FRAGMENTED;
}

static bool has_level(const struct job_shape *job)
{
    bool level = job->required != NULL;
    for (uint32_t g = 0; g < job->group_count; g++)
        level = level || job->groups[g].required != NULL;
    return level;
}

static void explain_capacity(struct asking *a)
{
    struct sched_explanation *e = a->e;
    if (explain_window(a) || explain_nodes(a))
        ; /* nodes are missing */
    else if (has_level(a->w->group->job) && place_with(a, MASK_START | MASK_NO_TOPOLOGY))
        e->reason = SCHED_REASON_TOPOLOGY;
    else if (!explain_host(a))
        e->reason = SCHED_REASON_NO_CAPACITY;
    explain_free(a);
    e->missing = explain_max(0, e->asked - e->free);
    if (e->reason != SCHED_REASON_NO_CAPACITY)
        return;
    if (place_with(a, MASK(VIEW_NOW))) {
        e->reason = SCHED_REASON_PROMISED;
        e->waits_for = someone_promised(a);
        return;
    }
    if (a->s->stopping > 0 && place_within_gates(a->s, a->w, &a->gang, MASK(VIEW_THEN))) {
        e->reason = SCHED_REASON_STOPPING;
        e->basis = SCHED_START_VICTIMS;
        e->waits_for = someone_stopping(a);
        return;
    }
    explain_taken(a);
    if (e->reason == SCHED_REASON_FRAGMENTED)
        e->missing = a->gang.total == 1 ? explain_max(1, e->asked - e->most) : 1;
}

/* The end of a window may be what it waits for: the one thing that an estimate shows about the
 * reason. */
static void explain_rest_briefly(struct asking *a)
{
    struct sched_explanation *e = a->e;
    if (a->s->windows.len == 0 || e->reason == SCHED_REASON_NODES_DOWN ||
        e->reason == SCHED_REASON_STOPPING)
        return;
    estimate(a);
    if (waits_for_window(a))
        e->reason = SCHED_REASON_MAINTENANCE;
}

/* What nobody would start earlier by making room, or what many are in the way of. */
static void explain_rest(struct asking *a)
{
    struct sched_explanation *e = a->e;
    bool away = e->reason == SCHED_REASON_NODES_DOWN;
    if (a->brief) {
        explain_rest_briefly(a);
        return;
    }
    if (e->reason == SCHED_REASON_STOPPING) {
        explain_leavers(a);
        return;
    }
    if (!away)
        explain_fitting(a);
    if (!away && e->reason != SCHED_REASON_MAINTENANCE && e->reason != SCHED_REASON_PROMISED)
        explain_less(a);
    if (!away && e->reason != SCHED_REASON_PROMISED)
        estimate(a);
    if (waits_for_window(a))
        e->reason = SCHED_REASON_MAINTENANCE;
    if (away)
        explain_away(a);
    else if (e->reason == SCHED_REASON_MAINTENANCE)
        explain_windows(a);
    else if (e->reason == SCHED_REASON_TOPOLOGY)
        explain_domain(a);
    else if (e->reason != SCHED_REASON_PROMISED)
        explain_holders(a);
}

/* ---- ready ------------------------------------------------------------------------------- */

/* Whom it would delay, until when that one waits, and the run time that would delay nobody. */
static void explain_reserved(struct asking *a)
{
    const struct reservation *r = &a->s->reserved;
    struct sched_explanation *e = a->e;
    e->reason = SCHED_REASON_RESERVED;
    if (a->brief)
        return;
    if (r->last == a->w->id || workload_find(a->s, r->last) == NULL) {
        estimate(a);
        return;
    }
    e->waits_for = r->last;
    e->basis = SCHED_START_RESERVED;
    e->start_ms = r->start_ms;
    explain_longest(a, r->start_ms - a->s->now_ms);
}

/* It fits, the gates are open: is anybody before it? */
static void explain_ready(struct asking *a)
{
    struct sched_explanation *e = a->e;
    const struct line *line = a->w->own != NULL ? a->w->own : &a->w->group->lot->line;
    bool idle = group_idle(a->s, a->w->group);
    const struct line *first = order_next(a->s, false);
    if (first == NULL && idle)
        first = order_next(a->s, true);
    explain_free(a);
    if (line->state == LINE_PARKED && line->reason == SCHED_REASON_RESERVED) {
        explain_reserved(a);
        return;
    }
    if (line->state == LINE_PARKED && !a->s->retry) { /* others wait for stops that it needs */
        e->reason = SCHED_REASON_BEHIND;
        e->waits_for = someone_stopping(a);
        e->basis = SCHED_START_VICTIMS;
        return;
    }
    if (line->head == a->w && (first == NULL || first == line)) {
        e->reason = SCHED_REASON_NONE;
        e->basis = SCHED_START_NOW;
        e->start_ms = a->s->now_ms;
        return;
    }
    e->reason = SCHED_REASON_BEHIND;
    e->basis = SCHED_START_EXPECTED; /* it fits: after those before it, if they leave that */
    e->start_ms = a->s->now_ms;
    if (first != NULL && first->head != a->w)
        e->waits_for = first->head->id;
}

/* Waits for something of its own: a promise, a back-off, its own tasks that are stopping. */
static bool explain_own(struct asking *a, bool startable)
{
    struct sched_explanation *e = a->e;
    const struct workload *w = a->w;
    if (w->count[TASK_HELD] > 0) {
        e->reason = SCHED_REASON_HELD;
        e->basis = SCHED_START_VICTIMS;
        explain_leavers(a);
        e->waits_for = e->holder_count > 0 ? e->holders[0] : 0;
        return true;
    }
    if (w->place == PLACE_BACKOFF) {
        e->reason = SCHED_REASON_BACKOFF;
        e->basis = SCHED_START_BACKOFF;
        e->start_ms = w->timer_ms;
        return true;
    }
    if (w->moving == 0 && w->place != PLACE_NONE && startable)
        return false;
    e->reason = SCHED_REASON_STOPPING;
    e->basis = SCHED_START_VICTIMS;
    e->waits_for = w->id;
    return true;
}

static void explain_waiting(struct asking *a)
{
    struct sched_explanation *e = a->e;
    e->position = queue_position(a->s, a->w, &e->pending);
    if (explain_refusal(a))
        return;
    if (explain_gate(a, &a->need)) {
        explain_bound(a);
        return;
    }
    team_figures(e, a->w->group->team);
    if (place_with(a, MASK_START)) {
        struct amounts charge = place_charge(a->s); /* other devices than thought may cost more */
        if (explain_gate(a, &charge))
            explain_bound(a);
        else
            explain_ready(a);
    } else if (explain_types(a)) {
        explain_bound(a);
    } else if (a->fresh && explain_force(a)) {
        e->reason = SCHED_REASON_NONE;
        e->basis = SCHED_START_VICTIMS;
    } else {
        explain_capacity(a);
        explain_rest(a);
        team_figures(e, a->w->group->team);
    }
}

void explain_catch_up(struct sched *s, int64_t now_ms)
{
    if (now_ms > s->now_ms)
        s->now_ms = now_ms;
    past_advance(s);
    share_refresh(s);
}

enum asked_how { ASKED_IN_FULL, ASKED_BRIEFLY, ASKED_FRESH };

static int explain(struct sched *s, uint64_t workload, int64_t now_ms, enum asked_how how,
                   struct sched_explanation *e)
{
    struct workload *w = workload_find(s, workload);
    if (w == NULL || w->removed)
        return -ENOENT;
    if (w->count[TASK_PENDING] + w->count[TASK_HELD] + w->count[TASK_LEAVING] == 0)
        return -EINVAL;
    explain_catch_up(s, now_ms);
    struct asking a = {
        .s = s, .w = w, .brief = how == ASKED_BRIEFLY, .fresh = how == ASKED_FRESH, .e = e};
    bool startable = gang_next(w->group->job, w, &a.gang);
    a.need = startable ? gang_charge(w->group->job, w, &a.gang) : w->group->job->least;
    ask_for(&a, main_resource(&a.need));
    e->gang = startable ? a.gang.total : 0;
    team_figures(e, w->group->team);
    if (!explain_own(&a, startable))
        explain_waiting(&a);
    if (startable)
        gang_done(&a.gang);
    return 0;
}

int sched_explain(struct sched *s, uint64_t workload, int64_t now_ms,
                  struct sched_explanation *ret_explanation)
{
    struct sched_explanation e = {0};
    int r = explain(s, workload, now_ms, ASKED_IN_FULL, &e);
    if (r == 0)
        *ret_explanation = e;
    return r;
}

int explain_fresh(struct sched *s, uint64_t workload, int64_t now_ms,
                  struct sched_explanation *ret_explanation)
{
    *ret_explanation = (struct sched_explanation){0};
    return explain(s, workload, now_ms, ASKED_FRESH, ret_explanation);
}

int sched_explain_brief(struct sched *s, uint64_t workload, int64_t now_ms,
                        enum sched_reason *ret_reason, uint32_t *ret_position)
{
    struct sched_explanation e = {0};
    int r = explain(s, workload, now_ms, ASKED_BRIEFLY, &e);
    if (r < 0)
        return r;
    *ret_reason = e.reason;
    *ret_position = e.position;
    return 0;
}
