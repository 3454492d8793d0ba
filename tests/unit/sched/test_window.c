/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maintenance windows: who still starts before one, who goes when it begins, who plans around it.
 */
#include <errno.h>

#include "small_world.h"

#define FROM 100000
#define UNTIL 200000

static void one_node(struct small_world *w)
{
    struct sched_config config;
    sched_config_default(&config);
    config.window_lead_ms = 60000;
    world_init_config(w, &config);
    world_node(w, 1, 2);
    world_team(w, 1, 0, 2000);
}

static void test_what_ends_in_time_starts(void **state)
{
    (void)state;
    struct small_world w;
    one_node(&w);
    world_node_window(&w, 1, 2, FROM, UNTIL);
    w.now_ms = 50000;
    uint64_t exact = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .limit_ms = 50000});
    uint64_t above = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .limit_ms = 50001});
    uint64_t silent = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    world_settle(&w);
    assert_running(&w, exact);
    assert_pending(&w, above);
    assert_pending(&w, silent); /* has 50 seconds, should have 60 */
    world_done(&w);
}

static void test_the_explanation_names_the_node_and_the_time_that_would_do(void **state)
{
    (void)state;
    struct small_world w;
    struct sched_explanation e;
    one_node(&w);
    world_node_window(&w, 1, 2, FROM, UNTIL);
    w.now_ms = 60000;
    uint64_t job = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .limit_ms = 50000});
    world_settle(&w);
    assert_int_equal(sched_explain(w.s, job, w.now_ms, &e), 0);
    assert_int_equal(e.reason, SCHED_REASON_MAINTENANCE);
    assert_int_equal(e.nodes[0], 1);
    assert_int_equal(e.run_ms, 40000);
    assert_int_equal(e.basis, SCHED_START_WINDOW);
    assert_int_equal(e.start_ms, UNTIL);
    w.now_ms = 150000;
    world_settle(&w);
    assert_int_equal(sched_explain(w.s, job, w.now_ms, &e), 0);
    assert_int_equal(e.reason, SCHED_REASON_MAINTENANCE);
    assert_int_equal(e.run_ms, 0);
    assert_int_equal(e.start_ms, UNTIL);
    world_done(&w);
}

static void test_beginning_and_end_are_due_by_themselves(void **state)
{
    (void)state;
    struct small_world w;
    one_node(&w);
    uint64_t job = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    uint64_t firm = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .firm = true});
    world_settle(&w);
    world_node_window(&w, 1, 2, FROM, UNTIL);
    world_settle(&w);
    assert_int_equal(w.evictions, 0); /* announced late: it runs until the window begins */
    assert_int_equal(sched_next_ms(w.s), FROM);
    w.now_ms = FROM;
    world_settle(&w);
    assert_pending(&w, job);
    assert_running(&w, firm);
    assert_int_equal(w.last_evict.cause, SCHED_CAUSE_MAINTENANCE);
    assert_int_equal(sched_next_ms(w.s), UNTIL);
    w.now_ms = UNTIL;
    world_settle(&w);
    assert_running(&w, job);
    assert_int_equal(sched_next_ms(w.s), INT64_MAX);
    world_done(&w);
}

static void test_a_window_may_be_taken_back(void **state)
{
    (void)state;
    struct small_world w;
    one_node(&w);
    world_node_window(&w, 1, 2, FROM, UNTIL);
    w.now_ms = 150000;
    uint64_t job = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    world_settle(&w);
    assert_pending(&w, job);
    world_node(&w, 1, 2);
    world_settle(&w);
    assert_running(&w, job);
    world_done(&w);
}

static void test_a_promise_that_would_run_into_a_window_is_given_up(void **state)
{
    (void)state;
    struct small_world w;
    one_node(&w);
    w.stop_by_hand = true;
    uint64_t low = world_job(&w, (struct job){.team = 1, .gpu_milli = 2000});
    world_settle(&w);
    uint64_t high =
        world_job(&w, (struct job){.team = 1, .gpu_milli = 2000, .priority = 1, .limit_ms = 80000});
    world_settle(&w);
    assert_held(&w, high);
    world_node_window(&w, 1, 2, FROM, UNTIL);
    w.now_ms = 30000;
    world_settle(&w);
    assert_pending(&w, high);
    world_stopped(&w, low, 0, SCHED_STOP_REQUEUE);
    world_settle(&w);
    assert_pending(&w, high);
    assert_running(&w, low); /* says nothing, and has the lead */
    world_done(&w);
}

static void test_a_window_that_ends_before_it_begins_is_refused(void **state)
{
    (void)state;
    struct small_world w;
    one_node(&w);
    struct sched_node node = {.id = 7, .up = true, .window_from_ms = 5, .window_until_ms = 5};
    assert_int_equal(sched_node_set(w.s, &node), -EINVAL);
    node.window_from_ms = -1;
    assert_int_equal(sched_node_set(w.s, &node), -EINVAL);
    world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_ends_in_time_starts),
        cmocka_unit_test(test_the_explanation_names_the_node_and_the_time_that_would_do),
        cmocka_unit_test(test_beginning_and_end_are_due_by_themselves),
        cmocka_unit_test(test_a_window_may_be_taken_back),
        cmocka_unit_test(test_a_promise_that_would_run_into_a_window_is_given_up),
        cmocka_unit_test(test_a_window_that_ends_before_it_begins_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
