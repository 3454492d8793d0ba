/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks in their sandboxes on the simulated driver: who kept devices busy, and what parts give. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "driven.h"

#define GPU_BUSY "./gpu_worker 600"
#define GPU_IDLE "./gpu_worker 0"

static struct fixture *f;

/* The first report on INTENT that knows something of it. */
static struct seen measured(const char *intent)
{
    struct seen s;

    do {
        fixture_clear(f);
        s = fixture_wait(f, intent, ENGINE_USAGE);
    } while (s.known_ns == 0);
    return s;
}

static int set_up(void **state)
{
    f = fixture_new();
    return 0;
}

static int tear_down(void **state)
{
    driven_down(f);
    return 0;
}

static void whoever_keeps_a_device_busy_is_charged(void **state)
{
    struct seen s;

    NEED_ROOT();
    driven_up(f, DBL_TIMESLICE);
    driven_begin(f, 1, GPU_BUSY, 0, 1000);
    driven_begin(f, 2, GPU_BUSY, 1, 250);
    driven_begin(f, 3, GPU_IDLE, 1, 250);
    for (int n = 1; n <= 3; n++) {
        char intent[MODEL_INTENT_MAX];

        snprintf(intent, sizeof(intent), "%d.0.0", n);
        fixture_wait_log(f, intent, "ready");
    }
    s = measured("3.0.0");
    assert_int_equal(s.busy_ns, 0);
    s = fixture_wait(f, "1.0.0", ENGINE_USAGE);
    assert_true(s.busy_ns > 0 && s.busy_ns <= s.known_ns);
    /* All of the device is more than its part. */
    s = fixture_wait(f, "2.0.0", ENGINE_USAGE);
    assert_true(s.busy_ns > 0 && s.busy_ns <= s.known_ns);
}

/* The driver names the server of MPS and not its clients. */
static void clients_of_mps_are_not_known(void **state)
{
    NEED_ROOT();
    driven_up(f, DBL_MPS);
    driven_begin(f, 1, GPU_BUSY, 0, 1000);
    driven_begin(f, 2, GPU_BUSY, 1, 250);
    driven_begin(f, 3, GPU_IDLE, 1, 250);
    fixture_wait_log(f, "2.0.0", "ready");
    assert_true(measured("1.0.0").busy_ns > 0);
    assert_true(fixture_wait(f, "2.0.0", ENGINE_USAGE).busy_ns == 0);
    assert_true(fixture_wait(f, "3.0.0", ENGINE_USAGE).busy_ns == 0);
}

/* A server that comes back goes on where core says that it was. */
static void sums_go_on_after_a_restart(void **state)
{
    struct engine_intent intent = {.intent = "1.0.0",
                                   .state = MODEL_TASK_RUNNING,
                                   .busy_ns = INT64_C(1000000000000),
                                   .known_ns = INT64_C(2000000000000)};
    struct seen s;

    NEED_ROOT();
    driven_up(f, DBL_TIMESLICE);
    driven_begin(f, 1, GPU_BUSY, 0, 1000);
    fixture_wait_log(f, "1.0.0", "ready");
    fixture_down(f);
    fixture_clear(f);
    fixture_up(f);
    engine_local_ops()->reconcile(f->engine, &intent, 1);
    fixture_wait(f, NULL, ENGINE_RECONCILED);
    fixture_clear(f);
    s = fixture_wait(f, "1.0.0", ENGINE_USAGE);
    assert_true(s.busy_ns > intent.busy_ns && s.known_ns > intent.known_ns);
    assert_true(s.busy_ns - intent.busy_ns <= s.known_ns - intent.known_ns);
}

/* As the driver has them, of all devices of the node, by index. */
static void what_the_driver_says_is_reported(void **state)
{
    struct seen s;

    NEED_ROOT();
    driven_up(f, DBL_TIMESLICE);
    s = fixture_wait(f, NULL, ENGINE_READINGS);
    assert_int_equal(s.devices, fixture_wait(f, NULL, ENGINE_NODE).devices);
    assert_true(s.used == 0);
    driven_begin(f, 1, "./gpu_worker 0 1000", 0, 1000);
    fixture_wait_log(f, "1.0.0", "ready");
    do {
        fixture_clear(f);
        s = fixture_wait(f, NULL, ENGINE_READINGS);
    } while (s.used < INT64_C(1000) << 20);
}

/* 80 GiB: a quarter is 20, of which a context is taken to have 500 MiB. */
static void a_part_of_a_device_is_no_more(void **state)
{
    NEED_ROOT();
    driven_up(f, DBL_TIMESLICE);
    driven_begin(f, 1, "./gpu_worker 0 19981", 0, 250);
    driven_begin(f, 2, "./gpu_worker 0 19980", 0, 250);
    driven_begin(f, 3, "./gpu_worker 0 81000", 1, 1000);
    for (int n = 1; n <= 3; n++) {
        char intent[MODEL_INTENT_MAX];

        snprintf(intent, sizeof(intent), "%d.0.0", n);
        fixture_wait_log(f, intent, "ready");
        assert_string_equal(fixture_log(f, intent), n == 1 ? "refused\nready\n" : "ready\n");
    }
}

/* Whatever name of the driver a program loads: the machine's own is covered by the shim. */
static void the_machines_own_driver_is_covered(void **state)
{
    NEED_ROOT();
    driven_up(f, DBL_TIMESLICE);
    f->workloads[1].env[2] = (struct model_pair){"DRIVER", getenv("ALLOT_CUDA_LIBRARY")};
    driven_begin(f, 1,
                 "cd /run/allot/gpu; cmp $DRIVER lib/libcuda.so.1 && ! cmp -s $DRIVER libcuda.so &&"
                 " echo covered; cd lib; echo *",
                 0, 500);
    fixture_wait(f, "1.0.0", ENGINE_EXITED);
    assert_string_equal(fixture_log(f, "1.0.0"),
                        "covered\n"
                        "libcuda.so.1 libnvidia-ml.so.1 libnvidia-ptxjitcompiler.so.1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(whoever_keeps_a_device_busy_is_charged, set_up, tear_down),
        cmocka_unit_test_setup_teardown(clients_of_mps_are_not_known, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sums_go_on_after_a_restart, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_the_driver_says_is_reported, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_part_of_a_device_is_no_more, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_machines_own_driver_is_covered, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("engine busy", tests, NULL, NULL);
}
