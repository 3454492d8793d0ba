/* SPDX-License-Identifier: Apache-2.0 */
#include "small_world.h"

static void racks(struct small_world *w)
{
    static const char *const levels[] = {"rack"};
    world_init(w);
    assert_int_equal(sched_topology_set(w->s, levels, 1), 0);
    world_node_label(w, 1, 2, "rack", "a");
    world_node_label(w, 2, 2, "rack", "a");
    world_node_label(w, 3, 2, "rack", "b");
    world_node_label(w, 4, 2, "rack", "b");
    world_team(w, 1, 0, 100000);
}

static void test_required_means_one_domain(void **state)
{
    (void)state;
    struct small_world w;
    racks(&w);
    world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .only_node = 1, .firm = true});
    world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .only_node = 3, .firm = true});
    world_settle(&w);
    uint64_t a =
        world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .tasks = 4, .required = "rack"});
    uint64_t b =
        world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .tasks = 3, .required = "rack"});
    world_settle(&w);
    assert_int_equal(world_running(&w, a, 4), 0);
    assert_int_equal(world_running(&w, b, 3), 3);
    struct sched_explanation e;
    assert_int_equal(sched_explain(w.s, a, w.now_ms, &e), 0);
    world_done(&w);
}

static void test_preferred_is_let_go(void **state)
{
    (void)state;
    struct small_world w;
    racks(&w);
    uint64_t a =
        world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .tasks = 6, .preferred = "rack"});
    world_settle(&w);
    assert_int_equal(world_running(&w, a, 6), 6);
    world_done(&w);
}

static void test_preferred_is_kept_where_it_can_be(void **state)
{
    (void)state;
    struct small_world w;
    racks(&w);
    world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .only_node = 1});
    world_settle(&w);
    uint64_t a =
        world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .tasks = 4, .preferred = "rack"});
    world_settle(&w);
    for (uint32_t t = 0; t < 4; t++)
        assert_true(world_where(&w, a, t) >= 3);
    world_done(&w);
}

static void test_an_unknown_level_is_never_met(void **state)
{
    (void)state;
    struct small_world w;
    racks(&w);
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .required = "zone"});
    world_settle(&w);
    assert_pending(&w, a);
    world_done(&w);
}

static void test_growth_stays_in_the_domain(void **state)
{
    (void)state;
    struct small_world w;
    racks(&w);
    uint64_t a = world_job(
        &w, (struct job){.team = 1, .gpu_milli = 2000, .tasks = 4, .min = 1, .required = "rack"});
    world_settle(&w);
    assert_int_equal(world_running(&w, a, 4), 2);
    world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_required_means_one_domain),
        cmocka_unit_test(test_preferred_is_let_go),
        cmocka_unit_test(test_preferred_is_kept_where_it_can_be),
        cmocka_unit_test(test_an_unknown_level_is_never_met),
        cmocka_unit_test(test_growth_stays_in_the_domain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
