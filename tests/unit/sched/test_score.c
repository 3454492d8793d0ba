/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The score and the mix of requests that it is made with.
 */
#include <string.h>

#include "sched/mix.h"
#include "sched/node.h"
#include "sched/score.h"
#include "small_world.h"

#define GIB (1LL << 30)

static void typed_node(struct small_world *w, uint64_t id, const char *type, uint32_t gpus,
                       int64_t cpu)
{
    struct sched_device devices[16] = {0};
    struct sched_node n = {.id = id,
                           .order = id,
                           .gpu_type = type,
                           .devices = devices,
                           .device_count = gpus,
                           .cpu_milli = cpu,
                           .memory_bytes = 1024 * GIB,
                           .up = true,
                           .schedulable = true};
    for (uint32_t d = 0; d < gpus; d++)
        devices[d].memory_bytes = 80 * GIB;
    assert_int_equal(sched_node_set(w->s, &n), 0);
}

static uint64_t node_of(struct small_world *w, uint64_t job)
{
    enum sched_task_state state;
    uint64_t node = 0;
    world_settle(w);
    assert_int_equal(sched_task_state(w->s, job, 0, &state, &node), 0);
    assert_int_equal(state, SCHED_TASK_RUNNING);
    return node;
}

static void learn(struct small_world *w, struct job job, int times)
{
    for (int i = 0; i < times; i++)
        sched_workload_remove(w->s, world_job(w, job));
}

static void test_a_whole_node_is_kept_for_who_needs_one(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_team(&w, 1, 0, 1000000);
    typed_node(&w, 1, "A", 8, 96000);
    typed_node(&w, 2, "A", 4, 96000);
    learn(&w, (struct job){.team = 1, .gpu_milli = 8000, .cpu_milli = 64000}, 20);
    learn(&w, (struct job){.team = 1, .gpu_milli = 1000, .cpu_milli = 4000}, 20);
    uint64_t one = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .cpu_milli = 4000});
    assert_int_equal(node_of(&w, one), 2);
    world_done(&w);
}

static void test_cpu_is_kept_beside_idle_devices(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_team(&w, 1, 0, 1000000);
    typed_node(&w, 1, "A", 4, 48000); /* 12 cores a GPU, as the mix takes them */
    typed_node(&w, 2, "A", 4, 128000);
    learn(&w, (struct job){.team = 1, .gpu_milli = 1000, .cpu_milli = 12000}, 50);
    uint64_t job = world_job(&w, (struct job){.team = 1, .cpu_milli = 32000});
    assert_int_equal(node_of(&w, job), 2);
    world_done(&w);
}

static void test_a_scarce_type_is_left_to_who_names_it(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_team(&w, 1, 0, 1000000);
    typed_node(&w, 1, "rare", 2, 96000);
    typed_node(&w, 2, "plain", 8, 96000);
    learn(&w, (struct job){.team = 1, .gpu_milli = 1000, .gpu_type = "rare"}, 30);
    learn(&w, (struct job){.team = 1, .gpu_milli = 1000}, 30);
    for (int i = 0; i < 8; i++) {
        uint64_t any = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
        assert_int_equal(node_of(&w, any), 2);
    }
    uint64_t last = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    assert_int_equal(node_of(&w, last), 1); /* better than to wait */
    world_done(&w);
}

static void test_a_large_host_is_left_to_who_needs_its_cpu(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_team(&w, 1, 0, 1000000);
    typed_node(&w, 1, "A", 2, 128000);
    typed_node(&w, 2, "A", 8, 96000);
    learn(&w, (struct job){.team = 1, .gpu_milli = 2000, .cpu_milli = 120000}, 10);
    learn(&w, (struct job){.team = 1, .gpu_milli = 1000, .cpu_milli = 8000}, 10);
    uint64_t job = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .cpu_milli = 8000});
    assert_int_equal(node_of(&w, job), 2);
    world_done(&w);
}

static void test_a_steady_mix_keeps_its_generation(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_team(&w, 1, 0, 1000000);
    typed_node(&w, 1, "A", 8, 96000);
    struct job one = {.team = 1, .gpu_milli = 1000}, half = {.team = 1, .gpu_milli = 500};
    learn(&w, one, 100);
    learn(&w, half, 100);
    world_turn(&w);
    uint64_t generation = mix_current(w.s)->generation;
    for (int i = 0; i < 50; i++) {
        learn(&w, one, 1);
        learn(&w, half, 1);
        world_turn(&w);
    }
    world_node_state(&w, 2, 8, true, true);
    sched_node_remove(w.s, 2);
    world_turn(&w);
    assert_int_equal(mix_current(w.s)->generation, generation);
    learn(&w, one, 200); /* another mix */
    world_turn(&w);
    assert_true(mix_current(w.s)->generation > generation);
    world_done(&w);
}

static void test_a_node_that_goes_down_changes_no_score(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_node(&w, 1, 8);
    world_turn(&w);
    uint64_t generation = mix_current(w.s)->generation;
    world_node_state(&w, 1, 8, false, true);
    world_turn(&w);
    assert_int_equal(mix_current(w.s)->generation, generation);
    world_node(&w, 2, 8);
    world_turn(&w);
    assert_true(mix_current(w.s)->generation > generation);
    world_done(&w);
}

static void test_thousands_of_different_requests_are_bounded(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_team(&w, 1, 0, 1000000);
    typed_node(&w, 1, "A", 8, 96000);
    for (int i = 0; i < 3000; i++) {
        learn(&w, (struct job){.team = 1, .gpu_milli = 1 + i % 999, .cpu_milli = 1 + i}, 1);
        learn(&w, (struct job){.team = 1, .gpu_milli = 700, .cpu_milli = 4000}, 1);
        if (i % 100 == 0)
            world_turn(&w);
    }
    const struct score_mix *mix = mix_current(w.s);
    assert_in_range(mix->need_count, 1, SCORE_NEEDS_MAX);
    assert_in_range(mix->cpu_count, 1, SCORE_CPUS_MAX);
    int64_t seen = 0; /* the frequent one is not lost among the others */
    for (uint32_t k = 0; k < mix->need_count; k++)
        if (mix->needs[k].milli == 700)
            seen = mix->weight[(size_t)mix->cpu_count * mix->need_count + k];
    assert_in_range(seen, SCORE_ONE / 3, SCORE_ONE);
    world_done(&w);
}

static void test_fragmentation_is_what_the_mix_cannot_use(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_team(&w, 1, 0, 1000000);
    typed_node(&w, 1, "A", 1, 8000);
    learn(&w, (struct job){.team = 1, .gpu_milli = 600, .cpu_milli = 4000}, 2000);
    uint64_t job = world_job(&w, (struct job){.team = 1, .gpu_milli = 600, .cpu_milli = 4000});
    world_turn(&w);
    assert_int_equal(node_of(&w, job), 1);
    const struct node *n = node_find(w.s, 1);
    int64_t lost = score_fragmentation(mix_current(w.s), n, MASK_START);
    assert_int_equal(lost, 400 * SCORE_ONE); /* 0.4 is left, nobody asks for so little */
    world_done(&w);
}

static const struct job half_less = {.team = 1, .gpu_milli = 470};
static const struct job third_less = {.team = 1, .gpu_milli = 320};

static void learn_holes(struct small_world *w)
{
    learn(w, half_less, 2000);
    learn(w, third_less, 1000);
    learn(w, (struct job){.team = 1, .gpu_milli = 1000}, 1000);
}

static void test_a_hole_is_left_to_who_fills_it(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_team(&w, 1, 0, 1000000);
    typed_node(&w, 1, "A", 1, 96000);
    for (uint64_t id = 2; id <= 17; id++)
        typed_node(&w, id, "A", 16, 96000);
    learn_holes(&w);
    assert_int_equal(node_of(&w, world_job(&w, half_less)), 1);
    /* 210 would be left there, of no use to anybody */
    assert_int_not_equal(node_of(&w, world_job(&w, third_less)), 1);
    assert_int_equal(node_of(&w, world_job(&w, half_less)), 1);
    world_done(&w);
}

/* Whether another large one comes is uncertain; an idle device can be given to anybody. */
static void test_on_few_devices_holes_are_filled_first(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_team(&w, 1, 0, 1000000);
    typed_node(&w, 1, "A", 1, 96000);
    typed_node(&w, 2, "A", 1, 96000);
    learn_holes(&w);
    assert_int_equal(node_of(&w, world_job(&w, half_less)), 1);
    assert_int_equal(node_of(&w, world_job(&w, third_less)), 1);
    world_done(&w);
}

static void test_cpu_beside_devices_matters_to_their_own_tasks(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_team(&w, 1, 0, 1000000);
    typed_node(&w, 1, "A", 8, 800000);
    learn(&w, (struct job){.team = 1, .gpu_milli = 1000, .cpu_milli = 8000}, 2000);
    learn(&w, (struct job){.team = 1, .cpu_milli = 4000}, 2000);
    world_turn(&w);
    assert_in_range(mix_current(w.s)->cpu_per_gpu, 7900, 8000);
    learn(&w, (struct job){.team = 1, .cpu_milli = 100000}, 2000); /* now CPU is what is short */
    world_turn(&w);
    assert_in_range(mix_current(w.s)->cpu_per_gpu, 100000, 112000);
    world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_whole_node_is_kept_for_who_needs_one),
        cmocka_unit_test(test_cpu_is_kept_beside_idle_devices),
        cmocka_unit_test(test_a_scarce_type_is_left_to_who_names_it),
        cmocka_unit_test(test_a_large_host_is_left_to_who_needs_its_cpu),
        cmocka_unit_test(test_a_steady_mix_keeps_its_generation),
        cmocka_unit_test(test_a_node_that_goes_down_changes_no_score),
        cmocka_unit_test(test_thousands_of_different_requests_are_bounded),
        cmocka_unit_test(test_a_hole_is_left_to_who_fills_it),
        cmocka_unit_test(test_on_few_devices_holes_are_filled_first),
        cmocka_unit_test(test_cpu_beside_devices_matters_to_their_own_tasks),
        cmocka_unit_test(test_fragmentation_is_what_the_mix_cannot_use),
    };
    return cmocka_run_group_tests_name("sched/score", tests, NULL, NULL);
}
