/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explain: why does it wait, on whom, and until when?
 *
 * The questions are asked in the order of enum sched_reason, the most binding first: could it
 * ever start, do its team's gates admit it, is there room, and if not, what is missing. The
 * state is left as it was. Costs one placement for each question and one look at the running
 * tasks, whatever the length of the queue.
 */
#include <errno.h>
#include <string.h>

#include "sched/fit.h"
#include "sched/gate.h"
#include "sched/node.h"
#include "sched/order.h"
#include "sched/past.h"
#include "sched/place.h"
#include "sched/plan.h"
#include "sched/queue.h"
#include "sched/refuse.h"
#include "sched/share.h"
#include "sched/task.h"
#include "sched/team.h"
#include "sched/types.h"
#include "sched/window.h"
#include "sched/workload.h"

struct asking {
    struct sched *s;
    struct workload *w;
    struct gang gang;
    struct amounts need;
    const struct team *scope; /* whose tasks are in the way: a team's (gate), or all */
    struct sched_explanation *e;
};

static int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

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

/* ---- what is free, and who has the rest -------------------------------------------------- */

static bool node_serves(const struct asking *a, const struct node *n)
{
    const struct job_shape *job = a->w->group->job;
    for (uint32_t t = 0; t < (job->uniform ? 1 : job->task_count); t++)
        if (fit_accepts(n, job_task(job, t)->shape))
            return true;
    return false;
}

/* Free compute of a node that the request could use: slices for MIG, else whole GPUs' parts. */
static int64_t node_free_gpu(const struct asking *a, const struct node *n)
{
    bool mig = job_task(a->w->group->job, 0)->shape->mig_count > 0;
    int64_t sum = 0;
    for (uint32_t d = 0; d < n->device_count; d++) {
        const struct device *dev = &n->devices[d];
        if ((dev->mig != NULL) != mig)
            continue;
        if (mig)
            sum += dev->use[VIEW_NOW].tenants == 0 ? dev->mig_milli : 0;
        else
            sum += WHOLE_MILLI - dev->use[VIEW_NOW].milli;
    }
    return sum;
}

static int64_t room_on(const struct asking *a, const struct node *n)
{
    switch (a->e->resource) {
    case SCHED_GPU_MILLI:
        return node_free_gpu(a, n);
    case SCHED_CPU_MILLI:
        return n->cpu == SCHED_UNLIMITED ? SUM_MAX : n->cpu - n->cpu_used[VIEW_NOW];
    default:
        return n->memory == SCHED_UNLIMITED ? SUM_MAX : n->memory - n->memory_used[VIEW_NOW];
    }
}

/* Sum over usable nodes, and the most that one of them has. */
static int64_t free_sum(const struct asking *a, int64_t *ret_most)
{
    int64_t sum = 0, most = 0;
    for (size_t i = 0; i < a->s->node_list.len; i++) {
        const struct node *n = a->s->node_list.items[i];
        if (!node_takes(n) || !node_serves(a, n))
            continue;
        int64_t part = room_on(a, n);
        sum = sum > SUM_MAX - part ? SUM_MAX : sum + part;
        most = max64(most, part);
    }
    *ret_most = most;
    return sum;
}

static bool in_scope(const struct asking *a, const struct workload *v)
{
    const struct team *t = v->group->team;
    while (t != NULL && t != a->scope)
        t = t->parent;
    return a->scope == NULL || t != NULL;
}

/* Enters V among the largest holders. */
static void holder_enter(struct sched_explanation *e, const struct workload *v)
{
    uint32_t at = 0;
    while (at < e->holder_count &&
           (e->holder_gpu_milli[at] > v->held_milli ||
            (e->holder_gpu_milli[at] == v->held_milli && e->holders[at] < v->id)))
        at++;
    if (at == SCHED_EXPLAIN_HOLDERS)
        return;
    if (e->holder_count < SCHED_EXPLAIN_HOLDERS)
        e->holder_count++;
    for (uint32_t k = e->holder_count - 1; k > at; k--) {
        e->holders[k] = e->holders[k - 1];
        e->holder_gpu_milli[k] = e->holder_gpu_milli[k - 1];
    }
    e->holders[at] = v->id;
    e->holder_gpu_milli[at] = v->held_milli;
}

static void find_holders(const struct asking *a)
{
    for (int step = 0; step < 2; step++) /* sum up, then rank each workload once */
        for (size_t i = 0; i < a->s->node_list.len; i++) {
            const struct node *n = a->s->node_list.items[i];
            if (!node_serves(a, n))
                continue;
            for (const struct task *t = n->tasks; t != NULL; t = t->next) {
                struct workload *v = t->workload;
                if (v == a->w || !in_scope(a, v))
                    continue;
                if (step == 0) {
                    v->held_milli += t->gpu_milli;
                } else if (v->held_milli > 0) {
                    holder_enter(a->e, v);
                    v->held_milli = 0;
                }
            }
        }
}

/* ---- when -------------------------------------------------------------------------------- */

static uint64_t someone_stopping(const struct asking *a)
{
    for (size_t i = 0; i < a->s->node_list.len; i++) {
        const struct node *n = a->s->node_list.items[i];
        for (const struct task *t = n->tasks; t != NULL; t = t->next)
            if ((t->phase == TASK_LEAVING || t->phase == TASK_ENDING) && node_serves(a, n) &&
                in_scope(a, t->workload))
                return t->workload->id;
    }
    return 0;
}

/* From run times that were declared or are expected. For one that is not next of its team the
 * others come first, so that it may move. */
static void estimate(struct asking *a)
{
    struct plan plan;
    if (!plan_earliest(a->s, a->w, &a->gang, &a->need, &plan))
        return;
    if (plan.start_ms <= a->s->now_ms) { /* what is stopping is enough */
        a->e->basis = SCHED_START_VICTIMS;
        a->e->waits_for = someone_stopping(a);
        return;
    }
    a->e->waits_for = plan.waits_for;
    a->e->start_ms = plan.start_ms;
    bool next = plan.declared && a->e->position == 1;
    a->e->basis = next ? SCHED_START_LIMITS : SCHED_START_EXPECTED;
    if (next && plan.waits_for == 0)
        a->e->basis = SCHED_START_WINDOW;
}

/* ---- reasons ----------------------------------------------------------------------------- */

static bool place_with(struct asking *a, unsigned mask)
{
    return place_gang(a->s, a->w->group->job, a->w, &a->gang, mask);
}

static bool explain_refusal(struct asking *a)
{
    struct sched_refusal refusal;
    if (refuse_check(a->s, a->w->group, &refusal) == 0)
        return false;
    a->e->reason = refusal.reason;
    a->e->resource = refusal.resource;
    a->e->asked = (int64_t)refusal.asked;
    a->e->gpu_type = refusal.gpu_type;
    a->e->missing = refusal.asked > refusal.available ? (int64_t)(refusal.asked - refusal.available)
                                                      : 1; /* enough in all, but never together */
    const struct team *t = refusal.team != 0 ? team_find(a->s, refusal.team) : NULL;
    team_figures(a->e, t != NULL ? t : a->w->group->team);
    if (refusal.gpu_type != NULL)
        a->e->limit = a->e->guarantee = (int64_t)refusal.available;
    return true;
}

static bool explain_gate(struct asking *a)
{
    struct gate gate;
    if (gate_open(a->w->group, &a->need, MASK_START, &gate))
        return false;
    struct sched_explanation *e = a->e;
    int r = (int)gate.resource;
    e->reason = gate.guarantee ? SCHED_REASON_TEAM_GUARANTEE : SCHED_REASON_TEAM_LIMIT;
    e->resource = gate.resource;
    e->asked = a->need.v[r];
    a->scope = gate.team;
    team_figures(e, gate.team);
    const struct amounts *now = gate.firm ? gate.team->firm : gate.team->used;
    int64_t used = max64(now[VIEW_NOW].v[r], now[VIEW_THEN].v[r]);
    int64_t bound = gate.guarantee ? e->guarantee : e->limit;
    e->free = max64(0, bound - used);
    e->missing = max64(0, e->asked - e->free);
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
    a->scope = team;
    team_figures(e, team);
    e->reason = guarantee ? SCHED_REASON_TEAM_GUARANTEE : SCHED_REASON_TEAM_LIMIT;
    e->resource = SCHED_GPU_MILLI;
    e->gpu_type = type;
    e->asked = a->need.v[SCHED_GPU_MILLI];
    e->used = guarantee ? q->firm[VIEW_NOW] : q->used[VIEW_NOW];
    e->limit = q->limit;
    e->guarantee = q->guarantee == SCHED_UNLIMITED ? 0 : q->guarantee;
    e->free = max64(0, room);
    e->missing = max64(1, e->asked - e->free);
    return true;
}

/* CPU or host memory beside the GPUs: what would be enough if only that were not asked for. */
static bool explain_host(struct asking *a)
{
    static const struct {
        unsigned flag;
        enum sched_reason reason;
        enum sched_resource resource;
    } hosts[] = {
        {MASK_NO_CPU, SCHED_REASON_CPU, SCHED_CPU_MILLI},
        {MASK_NO_MEMORY, SCHED_REASON_MEMORY, SCHED_MEMORY_BYTES},
    };
    if (a->need.v[SCHED_GPU_MILLI] == 0)
        return false;
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        if (!place_with(a, MASK_START | hosts[i].flag))
            continue;
        a->e->reason = hosts[i].reason;
        a->e->resource = hosts[i].resource;
        return true;
    }
    return false;
}

/* Would it start if there were no maintenance? The node, and the run time that would do. */
static bool explain_window(struct asking *a, unsigned mask)
{
    const struct sched *s = a->s;
    const struct placing *p = s->placing;
    if (s->windows.len == 0 || !place_with(a, mask | MASK_NO_WINDOW))
        return false;
    a->e->reason = SCHED_REASON_MAINTENANCE;
    for (size_t i = 0; i < p->spots.len; i++) {
        const struct node *n = p->spots.items[i].node;
        if (!n->in_window && window_allows(s, n, a->w, s->now_ms))
            continue;
        int64_t run_ms = max64(0, n->window_from_ms - s->now_ms);
        if (a->e->node == 0 || run_ms < a->e->run_ms) {
            a->e->node = n->id;
            a->e->run_ms = run_ms;
        }
    }
    return true;
}

static bool explain_inventory(struct asking *a)
{
    unsigned usable = MASK(VIEW_EMPTY) | MASK_USABLE;
    if (explain_window(a, MASK_START))
        return true;
    if (place_with(a, usable))
        return false;
    if (!explain_window(a, usable))
        a->e->reason = SCHED_REASON_NODES_DOWN;
    return true;
}

static void explain_capacity(struct asking *a)
{
    struct sched_explanation *e = a->e;
    int64_t most;
    if (explain_inventory(a))
        ; /* nodes are missing */
    else if (a->w->group->job->required != NULL && place_with(a, MASK_START | MASK_NO_TOPOLOGY))
        e->reason = SCHED_REASON_TOPOLOGY;
    else if (!explain_host(a))
        e->reason = SCHED_REASON_NO_CAPACITY;
    e->asked = a->need.v[e->resource];
    e->free = free_sum(a, &most);
    e->missing = max64(0, e->asked - e->free);
    if (e->reason != SCHED_REASON_NO_CAPACITY || e->missing > 0)
        return;
    if (place_with(a, MASK(VIEW_NOW))) { /* free, but promised to others */
        e->reason = SCHED_REASON_BEHIND;
        return;
    }
    e->reason = SCHED_REASON_FRAGMENTED;
    e->missing = a->gang.total == 1 ? max64(1, e->asked - most) : 1;
}

/* Whom it would delay, until when that one waits, and the run time that would delay nobody. */
static void explain_reserved(struct asking *a)
{
    const struct reservation *r = &a->s->reserved;
    struct sched_explanation *e = a->e;
    e->reason = SCHED_REASON_RESERVED;
    if (r->last == a->w->id || workload_find(a->s, r->last) == NULL)
        return;
    e->waits_for = r->last;
    e->basis = SCHED_START_RESERVED;
    e->start_ms = r->start_ms;
    e->run_ms = max64(0, r->start_ms - a->s->now_ms);
}

/* It fits, the gates are open: is anybody before it? */
static void explain_ready(struct asking *a)
{
    const struct line *line = a->w->own != NULL ? a->w->own : &a->w->group->lot->line;
    bool idle = group_idle(a->s, a->w->group);
    const struct line *first = order_next(a->s, false);
    if (first == NULL && idle)
        first = order_next(a->s, true);
    a->e->asked = a->need.v[a->e->resource];
    int64_t most;
    a->e->free = free_sum(a, &most);
    if (line->state == LINE_PARKED && line->reason == SCHED_REASON_RESERVED) {
        explain_reserved(a);
        return;
    }
    if (line->state == LINE_PARKED && !a->s->retry) { /* others wait for stops that it needs */
        a->e->reason = SCHED_REASON_BEHIND;
        a->e->waits_for = someone_stopping(a);
        a->e->basis = SCHED_START_VICTIMS;
        return;
    }
    if (line->head == a->w && (first == NULL || first == line)) {
        a->e->reason = SCHED_REASON_NONE;
        a->e->basis = SCHED_START_NOW;
        a->e->start_ms = a->s->now_ms;
        return;
    }
    a->e->reason = SCHED_REASON_BEHIND;
    a->e->basis = SCHED_START_EXPECTED; /* it fits: after those before it, if they leave that */
    a->e->start_ms = a->s->now_ms;
    if (first != NULL && first->head != a->w)
        a->e->waits_for = first->head->id;
}

static uint64_t victim_of(const struct asking *a)
{
    for (size_t i = 0; i < a->s->node_list.len; i++)
        for (const struct task *t = a->s->node_list.items[i]->tasks; t != NULL; t = t->next)
            if (t->behalf == a->w->id && t->phase != TASK_RUNNING)
                return t->workload->id;
    return 0;
}

/* Waits for something of its own: a promise, a back-off, its own tasks that are stopping. */
static bool explain_own(struct asking *a)
{
    struct sched_explanation *e = a->e;
    const struct workload *w = a->w;
    if (w->count[TASK_HELD] > 0) {
        e->reason = SCHED_REASON_HELD;
        e->basis = SCHED_START_VICTIMS;
        e->waits_for = victim_of(a);
        e->start_ms = w->timer_ms != INT64_MAX ? w->timer_ms : 0;
        return true;
    }
    if (w->moving > 0) {
        e->reason = SCHED_REASON_HELD;
        e->basis = SCHED_START_VICTIMS;
        e->waits_for = w->id;
        return true;
    }
    if (w->place == PLACE_BACKOFF) {
        e->reason = SCHED_REASON_BACKOFF;
        e->basis = SCHED_START_BACKOFF;
        e->start_ms = w->timer_ms;
        return true;
    }
    if (w->place == PLACE_NONE) {
        e->reason = SCHED_REASON_NO_CAPACITY;
        e->basis = SCHED_START_VICTIMS;
        e->waits_for = w->id;
        return true;
    }
    return false;
}

static void explain_waiting(struct asking *a)
{
    struct sched_explanation *e = a->e;
    e->position = queue_position(a->s, a->w, &e->pending);
    if (explain_refusal(a))
        return;
    if (explain_gate(a)) {
        find_holders(a);
        estimate(a);
        return;
    }
    team_figures(e, a->w->group->team);
    if (place_with(a, MASK_START)) {
        explain_ready(a);
        return;
    }
    if (!explain_types(a)) {
        explain_capacity(a);
        team_figures(e, a->w->group->team);
    }
    find_holders(a);
    estimate(a);
}

int sched_explain(struct sched *s, uint64_t workload, int64_t now_ms,
                  struct sched_explanation *ret_explanation)
{
    struct workload *w = workload_find(s, workload);
    if (w == NULL || w->removed)
        return -ENOENT;
    if (w->count[TASK_PENDING] + w->count[TASK_HELD] == 0)
        return -EINVAL;
    if (now_ms > s->now_ms)
        s->now_ms = now_ms;
    past_advance(s);
    share_refresh(s);
    struct sched_explanation e = {0};
    struct asking a = {.s = s, .w = w, .e = &e};
    bool startable = gang_next(w->group->job, w, &a.gang);
    a.need = startable ? gang_charge(w->group->job, w, &a.gang) : w->group->job->least;
    e.resource = main_resource(&a.need);
    e.asked = a.need.v[e.resource];
    team_figures(&e, w->group->team);
    if (!explain_own(&a) && startable)
        explain_waiting(&a);
    if (startable)
        gang_done(&a.gang);
    *ret_explanation = e;
    return 0;
}
