/* SPDX-License-Identifier: Apache-2.0 */
/* The promise of no loops, by itself: the searches lead to such a pair only now and then. */
#include "sched/trade.h"
#include "sched/workload.h"
#include "small_world.h"

struct pair {
    struct small_world w;
    struct workload *victim, *winner;
    uint64_t winner_id;
};

/* Two that run beside each other; the one has made way for the other in this turn. */
static void set_up(struct pair *p)
{
    world_init(&p->w);
    world_node(&p->w, 1, 8);
    world_team(&p->w, 1, 0, 8000);
    uint64_t victim = world_job(&p->w, (struct job){.team = 1, .gpu_milli = 1000});
    p->winner_id = world_job(&p->w, (struct job){.team = 1, .gpu_milli = 1000});
    world_settle(&p->w);
    p->victim = workload_find(p->w.s, victim);
    p->winner = workload_find(p->w.s, p->winner_id);
    assert_non_null(p->victim);
    assert_non_null(p->winner);
    assert_false(trade_is_closed(p->w.s, p->victim, p->winner));
    trade_note(p->w.s, p->victim, p->winner_id);
}

static void test_who_has_returned_does_not_make_way_again(void **state)
{
    (void)state;
    struct pair p;
    set_up(&p);
    p.victim->started_turn = p.w.s->turn + 1;
    assert_true(trade_is_closed(p.w.s, p.victim, p.winner));
    assert_false(trade_is_closed(p.w.s, p.winner, p.victim)); /* the other way round is another */
    world_done(&p.w);
}

static void test_who_has_not_returned_may_give_more(void **state)
{
    (void)state;
    struct pair p;
    set_up(&p);
    p.w.s->turn++;
    trade_note(p.w.s, p.victim, p.winner_id);
    p.victim->started_turn = p.w.s->turn - 1;
    assert_false(trade_is_closed(p.w.s, p.victim, p.winner));
    world_done(&p.w);
}

static void test_a_winner_that_has_grown_may_ask_again(void **state)
{
    (void)state;
    struct pair p;
    set_up(&p);
    p.victim->started_turn = p.w.s->turn + 1;
    p.winner->count[TASK_RUNNING]++;
    assert_false(trade_is_closed(p.w.s, p.victim, p.winner));
    p.winner->count[TASK_RUNNING]--;
    assert_true(trade_is_closed(p.w.s, p.victim, p.winner));
    world_done(&p.w);
}

static void test_an_event_from_outside_reopens(void **state)
{
    (void)state;
    struct pair p;
    set_up(&p);
    p.victim->started_turn = p.w.s->turn + 1;
    assert_true(trade_is_closed(p.w.s, p.victim, p.winner));
    world_node(&p.w, 2, 1);
    assert_false(trade_is_closed(p.w.s, p.victim, p.winner));
    world_done(&p.w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_has_returned_does_not_make_way_again),
        cmocka_unit_test(test_who_has_not_returned_may_give_more),
        cmocka_unit_test(test_a_winner_that_has_grown_may_ask_again),
        cmocka_unit_test(test_an_event_from_outside_reopens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
