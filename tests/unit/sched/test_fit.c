/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fit and placement: which node, which device, at what charge.
 */
#include <string.h>

#include "small_world.h"

#define GIB (1LL << 30)

static uint16_t device_of(struct small_world *w, uint64_t id)
{
    const struct sched_decisions *d = sched_turn(w->s, w->now_ms);
    for (size_t i = 0; i < d->count; i++)
        if (d->items[i].workload == id && d->items[i].kind == SCHED_START)
            return d->items[i].devices[0];
    fail_msg("it did not start");
    return 0;
}

static void simple(struct small_world *w, uint32_t gpus)
{
    world_init(w);
    world_node(w, 1, gpus);
    world_team(w, 1, 0, 1000000);
}

static void test_fractions_prefer_a_device_that_is_shared_already(void **state)
{
    (void)state;
    struct small_world w;
    simple(&w, 4);
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 250});
    uint16_t first = device_of(&w, a);
    for (int i = 0; i < 3; i++) {
        uint64_t b = world_job(&w, (struct job){.team = 1, .gpu_milli = 250});
        assert_int_equal(device_of(&w, b), first);
    }
    uint64_t c = world_job(&w, (struct job){.team = 1, .gpu_milli = 250});
    assert_int_not_equal(device_of(&w, c), first); /* four quarters are full */
    world_done(&w);
}

static void test_a_fraction_takes_memory_too(void **state)
{
    (void)state;
    struct small_world w;
    simple(&w, 1);
    world_job(&w, (struct job){.team = 1, .gpu_milli = 500});
    world_settle(&w);
    uint64_t fits = world_job(&w, (struct job){.team = 1, .gpu_memory = 40 * GIB});
    uint64_t not = world_job(&w, (struct job){.team = 1, .gpu_memory = 1});
    world_settle(&w);
    assert_running(&w, fits);
    assert_pending(&w, not );
    world_done(&w);
}

static void test_memory_is_charged_as_the_ceiling_of_its_share(void **state)
{
    (void)state;
    struct small_world w;
    struct sched_team_usage u;
    simple(&w, 1);
    world_job(&w, (struct job){.team = 1, .gpu_memory = 10 * GIB + 1});
    world_settle(&w);
    assert_int_equal(sched_team_usage(w.s, 1, &u), 0);
    assert_int_equal(u.used[SCHED_GPU_MILLI], 126);
    world_done(&w);
}

static void test_whole_jobs_pack_into_the_tightest_node(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_node(&w, 1, 8);
    world_node(&w, 2, 2);
    world_team(&w, 1, 0, 1000000);
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 2000});
    world_settle(&w);
    assert_int_equal(world_where(&w, a, 0), 2);
    world_done(&w);
}

static void test_services_spread(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    for (uint64_t n = 1; n <= 3; n++)
        world_node(&w, n, 4);
    world_team(&w, 1, 0, 1000000);
    uint64_t a =
        world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .tasks = 3, .spread = true});
    world_settle(&w);
    assert_int_not_equal(world_where(&w, a, 0), world_where(&w, a, 1));
    assert_int_not_equal(world_where(&w, a, 1), world_where(&w, a, 2));
    assert_int_not_equal(world_where(&w, a, 0), world_where(&w, a, 2));
    world_done(&w);
}

static void test_equal_nodes_go_by_order(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_node(&w, 2, 4);
    world_node(&w, 1, 4);
    world_team(&w, 1, 0, 1000000);
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 4000});
    world_settle(&w);
    assert_int_equal(world_where(&w, a, 0), 1);
    world_done(&w);
}

static void test_a_request_without_gpu_leaves_gpu_nodes_alone(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_node(&w, 1, 4);
    world_node(&w, 2, 0);
    world_team(&w, 1, 0, 0);
    uint64_t a = world_job(&w, (struct job){.team = 1, .cpu_milli = 1000});
    world_settle(&w);
    assert_int_equal(world_where(&w, a, 0), 2);
    world_done(&w);
}

static void test_a_slice_is_taken_whole_and_charged_by_its_compute(void **state)
{
    (void)state;
    struct small_world w;
    struct sched_team_usage u;
    world_init(&w);
    struct sched_device slices[2] = {{"1g.10gb", 10 * GIB, 142}, {"1g.10gb", 10 * GIB, 142}};
    struct sched_node node = {.id = 1,
                              .devices = slices,
                              .device_count = 2,
                              .cpu_milli = SCHED_UNLIMITED,
                              .memory_bytes = SCHED_UNLIMITED,
                              .up = true,
                              .schedulable = true};
    assert_int_equal(sched_node_set(w.s, &node), 0);
    world_team(&w, 1, 0, 1000);
    uint64_t a = world_job(&w, (struct job){.team = 1, .mig = "1g.10gb"});
    uint64_t b = world_job(&w, (struct job){.team = 1, .mig = "1g.10gb"});
    uint64_t c = world_job(&w, (struct job){.team = 1, .mig = "1g.10gb"});
    uint64_t whole = world_job(&w, (struct job){.team = 1, .gpu_milli = 500});
    world_settle(&w);
    assert_running(&w, a);
    assert_running(&w, b);
    assert_pending(&w, c);
    assert_pending(&w, whole);
    assert_int_equal(sched_team_usage(w.s, 1, &u), 0);
    assert_int_equal(u.used[SCHED_GPU_MILLI], 284);
    world_done(&w);
}

static void test_preferred_types_come_first(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    struct sched_device device = {.memory_bytes = 80 * GIB};
    const char *types[] = {"A100", "H100"};
    for (uint64_t n = 1; n <= 2; n++) {
        struct sched_node node = {.id = n,
                                  .order = n,
                                  .gpu_type = types[n - 1],
                                  .devices = &device,
                                  .device_count = 1,
                                  .cpu_milli = SCHED_UNLIMITED,
                                  .memory_bytes = SCHED_UNLIMITED,
                                  .up = true,
                                  .schedulable = true};
        assert_int_equal(sched_node_set(w.s, &node), 0);
    }
    world_team(&w, 1, 0, 10000);
    const char *wanted[] = {"H100", "A100"};
    struct sched_request r = {
        .device_count = 1, .device_milli = 1000, .gpu_types = wanted, .gpu_type_count = 2};
    struct sched_task task = {.request = &r};
    for (uint64_t id = 1; id <= 2; id++) {
        struct sched_workload work = {.id = id,
                                      .team = 1,
                                      .age = id,
                                      .preemptible = true,
                                      .class_ = SCHED_CLASS_TRAINING,
                                      .may_burst = true,
                                      .tasks = &task,
                                      .task_count = 1,
                                      .min_tasks = 1};
        assert_int_equal(sched_workload_add(w.s, &work, NULL), 0);
    }
    world_settle(&w);
    assert_int_equal(world_where(&w, 1, 0), 2);
    assert_int_equal(world_where(&w, 2, 0), 1);
    world_done(&w);
}

static void test_several_fractions_lie_on_several_devices_of_one_node(void **state)
{
    (void)state;
    struct small_world w;
    simple(&w, 2);
    struct sched_request r = {.device_count = 2, .device_milli = 500};
    struct sched_task task = {.request = &r};
    struct sched_workload work = {.id = 1,
                                  .team = 1,
                                  .class_ = SCHED_CLASS_TRAINING,
                                  .preemptible = true,
                                  .may_burst = true,
                                  .tasks = &task,
                                  .task_count = 1,
                                  .min_tasks = 1};
    assert_int_equal(sched_workload_add(w.s, &work, NULL), 0);
    const struct sched_decisions *d = sched_turn(w.s, w.now_ms);
    assert_int_equal(d->count, 1);
    assert_int_equal(d->items[0].device_count, 2);
    assert_int_not_equal(d->items[0].devices[0], d->items[0].devices[1]);
    assert_int_equal(d->items[0].gpu_milli, 1000);
    world_done(&w);
}

/* So many that the room is summed up before anything is placed. */
static void gangs_beside(struct job job, uint32_t fit)
{
    for (uint32_t more = 0; more < 2; more++) {
        struct small_world w;
        world_init(&w);
        for (uint64_t n = 1; n <= 5; n++)
            world_node(&w, n, 8);
        world_team(&w, 1, 0, 1000000);
        world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
        world_settle(&w);
        job.team = 1;
        job.tasks = fit + more;
        uint64_t gang = world_job(&w, job);
        world_settle(&w);
        assert_int_equal(world_running(&w, gang, job.tasks), more > 0 ? 0 : fit);
        world_done(&w);
    }
}

static void test_large_gangs_take_what_is_free_to_the_last(void **state)
{
    (void)state;
    gangs_beside((struct job){.gpu_milli = 1000}, 39);
    gangs_beside((struct job){.gpu_milli = 300}, 39 * 3);
    gangs_beside((struct job){.gpu_memory = 30 * GIB}, 39 * 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fractions_prefer_a_device_that_is_shared_already),
        cmocka_unit_test(test_large_gangs_take_what_is_free_to_the_last),
        cmocka_unit_test(test_a_fraction_takes_memory_too),
        cmocka_unit_test(test_memory_is_charged_as_the_ceiling_of_its_share),
        cmocka_unit_test(test_whole_jobs_pack_into_the_tightest_node),
        cmocka_unit_test(test_services_spread),
        cmocka_unit_test(test_equal_nodes_go_by_order),
        cmocka_unit_test(test_a_request_without_gpu_leaves_gpu_nodes_alone),
        cmocka_unit_test(test_a_slice_is_taken_whole_and_charged_by_its_compute),
        cmocka_unit_test(test_preferred_types_come_first),
        cmocka_unit_test(test_several_fractions_lie_on_several_devices_of_one_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
