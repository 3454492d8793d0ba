/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/hold.h"

#include <stdlib.h>
#include <string.h>

#include "sched/claim.h"
#include "sched/decide.h"
#include "sched/fit.h"
#include "sched/gang.h"
#include "sched/gate.h"
#include "sched/node.h"
#include "sched/order.h"
#include "sched/place.h"
#include "sched/queue.h"
#include "sched/reserve.h"
#include "sched/task.h"
#include "sched/team.h"
#include "sched/types.h"
#include "sched/window.h"
#include "sched/workload.h"

static struct amounts held_charge(const struct workload *w)
{
    struct amounts sum = {0};
    for (uint32_t t = 0; t < w->group->job->task_count; t++) {
        if (w->tasks[t].phase != TASK_HELD)
            continue;
        struct amounts charge = task_charge(w, t);
        amounts_add(&sum, &charge, 1);
    }
    return sum;
}

/* Its nodes take work, and no limit or guarantee was lowered below what is promised. */
static bool held_admitted(const struct sched *s, const struct workload *w)
{
    for (uint32_t t = 0; t < w->group->job->task_count; t++)
        if (w->tasks[t].phase == TASK_HELD &&
            !(node_takes(w->tasks[t].node) && window_allows(s, w->tasks[t].node, w, s->now_ms)))
            return false;
    struct amounts charge = held_charge(w);
    return gate_still_open(w->group, &charge) && types_held_open(w, VIEW_THEN);
}

static void held_take(struct workload *w, uint32_t count, int sign)
{
    for (uint32_t t = 0; t < w->group->job->task_count && count > 0; t++) {
        const struct task *task = &w->tasks[t];
        if (task->phase != TASK_HELD)
            continue;
        fit_take(task->node, task_shape(w, t), task_devices(task), task->device_count, VIEW_NOW,
                 sign);
        count--;
    }
}

/* Are all promised devices free now, for all tasks together, and the gates open? */
static bool held_can_start(struct workload *w)
{
    struct amounts need = held_charge(w);
    uint32_t taken = 0;
    bool fits = true;
    for (uint32_t t = 0; t < w->group->job->task_count && fits; t++) {
        const struct task *task = &w->tasks[t];
        if (task->phase != TASK_HELD)
            continue;
        fits = fit_devices(task->node, task_shape(w, t), MASK(VIEW_NOW), task_devices(task),
                           task->device_count);
        if (fits) {
            fit_take(task->node, task_shape(w, t), task_devices(task), task->device_count, VIEW_NOW,
                     1);
            taken++;
        }
    }
    held_take(w, taken, -1);
    return fits && gate_open(w->group, &need, MASK(VIEW_NOW), NULL) && types_held_open(w, VIEW_NOW);
}

/* Does the promise still make a gang? One for growth ends with the core it was to join. */
static bool held_completes(const struct workload *w)
{
    return w->count[TASK_RUNNING] - w->lost + w->count[TASK_HELD] >= gang_minimum(w) &&
           gang_groups_met(w);
}

/* ---- a better start ---------------------------------------------------------------------- */

struct held { /* what is promised for one task */
    uint32_t task;
    struct node *node;
    uint16_t *devices;
    uint32_t device_count;
};

struct held_list VEC_BODY(struct held);

static void held_save(const struct workload *w, struct held_list *list)
{
    for (uint32_t t = 0; t < w->group->job->task_count; t++) {
        const struct task *task = &w->tasks[t];
        if (task->phase != TASK_HELD)
            continue;
        struct held *h = vec_add(list);
        h->task = t;
        h->node = task->node;
        h->device_count = task->device_count;
        h->devices = mem_new(task->device_count, sizeof(*h->devices));
        if (task->device_count > 0)
            memcpy(h->devices, task_devices(task), task->device_count * sizeof(*h->devices));
    }
}

/* Takes the promise of W out of VIEW_THEN on trial, the queues as they are. */
static void held_release(struct sched *s, struct workload *w)
{
    for (uint32_t t = 0; t < w->group->job->task_count; t++)
        if (w->tasks[t].phase == TASK_HELD)
            task_release(s, w, t, TASK_PENDING);
}

/* Puts it back, and with it what says that something was given up. */
static void held_restore(struct sched *s, struct workload *w, const struct held_list *list,
                         uint64_t freed_epoch, size_t touched)
{
    for (size_t i = 0; i < list->len; i++) {
        const struct held *h = &list->items[i];
        task_place(s, w, h->task, TASK_HELD, h->node, h->devices, h->device_count, 0);
    }
    while (s->touched.len > touched)
        vec_pop(&s->touched)->touched = false;
    s->freed_epoch = freed_epoch;
}

static void held_list_done(struct held_list *list)
{
    for (size_t i = 0; i < list->len; i++)
        free(list->items[i].devices);
    vec_done(list);
}

/* With the promise out of the way: is there a place now that delays no reservation? */
static bool starts_elsewhere(struct sched *s, struct workload *w)
{
    struct gang gang;
    if (!gang_next(w->group->job, w, &gang))
        return false;
    bool fits = place_within_gates(s, w, &gang, MASK_START);
    if (fits) {
        struct amounts charge = place_charge(s);
        fits = !reserve_binds(s, w, &charge) ||
               place_within_gates(s, w, &gang, MASK_START | MASK(VIEW_PLAN));
    }
    gang_done(&gang);
    return fits;
}

/* Something left a node since it was last asked: gives the promise up for a start at once, if
 * there is one. */
static bool better_start(struct sched *s, struct workload *w)
{
    struct held_list list = {0};
    uint64_t freed_epoch = s->freed_epoch;
    size_t touched = s->touched.len;
    held_save(w, &list);
    held_release(s, w);
    bool better = starts_elsewhere(s, w);
    held_restore(s, w, &list, freed_epoch, touched);
    held_list_done(&list);
    w->held_epoch = s->freed_epoch;
    if (!better)
        return false;
    decide_unhold(s, w, SCHED_CAUSE_OBSOLETE);
    if (starts_elsewhere(s, w)) /* as before */
        decide_start_spots(s, w, SCHED_CAUSE_FITS);
    return true;
}

/* Does W, which is promised a place, come before what LINE stands for? */
static bool comes_before(const struct sched *s, const struct workload *w, const struct line *line)
{
    const struct group *g = w->group;
    if (group_idle(s, line->group) != group_idle(s, g))
        return group_idle(s, line->group);
    struct team *ours, *theirs;
    team_part(g->team, line->group->team, &ours, &theirs);
    if (ours == theirs) {
        bool growth = w->count[TASK_RUNNING] + w->count[TASK_DONE] >= g->job->min_tasks;
        struct line as_line = {.group = w->group,
                               .head = (struct workload *)w,
                               .round = growth ? gang_surplus(w) : 0};
        return line_before(&as_line, line);
    }
    struct amounts charge = held_charge(w);
    struct order_key mine = order_key(ours, &charge, true);
    struct order_key other = order_key(theirs, &line->need, false);
    return order_before(&mine, &other);
}

bool hold_starts_first(struct sched *s, const struct line *line)
{
    bool tried = false;
    for (size_t i = 0; i < s->holding.len; i++) {
        struct workload *w = s->holding.items[i];
        if (w == NULL || w->held_epoch == s->freed_epoch ||
            (line != NULL && !comes_before(s, w, line)))
            continue;
        tried = true;
        if (better_start(s, w)) /* the list is another one now */
            return true;
    }
    return tried;
}

static bool stops_on(const struct node *n)
{
    for (const struct task *t = n->tasks; t != NULL; t = t->next)
        if (t->phase == TASK_LEAVING || t->phase == TASK_ENDING)
            return true;
    return false;
}

/* Is something still stopping that it needs, its own victim or not: on its nodes, or in a team
 * whose gate is closed until then? */
static bool held_waits_for_stops(const struct sched *s, const struct workload *w)
{
    for (uint32_t t = 0; t < w->group->job->task_count; t++)
        if (w->tasks[t].phase == TASK_HELD && stops_on(w->tasks[t].node))
            return true;
    struct amounts need = held_charge(w);
    return s->stopping > 0 &&
           !(gate_open(w->group, &need, MASK(VIEW_NOW), NULL) && types_held_open(w, VIEW_NOW));
}

static void hold_review(struct sched *s, struct workload *w)
{
    if (w->count[TASK_HELD] == 0)
        return;
    if (!held_admitted(s, w) || !held_completes(w))
        decide_unhold(s, w, SCHED_CAUSE_OBSOLETE);
    else if (held_can_start(w))
        decide_start_held(s, w);
    else if (w->timer_ms <= s->now_ms)
        decide_unhold(s, w, SCHED_CAUSE_EXPIRED);
    else if (w->victims == 0 && s->stopping_unknown == 0 && !held_waits_for_stops(s, w))
        workload_hold_ripens(s, w);
}

void hold_step(struct sched *s)
{
    VEC(struct workload *) holders = {0}; /* the list itself changes with each decision */
    for (size_t i = 0; i < s->holding.len; i++)
        if (s->holding.items[i] != NULL)
            vec_push(&holders, s->holding.items[i]);
    for (size_t i = 0; i < holders.len; i++)
        hold_review(s, holders.items[i]);
    vec_done(&holders);
}

void hold_victim_stopped(struct sched *s, uint64_t workload)
{
    struct workload *w = workload == 0 ? NULL : workload_find(s, workload);
    if (w != NULL && w->victims > 0)
        w->victims--;
}

/* The devices are kept; the team does not use them yet, but means to. */
static void claim_wait(const struct claim *c, int sign)
{
    struct amounts charge = claim_charge(c);
    for (struct team *t = c->workload->group->team; t != NULL; t = t->parent) {
        amounts_add(&t->claimed, &charge, sign);
        t->eased++;
    }
    fit_take(c->node, c->shape, c->devices, c->device_count, VIEW_THEN, sign);
}

void hold_claim(struct sched *s, struct workload *w)
{
    const struct placing *p = s->placing;
    for (size_t i = 0; i < p->spots.len; i++) {
        struct claim *c = vec_add(&s->claims);
        *c = claim_of(p, &p->spots.items[i], w);
        claim_wait(c, 1);
    }
    w->claimed_turn = s->turn;
}

void hold_claims_drop(struct sched *s)
{
    for (size_t i = 0; i < s->claims.len; i++) {
        struct claim *c = &s->claims.items[i];
        claim_wait(c, -1);
        node_touch(s, c->node);
        free(c->devices);
    }
    vec_clear(&s->claims);
}
