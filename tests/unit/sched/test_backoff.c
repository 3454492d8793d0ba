/* SPDX-License-Identifier: Apache-2.0 */
#include "small_world.h"

#define FIRST 5000 /* the default */

static void test_a_refused_launch_waits_longer_each_time(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_node(&w, 1, 1);
    world_team(&w, 1, 0, 1000);
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    int64_t wait = FIRST;
    for (int i = 0; i < 9; i++) {
        world_settle(&w);
        assert_running(&w, a);
        world_stopped(&w, a, 0, SCHED_STOP_REFUSED);
        world_settle(&w);
        assert_pending(&w, a);
        assert_int_equal(sched_next_ms(w.s), w.now_ms + wait);
        w.now_ms += wait;
        wait = wait < 64 * FIRST ? 2 * wait : wait;
    }
    world_done(&w);
}

static void test_others_are_not_blocked(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_node(&w, 1, 1);
    world_team(&w, 1, 0, 1000);
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .priority = 9});
    world_settle(&w);
    uint64_t b = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    world_stopped(&w, a, 0, SCHED_STOP_REFUSED);
    world_settle(&w);
    assert_running(&w, b);
    struct sched_explanation e;
    assert_int_equal(sched_explain(w.s, a, w.now_ms, &e), 0);
    assert_int_equal(e.reason, SCHED_REASON_BACKOFF);
    assert_int_equal(e.start_ms, w.now_ms + FIRST);
    world_done(&w);
}

static void test_a_node_where_different_work_fails_is_avoided(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_node(&w, 1, 1);
    world_node(&w, 2, 4);
    world_team(&w, 1, 0, 9000);
    for (int i = 0; i < 2; i++) {
        uint64_t bad = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .only_node = 1});
        world_settle(&w);
        world_stopped(&w, bad, 0, SCHED_STOP_REFUSED);
        assert_int_equal(sched_workload_remove(w.s, bad), 0);
    }
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    world_settle(&w);
    assert_int_equal(world_where(&w, a, 0), 2); /* though node 1 is the tighter fit */
    uint64_t b = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .only_node = 1});
    world_settle(&w);
    assert_running(&w, b); /* avoided, never closed */
    world_done(&w);
}

static void test_work_that_ran_begins_anew(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_node(&w, 1, 1);
    world_team(&w, 1, 0, 1000);
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    for (int i = 0; i < 3; i++) {
        world_settle(&w);
        world_stopped(&w, a, 0, SCHED_STOP_REFUSED);
        w.now_ms += 64 * FIRST;
    }
    world_settle(&w);
    w.now_ms += 10 * FIRST;
    world_stopped(&w, a, 0, SCHED_STOP_REQUEUE);
    world_settle(&w);
    world_stopped(&w, a, 0, SCHED_STOP_REFUSED);
    assert_int_equal(sched_next_ms(w.s), w.now_ms); /* others may have a chance */
    world_settle(&w);
    assert_int_equal(sched_next_ms(w.s), w.now_ms + FIRST);
    world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_refused_launch_waits_longer_each_time),
        cmocka_unit_test(test_others_are_not_blocked),
        cmocka_unit_test(test_a_node_where_different_work_fails_is_avoided),
        cmocka_unit_test(test_work_that_ran_begins_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
