/* SPDX-License-Identifier: Apache-2.0 */
#include "small_world.h"

static void halves(struct small_world *w, bool firm, uint64_t *ret_a, uint64_t *ret_b)
{
    world_init(w);
    world_node(w, 1, 2);
    world_node(w, 2, 2);
    world_team(w, 1, 0, 4000);
    *ret_a = world_job(w, (struct job){.team = 1, .gpu_milli = 1000, .only_node = 1, .firm = firm});
    *ret_b = world_job(w, (struct job){.team = 1, .gpu_milli = 1000, .firm = firm});
    world_settle(w);
}

static void test_a_smaller_job_moves_for_a_larger_one(void **state)
{
    (void)state;
    struct small_world w;
    uint64_t a, b;
    halves(&w, false, &a, &b); /* both on node 1, so that one GPU each is taken below */
    world_node(&w, 3, 1);
    uint64_t c = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .only_node = 2});
    world_settle(&w);
    world_finish(&w, a, 0);
    world_settle(&w);
    world_node_state(&w, 3, 1, true, false); /* and only one hole of two can be made */
    uint64_t big = world_job(&w, (struct job){.team = 1, .gpu_milli = 2000});
    world_settle(&w);
    assert_running(&w, big);
    assert_running(&w, b);
    assert_running(&w, c);
    assert_int_equal(w.last_evict.cause, SCHED_CAUSE_CONSOLIDATE);
    assert_int_equal(w.evictions, 1);
    world_done(&w);
}

static void test_nothing_moves_without_a_new_place(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_node(&w, 1, 1);
    world_node(&w, 2, 1);
    world_team(&w, 1, 0, 4000);
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 700, .only_node = 1});
    uint64_t b = world_job(&w, (struct job){.team = 1, .gpu_milli = 700, .only_node = 2});
    world_settle(&w);
    uint64_t big = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    world_settle(&w);
    assert_pending(&w, big);
    assert_running(&w, a);
    assert_running(&w, b);
    assert_int_equal(w.evictions, 0);
    world_done(&w);
}

static void test_what_is_not_preemptible_is_never_moved(void **state)
{
    (void)state;
    struct small_world w;
    uint64_t a, b;
    halves(&w, true, &a, &b);
    world_finish(&w, a, 0);
    uint64_t c =
        world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .only_node = 2, .firm = true});
    world_settle(&w);
    uint64_t big = world_job(&w, (struct job){.team = 1, .gpu_milli = 2000});
    world_settle(&w);
    assert_pending(&w, big);
    assert_running(&w, b);
    assert_running(&w, c);
    world_done(&w);
}

static void test_the_new_place_is_kept_until_the_move_is_over(void **state)
{
    (void)state;
    struct small_world w;
    uint64_t a, b;
    halves(&w, false, &a, &b);
    world_finish(&w, a, 0);
    uint64_t c = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .only_node = 2});
    world_settle(&w);
    w.stop_by_hand = true;
    uint64_t big = world_job(&w, (struct job){.team = 1, .gpu_milli = 2000});
    world_turn(&w);
    uint64_t moved = w.last_evict.workload;
    uint64_t other = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    world_turn(&w);
    assert_pending(&w, other); /* the last free device is spoken for */
    world_stopped(&w, moved, 0, SCHED_STOP_REQUEUE);
    world_settle(&w);
    assert_running(&w, b);
    assert_running(&w, c);
    assert_running(&w, big);
    assert_pending(&w, other);
    world_done(&w);
}

static void test_a_moved_workload_that_is_removed_gives_its_place_up(void **state)
{
    (void)state;
    struct small_world w;
    uint64_t a, b;
    halves(&w, false, &a, &b);
    world_finish(&w, a, 0);
    world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .only_node = 2});
    world_settle(&w);
    w.stop_by_hand = true;
    world_job(&w, (struct job){.team = 1, .gpu_milli = 2000});
    world_turn(&w);
    uint64_t moved = w.last_evict.workload;
    uint64_t other = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    assert_int_equal(sched_workload_remove(w.s, moved), 0);
    world_settle(&w);
    assert_running(&w, other);
    world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_smaller_job_moves_for_a_larger_one),
        cmocka_unit_test(test_nothing_moves_without_a_new_place),
        cmocka_unit_test(test_what_is_not_preemptible_is_never_moved),
        cmocka_unit_test(test_the_new_place_is_kept_until_the_move_is_over),
        cmocka_unit_test(test_a_moved_workload_that_is_removed_gives_its_place_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
