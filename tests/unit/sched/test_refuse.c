/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "sched/world.h"
#include "small_world.h"

static void base(struct small_world *w)
{
    world_init(w);
    world_node(w, 1, 2);
    world_node(w, 2, 2);
    world_team_full(w, 1, 0, 1000, 3000, 1, 100);
}

static struct sched_refusal refused(struct small_world *w, struct job job)
{
    struct sched_refusal refusal = {0};
    job.team = 1;
    job.strict = true;
    assert_int_equal(world_try_job(w, job, &refusal), -E2BIG);
    return refusal;
}

static void test_larger_than_any_node(void **state)
{
    (void)state;
    struct small_world w;
    base(&w);
    struct sched_refusal r = refused(&w, (struct job){.gpu_milli = 3000});
    assert_int_equal(r.reason, SCHED_REASON_TOO_LARGE);
    assert_int_equal(r.asked, 3000);
    assert_int_equal(r.available, 2000);
    world_done(&w);
}

static void test_larger_than_the_inventory(void **state)
{
    (void)state;
    struct small_world w;
    base(&w);
    struct sched_refusal r = refused(&w, (struct job){.gpu_milli = 2000, .tasks = 3});
    assert_int_equal(r.reason, SCHED_REASON_TOO_LARGE);
    assert_int_equal(r.asked, 6000);
    assert_int_equal(r.available, 4000);
    world_done(&w);
}

static void test_larger_than_any_rack(void **state)
{
    (void)state;
    static const char *const levels[] = {"rack"};
    struct small_world w;
    world_init(&w);
    assert_int_equal(sched_topology_set(w.s, levels, 1), 0);
    world_node_label(&w, 1, 2, "rack", "a");
    world_node_label(&w, 2, 2, "rack", "b");
    world_team(&w, 1, 0, 100000);
    struct job job = {.gpu_milli = 1000, .tasks = 3, .required = "rack"};
    struct sched_refusal r = refused(&w, job);
    assert_int_equal(r.reason, SCHED_REASON_TOPOLOGY);
    assert_int_equal(r.asked, 3000);
    assert_string_equal(r.level, "rack");
    job.tasks = 5; /* too much for the whole: that says more */
    assert_int_equal(refused(&w, job).reason, SCHED_REASON_TOO_LARGE);
    world_done(&w);
}

static void test_no_such_device(void **state)
{
    (void)state;
    struct small_world w;
    base(&w);
    assert_int_equal(refused(&w, (struct job){.gpu_milli = 1000, .gpu_type = "B200"}).reason,
                     SCHED_REASON_NO_SUCH_DEVICE);
    assert_int_equal(refused(&w, (struct job){.mig = "1g.10gb"}).reason,
                     SCHED_REASON_NO_SUCH_DEVICE);
    world_done(&w);
}

static void test_above_a_limit_for_ever(void **state)
{
    (void)state;
    struct small_world w;
    base(&w);
    struct sched_refusal r = refused(&w, (struct job){.gpu_milli = 2000, .tasks = 2});
    assert_int_equal(r.reason, SCHED_REASON_ABOVE_LIMIT);
    assert_int_equal(r.team, 1);
    assert_int_equal(r.available, 3000);
    world_done(&w);
}

static void test_firm_and_above_the_guarantee(void **state)
{
    (void)state;
    struct small_world w;
    base(&w);
    assert_int_equal(refused(&w, (struct job){.gpu_milli = 2000, .firm = true}).reason,
                     SCHED_REASON_ABOVE_GUARANTEE);
    world_done(&w);
}

static void test_only_the_minimum_has_to_fit(void **state)
{
    (void)state;
    struct small_world w;
    base(&w);
    assert_int_equal(
        world_try_job(
            &w, (struct job){.team = 1, .gpu_milli = 1000, .tasks = 9, .min = 2, .strict = true},
            NULL),
        0);
    world_done(&w);
}

static void test_nodes_that_are_down_count(void **state)
{
    (void)state;
    struct small_world w;
    base(&w);
    world_node_state(&w, 1, 2, false, true);
    world_node_state(&w, 2, 2, false, true);
    assert_int_equal(
        world_try_job(&w, (struct job){.team = 1, .gpu_milli = 2000, .strict = true}, NULL), 0);
    world_done(&w);
}

static void test_what_was_accepted_earlier_waits(void **state)
{
    (void)state;
    struct small_world w;
    base(&w);
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 8000});
    world_settle(&w);
    assert_pending(&w, a);
    world_done(&w);
}

static void test_a_check_adds_nothing(void **state)
{
    (void)state;
    struct small_world w;
    base(&w);
    struct sched_request r = {.device_count = 1, .device_milli = 1000};
    struct sched_task task = {.request = &r};
    struct sched_workload work = {.team = 1,
                                  .class_ = SCHED_CLASS_TRAINING,
                                  .preemptible = true,
                                  .may_burst = true,
                                  .tasks = &task,
                                  .task_count = 1,
                                  .min_tasks = 1};
    assert_int_equal(sched_workload_check(w.s, &work, NULL), 0);
    assert_int_equal(world_turn(&w), 0);
    r.device_count = 3;
    assert_int_equal(sched_workload_check(w.s, &work, NULL), -E2BIG);
    world_done(&w);
}

/* A thousand kinds of requests that are checked and not added, refused or not. */
static void test_a_check_leaves_no_strings(void **state)
{
    (void)state;
    struct small_world w;
    base(&w);
    size_t before = w.s->strings.len;
    for (int i = 0; i < 1000; i++) {
        char key[16], type[16], group[16];
        snprintf(key, sizeof(key), "key-%d", i);
        snprintf(type, sizeof(type), "T%d", i);
        snprintf(group, sizeof(group), "g%d", i);
        struct sched_label label = {key, "v"};
        const char *types[] = {type};
        struct sched_request request = {.device_count = 1, .device_milli = 1000};
        if (i % 3 == 0) {
            request.labels = &label;
            request.label_count = 1;
        } else if (i % 3 == 1) {
            request.gpu_types = types;
            request.gpu_type_count = 1;
        }
        struct sched_task tasks[2] = {{&request, 0, 0}, {&request, 1, 0}};
        struct sched_group groups[2] = {{"one", 1, NULL}, {group, 1, NULL}};
        struct sched_workload work = {.id = 7,
                                      .team = 1,
                                      .class_ = SCHED_CLASS_TRAINING,
                                      .preemptible = true,
                                      .may_burst = true,
                                      .tasks = tasks,
                                      .task_count = 2,
                                      .min_tasks = 2,
                                      .groups = groups,
                                      .group_count = 2};
        assert_int_equal(sched_workload_check(w.s, &work, NULL), i % 3 == 2 ? 0 : -E2BIG);
    }
    assert_int_equal(w.s->strings.len, before);
    assert_int_equal(w.s->shapes.len + w.s->job_shapes.len + w.s->groups.len, 0);
    world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_larger_than_any_node),
        cmocka_unit_test(test_larger_than_the_inventory),
        cmocka_unit_test(test_larger_than_any_rack),
        cmocka_unit_test(test_no_such_device),
        cmocka_unit_test(test_above_a_limit_for_ever),
        cmocka_unit_test(test_firm_and_above_the_guarantee),
        cmocka_unit_test(test_only_the_minimum_has_to_fit),
        cmocka_unit_test(test_nodes_that_are_down_count),
        cmocka_unit_test(test_what_was_accepted_earlier_waits),
        cmocka_unit_test(test_a_check_adds_nothing),
        cmocka_unit_test(test_a_check_leaves_no_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
