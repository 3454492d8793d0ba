/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/history_make.h"

#include <stdlib.h>
#include <string.h>

#include "base/qty.h"
#include "sim/history_internal.h"

#define TEAMS 7
/* Parents of the teams: two departments with two or three teams each, and one that stands alone. */
static const int8_t parents[TEAMS] = {-1, -1, 0, 0, 1, 1, -1};

/* Parts of a thousand of the steps that are no faults. */
enum { SUBMIT = 130, FINISH = 170, CANCEL = 25, PASS = 200, REST = 3 };

static int32_t below(struct history_make *m, int32_t n)
{
    return n > 0 ? (int32_t)rng_below(&m->rng, (uint64_t)n) : 0;
}

static bool one_in(struct history_make *m, int32_t n)
{
    return below(m, n) == 0;
}

/* ---- setup ------------------------------------------------------------------------------ */

static void make_node(struct history_make *m, int32_t node, struct history_step *s)
{
    static const int32_t sizes[] = {1, 2, 4, 4, 8};

    s->kind = HISTORY_NODE;
    s->node.node = node;
    s->node.devices = sizes[below(m, 5)];
    s->node.slices = node > 0 && one_in(m, 6);
    s->node.memory_gib = one_in(m, 4) ? 24 : 80;
    s->node.cpu = 4000 << below(m, 4);
    s->node.type = below(m, m->types);
    m->devices += s->node.devices;
}

/* Guarantees of one type are part of that of all; where a limit is below, the team is refused. */
static void make_team_type(struct history_make *m, struct history_step *s)
{
    bool guaranteed = m->types > 1 && one_in(m, 2), limited = m->types > 1 && one_in(m, 4);

    s->team.type = below(m, m->types);
    s->team.type_guarantee = guaranteed ? below(m, s->team.guarantee / 500 + 1) * 500 : -1;
    s->team.type_limit = limited ? below(m, m->devices + 1) * 1000 : -1;
    if (guaranteed && limited)
        s->team.type_limit += s->team.type_guarantee;
}

static void make_team(struct history_make *m, int32_t team, struct history_step *s)
{
    static const int32_t grain[] = {1000, 1000, 1000, 500};
    int32_t some = m->devices * 1000 / (1 + below(m, 6));

    s->kind = HISTORY_TEAM;
    s->team.team = team;
    s->team.parent = parents[team];
    s->team.guarantee = one_in(m, 3) ? 0 : below(m, some / 500 + 1) * 500;
    s->team.guarantee -= s->team.guarantee % grain[below(m, 4)];
    s->team.limit = one_in(m, 3) ? s->team.guarantee + 500 * below(m, m->devices * 2) : -1;
    s->team.cpu_limit = one_in(m, 8) ? 1000 + 1000 * below(m, 16) : -1;
    s->team.weight = below(m, 4);
    s->team.priority = 100 + below(m, 2);
    make_team_type(m, s);
}

/* Most of the work may be suspended, of one task then. */
static void make_sort(struct history_make *m, struct history_step *s)
{
    static const int32_t sorts[] = {HISTORY_JOB, HISTORY_SUSPENDS, HISTORY_SUSPENDS,
                                    HISTORY_NOTEBOOK};

    s->submit.sort = HISTORY_JOB;
    if (m->plan.suspend == 0)
        return;
    s->submit.sort = sorts[rng_below(&m->sleep, 4)];
    if (s->submit.sort != HISTORY_JOB)
        s->submit.tasks = s->submit.min = 1;
}

static void make_shape(struct history_make *m, struct history_step *s)
{
    static const int32_t graces[] = {0, 100, 1000, 5000};
    int32_t class_ = one_in(m, 2) ? m->favourite : below(m, 4);
    /* Work that is not preemptible has to be small to be accepted. */
    int32_t tasks = one_in(m, 3) ? 1 + below(m, class_ == HISTORY_PRODUCTION ? 2 : 6) : 1;

    s->kind = HISTORY_SUBMIT;
    s->submit.count = one_in(m, 4) ? 1 + below(m, 4) : 1;
    s->submit.team = 2 + below(m, m->leaves);
    s->submit.class_ = class_;
    s->submit.priority = below(m, 3);
    s->submit.tasks = tasks;
    s->submit.min = one_in(m, 2) ? tasks : 1 + below(m, tasks);
    s->submit.ask = below(m, HISTORY_ASKS);
    s->submit.retries = below(m, 3);
    s->submit.grace = graces[below(m, 4)];
    s->submit.limit = one_in(m, 3) ? 1000 + below(m, 8000) : 0;
    s->submit.protect = one_in(m, 8) ? 500 : 0;
    s->submit.accept = HISTORY_ACCEPT_ANY;
    if (m->types > 1 && s->submit.ask != HISTORY_CPU && one_in(m, 2))
        s->submit.accept = one_in(m, 3) ? HISTORY_ACCEPT_BOTH : below(m, m->types);
    make_sort(m, s);
}

static struct history_step *add_setup(struct history_make *m)
{
    struct history_step *s = &m->setup[m->setup_len++];

    if (m->setup_len > HISTORY_SETUP_MAX)
        abort();
    return s;
}

void history_make_init(struct history_make *m, uint64_t seed, int64_t steps,
                       const struct history_plan *plan)
{
    int32_t nodes;

    memset(m, 0, sizeof(*m));
    rng_seed(&m->rng, seed);
    rng_seed(&m->sleep, ~seed);
    m->plan = *plan;
    m->left = steps;
    m->crowd = 4 << below(m, 4);
    m->leaves = 1 + below(m, TEAMS - 2);
    m->favourite = below(m, 4);
    nodes = 1 + below(m, 4);
    m->types = nodes > 1 && one_in(m, 2) ? HISTORY_TYPES : 1;
    for (int32_t i = 0; i < nodes; i++)
        make_node(m, i, add_setup(m));
    for (int32_t i = 0; i < TEAMS; i++) {
        make_team(m, i, add_setup(m));
        add_setup(m)->kind = HISTORY_COMMIT;
    }
    for (int32_t i = 0; i < HISTORY_SHAPES; i++)
        make_shape(m, &m->shapes[i]);
}

/* ---- what people and tasks do ----------------------------------------------------------- */

static void make_submit(struct history_make *m, struct history_step *s)
{
    if (++m->submits % 64 == 0) {
        struct history_step *renewed = &m->shapes[below(m, HISTORY_SHAPES)];
        memset(renewed, 0, sizeof(*renewed));
        make_shape(m, renewed);
    }
    *s = m->shapes[below(m, HISTORY_SHAPES)];
    s->submit.w = m->next_number;
    m->next_number += s->submit.count;
}

static void make_cancel(struct history_make *m, struct history_step *s)
{
    int32_t recent = m->next_number < 64 ? m->next_number : 64;

    s->kind = HISTORY_CANCEL;
    s->cancel.w = m->next_number - 1 - below(m, recent);
    s->cancel.w = s->cancel.w < 0 ? 0 : s->cancel.w;
    s->cancel.grace = one_in(m, 2) ? -1 : 100;
}

static bool make_finish(struct history_make *m, const struct history *h, struct history_step *s,
                        bool lost)
{
    size_t running = virtual_engine_running(h->engine);
    struct virtual_task t;
    int64_t number;

    if (running == 0 ||
        virtual_engine_task(h->engine, (size_t)below(m, (int32_t)running), &t) < 0 ||
        qty_parse_int(t.name + 1, &number, NULL) < 0)
        return false;
    s->kind = HISTORY_FINISH;
    s->finish.w = (int32_t)number;
    s->finish.task = t.task;
    s->finish.how = lost ? HISTORY_LOST : HISTORY_EXIT;
    s->finish.code = !lost && one_in(m, 10) ? 3 : 0;
    return true;
}

static void make_time(struct history_make *m, struct history_step *s)
{
    s->kind = HISTORY_TIME;
    s->time.ms = one_in(m, 16) ? below(m, 6000) : below(m, 300);
}

/* ---- faults ----------------------------------------------------------------------------- */

static void make_crash(struct history_make *m, struct history_step *s)
{
    s->kind = HISTORY_CRASH;
    s->crash.at = below(m, 4);
    s->crash.calls = s->crash.at == HISTORY_DURING ? below(m, 5) : 0;
    s->crash.reboot = below(m, 100) < m->plan.reboot;
}

static void make_node_fault(struct history_make *m, const struct history *h, struct history_step *s)
{
    int32_t node = below(m, 4);

    if (one_in(m, 3)) {
        s->kind = HISTORY_DRAIN;
        s->drain.node = node;
        s->drain.flag = one_in(m, 3);
    } else if (virtual_engine_node_up(h->engine, (uint32_t)node) && one_in(m, 2)) {
        s->kind = HISTORY_LOSE;
        s->lose.node = node;
        s->lose.dies = one_in(m, 2);
    } else {
        s->kind = HISTORY_RETURN;
        s->lose.node = node;
    }
}

static void make_clock(struct history_make *m, struct history_step *s)
{
    static const int32_t jumps[] = {-3600000, 3600000, -1000, 1000};

    if (one_in(m, 3)) {
        s->kind = HISTORY_TIME; /* the machine slept */
        s->time.ms = 60000 + below(m, 3600000);
    } else {
        s->kind = HISTORY_WALL;
        s->time.ms = jumps[below(m, 4)];
    }
}

static void make_quota(struct history_make *m, struct history_step *s)
{
    int32_t team = below(m, TEAMS);

    if (one_in(m, 8)) {
        s->kind = HISTORY_DISSOLVE;
        s->team.team = team;
    } else {
        make_team(m, team, s);
    }
}

static void make_event_fault(struct history_make *m, enum history_kind kind, int32_t ms,
                             struct history_step *s)
{
    s->kind = kind;
    s->time.ms = below(m, ms);
}

/* The first task from a random one on that may be suspended. */
static bool find_suspendable(struct history_make *m, const struct history *h,
                             struct virtual_task *ret)
{
    size_t running = virtual_engine_running(h->engine);
    size_t from = running ? (size_t)rng_below(&m->sleep, running) : 0;

    for (size_t i = 0; i < running; i++)
        if (virtual_engine_task(h->engine, (from + i) % running, ret) == 0 && ret->suspendable)
            return true;
    return false;
}

static bool make_suspend(struct history_make *m, const struct history *h, struct history_step *s)
{
    struct virtual_task t;
    int64_t number;

    if (rng_below(&m->sleep, 40) == 0) {
        s->kind = HISTORY_HINDER;
        s->hinder.what = (int32_t)rng_below(&m->sleep, VIRTUAL_HINDERS);
        return true;
    }
    if (!find_suspendable(m, h, &t) || qty_parse_int(t.name + 1, &number, NULL) < 0)
        return false;
    s->kind = HISTORY_SUSPEND;
    if (t.asleep)
        s->kind = rng_below(&m->sleep, 2) ? HISTORY_RESUME : HISTORY_CALL;
    s->cancel.w = (int32_t)number;
    return true;
}

/* A roll of a thousand that is spent part by part. */
static bool part(int32_t *roll, int32_t rate)
{
    *roll -= rate;
    return *roll < 0;
}

static bool make_fault(struct history_make *m, const struct history *h, struct history_step *s)
{
    const struct history_plan *p = &m->plan;
    int32_t roll = below(m, 1000);

    if (part(&roll, p->crash)) {
        make_crash(m, s);
    } else if (part(&roll, p->disk)) {
        s->kind = HISTORY_DISK;
        s->disk.error = below(m, 3);
    } else if (part(&roll, p->late)) {
        make_event_fault(m, HISTORY_LATE, 5000, s);
    } else if (part(&roll, p->dup)) {
        make_event_fault(m, HISTORY_REPEAT, 2000, s);
    } else if (part(&roll, p->reorder)) {
        s->kind = HISTORY_REORDER;
    } else if (part(&roll, p->nodes)) {
        make_node_fault(m, h, s);
    } else if (part(&roll, p->clock)) {
        make_clock(m, s);
    } else if (part(&roll, p->quota)) {
        make_quota(m, s);
    } else if (part(&roll, p->refuse)) {
        s->kind = HISTORY_REFUSE;
        s->refuse.lasting = one_in(m, 4);
    } else if (part(&roll, p->lost)) {
        return make_finish(m, h, s, true);
    } else if (part(&roll, p->suspend)) {
        return make_suspend(m, h, s);
    } else {
        return false;
    }
    return true;
}

bool history_make_next(void *user, const struct history *h, struct history_step *ret_step)
{
    struct history_make *m = user;
    struct history_step s = {0};
    struct history_counts counts;
    int32_t roll;

    if (m->setup_at < m->setup_len) {
        *ret_step = m->setup[m->setup_at++];
        return true;
    }
    if (m->left-- <= 0)
        return false;
    if (!make_fault(m, h, &s)) {
        memset(&s, 0, sizeof(s));
        history_judge_counts(h->judge, &counts);
        roll = below(m, 1000);
        if (part(&roll, SUBMIT) && (int64_t)counts.live < m->crowd)
            make_submit(m, &s);
        else if (roll < 0 && one_in(m, 2))
            make_cancel(m, &s);
        else if (part(&roll, FINISH) && make_finish(m, h, &s, false))
            ;
        else if (part(&roll, CANCEL))
            make_cancel(m, &s);
        else if (part(&roll, PASS))
            make_time(m, &s);
        else if (part(&roll, REST))
            s.kind = HISTORY_REST;
        else
            s.kind = HISTORY_COMMIT;
    }
    *ret_step = s;
    return true;
}
