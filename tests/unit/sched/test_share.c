/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/share.h"

#include "small_world.h"

static int64_t share_of(struct small_world *w, uint64_t team)
{
    struct sched_team_usage u;
    assert_int_equal(sched_team_usage(w->s, team, &u), 0);
    return u.share[SCHED_GPU_MILLI];
}

static void jobs(struct small_world *w, uint64_t team, unsigned count)
{
    while (count-- > 0)
        world_job(w, (struct job){.team = team, .gpu_milli = 1000});
}

static void test_whole_grains_by_largest_remainder(void **state)
{
    (void)state;
    struct share_part parts[] = {{9000, 1, 0}, {9000, 2, 0}}; /* 2.67 and 5.33 of eight */
    assert_int_equal(share_divide(parts, 2, 8000, 1000), 0);
    assert_int_equal(parts[0].given, 3000);
    assert_int_equal(parts[1].given, 5000);
}

static void test_equal_remainders_go_by_age(void **state)
{
    (void)state;
    struct share_part parts[] = {{9000, 1, 0}, {9000, 1, 0}};
    assert_int_equal(share_divide(parts, 2, 5000, 1000), 0);
    assert_int_equal(parts[0].given, 3000);
    assert_int_equal(parts[1].given, 2000);
}

static void test_a_covered_need_is_met_exactly_and_the_rest_divided_again(void **state)
{
    (void)state;
    struct share_part parts[] = {{250, 1, 0}, {9000, 1, 0}, {9000, 1, 0}};
    assert_int_equal(share_divide(parts, 3, 6250, 1000), 0);
    assert_int_equal(parts[0].given, 250);
    assert_int_equal(parts[1].given, 3000);
    assert_int_equal(parts[2].given, 3000);
}

static void test_weight_zero_gets_nothing_of_the_surplus(void **state)
{
    (void)state;
    struct share_part parts[] = {{4000, 0, 0}, {1000, 5, 0}};
    assert_int_equal(share_divide(parts, 2, 8000, 1000), 7000);
    assert_int_equal(parts[0].given, 0);
}

static void test_huge_weights_and_amounts_do_not_wrap(void **state)
{
    (void)state;
    struct share_part parts[] = {{INT64_MAX / 4, 1000000000, 0}, {INT64_MAX / 4, 1000000000, 0}};
    assert_int_equal(share_divide(parts, 2, INT64_MAX / 4, 1000), 0);
    assert_true(parts[0].given + parts[1].given == INT64_MAX / 4);
}

static void test_guarantees_come_before_weights(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_node(&w, 1, 8);
    world_team_full(&w, 1, 0, 6000, SCHED_UNLIMITED, 1, 100);
    world_team_full(&w, 2, 0, 0, SCHED_UNLIMITED, 9, 100);
    jobs(&w, 1, 10);
    jobs(&w, 2, 10);
    assert_int_equal(share_of(&w, 1), 6000);
    assert_int_equal(share_of(&w, 2), 2000);
    world_done(&w);
}

static void test_a_higher_sibling_gets_the_surplus_first(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_node(&w, 1, 8);
    world_team_full(&w, 1, 0, 0, SCHED_UNLIMITED, 1, 100);
    world_team_full(&w, 2, 0, 0, SCHED_UNLIMITED, 1, 200);
    jobs(&w, 1, 10);
    jobs(&w, 2, 5);
    assert_int_equal(share_of(&w, 2), 5000);
    assert_int_equal(share_of(&w, 1), 3000);
    world_done(&w);
}

static void test_a_limit_caps_demand_at_every_level(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_node(&w, 1, 8);
    world_team(&w, 1, 0, 0);
    world_team_full(&w, 2, 1, 0, 2000, 1, 100);
    world_team(&w, 3, 0, 0);
    jobs(&w, 2, 10);
    jobs(&w, 3, 10);
    assert_int_equal(share_of(&w, 1), 2000); /* not half of the cluster for what may not start */
    assert_int_equal(share_of(&w, 3), 6000);
    world_done(&w);
}

static void test_a_drained_node_counts_for_what_it_runs(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_node(&w, 1, 4);
    world_node(&w, 2, 4);
    world_team(&w, 1, 0, 0);
    world_team(&w, 2, 0, 0);
    world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .only_node = 2});
    world_settle(&w);
    world_node_state(&w, 2, 4, true, false);
    jobs(&w, 1, 9);
    jobs(&w, 2, 9);
    assert_int_equal(share_of(&w, 1) + share_of(&w, 2), 5000);
    world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_grains_by_largest_remainder),
        cmocka_unit_test(test_equal_remainders_go_by_age),
        cmocka_unit_test(test_a_covered_need_is_met_exactly_and_the_rest_divided_again),
        cmocka_unit_test(test_weight_zero_gets_nothing_of_the_surplus),
        cmocka_unit_test(test_huge_weights_and_amounts_do_not_wrap),
        cmocka_unit_test(test_guarantees_come_before_weights),
        cmocka_unit_test(test_a_higher_sibling_gets_the_surplus_first),
        cmocka_unit_test(test_a_limit_caps_demand_at_every_level),
        cmocka_unit_test(test_a_drained_node_counts_for_what_it_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
