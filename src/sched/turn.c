/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A turn: promises first, then work in order, then idle-only work, then stale gangs.
 *
 * Each line is tried at its place in the order: start on what is free, wait for what is
 * stopping anyway, or evict. One that cannot is parked until something happens that could help
 * it; so a turn costs what the event can affect. After each placement the order is made anew.
 * What has started may be taken back in the same turn for one who would evict it in the next.
 */
#include "sched/decide.h"
#include "sched/evict.h"
#include "sched/gang.h"
#include "sched/gate.h"
#include "sched/hold.h"
#include "sched/mix.h"
#include "sched/move.h"
#include "sched/order.h"
#include "sched/parked.h"
#include "sched/past.h"
#include "sched/place.h"
#include "sched/queue.h"
#include "sched/reserve.h"
#include "sched/share.h"
#include "sched/trade.h"
#include "sched/wake.h"
#include "sched/window.h"
#include "sched/workload.h"

#define PASSES_MAX 64
#define CLAIMS_MAX 256 /* of one kind, among which one is looked for that waits for no stop */

/* NONE with the spots, or what is in the way. */
static enum sched_reason starts_now(struct sched *s, struct workload *w, const struct gang *gang,
                                    const struct amounts *need)
{
    struct job_shape *job = w->group->job;
    /* before a window it also matters how long W runs: one's failure is not that of its kind */
    bool windows = s->windows.len > 0, fresh = w->place == PLACE_GROUP && !windows;
    if (!gate_open(w->group, need, MASK_START, NULL))
        return SCHED_REASON_TEAM_LIMIT;
    if (fresh && job->no_place_epoch == s->freed_epoch)
        return SCHED_REASON_NO_CAPACITY;
    if (!place_gang(s, job, w, gang, MASK_START)) {
        if (fresh && s->placing->rooms.len == 0) /* else it may be for its team alone */
            job->no_place_epoch = s->freed_epoch;
        return windows && place_gang(s, job, w, gang, MASK_START | MASK_NO_WINDOW)
                   ? SCHED_REASON_MAINTENANCE
                   : SCHED_REASON_NO_CAPACITY;
    }
    if (!place_admitted(s, w, gang, MASK_START))
        return SCHED_REASON_TEAM_LIMIT;
    if (!reserve_binds(s, w, need) || place_within_gates(s, w, gang, MASK_START | MASK(VIEW_PLAN)))
        return SCHED_REASON_NONE;
    return SCHED_REASON_RESERVED;
}

/* Would it start if nothing more happened than that the stopping tasks stop? Then it waits, and
 * what it waits for is not given to others of this turn. */
static bool waits_for_stops(struct sched *s, struct workload *w, const struct gang *gang,
                            const struct amounts *need)
{
    struct job_shape *job = w->group->job;
    bool fresh = w->place == PLACE_GROUP && s->windows.len == 0;
    if (s->stopping == 0 || !gate_open(w->group, need, MASK(VIEW_THEN), NULL) ||
        (fresh && job->no_later_epoch == s->freed_epoch))
        return false;
    if (!place_gang(s, job, w, gang, MASK(VIEW_THEN))) {
        if (fresh && s->placing->rooms.len == 0)
            job->no_later_epoch = s->freed_epoch;
        return false;
    }
    if (!place_admitted(s, w, gang, MASK(VIEW_THEN)))
        return false;
    hold_claim(s, w);
    return true;
}

/* Else two could send one another on for ever, one that a window keeps from starting and one that
 * has claimed. */
static bool comes_after(struct sched *s, const struct line *line, const struct workload *w)
{
    const struct workload *head = line->head;
    (void)s;
    return w->age != head->age ? w->age > head->age : w->id > head->id;
}

enum room { ROOM_NONE, ROOM_MADE, ROOM_TAKEN_BACK };

/* Evicts for W if it may, or moves others: whichever is cheaper, moves if it is the same. What has
 * started in this turn is taken back first. */
static enum room makes_room(struct sched *s, struct workload *w, const struct gang *gang,
                            const struct amounts *need)
{
    struct victims victims = {0};
    struct move_plan moves;
    bool evicts = evict_find(s, w, gang, need, &victims);
    bool moved =
        move_find(s, w, gang, need, &moves) && (!evicts || moves.price_ms <= victims.price_ms);
    enum room room = moved ? ROOM_MADE : ROOM_NONE;
    if (moved)
        move_carry_out(s, w, &moves);
    else if (evicts && evict_take_back(s, w, &victims))
        room = ROOM_TAKEN_BACK;
    else if (evicts && evict_carry_out(s, w, gang, &victims))
        room = ROOM_MADE;
    move_plan_done(&moves);
    victims_done(&victims);
    return room;
}

/* Goes on with the search for victims where it was cut short, if nothing has changed since; else
 * begins anew, but not with the same nodes as the last one. */
static void look_on(const struct sched *s, struct line *line)
{
    if (line->look_gen == s->change_gen)
        return;
    line->look_gen = s->change_gen;
    line->look = (struct look){.from = line->head->group->job->look_from};
}

static enum room searches_for_room(struct sched *s, struct line *line, const struct gang *gang,
                                   const struct amounts *need)
{
    struct workload *w = line->head; /* the line may not outlive its start */
    if (!line->searches)
        return ROOM_NONE;
    look_on(s, line);
    s->look = line->look;
    enum room room = makes_room(s, w, gang, need);
    if (room != ROOM_NONE)
        return room;
    line->look = s->look;
    if (s->search_denied) /* it has its search in a later turn */
        wake_again(s, line);
    return ROOM_NONE;
}

/* True: it is to be tried again before others are. */
static bool try_head(struct sched *s, struct line *line)
{
    struct workload *w = line->head;
    enum room room = ROOM_NONE;
    struct amounts need = line->need;
    struct gang gang;
    if (!gang_next(w->group->job, w, &gang)) {
        line_park(s, line, SCHED_REASON_NO_CAPACITY);
        return false;
    }
    enum sched_reason why = starts_now(s, w, &gang, &need);
    if (why == SCHED_REASON_NONE && hold_starts_first(s, line))
        ; /* it is tried again */
    else if (why == SCHED_REASON_NONE)
        decide_start_spots(s, w, SCHED_CAUSE_FITS);
    else if (why == SCHED_REASON_RESERVED && reserve_backfill(s, line))
        ; /* a younger one of its kind is next */
    else if (why == SCHED_REASON_MAINTENANCE && window_backfill(s, line))
        ; /* likewise */
    else if (group_idle(s, w->group) || why == SCHED_REASON_RESERVED)
        line_park(s, line, why);
    else if (w->claimed_turn == s->turn || waits_for_stops(s, w, &gang, &need)) {
        if (!line_go_on(s, line, CLAIMS_MAX, comes_after)) /* the next of its kind may evict */
            line_park(s, line, why);
    } else if ((room = searches_for_room(s, line, &gang, &need)) == ROOM_NONE) {
        reserve_for(s, w, &gang, &need);
        line_park(s, line, why);
    }
    s->search_denied = false;
    if (why == SCHED_REASON_NO_CAPACITY)
        wake_shut(s, w->group->job);
    gang_done(&gang);
    return room == ROOM_TAKEN_BACK && line->head == w;
}

static void try_line(struct sched *s, struct line *line)
{
    wake_line(s, line);
    while (try_head(s, line))
        ;
}

static void timers_fire(struct sched *s)
{
    for (;;) {
        struct heap_node *n = heap_peek(&s->timers);
        struct workload *w = n == NULL ? NULL : heap_entry(n, struct workload, timer);
        if (w == NULL || w->timer_ms > s->now_ms)
            return;
        heap_remove(&s->timers, &w->timer);
        if (w->count[TASK_HELD] == 0 && w->moving == 0)
            workload_requeue(s, w); /* its back-off is over */
    }
}

static void pass(struct sched *s)
{
    if (s->retry)
        wake_lines(s);
    for (int idle = 0; idle < 2; idle++) {
        for (struct line *line; (line = order_next(s, idle)) != NULL;)
            try_line(s, line);
        while (hold_starts_first(s, NULL))
            ;
    }
    parked_shut(s, NULL);
}

const struct sched_decisions *sched_turn(struct sched *s, int64_t now_ms)
{
    if (now_ms > s->now_ms)
        s->now_ms = now_ms;
    past_advance(s);
    s->turn++;
    s->order_epoch++;
    s->evicted_at = 0;
    vec_clear(&s->taken_back);
    s->leaf_looks = 0;
    s->place_searches = s->set_searches = 0;
    move_begin(s);
    vec_clear(&s->decisions);
    arena_reset(&s->arena);
    s->retry_parts = s->wake_soon && !s->put_off && !s->retry && s->protected_until_ms > s->now_ms;
    if (s->protected_until_ms <= s->now_ms || s->wake_soon || trade_reopened(s))
        s->retry = true;
    if (s->protected_until_ms <= s->now_ms)
        s->protected_until_ms = INT64_MAX;
    s->wake_soon = s->put_off = false;
    timers_fire(s);
    window_step(s);
    gang_stamp(s);
    share_refresh(s);
    mix_refresh(s);
    move_step(s);
    hold_step(s);
    reserve_begin(s);
    pass(s);
    for (int i = 0; s->retry && i < PASSES_MAX; i++)
        pass(s);
    if (reserve_changed(s)) { /* whom it was in the way of may start */
        s->retry = true;
        pass(s);
    }
    reserve_end(s);
    hold_claims_drop(s);
    gang_step(s);
    decide_end(s);
    s->result.items = s->decisions.items;
    s->result.count = s->decisions.len;
    return &s->result;
}

int64_t sched_next_ms(struct sched *s)
{
    if (s->wake_soon || s->retry) /* the last decision may have given others a chance */
        return s->now_ms;
    int64_t next = gang_next_ms(s), window = window_next_ms(s);
    next = window < next ? window : next;
    int64_t past = past_next_ms(s);
    next = past < next ? past : next;
    struct heap_node *n = heap_peek(&s->timers);
    if (n != NULL && heap_entry(n, struct workload, timer)->timer_ms < next)
        next = heap_entry(n, struct workload, timer)->timer_ms;
    return s->protected_until_ms < next ? s->protected_until_ms : next;
}
