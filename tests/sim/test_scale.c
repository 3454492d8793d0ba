/* SPDX-License-Identifier: Apache-2.0 */
/* The scale benchmark on a small cluster: what it reports of what happened is so. Times are not
 * looked at. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "sim/scale.h"

#define NODES 12
#define GPUS (NODES * 8)

static int64_t ticks;

/* A microsecond each time that it is looked at. */
static int64_t tick(void)
{
    return ticks += 1000;
}

static int64_t no_memory(void)
{
    return 0;
}

static const struct sim_meter meter = {tick, no_memory};

static void list_write(char *path, const char *text)
{
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static void input_load(struct scale_options *o, struct scale_input *in)
{
    static char nodes_path[64], pods_path[64];
    char nodes[NODES * 32 + 64];
    struct err err = ERR_INIT;
    int len = snprintf(nodes, sizeof(nodes), "gpu_model,gpu_capacity_num,cpu_num\n");
    for (int i = 0; i < NODES; i++)
        len += snprintf(nodes + len, sizeof(nodes) - (size_t)len, "%s\n",
                        i % 3 == 0 ? "A10,8,128" : "H800,8,192");
    snprintf(nodes_path, sizeof(nodes_path), "/tmp/test-scale-nodes-XXXXXX");
    snprintf(pods_path, sizeof(pods_path), "/tmp/test-scale-pods-XXXXXX");
    list_write(nodes_path, nodes);
    list_write(pods_path, "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"
                          "a,4000,1024,1,1000\nb,2000,1024,1,250\nc,8000,2048,2,1000\n");
    *o = (struct scale_options){.nodes = nodes_path,
                                .pods = pods_path,
                                .repeat = 1,
                                .jobs = 2000,
                                .steps = 50,
                                .departments = 2,
                                .seed = 7,
                                .full_percent = 95,
                                .seconds = 1000};
    assert_int_equal(scale_input_load(in, o, &err), 0);
    unlink(nodes_path);
    unlink(pods_path);
    assert_int_equal(in->gpus, GPUS);
}

static double figure(const struct scale_result *r, const char *name)
{
    for (size_t i = 0; i < r->count; i++)
        if (strcmp(r->figures[i].name, name) == 0)
            return r->figures[i].value;
    fail_msg("%s: %s has no figure '%s'", r->mode, r->what, name);
    return 0;
}

struct outcome {
    struct scale_result items[SCALE_RESULTS_MAX];
    size_t count;
};

static struct outcome run(const struct scale_mode *mode, int64_t seconds)
{
    struct scale_options o;
    struct scale_input in = {0};
    struct outcome outcome = {0};
    input_load(&o, &in);
    o.seconds = seconds;
    outcome.count = mode->run(&o, &in, &meter, outcome.items);
    scale_input_done(&in);
    return outcome;
}

static void test_fill_reaches_what_is_full(void **state)
{
    struct outcome x = run(&scale_mode_fill, 1000);
    assert_int_equal(x.count, 2);
    assert_true(figure(&x.items[0], "gpus_allocated_percent") >= 95);
    assert_true(figure(&x.items[0], "decisions") >= GPUS * 95 / 100 / 2);
    assert_true(figure(&x.items[0], "us_to_95_percent") > 0);
    assert_true(figure(&x.items[0], "submit_p99_us") >= figure(&x.items[0], "submit_p50_us"));
    assert_true(figure(&x.items[0], "submit_p99_us") >= figure(&x.items[0], "first_turn_p99_us"));
    assert_true(figure(&x.items[0], "turns") >= figure(&x.items[0], "jobs"));
    assert_true(figure(&x.items[0], "jobs") == figure(&x.items[1], "jobs"));
}

static void test_same_input_same_decisions(void **state)
{
    struct outcome a = run(&scale_mode_churn, 1000), b = run(&scale_mode_churn, 1000);
    assert_true(a.items[0].hash != 0);
    assert_true(a.items[0].hash == b.items[0].hash);
    assert_true(figure(&a.items[0], "ends") == 50);
    assert_true(figure(&a.items[0], "cut_short") == 0);
    assert_true(figure(&a.items[0], "gpus_allocated_percent") >= 94);
}

static void test_a_long_run_is_cut_short(void **state)
{
    struct outcome x = run(&scale_mode_churn, 0);
    assert_true(figure(&x.items[0], "cut_short") == 1);
    assert_true(figure(&x.items[0], "ends") == 1);
}

static void test_what_ends_makes_room_for_what_waits(void **state)
{
    struct outcome x = run(&scale_mode_pending, 1000);
    assert_int_equal(x.count, 2);
    assert_true(figure(&x.items[0], "jobs") == 2000);
    assert_true(figure(&x.items[0], "ends") >= 1);
    assert_true(figure(&x.items[0], "starts") >= 1);
    assert_true(figure(&x.items[1], "first_turn_starts") >= 1);
    assert_true(figure(&x.items[1], "gpus_allocated_percent") > 95);
}

static void test_all_that_is_reclaimed_starts(void **state)
{
    struct outcome x = run(&scale_mode_reclaim, 1000);
    assert_int_equal(x.count, 2);
    for (int i = 0; i < 2; i++) {
        assert_true(figure(&x.items[i], "gpus_wanted") == GPUS / 4);
        assert_true(figure(&x.items[i], "evictions") == GPUS / 4);
        assert_true(figure(&x.items[i], "gpus_allocated_percent") == 100);
        assert_true(figure(&x.items[i], "started") >= figure(&x.items[i], "jobs"));
    }
}

static void test_a_cold_start_knows_what_ran(void **state)
{
    struct outcome fill = run(&scale_mode_fill, 1000), x = run(&scale_mode_start, 1000);
    assert_true(figure(&x.items[0], "jobs") == 2000);
    assert_true(figure(&x.items[0], "tasks_restored") >= figure(&fill.items[0], "jobs") / 2);
}

static void test_kueues_load_ends_in_time(void **state)
{
    struct outcome x = run(&scale_mode_kueue, 1000);
    assert_true(figure(&x.items[0], "workloads") == 15000);
    assert_true(figure(&x.items[0], "virtual_seconds") >= 66); /* all the work on all the cores */
    assert_true(figure(&x.items[0], "virtual_seconds") < 100);
    assert_true(figure(&x.items[0], "large_first_start_seconds") < 0.001); /* at the next event */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fill_reaches_what_is_full),
        cmocka_unit_test(test_same_input_same_decisions),
        cmocka_unit_test(test_a_long_run_is_cut_short),
        cmocka_unit_test(test_what_ends_makes_room_for_what_waits),
        cmocka_unit_test(test_all_that_is_reclaimed_starts),
        cmocka_unit_test(test_a_cold_start_knows_what_ran),
        cmocka_unit_test(test_kueues_load_ends_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
