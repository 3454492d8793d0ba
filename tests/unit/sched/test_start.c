/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "small_world.h"

static void one_node(struct small_world *w, uint32_t gpus, int64_t guarantee, int64_t limit)
{
    world_init(w);
    world_node(w, 1, gpus);
    world_team_full(w, 1, 0, guarantee, limit, 1, 100);
}

static void test_what_fits_starts_in_the_next_turn(void **state)
{
    (void)state;
    struct small_world w;
    one_node(&w, 2, 2000, SCHED_UNLIMITED);
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 2000});
    assert_int_equal(world_turn(&w), 1);
    assert_running(&w, a);
    assert_int_equal(world_turn(&w), 0);
    world_done(&w);
}

static void test_the_limit_is_a_gate(void **state)
{
    (void)state;
    struct small_world w;
    one_node(&w, 4, 0, 1000);
    world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    uint64_t b = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    world_settle(&w);
    assert_pending(&w, b);
    world_done(&w);
}

static void test_fair_share_is_no_gate(void **state)
{
    (void)state;
    struct small_world w;
    one_node(&w, 4, 0, SCHED_UNLIMITED);
    world_team_full(&w, 2, 0, 4000, SCHED_UNLIMITED, 1, 100);
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 4000});
    world_settle(&w);
    assert_running(&w, a);
    world_done(&w);
}

static void test_firm_work_starts_within_the_guarantee_only(void **state)
{
    (void)state;
    struct small_world w;
    one_node(&w, 4, 1000, SCHED_UNLIMITED);
    uint64_t soft = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    world_settle(&w);
    uint64_t firm = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .firm = true});
    uint64_t more = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .firm = true});
    world_settle(&w);
    assert_running(&w, soft); /* firm work is summed over firm work */
    assert_running(&w, firm);
    assert_pending(&w, more);
    world_done(&w);
}

static void test_work_that_may_not_burst_counts_all_of_its_team(void **state)
{
    (void)state;
    struct small_world w;
    one_node(&w, 4, 1000, SCHED_UNLIMITED);
    world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    world_settle(&w);
    uint64_t b = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .no_burst = true});
    world_settle(&w);
    assert_pending(&w, b);
    world_done(&w);
}

static void test_idle_only_work_comes_after_all_others(void **state)
{
    (void)state;
    struct small_world w;
    one_node(&w, 1, 1000, SCHED_UNLIMITED);
    world_team(&w, 2, 0, 0);
    uint64_t batch = world_job(
        &w, (struct job){
                .team = 1, .gpu_milli = 1000, .other_class = true, .class_ = SCHED_CLASS_BATCH});
    uint64_t other = world_job(&w, (struct job){.team = 2, .gpu_milli = 1000});
    world_settle(&w);
    assert_pending(&w, batch);
    assert_running(&w, other);
    assert_int_equal(w.evictions, 0);
    world_done(&w);
}

static void test_a_second_add_of_the_same_id_is_refused(void **state)
{
    (void)state;
    struct small_world w;
    one_node(&w, 1, 1000, SCHED_UNLIMITED);
    world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    assert_int_equal(world_try_job(&w, (struct job){.id = 1, .team = 1, .gpu_milli = 1000}, NULL),
                     -EEXIST);
    world_done(&w);
}

static void test_removed_work_holds_its_devices_until_it_has_stopped(void **state)
{
    (void)state;
    struct small_world w;
    one_node(&w, 1, 1000, SCHED_UNLIMITED);
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    uint64_t b = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    world_settle(&w);
    assert_int_equal(sched_workload_remove(w.s, a), 0);
    assert_int_equal(sched_workload_remove(w.s, a), -ENOENT);
    world_settle(&w);
    assert_pending(&w, b);
    world_finish(&w, a, 0);
    world_settle(&w);
    assert_running(&w, b);
    world_done(&w);
}

static void test_malformed_requests_are_refused(void **state)
{
    (void)state;
    struct small_world w;
    one_node(&w, 1, 1000, SCHED_UNLIMITED);
    struct sched_request bad[] = {
        {.device_count = 1}, /* of what? */
        {.device_count = 1, .device_milli = 1001},
        {.device_count = 1, .device_milli = 500, .device_memory_bytes = 1},
        {.device_milli = 500},
        {.cpu_milli = -1},
        {.memory_bytes = INT64_MAX},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct sched_task task = {.request = &bad[i]};
        struct sched_workload work = {
            .id = 1, .team = 1, .tasks = &task, .task_count = 1, .min_tasks = 1, .accepted = true};
        assert_int_equal(sched_workload_add(w.s, &work, NULL), -EINVAL);
    }
    struct sched_request good = {.cpu_milli = 1};
    struct sched_task task = {.request = &good};
    struct sched_workload work = {
        .id = 1, .team = 1, .tasks = &task, .task_count = 1, .min_tasks = 2, .accepted = true};
    assert_int_equal(sched_workload_add(w.s, &work, NULL), -EINVAL);
    world_done(&w);
}

static void test_a_sum_that_would_overflow_is_refused(void **state)
{
    (void)state;
    struct small_world w;
    one_node(&w, 1, 1000, SCHED_UNLIMITED);
    struct sched_request r = {.memory_bytes = 1LL << 52, .cpu_milli = 1LL << 40};
    struct sched_task *tasks = calloc(100000, sizeof(*tasks));
    for (int t = 0; t < 100000; t++)
        tasks[t].request = &r;
    struct sched_workload work = {
        .id = 1, .team = 1, .tasks = tasks, .task_count = 100000, .min_tasks = 1, .accepted = true};
    assert_int_equal(sched_workload_add(w.s, &work, NULL), -EINVAL);
    work.task_count = 500;
    int r1 = sched_workload_add(w.s, &work, NULL);
    work.id = 2;
    int r2 = sched_workload_add(w.s, &work, NULL); /* nor may the sum of all pending work */
    assert_true(r1 == 0 && r2 == -EINVAL);
    free(tasks);
    world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_fits_starts_in_the_next_turn),
        cmocka_unit_test(test_the_limit_is_a_gate),
        cmocka_unit_test(test_fair_share_is_no_gate),
        cmocka_unit_test(test_firm_work_starts_within_the_guarantee_only),
        cmocka_unit_test(test_work_that_may_not_burst_counts_all_of_its_team),
        cmocka_unit_test(test_idle_only_work_comes_after_all_others),
        cmocka_unit_test(test_a_second_add_of_the_same_id_is_refused),
        cmocka_unit_test(test_removed_work_holds_its_devices_until_it_has_stopped),
        cmocka_unit_test(test_malformed_requests_are_refused),
        cmocka_unit_test(test_a_sum_that_would_overflow_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
