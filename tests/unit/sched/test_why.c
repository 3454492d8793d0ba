/* SPDX-License-Identifier: Apache-2.0 */
/* Each reason in a world of its own: the numbers, who is named, the estimate, what would do. */
#include <errno.h>

#include "small_world.h"

#define GIB (1LL << 30)

static struct sched_explanation explain(struct small_world *w, uint64_t id)
{
    struct sched_explanation e;
    enum sched_reason brief;
    uint32_t position;
    assert_int_equal(sched_explain(w->s, id, w->now_ms, &e), 0);
    assert_int_equal(sched_explain_brief(w->s, id, w->now_ms, &brief, &position), 0);
    assert_int_equal(position, e.position);
    if (e.reason != SCHED_REASON_MAINTENANCE)
        assert_int_equal(brief, e.reason);
    return e;
}

static void world_of(struct small_world *w, uint32_t gpus)
{
    world_init(w);
    world_node(w, 1, gpus);
}

/* ---- what never starts as things are ------------------------------------------------------ */

static void test_what_no_node_has(void **state)
{
    (void)state;
    struct small_world w;
    world_of(&w, 8);
    world_team(&w, 1, 0, 8000);
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .gpu_type = "A100"});
    uint64_t b = world_job(&w, (struct job){.team = 1, .gpu_milli = 9000});
    world_settle(&w);
    struct sched_explanation e = explain(&w, a);
    assert_int_equal(e.reason, SCHED_REASON_NO_SUCH_DEVICE);
    assert_int_equal(e.asked, 1000);
    e = explain(&w, b);
    assert_int_equal(e.reason, SCHED_REASON_TOO_LARGE);
    assert_int_equal(e.asked, 9000);
    assert_int_equal(e.most, 8000);
    assert_int_equal(e.missing, 1000);
    assert_int_equal(e.basis, SCHED_START_UNKNOWN);
    assert_int_equal(e.holder_count, 0);
    world_done(&w);
}

static void test_what_a_quota_never_admits(void **state)
{
    (void)state;
    struct small_world w;
    world_of(&w, 8);
    world_team_full(&w, 1, 0, 2000, 4000, 1, 100);
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 5000});
    uint64_t b = world_job(&w, (struct job){.team = 1, .gpu_milli = 3000, .firm = true});
    world_settle(&w);
    struct sched_explanation e = explain(&w, a);
    assert_int_equal(e.reason, SCHED_REASON_ABOVE_LIMIT);
    assert_int_equal(e.team, 1);
    assert_int_equal(e.limit, 4000);
    assert_int_equal(e.missing, 1000);
    e = explain(&w, b);
    assert_int_equal(e.reason, SCHED_REASON_ABOVE_GUARANTEE);
    assert_int_equal(e.guarantee, 2000);
    world_done(&w);
}

/* ---- limits and guarantees ------------------------------------------------------------------ */

static void test_the_limit_of_an_ancestor_and_all_that_holds_it(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_node(&w, 1, 5);
    world_node(&w, 2, 4);
    world_team_full(&w, 1, 0, 0, 4000, 1, 100);
    world_team(&w, 2, 1, 0);
    world_team(&w, 3, 1, 0);
    world_team(&w, 4, 0, 0);
    uint64_t mine = world_job(&w, (struct job){.team = 2, .gpu_milli = 1000, .only_node = 1});
    uint64_t beside = world_job(
        &w, (struct job){.team = 3, .gpu_milli = 2000, .only_node = 2, .limit_ms = 60000});
    world_job(&w, (struct job){.team = 4, .gpu_milli = 1000, .only_node = 1});
    world_settle(&w);
    uint64_t a = world_job(&w, (struct job){.team = 2, .gpu_milli = 3000, .only_node = 1});
    world_settle(&w);
    struct sched_explanation e = explain(&w, a);
    assert_int_equal(e.reason, SCHED_REASON_TEAM_LIMIT);
    assert_int_equal(e.team, 1);
    assert_int_equal(e.limit, 4000);
    assert_int_equal(e.used, 3000);
    assert_int_equal(e.asked, 3000);
    assert_int_equal(e.free, 1000); /* under the limit */
    assert_int_equal(e.missing, 2000);
    assert_int_equal(e.less, 2000);
    assert_int_equal(e.holder_count, 2); /* on whichever node, and nobody of team 4 */
    assert_int_equal(e.holders[0], beside);
    assert_int_equal(e.holder_amount[0], 2000);
    assert_int_equal(e.holders[1], mine);
    assert_int_equal(e.waits_for, beside);
    assert_int_equal(e.start_ms, w.now_ms + 60000);
    assert_int_equal(e.basis, SCHED_START_LIMITS);
    world_done(&w);
}

static void test_work_that_cannot_be_preempted_fills_the_guarantee(void **state)
{
    (void)state;
    struct small_world w;
    world_of(&w, 8);
    world_team(&w, 1, 0, 3000);
    uint64_t firm = world_job(&w, (struct job){.team = 1, .gpu_milli = 2000, .firm = true});
    world_job(&w, (struct job){.team = 1, .gpu_milli = 3000});
    world_settle(&w);
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 2000, .firm = true});
    world_settle(&w);
    struct sched_explanation e = explain(&w, a);
    assert_int_equal(e.reason, SCHED_REASON_TEAM_GUARANTEE);
    assert_true(e.firm);
    assert_int_equal(e.guarantee, 3000);
    assert_int_equal(e.used, 2000); /* of such work */
    assert_int_equal(e.less, 1000);
    assert_int_equal(e.holder_count, 1);
    assert_int_equal(e.holders[0], firm);
    world_done(&w);
}

static void test_work_that_does_not_burst_stays_within_the_guarantee(void **state)
{
    (void)state;
    struct small_world w;
    world_of(&w, 8);
    world_team(&w, 1, 0, 3000);
    uint64_t first = world_job(&w, (struct job){.team = 1, .gpu_milli = 2000});
    world_settle(&w);
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 2000, .no_burst = true});
    world_settle(&w);
    struct sched_explanation e = explain(&w, a);
    assert_int_equal(e.reason, SCHED_REASON_TEAM_GUARANTEE);
    assert_false(e.firm);
    assert_int_equal(e.used, 2000);
    assert_int_equal(e.holders[0], first);
    assert_int_equal(e.less, 1000);
    world_done(&w);
}

/* ---- room ---------------------------------------------------------------------------------- */

static void test_what_it_may_take_back_counts(void **state)
{
    (void)state;
    struct small_world w;
    world_of(&w, 8);
    world_team(&w, 1, 0, 4000);
    world_team(&w, 2, 0, 4000);
    for (int i = 0; i < 7; i++)
        world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    world_settle(&w);
    uint64_t a = world_job(&w, (struct job){.team = 2, .gpu_milli = 6000});
    world_settle(&w);
    struct sched_explanation e = explain(&w, a);
    assert_int_equal(e.reason, SCHED_REASON_NO_CAPACITY);
    assert_int_equal(e.free, 1000);
    assert_int_equal(e.missing, 5000);
    assert_int_equal(e.less, 2000); /* four are its right: one is free, three it takes back */
    assert_int_equal(e.takes, 3000);
    assert_int_equal(e.share, 4000);
    assert_int_equal(e.holder_count, 7);
    world_done(&w);
}

static void test_guarantees_that_add_up_to_more_than_there_is(void **state)
{
    (void)state;
    struct small_world w;
    world_of(&w, 8);
    world_team(&w, 1, 0, 8000);
    world_team(&w, 2, 0, 4000);
    uint64_t first = world_job(&w, (struct job){.team = 1, .gpu_milli = 8000, .limit_ms = 60000});
    world_settle(&w);
    uint64_t a = world_job(&w, (struct job){.team = 2, .gpu_milli = 2000});
    world_settle(&w);
    struct sched_explanation e = explain(&w, a);
    assert_int_equal(e.reason, SCHED_REASON_OVERCOMMITTED);
    assert_int_equal(e.guarantees, 12000);
    assert_int_equal(e.capacity, 8000);
    assert_int_equal(e.over_team, 0);
    assert_int_equal(e.less, 0);
    assert_int_equal(e.holders[0], first);
    assert_int_equal(e.waits_for, first);
    assert_int_equal(e.start_ms, w.now_ms + 60000);
    world_done(&w);
}

static void test_guarantees_below_a_department(void **state)
{
    (void)state;
    struct small_world w;
    world_of(&w, 8);
    world_team(&w, 1, 0, 4000);
    world_team(&w, 2, 1, 4000);
    world_team(&w, 3, 1, 4000);
    world_team(&w, 4, 0, 4000);
    world_job(&w, (struct job){.team = 2, .gpu_milli = 4000});
    world_job(&w, (struct job){.team = 4, .gpu_milli = 4000});
    world_settle(&w);
    uint64_t a = world_job(&w, (struct job){.team = 3, .gpu_milli = 1000});
    world_settle(&w);
    struct sched_explanation e = explain(&w, a);
    assert_int_equal(e.reason, SCHED_REASON_OVERCOMMITTED);
    assert_int_equal(e.over_team, 1);
    assert_int_equal(e.guarantees, 8000);
    assert_int_equal(e.capacity, 4000);
    world_done(&w);
}

static void test_a_gang_of_which_three_tasks_fit(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_node(&w, 1, 2);
    world_node(&w, 2, 2);
    world_team(&w, 1, 0, 4000);
    uint64_t one = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .firm = true});
    world_settle(&w);
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .tasks = 4});
    world_settle(&w);
    struct sched_explanation e = explain(&w, a);
    assert_int_equal(e.reason, SCHED_REASON_NO_CAPACITY);
    assert_int_equal(e.asked, 4000);
    assert_int_equal(e.each, 1000);
    assert_int_equal(e.gang, 4);
    assert_int_equal(e.fitting, 3);
    assert_int_equal(e.less, 1000);
    assert_int_equal(e.less_tasks, 1);
    assert_int_equal(e.holders[0], one);
    world_done(&w);
}

static void test_pieces_that_are_too_small(void **state)
{
    (void)state;
    struct small_world w;
    world_of(&w, 2);
    world_team(&w, 1, 0, 2000);
    world_job(&w, (struct job){.team = 1, .gpu_milli = 600, .firm = true});
    world_job(&w, (struct job){.team = 1, .gpu_milli = 700, .firm = true});
    world_settle(&w);
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 500});
    world_settle(&w);
    struct sched_explanation e = explain(&w, a);
    assert_int_equal(e.reason, SCHED_REASON_FRAGMENTED);
    assert_int_equal(e.free, 700);
    assert_int_equal(e.most, 400);
    assert_int_equal(e.missing, 100);
    assert_int_equal(e.less, 100);
    assert_int_equal(e.less_tasks, 0);
    world_done(&w);
}

static void test_the_domain_that_holds_the_most(void **state)
{
    (void)state;
    static const char *const levels[] = {"rack"};
    struct small_world w;
    world_init(&w);
    assert_int_equal(sched_topology_set(w.s, levels, 1), 0);
    world_node_label(&w, 1, 2, "rack", "a");
    world_node_label(&w, 2, 2, "rack", "a");
    world_node_label(&w, 3, 2, "rack", "b");
    world_node_label(&w, 4, 2, "rack", "b");
    world_team(&w, 1, 0, 8000);
    world_job(&w, (struct job){.team = 1, .gpu_milli = 2000, .only_node = 1, .firm = true});
    world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .only_node = 3, .firm = true});
    world_settle(&w);
    uint64_t a =
        world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .tasks = 4, .required = "rack"});
    world_settle(&w);
    struct sched_explanation e = explain(&w, a);
    assert_int_equal(e.reason, SCHED_REASON_TOPOLOGY);
    assert_string_equal(e.level, "rack");
    assert_string_equal(e.domain, "b");
    assert_int_equal(e.domain_fitting, 3);
    assert_int_equal(e.free, 5000);
    assert_int_equal(e.less_tasks, 1);
    assert_int_equal(e.holder_count, 0);
    world_done(&w);
}

static void host_node(struct small_world *w, uint64_t id, uint32_t gpus, int64_t cpu,
                      int64_t memory)
{
    struct sched_device devices[8] = {{0}};
    struct sched_node node = {.id = id,
                              .order = id,
                              .devices = devices,
                              .device_count = gpus,
                              .cpu_milli = cpu,
                              .memory_bytes = memory,
                              .up = true,
                              .schedulable = true};
    assert_int_equal(sched_node_set(w->s, &node), 0);
}

static void test_cores_beside_free_devices(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    host_node(&w, 1, 2, 4000, SCHED_UNLIMITED);
    host_node(&w, 2, 0, 64000, SCHED_UNLIMITED); /* has cores and no device */
    world_team(&w, 1, 0, 2000);
    uint64_t first =
        world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .cpu_milli = 3000, .firm = true});
    world_settle(&w);
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .cpu_milli = 2000});
    world_settle(&w);
    struct sched_explanation e = explain(&w, a);
    assert_int_equal(e.reason, SCHED_REASON_CPU);
    assert_int_equal(e.resource, SCHED_CPU_MILLI);
    assert_int_equal(e.each, 2000);
    assert_int_equal(e.free, 1000);
    assert_int_equal(e.most, 1000);
    assert_int_equal(e.less, 1000);
    assert_int_equal(e.holders[0], first);
    assert_int_equal(e.holder_amount[0], 3000);
    world_done(&w);
}

static void test_memory_of_work_without_devices(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    host_node(&w, 1, 0, 8000, 10 * GIB);
    world_team(&w, 1, 0, 0);
    uint64_t first = world_job(&w, (struct job){.team = 1, .cpu_milli = 1000, .memory = 8 * GIB});
    world_settle(&w);
    uint64_t a = world_job(&w, (struct job){.team = 1, .cpu_milli = 1000, .memory = 4 * GIB});
    uint64_t b = world_job(&w, (struct job){.team = 1, .cpu_milli = 8000});
    world_settle(&w);
    struct sched_explanation e = explain(&w, a);
    assert_int_equal(e.reason, SCHED_REASON_MEMORY);
    assert_int_equal(e.most, 2 * GIB);
    assert_int_equal(e.less, 2 * GIB);
    assert_int_equal(e.holders[0], first);
    assert_int_equal(e.holder_amount[0], 8 * GIB);
    e = explain(&w, b);
    assert_int_equal(e.reason, SCHED_REASON_CPU);
    assert_int_equal(e.most, 7000);
    assert_int_equal(e.less, 1000);
    world_done(&w);
}

/* ---- nodes --------------------------------------------------------------------------------- */

static void test_nodes_that_are_away_are_named(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_node(&w, 1, 1);
    world_node_state(&w, 2, 4, true, false);
    world_node_state(&w, 3, 4, false, true);
    world_node_state(&w, 4, 1, false, true);
    world_team(&w, 1, 0, 9000);
    world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    world_settle(&w);
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 2000});
    world_settle(&w);
    struct sched_explanation e = explain(&w, a);
    assert_int_equal(e.reason, SCHED_REASON_NODES_DOWN);
    assert_int_equal(e.node_count, 2);
    assert_int_equal(e.nodes[0], 2);
    assert_int_equal(e.nodes[1], 3);
    assert_int_equal(e.holder_count, 0);
    assert_int_equal(e.basis, SCHED_START_UNKNOWN);
    world_done(&w);
}

static void test_maintenance_that_others_would_leave_room_before(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_node_window(&w, 1, 2, 100000, 200000);
    world_team(&w, 1, 0, 2000);
    uint64_t first =
        world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .limit_ms = 50000, .firm = true});
    world_settle(&w);
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 2000, .limit_ms = 80000});
    world_settle(&w);
    struct sched_explanation e = explain(&w, a);
    assert_int_equal(e.reason, SCHED_REASON_MAINTENANCE); /* that ends at 51 s, and 80 s are left */
    assert_int_equal(e.node_count, 1);
    assert_int_equal(e.nodes[0], 1);
    assert_int_equal(e.start_ms, 200000);
    assert_int_equal(e.basis, SCHED_START_WINDOW);
    assert_int_equal(e.run_ms, 0);
    assert_int_equal(e.waits_for, first);
    assert_int_equal(e.holder_count, 0);
    world_done(&w);
}

static void test_work_that_ends_at_a_window_only(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_node_window(&w, 1, 2, 100000, 200000);
    world_team(&w, 1, 0, 2000);
    uint64_t first = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .limit_ms = 99000});
    world_settle(&w);
    w.now_ms = 2000;
    world_node_window(&w, 1, 2, 90000, 200000); /* sooner than it was */
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 2000, .limit_ms = 10000});
    world_settle(&w);
    struct sched_explanation e = explain(&w, a);
    assert_int_equal(e.reason, SCHED_REASON_NO_CAPACITY); /* who is in the way would stay */
    assert_int_equal(e.holders[0], first);
    assert_int_equal(e.start_ms, 200000); /* but has to go then */
    assert_int_equal(e.basis, SCHED_START_WINDOW);
    world_done(&w);
}

static void test_the_longest_run_before_several_windows(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_node_window(&w, 1, 1, 40000, 50000);
    world_node_window(&w, 2, 1, 90000, 300000);
    world_node_window(&w, 3, 1, 60000, 200000);
    world_team(&w, 1, 0, 3000);
    uint64_t one = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .limit_ms = 100000});
    uint64_t both =
        world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .tasks = 2, .limit_ms = 100000});
    world_settle(&w);
    struct sched_explanation e = explain(&w, one);
    assert_int_equal(e.reason, SCHED_REASON_MAINTENANCE);
    assert_int_equal(e.run_ms, 90000 - w.now_ms);
    assert_int_equal(e.nodes[0], 2);
    assert_int_equal(e.node_count, 3);
    e = explain(&w, both);
    assert_int_equal(e.run_ms, 60000 - w.now_ms);
    assert_int_equal(e.nodes[0], 3);
    world_done(&w);
}

/* ---- others -------------------------------------------------------------------------------- */

static void test_a_minimum_run_time_and_its_end(void **state)
{
    (void)state;
    struct small_world w;
    world_of(&w, 1);
    world_team(&w, 1, 0, 1000);
    uint64_t low = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .min_run_ms = 60000});
    world_settle(&w);
    int64_t began_ms = w.now_ms;
    w.now_ms += 5000;
    uint64_t high = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .priority = 1});
    world_settle(&w);
    struct sched_explanation e = explain(&w, high);
    assert_int_equal(e.reason, SCHED_REASON_PROTECTED);
    assert_int_equal(e.basis, SCHED_START_PROTECTED);
    assert_int_equal(e.start_ms, began_ms + 60000);
    assert_int_equal(e.waits_for, low);
    w.now_ms = e.start_ms;
    world_settle(&w);
    assert_running(&w, high); /* as it was told */
    world_done(&w);
}

static void test_a_disruption_budget(void **state)
{
    (void)state;
    struct small_world w;
    world_of(&w, 3);
    world_team(&w, 1, 0, 3000);
    uint64_t service = world_job(&w, (struct job){.team = 1,
                                                  .gpu_milli = 1000,
                                                  .tasks = 3,
                                                  .min = 2,
                                                  .other_class = true,
                                                  .class_ = SCHED_CLASS_DEVELOPMENT,
                                                  .no_burst = true,
                                                  .max_unavailable = 1});
    world_settle(&w);
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 2000});
    world_settle(&w);
    struct sched_explanation e = explain(&w, a);
    assert_int_equal(e.waits_for, service);
    assert_int_equal(e.reason, SCHED_REASON_BUDGET);
    assert_int_equal(e.less, 1000);
    assert_int_equal(e.takes, 1000);
    world_done(&w);
}

static void test_a_promise_names_all_who_have_to_stop(void **state)
{
    (void)state;
    struct small_world w;
    world_of(&w, 2);
    world_team(&w, 1, 0, 2000);
    uint64_t low = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    uint64_t other = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    world_settle(&w);
    w.stop_by_hand = true;
    uint64_t high = world_job(&w, (struct job){.team = 1, .gpu_milli = 2000, .priority = 1});
    world_turn(&w);
    struct sched_explanation e = explain(&w, high);
    assert_int_equal(e.reason, SCHED_REASON_HELD);
    assert_int_equal(e.holder_count, 2);
    assert_int_equal(e.holders[0], low);
    assert_int_equal(e.holders[1], other);
    e = explain(&w, low);
    assert_int_equal(e.reason, SCHED_REASON_STOPPING);
    assert_int_equal(e.waits_for, low);
    world_done(&w);
}

static void test_what_is_free_and_promised(void **state)
{
    (void)state;
    struct small_world w;
    world_of(&w, 2);
    world_team(&w, 1, 0, 2000);
    world_team(&w, 2, 0, 0);
    world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    world_settle(&w);
    w.stop_by_hand = true;
    uint64_t high = world_job(&w, (struct job){.team = 1, .gpu_milli = 2000, .priority = 1});
    world_turn(&w);
    uint64_t a = world_job(&w, (struct job){.team = 2, .gpu_milli = 1000});
    world_turn(&w);
    struct sched_explanation e = explain(&w, a);
    assert_int_equal(e.reason, SCHED_REASON_PROMISED);
    assert_int_equal(e.free, 1000);
    assert_int_equal(e.waits_for, high);
    world_done(&w);
}

static void test_what_comes_free_when_others_have_stopped(void **state)
{
    (void)state;
    struct small_world w;
    world_of(&w, 2);
    world_team(&w, 1, 0, 2000);
    uint64_t low = world_job(&w, (struct job){.team = 1, .gpu_milli = 2000});
    world_settle(&w);
    w.stop_by_hand = true;
    world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .priority = 1});
    world_turn(&w);
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    world_turn(&w);
    struct sched_explanation e = explain(&w, a);
    assert_int_equal(e.reason, SCHED_REASON_STOPPING);
    assert_int_equal(e.waits_for, low);
    assert_int_equal(e.basis, SCHED_START_VICTIMS);
    assert_int_equal(e.holder_count, 1);
    assert_int_equal(e.holders[0], low);
    world_done(&w);
}

static void test_whom_it_would_delay(void **state)
{
    (void)state;
    struct small_world w;
    world_of(&w, 4);
    world_team(&w, 1, 0, 4000);
    world_job(&w, (struct job){.team = 1, .gpu_milli = 2000, .limit_ms = 100000});
    world_settle(&w);
    uint64_t large = world_job(&w, (struct job){.team = 1, .gpu_milli = 4000});
    uint64_t small = world_job(&w, (struct job){.team = 1, .gpu_milli = 2000, .limit_ms = 200000});
    world_settle(&w);
    struct sched_explanation e = explain(&w, small);
    assert_int_equal(e.reason, SCHED_REASON_RESERVED);
    assert_int_equal(e.waits_for, large);
    assert_int_equal(e.start_ms, w.now_ms + 100000);
    assert_int_equal(e.basis, SCHED_START_RESERVED);
    assert_int_equal(e.run_ms, 100000);
    e = explain(&w, large);
    assert_int_equal(e.reason, SCHED_REASON_NO_CAPACITY);
    assert_int_equal(e.less, 2000);
    assert_int_equal(e.start_ms, w.now_ms + 100000);
    assert_int_equal(e.basis, SCHED_START_LIMITS);
    world_done(&w);
}

/* ---- what would be ------------------------------------------------------------------------ */

/* Asks, sees that nothing has come of that, hands it in, and sees that it was true. */
static struct sched_explanation foresee(struct small_world *w, struct job job)
{
    struct sched_explanation e = world_foresee(w, job);
    unsigned evictions = w->evictions;
    assert_int_equal(world_turn(w), 0);
    uint64_t id = world_job(w, job);
    world_settle(w);
    if (e.reason == SCHED_REASON_NONE)
        assert_running(w, id);
    else
        assert_int_equal(explain(w, id).reason, e.reason);
    assert_int_equal(w->evictions > evictions, e.basis == SCHED_START_VICTIMS);
    return e;
}

static void test_what_would_become_of_it(void **state)
{
    (void)state;
    struct small_world w;
    world_of(&w, 8);
    world_team_full(&w, 1, 0, 4000, 7000, 1, 100);
    world_team(&w, 2, 0, 4000);
    world_settle(&w);
    struct sched_explanation e = foresee(&w, (struct job){.team = 1, .gpu_milli = 3000});
    assert_int_equal(e.basis, SCHED_START_NOW);
    e = foresee(&w, (struct job){.team = 1, .gpu_milli = 3000});
    assert_int_equal(e.basis, SCHED_START_NOW);
    e = foresee(&w, (struct job){.team = 1, .gpu_milli = 2000});
    assert_int_equal(e.reason, SCHED_REASON_TEAM_LIMIT);
    e = foresee(&w, (struct job){.team = 2, .gpu_milli = 3000});
    assert_int_equal(e.reason, SCHED_REASON_NONE);
    assert_int_equal(e.takes, 3000);
    assert_int_equal(e.holder_count, 1);
    assert_int_equal(e.holder_amount[0], 3000);
    e = foresee(&w, (struct job){.team = 2, .gpu_milli = 2000, .firm = true});
    assert_int_equal(e.reason, SCHED_REASON_NO_CAPACITY);
    e = foresee(&w, (struct job){.team = 1, .gpu_milli = 1000, .gpu_type = "A100"});
    assert_int_equal(e.reason, SCHED_REASON_NO_SUCH_DEVICE);
    world_done(&w);
}

static void test_all_reasons_have_a_word_of_their_own(void **state)
{
    (void)state;
    for (unsigned i = 0; i < SCHED_REASONS; i++) {
        assert_non_null(sched_reason_name((enum sched_reason)i));
        for (unsigned k = 0; k < i; k++)
            assert_string_not_equal(sched_reason_name((enum sched_reason)i),
                                    sched_reason_name((enum sched_reason)k));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_no_node_has),
        cmocka_unit_test(test_what_a_quota_never_admits),
        cmocka_unit_test(test_the_limit_of_an_ancestor_and_all_that_holds_it),
        cmocka_unit_test(test_work_that_cannot_be_preempted_fills_the_guarantee),
        cmocka_unit_test(test_work_that_does_not_burst_stays_within_the_guarantee),
        cmocka_unit_test(test_what_it_may_take_back_counts),
        cmocka_unit_test(test_guarantees_that_add_up_to_more_than_there_is),
        cmocka_unit_test(test_guarantees_below_a_department),
        cmocka_unit_test(test_a_gang_of_which_three_tasks_fit),
        cmocka_unit_test(test_pieces_that_are_too_small),
        cmocka_unit_test(test_the_domain_that_holds_the_most),
        cmocka_unit_test(test_cores_beside_free_devices),
        cmocka_unit_test(test_memory_of_work_without_devices),
        cmocka_unit_test(test_nodes_that_are_away_are_named),
        cmocka_unit_test(test_maintenance_that_others_would_leave_room_before),
        cmocka_unit_test(test_work_that_ends_at_a_window_only),
        cmocka_unit_test(test_the_longest_run_before_several_windows),
        cmocka_unit_test(test_a_minimum_run_time_and_its_end),
        cmocka_unit_test(test_a_disruption_budget),
        cmocka_unit_test(test_a_promise_names_all_who_have_to_stop),
        cmocka_unit_test(test_what_is_free_and_promised),
        cmocka_unit_test(test_what_comes_free_when_others_have_stopped),
        cmocka_unit_test(test_whom_it_would_delay),
        cmocka_unit_test(test_what_would_become_of_it),
        cmocka_unit_test(test_all_reasons_have_a_word_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
