/* SPDX-License-Identifier: Apache-2.0 */
#include "small_world.h"

static void nodes_of_two(struct small_world *w, unsigned nodes)
{
    world_init(w);
    for (unsigned n = 1; n <= nodes; n++)
        world_node(w, n, 2);
    world_team(w, 1, 0, 100000);
}

/* TASKS of MILLI each, at least MIN of them; on NODES nodes of two devices, where it runs now. */
static uint64_t gang_on(struct small_world *w, unsigned nodes, int milli, unsigned tasks,
                        unsigned min)
{
    nodes_of_two(w, nodes);
    uint64_t id =
        world_job(w, (struct job){.team = 1, .gpu_milli = milli, .tasks = tasks, .min = min});
    world_settle(w);
    return id;
}

/* Workload 1 of team 1, of whole devices: what `struct job` has no words for. */
static void add_tasks(struct small_world *w, struct sched_task *tasks, uint32_t count,
                      uint32_t min_tasks, const struct sched_group *groups, uint32_t group_count)
{
    static const struct sched_request r = {.device_count = 1, .device_milli = 1000};
    for (uint32_t t = 0; t < count; t++)
        tasks[t].request = &r;
    struct sched_workload work = {.id = 1,
                                  .team = 1,
                                  .class_ = SCHED_CLASS_TRAINING,
                                  .preemptible = true,
                                  .may_burst = true,
                                  .tasks = tasks,
                                  .task_count = count,
                                  .min_tasks = min_tasks,
                                  .groups = groups,
                                  .group_count = group_count};
    assert_int_equal(sched_workload_add(w->s, &work, NULL), 0);
    world_settle(w);
}

static void test_all_of_the_minimum_or_nothing(void **state)
{
    (void)state;
    struct small_world w;
    nodes_of_two(&w, 2);
    uint64_t gang = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .tasks = 5});
    uint64_t small = world_job(&w, (struct job){.team = 1, .gpu_milli = 2000});
    world_settle(&w);
    assert_int_equal(world_running(&w, gang, 5), 0);
    assert_running(&w, small); /* partial allocations hold nothing */
    world_done(&w);
}

static void test_elastic_workloads_grow_in_turn(void **state)
{
    (void)state;
    struct small_world w;
    nodes_of_two(&w, 3);
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .tasks = 6, .min = 1});
    uint64_t b = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .tasks = 6, .min = 1});
    world_settle(&w);
    assert_int_equal(world_running(&w, a, 6), 3);
    assert_int_equal(world_running(&w, b, 6), 3);
    world_done(&w);
}

static void test_the_minimum_of_all_comes_before_growth(void **state)
{
    (void)state;
    struct small_world w;
    nodes_of_two(&w, 1);
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .tasks = 2, .min = 1});
    uint64_t b = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    world_settle(&w);
    assert_int_equal(world_running(&w, a, 2), 1);
    assert_running(&w, b);
    world_done(&w);
}

static void test_a_stale_gang_is_torn_down(void **state)
{
    (void)state;
    struct small_world w;
    uint64_t gang = gang_on(&w, 2, 2000, 2, 0);
    uint64_t node = world_where(&w, gang, 1);
    world_node_state(&w, node, 2, false, true);
    world_stopped(&w, gang, 1, SCHED_STOP_REQUEUE);
    world_settle(&w);
    assert_int_equal(world_running(&w, gang, 2), 1);
    w.now_ms = sched_next_ms(w.s) - 1;
    world_settle(&w);
    assert_int_equal(world_running(&w, gang, 2), 1);
    w.now_ms++;
    world_settle(&w);
    assert_int_equal(world_running(&w, gang, 2), 0);
    assert_int_equal(w.last_evict.cause, SCHED_CAUSE_STALE_GANG);
    world_done(&w);
}

static void test_a_missing_task_is_replaced_at_once_where_there_is_room(void **state)
{
    (void)state;
    struct small_world w;
    uint64_t gang = gang_on(&w, 3, 2000, 2, 0);
    world_stopped(&w, gang, 0, SCHED_STOP_REQUEUE);
    world_settle(&w);
    assert_int_equal(world_running(&w, gang, 2), 2);
    assert_int_equal(w.evictions, 0);
    world_done(&w);
}

static void test_ended_tasks_count_towards_the_minimum(void **state)
{
    (void)state;
    struct small_world w;
    uint64_t gang = gang_on(&w, 1, 1000, 2, 0);
    world_finish(&w, gang, 0);
    w.now_ms += 1000000;
    world_settle(&w);
    assert_int_equal(world_state(&w, gang, 1), SCHED_TASK_RUNNING); /* not stale */
    world_done(&w);
}

static void test_an_evicted_gang_restarts_when_all_of_it_has_stopped(void **state)
{
    (void)state;
    struct small_world w;
    uint64_t gang = gang_on(&w, 2, 1000, 2, 1);
    w.stop_by_hand = true;
    world_job(&w, (struct job){.team = 1, .gpu_milli = 2000, .priority = 9, .tasks = 2});
    world_turn(&w);
    assert_int_equal(world_running(&w, gang, 2), 0);
    world_node(&w, 3, 2);
    world_stopped(&w, gang, 0, SCHED_STOP_REQUEUE);
    world_settle(&w);
    assert_int_equal(world_running(&w, gang, 2), 0); /* never two incarnations */
    world_stopped(&w, gang, 1, SCHED_STOP_REQUEUE);
    world_settle(&w);
    assert_true(world_running(&w, gang, 2) >= 1);
    world_done(&w);
}

static void test_higher_ranks_start_first(void **state)
{
    (void)state;
    struct small_world w;
    nodes_of_two(&w, 1);
    struct sched_task tasks[3] = {{0}, {.rank = 5}, {0}};
    add_tasks(&w, tasks, 3, 1, NULL, 0);
    assert_int_equal(world_state(&w, 1, 1), SCHED_TASK_RUNNING);
    assert_int_equal(world_state(&w, 1, 0), SCHED_TASK_RUNNING);
    assert_int_equal(world_state(&w, 1, 2), SCHED_TASK_PENDING);
    world_done(&w);
}

static void test_groups_have_minima_of_their_own(void **state)
{
    (void)state;
    struct small_world w;
    nodes_of_two(&w, 2);
    struct sched_task tasks[6] = {[4] = {.group = 1}, [5] = {.group = 1}};
    static const struct sched_group groups[2] = {{.name = "workers", .min_tasks = 2},
                                                 {.name = "servers", .min_tasks = 2}};
    add_tasks(&w, tasks, 6, 4, groups, 2);
    assert_int_equal(world_running(&w, 1, 4), 2); /* two workers, not four */
    assert_int_equal(world_running(&w, 1, 6), 4);
    world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_of_the_minimum_or_nothing),
        cmocka_unit_test(test_elastic_workloads_grow_in_turn),
        cmocka_unit_test(test_the_minimum_of_all_comes_before_growth),
        cmocka_unit_test(test_a_stale_gang_is_torn_down),
        cmocka_unit_test(test_a_missing_task_is_replaced_at_once_where_there_is_room),
        cmocka_unit_test(test_ended_tasks_count_towards_the_minimum),
        cmocka_unit_test(test_an_evicted_gang_restarts_when_all_of_it_has_stopped),
        cmocka_unit_test(test_higher_ranks_start_first),
        cmocka_unit_test(test_groups_have_minima_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
