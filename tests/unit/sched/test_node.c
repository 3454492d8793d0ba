/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "small_world.h"

static int set(struct small_world *w, uint32_t gpus, int64_t memory)
{
    struct sched_device devices[8] = {{0}};
    for (uint32_t d = 0; d < gpus; d++)
        devices[d].memory_bytes = memory;
    struct sched_node node = {.id = 1,
                              .order = 1,
                              .gpu_type = "H100",
                              .devices = devices,
                              .device_count = gpus,
                              .cpu_milli = SCHED_UNLIMITED,
                              .memory_bytes = SCHED_UNLIMITED,
                              .up = true,
                              .schedulable = true};
    return sched_node_set(w->s, &node);
}

static void test_devices_in_use_are_not_taken_away(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    assert_int_equal(set(&w, 2, 80LL << 30), 0);
    world_team(&w, 1, 0, 8000);
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 2000});
    world_settle(&w);
    assert_int_equal(set(&w, 1, 80LL << 30), -EBUSY);
    assert_int_equal(set(&w, 2, 40LL << 30), -EBUSY);
    assert_int_equal(sched_node_remove(w.s, 1), -EBUSY);
    world_finish(&w, a, 0);
    assert_int_equal(set(&w, 1, 80LL << 30), 0);
    assert_int_equal(sched_node_remove(w.s, 1), 0);
    assert_int_equal(sched_node_remove(w.s, 1), -ENOENT);
    world_done(&w);
}

static void test_added_devices_wake_what_waits(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    assert_int_equal(set(&w, 1, 80LL << 30), 0);
    world_team(&w, 1, 0, 8000);
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 2000});
    world_settle(&w);
    assert_pending(&w, a);
    assert_int_equal(set(&w, 2, 80LL << 30), 0);
    world_settle(&w);
    assert_running(&w, a);
    world_done(&w);
}

static void test_a_drained_node_takes_nothing_new(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_node(&w, 1, 2);
    world_team(&w, 1, 0, 8000);
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    world_settle(&w);
    world_node_state(&w, 1, 2, true, false);
    uint64_t b = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    world_settle(&w);
    assert_running(&w, a);
    assert_pending(&w, b);
    world_node_state(&w, 1, 2, true, true);
    world_settle(&w);
    assert_running(&w, b);
    world_done(&w);
}

static void test_nothing_is_evicted_for_a_place_on_a_drained_node(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_node(&w, 1, 1);
    world_team(&w, 1, 0, 8000);
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    world_settle(&w);
    world_node_state(&w, 1, 1, true, false);
    world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .priority = 9});
    world_settle(&w);
    assert_running(&w, a);
    assert_int_equal(w.evictions, 0);
    world_done(&w);
}

static void test_hostile_numbers_are_refused(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    assert_int_equal(set(&w, 1, -1), -EINVAL);
    assert_int_equal(set(&w, 1, INT64_MAX), -EINVAL);
    struct sched_node node = {.id = 0, .up = true};
    assert_int_equal(sched_node_set(w.s, &node), -EINVAL);
    node = (struct sched_node){.id = 1, .device_count = 100000};
    assert_int_equal(sched_node_set(w.s, &node), -EINVAL);
    world_done(&w);
}

static void test_a_memory_request_follows_the_inventory(void **state)
{
    (void)state;
    struct small_world w;
    struct sched_team_usage u;
    world_init(&w);
    assert_int_equal(set(&w, 1, 80LL << 30), 0);
    world_team_full(&w, 1, 0, 0, 0, 1, 100); /* a limit of nothing: it waits */
    world_job(&w, (struct job){.team = 1, .gpu_memory = 20LL << 30});
    world_settle(&w);
    assert_int_equal(sched_team_usage(w.s, 1, &u), 0);
    assert_int_equal(u.demand[SCHED_GPU_MILLI], 250);
    assert_int_equal(set(&w, 1, 40LL << 30), 0);
    world_settle(&w); /* verifies */
    assert_int_equal(sched_team_usage(w.s, 1, &u), 0);
    assert_int_equal(u.demand[SCHED_GPU_MILLI], 500);
    world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_devices_in_use_are_not_taken_away),
        cmocka_unit_test(test_added_devices_wake_what_waits),
        cmocka_unit_test(test_a_drained_node_takes_nothing_new),
        cmocka_unit_test(test_nothing_is_evicted_for_a_place_on_a_drained_node),
        cmocka_unit_test(test_hostile_numbers_are_refused),
        cmocka_unit_test(test_a_memory_request_follows_the_inventory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
