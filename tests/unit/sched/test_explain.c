/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "small_world.h"

static struct sched_explanation explain(struct small_world *w, uint64_t id)
{
    struct sched_explanation e;
    assert_int_equal(sched_explain(w->s, id, w->now_ms, &e), 0);
    return e;
}

static void basic(struct small_world *w, uint32_t gpus, int64_t guarantee, int64_t limit)
{
    world_init(w);
    world_node(w, 1, gpus);
    world_team_full(w, 1, 0, guarantee, limit, 1, 100);
}

static void test_only_what_waits_is_explained(void **state)
{
    (void)state;
    struct small_world w;
    struct sched_explanation e;
    basic(&w, 1, 1000, SCHED_UNLIMITED);
    assert_int_equal(sched_explain(w.s, 5, 0, &e), -ENOENT);
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    world_settle(&w);
    assert_int_equal(sched_explain(w.s, a, 0, &e), -EINVAL);
    world_done(&w);
}

static void test_nothing_in_its_way(void **state)
{
    (void)state;
    struct small_world w;
    basic(&w, 1, 1000, SCHED_UNLIMITED);
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    uint64_t b = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    struct sched_explanation e = explain(&w, a);
    assert_int_equal(e.reason, SCHED_REASON_NONE);
    assert_int_equal(e.basis, SCHED_START_NOW);
    e = explain(&w, b);
    assert_int_equal(e.reason, SCHED_REASON_BEHIND);
    assert_int_equal(e.position, 2);
    assert_int_equal(e.pending, 2);
    world_done(&w);
}

static void test_the_limit_names_team_and_missing_amount(void **state)
{
    (void)state;
    struct small_world w;
    basic(&w, 8, 0, 3000);
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 2000});
    uint64_t b = world_job(&w, (struct job){.team = 1, .gpu_milli = 2000});
    world_settle(&w);
    struct sched_explanation e = explain(&w, b);
    assert_int_equal(e.reason, SCHED_REASON_TEAM_LIMIT);
    assert_int_equal(e.team, 1);
    assert_int_equal(e.used, 2000);
    assert_int_equal(e.limit, 3000);
    assert_int_equal(e.missing, 1000);
    assert_int_equal(e.holder_count, 1);
    assert_int_equal(e.holders[0], a);
    world_done(&w);
}

static void test_the_guarantee_of_firm_work(void **state)
{
    (void)state;
    struct small_world w;
    basic(&w, 8, 2000, SCHED_UNLIMITED);
    world_job(&w, (struct job){.team = 1, .gpu_milli = 2000, .firm = true});
    world_settle(&w);
    uint64_t b = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .firm = true});
    world_settle(&w);
    assert_int_equal(explain(&w, b).reason, SCHED_REASON_TEAM_GUARANTEE);
    world_done(&w);
}

static void test_no_capacity_names_the_largest_holders(void **state)
{
    (void)state;
    struct small_world w;
    basic(&w, 4, 4000, SCHED_UNLIMITED);
    uint64_t small = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    uint64_t large = world_job(&w, (struct job){.team = 1, .gpu_milli = 3000});
    world_settle(&w);
    uint64_t c = world_job(&w, (struct job){.team = 1, .gpu_milli = 2000});
    world_settle(&w);
    struct sched_explanation e = explain(&w, c);
    assert_int_equal(e.reason, SCHED_REASON_NO_CAPACITY);
    assert_int_equal(e.asked, 2000);
    assert_int_equal(e.free, 0);
    assert_int_equal(e.missing, 2000);
    assert_int_equal(e.holder_count, 2);
    assert_int_equal(e.holders[0], large);
    assert_int_equal(e.holders[1], small);
    assert_int_equal(e.holder_amount[0], 3000);
    world_done(&w);
}

static void test_fragmented_says_how_much_less_would_do(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_node(&w, 1, 2);
    world_node(&w, 2, 2);
    world_team(&w, 1, 0, 4000);
    world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .only_node = 1, .firm = true});
    world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .only_node = 2, .firm = true});
    world_settle(&w);
    uint64_t c = world_job(&w, (struct job){.team = 1, .gpu_milli = 2000});
    world_settle(&w);
    struct sched_explanation e = explain(&w, c);
    assert_int_equal(e.reason, SCHED_REASON_FRAGMENTED);
    assert_int_equal(e.free, 2000);
    assert_int_equal(e.missing, 1000);
    world_done(&w);
}

static void test_nodes_that_are_down(void **state)
{
    (void)state;
    struct small_world w;
    basic(&w, 2, 2000, SCHED_UNLIMITED);
    world_node_state(&w, 1, 2, false, true);
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .strict = true});
    world_settle(&w);
    assert_int_equal(explain(&w, a).reason, SCHED_REASON_NODES_DOWN);
    world_done(&w);
}

static void node_with_host(struct small_world *w, int64_t cpu, int64_t memory)
{
    struct sched_device devices[2] = {{0}};
    struct sched_node node = {.id = 1,
                              .devices = devices,
                              .device_count = 2,
                              .cpu_milli = cpu,
                              .memory_bytes = memory,
                              .up = true,
                              .schedulable = true};
    world_init(w);
    assert_int_equal(sched_node_set(w->s, &node), 0);
    world_team(w, 1, 0, 2000);
}

static void test_cpu_or_memory_beside_the_gpu(void **state)
{
    (void)state;
    struct small_world w;
    node_with_host(&w, 4000, 1000);
    world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .cpu_milli = 3000, .memory = 100});
    world_settle(&w);
    uint64_t cpu = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .cpu_milli = 2000});
    uint64_t memory = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .memory = 950});
    world_settle(&w);
    struct sched_explanation e = explain(&w, cpu);
    assert_int_equal(e.reason, SCHED_REASON_CPU);
    assert_int_equal(e.resource, SCHED_CPU_MILLI);
    assert_int_equal(e.missing, 1000);
    assert_int_equal(explain(&w, memory).reason, SCHED_REASON_MEMORY);
    world_done(&w);
}

static void test_a_promise_waits_for_its_victims(void **state)
{
    (void)state;
    struct small_world w;
    basic(&w, 1, 1000, SCHED_UNLIMITED);
    uint64_t low = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    world_settle(&w);
    w.stop_by_hand = true;
    uint64_t high = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .priority = 1});
    world_turn(&w);
    struct sched_explanation e = explain(&w, high);
    assert_int_equal(e.reason, SCHED_REASON_HELD);
    assert_int_equal(e.basis, SCHED_START_VICTIMS);
    assert_int_equal(e.waits_for, low);
    world_done(&w);
}

static void test_too_large_for_ever_was_accepted_earlier(void **state)
{
    (void)state;
    struct small_world w;
    basic(&w, 2, 8000, SCHED_UNLIMITED);
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 4000});
    world_settle(&w);
    struct sched_explanation e = explain(&w, a);
    assert_int_equal(e.reason, SCHED_REASON_TOO_LARGE);
    assert_int_equal(e.asked, 4000);
    assert_int_equal(e.missing, 2000);
    world_done(&w);
}

static void test_an_explanation_changes_nothing(void **state)
{
    (void)state;
    struct small_world w;
    basic(&w, 1, 1000, SCHED_UNLIMITED);
    world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .limit_ms = 5000});
    world_settle(&w);
    uint64_t b = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    world_settle(&w);
    for (int i = 0; i < 3; i++)
        explain(&w, b);
    assert_int_equal(world_turn(&w), 0);
    world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_what_waits_is_explained),
        cmocka_unit_test(test_nothing_in_its_way),
        cmocka_unit_test(test_the_limit_names_team_and_missing_amount),
        cmocka_unit_test(test_the_guarantee_of_firm_work),
        cmocka_unit_test(test_no_capacity_names_the_largest_holders),
        cmocka_unit_test(test_fragmented_says_how_much_less_would_do),
        cmocka_unit_test(test_nodes_that_are_down),
        cmocka_unit_test(test_cpu_or_memory_beside_the_gpu),
        cmocka_unit_test(test_a_promise_waits_for_its_victims),
        cmocka_unit_test(test_too_large_for_ever_was_accepted_earlier),
        cmocka_unit_test(test_an_explanation_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
