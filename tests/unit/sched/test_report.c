/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the caller reports: restored, stopping and stopped tasks.
 */
#include <errno.h>

#include "small_world.h"

static const uint16_t device0[] = {0}, device1[] = {1}, both[] = {0, 1}, absent[] = {7};

static uint64_t one(struct small_world *w, int milli)
{
    world_init(w);
    world_node(w, 1, 2);
    world_team(w, 1, 0, 2000);
    return world_job(w, (struct job){.team = 1, .gpu_milli = milli});
}

static void test_a_restored_task_runs_where_it_ran(void **state)
{
    (void)state;
    struct small_world w;
    uint64_t a = one(&w, 1000);
    assert_int_equal(sched_task_restore(w.s, a, 0, SCHED_TASK_RUNNING, 1, device1, 1, 500), 0);
    assert_int_equal(world_turn(&w), 0);
    assert_running(&w, a);
    uint64_t b = world_job(&w, (struct job){.team = 1, .gpu_milli = 2000});
    world_settle(&w);
    assert_pending(&w, b);
    world_done(&w);
}

static void test_taken_devices_are_not_restored_twice(void **state)
{
    (void)state;
    struct small_world w;
    uint64_t a = one(&w, 1000);
    uint64_t b = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    assert_int_equal(sched_task_restore(w.s, a, 0, SCHED_TASK_RUNNING, 1, device0, 1, 0), 0);
    assert_int_equal(sched_task_restore(w.s, b, 0, SCHED_TASK_RUNNING, 1, device0, 1, 0), -EBUSY);
    assert_int_equal(sched_task_restore(w.s, a, 0, SCHED_TASK_RUNNING, 1, device1, 1, 0), -EINVAL);
    world_done(&w);
}

static void test_a_restore_must_match_the_request(void **state)
{
    (void)state;
    struct small_world w;
    uint64_t a = one(&w, 1000);
    assert_int_equal(sched_task_restore(w.s, a, 0, SCHED_TASK_RUNNING, 1, both, 2, 0), -EINVAL);
    assert_int_equal(sched_task_restore(w.s, a, 0, SCHED_TASK_RUNNING, 1, absent, 1, 0), -EINVAL);
    assert_int_equal(sched_task_restore(w.s, a, 0, SCHED_TASK_RUNNING, 9, device0, 1, 0), -ENOENT);
    assert_int_equal(sched_task_restore(w.s, 99, 0, SCHED_TASK_RUNNING, 1, device0, 1, 0), -ENOENT);
    assert_int_equal(sched_task_restore(w.s, a, 4, SCHED_TASK_RUNNING, 1, device0, 1, 0), -ENOENT);
    world_done(&w);
}

static void test_a_restored_promise_is_kept(void **state)
{
    (void)state;
    struct small_world w;
    uint64_t a = one(&w, 2000);
    uint64_t b = world_job(&w, (struct job){.team = 1, .gpu_milli = 2000});
    assert_int_equal(sched_task_restore(w.s, a, 0, SCHED_TASK_STOPPING, 1, both, 2, 0), 0);
    assert_int_equal(sched_task_restore(w.s, b, 0, SCHED_TASK_HELD, 1, both, 2, INT64_MAX), 0);
    uint64_t c = world_job(&w, (struct job){.team = 1, .gpu_milli = 2000, .priority = 9});
    world_turn(&w);
    assert_held(&w, b);
    assert_pending(&w, c);
    world_stopped(&w, a, 0, SCHED_STOP_REQUEUE);
    assert_true(world_turn(&w) > 0);
    assert_true(w.starts == 1 && w.unholds == 0);
    world_done(&w);
}

static void test_an_ended_task_is_restored_without_a_node(void **state)
{
    (void)state;
    struct small_world w;
    uint64_t a = one(&w, 1000);
    assert_int_equal(sched_task_restore(w.s, a, 0, SCHED_TASK_DONE, 0, NULL, 0, 0), 0);
    world_settle(&w);
    assert_int_equal(world_state(&w, a, 0), SCHED_TASK_DONE);
    assert_int_equal(w.starts, 0);
    world_done(&w);
}

static void test_only_what_holds_devices_can_stop(void **state)
{
    (void)state;
    struct small_world w;
    uint64_t a = one(&w, 1000);
    assert_int_equal(sched_task_stopped(w.s, a, 0, SCHED_STOP_DONE, 0), -EINVAL);
    assert_int_equal(sched_task_stopping(w.s, a, 0, 0), -EINVAL);
    assert_int_equal(sched_task_stopped(w.s, 99, 0, SCHED_STOP_DONE, 0), -ENOENT);
    world_settle(&w);
    world_finish(&w, a, 0);
    assert_int_equal(sched_task_stopped(w.s, a, 0, SCHED_STOP_DONE, 0), -EINVAL);
    world_done(&w);
}

static void test_requeued_work_keeps_its_age(void **state)
{
    (void)state;
    struct small_world w;
    uint64_t a = one(&w, 2000);
    world_settle(&w);
    uint64_t b = world_job(&w, (struct job){.team = 1, .gpu_milli = 2000});
    world_settle(&w);
    world_stopped(&w, a, 0, SCHED_STOP_REQUEUE);
    world_settle(&w);
    assert_running(&w, a);
    assert_pending(&w, b);
    world_done(&w);
}

static void test_one_that_stops_for_the_caller_is_no_victim(void **state)
{
    (void)state;
    struct small_world w;
    uint64_t a = one(&w, 1000);
    uint64_t b = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    world_settle(&w);
    assert_int_equal(sched_task_stopping(w.s, a, 0, w.now_ms), 0);
    assert_stopping(&w, a);
    world_job(&w, (struct job){.team = 1, .gpu_milli = 2000, .priority = 9});
    w.stop_by_hand = true;
    world_turn(&w);
    assert_int_equal(w.evictions, 1);
    assert_int_equal(w.last_evict.workload, b);
    world_done(&w);
}

static int64_t demand_of(struct small_world *w, uint64_t team)
{
    struct sched_team_usage u;
    assert_int_equal(sched_team_usage(w->s, team, &u), 0);
    return u.demand[SCHED_GPU_MILLI];
}

/* A gang of which one rank failed starts anew: what it asks for is not less meanwhile. */
static void test_one_that_stops_for_the_caller_is_still_wanted(void **state)
{
    (void)state;
    struct small_world w;
    uint64_t a = one(&w, 1000);
    world_settle(&w);
    assert_int_equal(sched_task_stopping(w.s, a, 0, w.now_ms), 0);
    assert_int_equal(demand_of(&w, 1), 1000);
    world_stopped(&w, a, 0, SCHED_STOP_REQUEUE);
    assert_int_equal(demand_of(&w, 1), 1000);
    world_settle(&w);
    assert_running(&w, a);
    assert_int_equal(sched_task_stopping(w.s, a, 0, w.now_ms), 0);
    assert_int_equal(sched_workload_remove(w.s, a), 0);
    assert_int_equal(demand_of(&w, 1), 0);
    world_stopped(&w, a, 0, SCHED_STOP_REQUEUE);
    assert_int_equal(demand_of(&w, 1), 0);
    world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_restored_task_runs_where_it_ran),
        cmocka_unit_test(test_taken_devices_are_not_restored_twice),
        cmocka_unit_test(test_a_restore_must_match_the_request),
        cmocka_unit_test(test_a_restored_promise_is_kept),
        cmocka_unit_test(test_an_ended_task_is_restored_without_a_node),
        cmocka_unit_test(test_only_what_holds_devices_can_stop),
        cmocka_unit_test(test_requeued_work_keeps_its_age),
        cmocka_unit_test(test_one_that_stops_for_the_caller_is_no_victim),
        cmocka_unit_test(test_one_that_stops_for_the_caller_is_still_wanted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
