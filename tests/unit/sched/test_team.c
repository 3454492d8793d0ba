/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "small_world.h"

static struct sched_team plain(uint64_t id, uint64_t parent)
{
    return (struct sched_team){
        .id = id,
        .parent = parent,
        .age = id,
        .weight = 1,
        .limit = {SCHED_UNLIMITED, SCHED_UNLIMITED, SCHED_UNLIMITED},
    };
}

static void test_an_unknown_parent_is_refused(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    struct sched_team t = plain(1, 9);
    assert_int_equal(sched_team_set(w.s, &t), -ENOENT);
    world_done(&w);
}

static void test_a_cycle_is_refused(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_team(&w, 1, 0, 0);
    world_team(&w, 2, 1, 0);
    struct sched_team t = plain(1, 2);
    assert_int_equal(sched_team_set(w.s, &t), -EINVAL);
    world_done(&w);
}

static void test_negative_amounts_are_refused(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    struct sched_team t = plain(1, 0);
    t.guarantee[SCHED_CPU_MILLI] = -1;
    assert_int_equal(sched_team_set(w.s, &t), -EINVAL);
    t = plain(1, 0);
    t.weight = -1;
    assert_int_equal(sched_team_set(w.s, &t), -EINVAL);
    world_done(&w);
}

static void test_the_depth_is_bounded(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    int r = 0;
    uint64_t depth = 0;
    while (r == 0 && depth < 1000) {
        struct sched_team t = plain(depth + 1, depth);
        r = sched_team_set(w.s, &t);
        depth += r == 0;
    }
    assert_int_equal(r, -EINVAL);
    assert_true(depth >= 32 && depth < 1000);
    world_done(&w);
}

static void test_a_team_with_workloads_takes_no_children(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_node(&w, 1, 1);
    world_team(&w, 1, 0, 1000);
    world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    struct sched_team t = plain(2, 1);
    assert_int_equal(sched_team_set(w.s, &t), -EINVAL);
    assert_int_equal(sched_team_remove(w.s, 1), -EBUSY);
    world_done(&w);
}

static void test_work_belongs_in_leaves(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_node(&w, 1, 1);
    world_team(&w, 1, 0, 1000);
    world_team(&w, 2, 1, 1000);
    assert_int_equal(world_try_job(&w, (struct job){.team = 1, .gpu_milli = 1000}, NULL), -EINVAL);
    assert_int_equal(world_try_job(&w, (struct job){.team = 7, .gpu_milli = 1000}, NULL), -ENOENT);
    world_done(&w);
}

static void test_use_moves_with_a_team_to_its_new_parent(void **state)
{
    (void)state;
    struct small_world w;
    struct sched_team_usage u;
    world_init(&w);
    world_node(&w, 1, 4);
    world_team(&w, 1, 0, 0);
    world_team(&w, 2, 0, 0);
    world_team(&w, 3, 1, 0);
    world_job(&w, (struct job){.team = 3, .gpu_milli = 2000});
    world_settle(&w);
    world_team(&w, 3, 2, 0);
    assert_int_equal(sched_team_usage(w.s, 1, &u), 0);
    assert_int_equal(u.used[SCHED_GPU_MILLI], 0);
    assert_int_equal(sched_team_usage(w.s, 2, &u), 0);
    assert_int_equal(u.used[SCHED_GPU_MILLI], 2000);
    world_settle(&w); /* verifies */
    world_done(&w);
}

static void test_running_work_stays_when_a_limit_is_lowered(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_node(&w, 1, 4);
    world_team(&w, 1, 0, 4000);
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 3000});
    world_settle(&w);
    world_team_full(&w, 1, 0, 1000, 1000, 1, 100);
    uint64_t b = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    world_settle(&w);
    assert_running(&w, a);
    assert_pending(&w, b);
    assert_int_equal(w.evictions, 0);
    world_done(&w);
}

static void test_an_unknown_team_has_no_usage(void **state)
{
    (void)state;
    struct small_world w;
    struct sched_team_usage u;
    world_init(&w);
    assert_int_equal(sched_team_usage(w.s, 1, &u), -ENOENT);
    assert_int_equal(sched_team_remove(w.s, 1), -ENOENT);
    world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_unknown_parent_is_refused),
        cmocka_unit_test(test_a_cycle_is_refused),
        cmocka_unit_test(test_negative_amounts_are_refused),
        cmocka_unit_test(test_the_depth_is_bounded),
        cmocka_unit_test(test_a_team_with_workloads_takes_no_children),
        cmocka_unit_test(test_work_belongs_in_leaves),
        cmocka_unit_test(test_use_moves_with_a_team_to_its_new_parent),
        cmocka_unit_test(test_running_work_stays_when_a_limit_is_lowered),
        cmocka_unit_test(test_an_unknown_team_has_no_usage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
