/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Promises: what victims free belongs to the one they were stopped for.
 */
#include "small_world.h"

/* Team 2 runs two jobs of two GPUs; team 1, entitled to all four, asks for them. */
static void promised(struct small_world *w, uint64_t *ret_a, uint64_t *ret_b, uint64_t *ret_big)
{
    world_init(w);
    world_node(w, 1, 4);
    world_team_full(w, 1, 0, 4000, SCHED_UNLIMITED, 1, 100);
    world_team_full(w, 2, 0, 0, SCHED_UNLIMITED, 0, 100);
    *ret_a = world_job(w, (struct job){.team = 2, .gpu_milli = 2000});
    *ret_b = world_job(w, (struct job){.team = 2, .gpu_milli = 2000});
    world_settle(w);
    w->stop_by_hand = true;
    *ret_big = world_job(w, (struct job){.team = 1, .gpu_milli = 4000});
    world_turn(w);
}

static void test_capacity_of_stopping_victims_is_not_given_to_others(void **state)
{
    (void)state;
    struct small_world w;
    uint64_t a, b, big;
    promised(&w, &a, &b, &big);
    assert_held(&w, big);
    assert_int_equal(w.evictions, 2);
    world_stopped(&w, a, 0, SCHED_STOP_REQUEUE);
    world_settle(&w);
    assert_pending(&w, a); /* two devices are idle, and promised */
    assert_held(&w, big);
    world_stopped(&w, b, 0, SCHED_STOP_REQUEUE);
    world_settle(&w);
    assert_running(&w, big);
    world_done(&w);
}

static void test_a_lowered_limit_ends_the_promise(void **state)
{
    (void)state;
    struct small_world w;
    uint64_t a, b, big;
    promised(&w, &a, &b, &big);
    world_team_full(&w, 1, 0, 1000, 1000, 1, 100); /* the gate closes meanwhile */
    world_turn(&w);
    assert_pending(&w, big);
    assert_int_equal(w.unholds, 1);
    world_stopped(&w, a, 0, SCHED_STOP_REQUEUE);
    world_settle(&w);
    assert_running(&w, a);
    world_done(&w);
}

static void test_a_promise_that_is_not_kept_in_time_runs_out(void **state)
{
    (void)state;
    struct small_world w;
    static const uint16_t both[] = {0, 1};
    world_init(&w);
    world_node(&w, 1, 2);
    world_team(&w, 1, 0, 2000);
    uint64_t stuck = world_job(&w, (struct job){.team = 1, .gpu_milli = 2000});
    uint64_t big = world_job(&w, (struct job){.team = 1, .gpu_milli = 2000});
    int64_t until = w.now_ms + 5000;
    assert_int_equal(sched_task_restore(w.s, stuck, 0, SCHED_TASK_STOPPING, 1, both, 2, 0), 0);
    assert_int_equal(sched_task_restore(w.s, big, 0, SCHED_TASK_HELD, 1, both, 2, until), 0);
    world_turn(&w);
    assert_held(&w, big);
    assert_int_equal(sched_next_ms(w.s), until);
    w.now_ms = until;
    world_turn(&w);
    assert_pending(&w, big);
    assert_int_equal(w.unholds, 1);
    world_done(&w);
}

static void test_a_lost_node_ends_the_promise(void **state)
{
    (void)state;
    struct small_world w;
    uint64_t a, b, big;
    promised(&w, &a, &b, &big);
    world_node_state(&w, 1, 4, false, true);
    world_turn(&w);
    assert_pending(&w, big);
    world_done(&w);
}

static void test_removing_the_holder_frees_what_was_promised(void **state)
{
    (void)state;
    struct small_world w;
    uint64_t a, b, big;
    promised(&w, &a, &b, &big);
    assert_int_equal(sched_workload_remove(w.s, big), 0);
    world_stopped(&w, a, 0, SCHED_STOP_REQUEUE);
    world_settle(&w);
    assert_running(&w, a);
    world_done(&w);
}

static void test_a_held_gang_counts_as_used(void **state)
{
    (void)state;
    struct small_world w;
    uint64_t a, b, big;
    promised(&w, &a, &b, &big);
    world_team_full(&w, 1, 0, 4000, 4000, 1, 100);
    world_node(&w, 2, 4);
    uint64_t more = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    world_turn(&w);
    assert_pending(&w, more); /* the limit is spoken for */
    world_done(&w);
}

static void test_stops_on_the_way_are_enough_without_victims(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_node(&w, 1, 2);
    world_team_full(&w, 1, 0, 2000, SCHED_UNLIMITED, 1, 100);
    world_team_full(&w, 2, 0, 0, SCHED_UNLIMITED, 0, 100);
    uint64_t a = world_job(&w, (struct job){.team = 2, .gpu_milli = 1000});
    uint64_t b = world_job(&w, (struct job){.team = 2, .gpu_milli = 1000});
    world_settle(&w);
    assert_int_equal(sched_task_stopping(w.s, a, 0, w.now_ms), 0); /* cancelled by a person */
    uint64_t c = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    world_settle(&w);
    assert_int_equal(w.evictions, 0);
    world_finish(&w, a, 0);
    world_settle(&w);
    assert_running(&w, c);
    assert_running(&w, b);
    world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_capacity_of_stopping_victims_is_not_given_to_others),
        cmocka_unit_test(test_a_lowered_limit_ends_the_promise),
        cmocka_unit_test(test_a_promise_that_is_not_kept_in_time_runs_out),
        cmocka_unit_test(test_a_lost_node_ends_the_promise),
        cmocka_unit_test(test_removing_the_holder_frees_what_was_promised),
        cmocka_unit_test(test_a_held_gang_counts_as_used),
        cmocka_unit_test(test_stops_on_the_way_are_enough_without_victims),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
