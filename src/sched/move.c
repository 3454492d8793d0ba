/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/move.h"

#include <stdlib.h>
#include <string.h>

#include "base/qty.h"
#include "sched/claim.h"
#include "sched/decide.h"
#include "sched/fit.h"
#include "sched/gate.h"
#include "sched/node.h"
#include "sched/place.h"
#include "sched/states.h"
#include "sched/task.h"
#include "sched/team.h"
#include "sched/types.h"
#include "sched/trade.h"
#include "sched/units.h"
#include "sched/window.h"
#include "sched/workload.h"

#define NODES_MAX 64   /* looked at in one turn */
#define LOOKS_MAX 16   /* of these for one request, in a large cluster */
#define NODES_FREE 32  /* so many count as one where all of them are looked at together */

struct claims VEC_BODY(struct claim);

/* ---- claims ------------------------------------------------------------------------------ */

static void claims_clear(struct claim *items, size_t *len)
{
    for (size_t i = 0; i < *len; i++)
        free(items[i].devices);
    *len = 0;
}

void move_plan_done(struct move_plan *p)
{
    claims_clear(p->room.items, &p->room.len);
    claims_clear(p->places.items, &p->places.len);
    vec_done(&p->room);
    vec_done(&p->places);
}

/* A place that is kept beyond the turn. */
static void claim_keep(const struct claim *c, int sign)
{
    struct amounts charge = claim_charge(c);
    for (struct team *t = c->workload->group->team; t != NULL; t = t->parent)
        amounts_add(&t->moving, &charge, sign);
    claim_take(c, sign);
}

/* ---- finding ----------------------------------------------------------------------------- */

struct mover {
    struct unit unit;
    int64_t price_ms;
};

struct search {
    struct sched *s;
    struct workload *w;
    const struct gang *gang;
    const struct amounts *need;
    VEC(struct mover) movers;
    struct move_plan plan; /* in the making */
};

static int64_t whole_price(const struct sched *s, const struct workload *v)
{
    int64_t sum = 0;
    for (uint32_t t = 0; t < v->group->job->task_count; t++)
        if (v->tasks[t].phase == TASK_RUNNING)
            sum = qty_add_sat(sum, decide_price_ms(s, v, t));
    return sum;
}

/* Smaller than the request, so that moving only ever makes room for something larger. */
static bool is_smaller(const struct search *q, const struct workload *v)
{
    int64_t sum = 0;
    for (uint32_t t = 0; t < v->group->job->task_count; t++)
        if (v->tasks[t].phase == TASK_RUNNING)
            sum += v->tasks[t].gpu_milli;
    return sum < q->need->v[SCHED_GPU_MILLI];
}

/* Work that may not burst stays: others may fill its team's guarantee while it is on its way. */
static bool may_move(struct sched *s, const struct search *q, const struct workload *v)
{
    if (v == q->w || !v->group->may_burst || !is_smaller(q, v) || !v->in_running ||
        v->count[TASK_RUNNING] > units_budget(v) ||
        v->count[TASK_LEAVING] + v->count[TASK_ENDING] > 0 || v->lost > 0 || v->short_index > 0)
        return false;
    if (v->placed_epoch == s->outside_epoch) {
        trade_passed(s);
        return false;
    }
    return units_may_leave(s, v, q->w);
}

/* Cheapest first; among equals the youngest. The order is total. */
static bool moves_before(const struct mover *a, const struct mover *b)
{
    if (a->price_ms != b->price_ms)
        return a->price_ms < b->price_ms;
    const struct workload *x = a->unit.w, *y = b->unit.w;
    return x->age != y->age ? x->age > y->age : x->id > y->id;
}

/* Keeps the moves_max that would be taken first: no more of them ever are. */
static void mover_add(struct search *q, struct workload *v)
{
    struct mover m = {.unit = {.w = v, .leaf = v->group->team, .task = -1},
                      .price_ms = whole_price(q->s, v)};
    size_t count = q->movers.len;
    if (count == q->s->config.moves_max && !moves_before(&m, &q->movers.items[count - 1]))
        return;
    for (size_t i = 0; i < count; i++)
        if (q->movers.items[i].unit.w == v)
            return;
    if (count < q->s->config.moves_max)
        vec_push(&q->movers, m);
    size_t i = q->movers.len - 1;
    for (; i > 0 && moves_before(&m, &q->movers.items[i - 1]); i--)
        q->movers.items[i] = q->movers.items[i - 1];
    q->movers.items[i] = m;
}

static void movers_on(struct search *q, const struct node *n)
{
    for (const struct task *t = n->tasks; t != NULL; t = t->next)
        if (t->phase == TASK_RUNNING && may_move(q->s, q, t->workload))
            mover_add(q, t->workload);
}

static bool room_for(struct search *q)
{
    return place_within_gates(q->s, q->w, q->gang, MASK(VIEW_THEN));
}

/* Would there be room if all of them were out? Mostly there is not. */
static bool worth_a_try(struct search *q)
{
    for (size_t i = 0; i < q->movers.len; i++)
        unit_imagine(q->s, &q->movers.items[i].unit, true);
    bool room = place_gang(q->s, q->w->group->job, q->w, q->gang, MASK(VIEW_THEN));
    for (size_t i = q->movers.len; i-- > 0;)
        unit_imagine(q->s, &q->movers.items[i].unit, false);
    return room;
}

/* Takes movers out until there is room, then puts back those that are not needed. */
static bool make_room(struct search *q)
{
    size_t out = 0;
    bool room = false;
    if (!worth_a_try(q))
        return false;
    while (!room && out < q->movers.len && out < q->s->config.moves_max) {
        unit_imagine(q->s, &q->movers.items[out++].unit, true);
        room = room_for(q);
    }
    for (size_t i = out; room && i-- > 0;) {
        unit_imagine(q->s, &q->movers.items[i].unit, false);
        if (!room_for(q))
            unit_imagine(q->s, &q->movers.items[i].unit, true);
    }
    return room && room_for(q);
}

/* Finds a new place for all running tasks of V, which are out. They start there like any other
 * work, so the gates are asked: a team that is above a limit by now gets nothing back. */
static bool place_mover(struct sched *s, const struct workload *v)
{
    const struct job_shape *job = v->group->job;
    struct gang gang = {.total = v->count[TASK_RUNNING], .grouped = job->group_count > 0};
    for (uint32_t g = 0; g < job->group_count; g++)
        vec_push(&gang.quota, 0);
    for (uint32_t t = 0; t < job->task_count && gang.grouped; t++)
        if (v->tasks[t].phase == TASK_RUNNING)
            gang.quota.items[job_task(job, t)->group]++;
    bool placed = place_within_gates(s, v, &gang, MASK(VIEW_THEN) | MASK_MOVING);
    gang_done(&gang);
    return placed;
}

/* Every workload that is out needs a new place, beside the request's. */
static bool place_movers(struct search *q)
{
    const struct placing *p = q->s->placing;
    for (size_t i = 0; i < p->spots.len; i++) {
        struct claim c = claim_of(p, &p->spots.items[i], q->w);
        claim_take(&c, 1);
        vec_push(&q->plan.room, c);
    }
    for (size_t m = 0; m < q->movers.len; m++) {
        const struct mover *mover = &q->movers.items[m];
        struct workload *v = mover->unit.w;
        if (!mover->unit.out)
            continue;
        if (!place_mover(q->s, v))
            return false;
        for (size_t i = 0; i < p->spots.len; i++) {
            struct claim c = claim_of(p, &p->spots.items[i], v);
            claim_take(&c, 1);
            vec_push(&q->plan.places, c);
        }
        q->plan.price_ms = qty_add_sat(q->plan.price_ms, mover->price_ms);
    }
    return true;
}

static void undo(struct search *q)
{
    for (size_t i = 0; i < q->plan.room.len; i++)
        claim_take(&q->plan.room.items[i], -1);
    for (size_t i = 0; i < q->plan.places.len; i++)
        claim_take(&q->plan.places.items[i], -1);
    for (size_t i = 0; i < q->movers.len; i++)
        if (q->movers.items[i].unit.out)
            unit_imagine(q->s, &q->movers.items[i].unit, false);
}

/* Tries the movers of one node (or of all, NULL); keeps the plan if it is the cheapest. */
static void try_node(struct search *q, const struct node *n, bool *found, struct move_plan *best)
{
    vec_clear(&q->movers);
    if (n != NULL)
        movers_on(q, n);
    for (size_t i = 0; n == NULL && i < q->s->node_list.len; i++)
        if (node_takes(q->s->node_list.items[i]))
            movers_on(q, q->s->node_list.items[i]);
    q->plan = (struct move_plan){0};
    bool fits = q->movers.len > 0 && make_room(q) && place_movers(q);
    undo(q);
    if (fits && (!*found || q->plan.price_ms < best->price_ms)) {
        struct move_plan former = *best;
        *best = q->plan;
        q->plan = former;
        *found = true;
    }
    move_plan_done(&q->plan);
}

/* Were the node empty, would the task fit? */
static bool could_hold(const struct sched *s, const struct node *n, const struct shape *shape)
{
    struct fit f;
    return fit_accepts(n, shape) && fit_node(n, shape, MASK(VIEW_EMPTY), s->placing->trial, &f);
}

/* Enough is free in all, for the GPUs at least. */
static bool enough_free(struct sched *s, const struct amounts *need)
{
    int64_t asked = need->v[SCHED_GPU_MILLI];
    if (s->move_room_stale) { /* what is in use elsewhere becomes less from here on, never more */
        s->move_room = 0;
        for (size_t i = 0; i < s->node_list.len; i++) {
            const struct node *n = s->node_list.items[i];
            s->move_room +=
                node_takes(n) ? (int64_t)n->whole_count * WHOLE_MILLI : n->milli_used[VIEW_THEN];
        }
        s->move_room_stale = false;
    }
    if (asked == 0 || asked > s->move_room - s->states->milli_used[VIEW_THEN])
        return false;
    int64_t free = 0;
    for (size_t i = 0; i < s->node_list.len && free < asked; i++) {
        const struct node *n = s->node_list.items[i];
        if (node_takes(n))
            free += (int64_t)n->whole_count * WHOLE_MILLI - n->milli_used[VIEW_THEN];
    }
    return asked <= free;
}

void move_begin(struct sched *s)
{
    s->move_searches -= s->move_searches < NODES_MAX ? s->move_searches : NODES_MAX;
}

bool move_find(struct sched *s, struct workload *w, const struct gang *gang,
               const struct amounts *need, struct move_plan *ret_plan)
{
    struct search q = {.s = s, .w = w, .gang = gang, .need = need};
    const struct job_shape *job = w->group->job;
    bool found = false;
    *ret_plan = (struct move_plan){0};
    if (s->config.moves_max == 0 || gang->round > 0 || !enough_free(s, need) ||
        !gate_open(w->group, need, MASK(VIEW_THEN), NULL))
        return false;
    if (gang->total > 1 && s->move_searches < NODES_MAX) {
        s->move_searches += 1 + (unsigned)(s->node_list.len / NODES_FREE);
        try_node(&q, NULL, &found, ret_plan);
    }
    size_t count = s->node_list.len;
    bool large = count > NODES_FREE;
    size_t from = count > NODES_MAX ? s->move_cursor % count : 0;
    unsigned looked = 0;
    for (size_t i = 0; gang->total == 1 && i < count; i++) {
        const struct node *n = s->node_list.items[(from + i) % count];
        if (n->tasks == NULL || !node_takes(n) ||
            (job->uniform && !could_hold(s, n, job->tasks[0].shape)))
            continue;
        if (s->move_searches++ >= NODES_MAX || (large && looked++ >= LOOKS_MAX))
            break;
        s->move_cursor = from + i + 1;
        try_node(&q, n, &found, ret_plan);
    }
    vec_done(&q.movers);
    return found;
}

/* ---- carrying out ------------------------------------------------------------------------ */

/* Loads the room into the scratch of place.h, as if it had just been found. */
static void load_room(struct sched *s, const struct move_plan *plan)
{
    struct placing *p = s->placing;
    vec_clear(&p->spots);
    vec_clear(&p->devices);
    for (size_t i = 0; i < plan->room.len; i++) {
        const struct claim *c = &plan->room.items[i];
        struct spot spot = {.task = c->task,
                            .shape = c->shape,
                            .node = c->node,
                            .first = (uint32_t)p->devices.len,
                            .count = c->device_count};
        for (uint32_t k = 0; k < c->device_count; k++)
            vec_push(&p->devices, c->devices[k]);
        vec_push(&p->spots, spot);
    }
}

void move_carry_out(struct sched *s, struct workload *w, struct move_plan *plan)
{
    struct eviction why = {.cause = SCHED_CAUSE_CONSOLIDATE, .behalf = w->id};
    w->victims = 0;
    for (size_t i = 0; i < plan->places.len; i++) {
        struct claim *c = &plan->places.items[i];
        c->workload->moving++;
        c->workload->placed_epoch = s->outside_epoch;
        workload_timer_set(s, c->workload, INT64_MAX); /* a back-off of old is over */
        decide_evict(s, c->workload, c->task, &why);
        claim_keep(c, 1);
        vec_push(&s->moving, *c);
        c->devices = NULL; /* sched.moving has them now */
        w->victims++;
        if (i + 1 == plan->places.len || plan->places.items[i + 1].workload != c->workload)
            workload_requeue(s, c->workload);
    }
    load_room(s, plan);
    decide_hold_spots(s, w, SCHED_CAUSE_CONSOLIDATE);
}

/* ---- arriving ---------------------------------------------------------------------------- */

void move_drop(struct sched *s, struct workload *w)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->moving.len; i++) {
        struct claim *c = &s->moving.items[i];
        if (c->workload != w) {
            s->moving.items[kept++] = *c;
            continue;
        }
        claim_keep(c, -1);
        node_touch(s, c->node);
        free(c->devices);
    }
    s->moving.len = kept;
    w->moving = 0;
    s->retry = true;
    workload_timer_set(s, w, INT64_MAX);
    workload_requeue(s, w);
}

/* Loads the new places of W, as if they had just been found. */
static void load_places(struct sched *s, const struct workload *w)
{
    struct move_plan mine = {0};
    for (size_t i = 0; i < s->moving.len; i++)
        if (s->moving.items[i].workload == w)
            vec_push(&mine.room, s->moving.items[i]); /* devices stay with sched.moving */
    load_room(s, &mine);
    vec_done(&mine.room);
}

static void places_keep(struct sched *s, const struct workload *w, int sign)
{
    for (size_t i = 0; i < s->moving.len; i++)
        if (s->moving.items[i].workload == w)
            claim_keep(&s->moving.items[i], sign);
}

/* Would all gates open for it in VIEW_THEN, where it is counted already? They close when a quota
 * is lowered. */
static bool still_admitted(struct sched *s, const struct workload *w)
{
    load_places(s, w);
    struct amounts charge = place_charge(s);
    places_keep(s, w, -1);
    bool open = gate_open(w->group, &charge, MASK(VIEW_THEN), NULL) &&
                place_types_open(s, w->group, MASK(VIEW_THEN));
    places_keep(s, w, 1);
    return open;
}

/* All that moves of W has stopped, is wanted again and admitted, and its new places take work. */
static bool places_good(struct sched *s, const struct workload *w, bool *ret_stopped)
{
    *ret_stopped = true;
    for (size_t i = 0; i < s->moving.len; i++) {
        const struct claim *c = &s->moving.items[i];
        if (c->workload != w)
            continue;
        enum task_phase phase = task_phase(w, c->task);
        if (!node_takes(c->node) || !window_allows(s, c->node, w, s->now_ms) ||
            (phase != TASK_LEAVING && phase != TASK_PENDING))
            return false;
        *ret_stopped = *ret_stopped && phase == TASK_PENDING;
    }
    return still_admitted(s, w);
}

/* Starts W on its new places if all of them are free; its claims are out of the way then. */
static bool arrives(struct sched *s, struct workload *w)
{
    struct placing *p = s->placing;
    load_places(s, w);
    struct amounts charge = place_charge(s);
    bool fits = gate_open(w->group, &charge, MASK(VIEW_NOW), NULL) &&
                place_types_open(s, w->group, MASK(VIEW_NOW));
    size_t taken = 0;
    for (; fits && taken < p->spots.len; taken++) {
        const struct spot *spot = &p->spots.items[taken];
        fits = fit_devices(spot->node, spot->shape, MASK(VIEW_NOW), spot_devices(p, spot),
                           spot->count);
        if (fits)
            fit_take(spot->node, spot->shape, spot_devices(p, spot), spot->count, VIEW_NOW, 1);
        else
            break;
    }
    while (taken-- > 0) {
        const struct spot *spot = &p->spots.items[taken];
        fit_take(spot->node, spot->shape, spot_devices(p, spot), spot->count, VIEW_NOW, -1);
    }
    if (fits) {
        move_drop(s, w);
        decide_start_spots(s, w, SCHED_CAUSE_PROMISED);
    }
    return fits;
}

void move_step(struct sched *s)
{
    VEC(struct workload *) movers = {0};
    for (size_t i = 0; i < s->moving.len; i++)
        if (movers.len == 0 || movers.items[movers.len - 1] != s->moving.items[i].workload)
            vec_push(&movers, s->moving.items[i].workload);
    for (size_t i = 0; i < movers.len; i++) {
        struct workload *w = movers.items[i];
        bool stopped;
        if (!places_good(s, w, &stopped) || w->timer_ms <= s->now_ms)
            move_drop(s, w);
        else if (stopped && !arrives(s, w) && w->timer_ms == INT64_MAX && s->stopping == 0)
            workload_timer_set(s, w, qty_add_sat(s->now_ms, s->config.hold_ms));
    }
    vec_done(&movers);
}
