/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks that sleep, and wake with their next call of the driver. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driven.h"

#define MIB ((uint64_t)1 << 20)

/* Takes a GiB and then calls the driver whenever its home says so. */
#define WORKER                                                                            \
    "exec python3 -uc '\n"                                                                \
    "import ctypes, os, sys, time\n"                                                      \
    "cuda = ctypes.CDLL(\"libcuda.so.1\")\n"                                              \
    "p, n = ctypes.c_uint64(), 0\n"                                                       \
    "assert cuda.cuInit(0) == 0\n"                                                        \
    "assert cuda.cuCtxCreate_v2(ctypes.byref(ctypes.c_void_p()), 0, 0) == 0\n"            \
    "assert cuda." ALLOCATE " == 0\n"                                                     \
    "print(\"ready\")\n"                                                                  \
    "while True:\n"                                                                       \
    "    if os.path.exists(f\"/home/task/call-{n}\"):\n"                                  \
    "        assert cuda.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(1 << 20)) == 0\n" \
    "        print(f\"called {n}\")\n"                                                    \
    "        n += 1\n"                                                                    \
    "    time.sleep(0.01)\n"                                                              \
    "'"
#define ALLOCATE "cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(1 << 30))"
static const char worker[] = WORKER;
#undef ALLOCATE
#define ALLOCATE "cuMemAllocManaged(ctypes.byref(p), ctypes.c_size_t(1 << 30), 1)"
static const char worker_managed[] = WORKER;

static struct fixture *f;

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

/* The program calls the driver for the Nth time, as soon as it may. */
static void call(int n)
{
    char path[160];
    FILE *to;

    snprintf(path, sizeof(path), "%s/tasks/1.0.0/work/call-%d", f->folder, n);
    to = fopen(path, "we");
    assert_non_null(to);
    fclose(to);
}

static void begin_with(const char *script, int32_t milli)
{
    f->suspendable = true;
    driven_up(f, DBL_TIMESLICE);
    driven_begin(f, 1, script, 0, milli);
    fixture_wait_log(f, "1.0.0", "ready");
    fixture_clear(f);
}

static struct seen ask(bool sleep)
{
    fixture_clear(f);
    if (sleep)
        engine_local_ops()->suspend(f->engine, "1.0.0");
    else
        engine_local_ops()->resume(f->engine, "1.0.0");
    return fixture_wait(f, "1.0.0", sleep ? ENGINE_SUSPENDED : ENGINE_RESUMED);
}

static void its_devices_are_free_until_its_next_call(int32_t milli)
{
    uint64_t held;

    begin_with(worker, milli);
    held = driven_held(0);
    assert_int_equal(held, 1024 * MIB + 300 * MIB);
    /* By the shim's account a context has 500 MiB. */
    assert_int_equal(ask(true).host_bytes, 1024 * MIB + 500 * MIB);
    assert_int_equal(driven_held(0), 0);
    /* Nothing happens as long as it does not call. */
    fixture_sleep_ms(300);
    assert_int_equal(fixture_count(f, "1.0.0", ENGINE_WAKE), 0);
    call(0);
    fixture_wait(f, "1.0.0", ENGINE_WAKE);
    assert_null(strstr(fixture_log(f, "1.0.0"), "called 0"));
    assert_int_equal(driven_held(0), 0);
    assert_string_equal(ask(false).message, "");
    fixture_wait_log(f, "1.0.0", "called 0");
    assert_int_equal(driven_held(0), held + MIB);
    /* And once more. */
    ask(true);
    assert_int_equal(driven_held(0), 0);
    ask(false);
    call(1);
    fixture_wait_log(f, "1.0.0", "called 1");
}

static void a_part_of_a_device_sleeps_and_wakes(void **state)
{
    NEED_ROOT();
    its_devices_are_free_until_its_next_call(250);
}

static void a_whole_device_sleeps_and_wakes(void **state)
{
    NEED_ROOT();
    its_devices_are_free_until_its_next_call(1000);
}

static void what_is_in_the_way_is_named_and_it_runs_on(void **state)
{
    struct seen s;

    NEED_ROOT();
    begin_with(worker_managed, 250);
    engine_local_ops()->suspend(f->engine, "1.0.0");
    s = fixture_wait(f, "1.0.0", ENGINE_RESUMED);
    assert_string_equal(s.message, "it uses managed memory");
    call(0);
    fixture_wait_log(f, "1.0.0", "called 0");
    assert_int_equal(fixture_count(f, "1.0.0", ENGINE_SUSPENDED), 0);
}

static void tool(const char *words)
{
    char line[256];

    snprintf(line, sizeof(line), "%s %s", getenv("ALLOT_CUDA_DOUBLE"), words);
    assert_int_equal(system(line), 0);
}

/* The driver does not care what becomes of a process that it fails to move. */
static void a_process_that_the_driver_loses_is_the_end_of_its_task(void **state)
{
    char words[160];
    struct seen s;

    NEED_ROOT();
    begin_with(worker, 250);
    snprintf(words, sizeof(words), "fail %s checkpoint 1 999", driven_file());
    tool(words);
    engine_local_ops()->suspend(f->engine, "1.0.0");
    s = fixture_wait(f, "1.0.0", ENGINE_EXITED);
    assert_non_null(strstr(s.message, "the driver lost process"));
    assert_int_equal(driven_held(0), 0);
}

static void one_that_sleeps_can_be_stopped(void **state)
{
    NEED_ROOT();
    begin_with(worker, 250);
    ask(true);
    engine_local_ops()->stop(f->engine, "1.0.0", 5000);
    assert_true(fixture_wait(f, "1.0.0", ENGINE_EXITED).stopped);
}

static void reconcile(enum model_task_state state, bool suspended)
{
    struct engine_intent intent = {.intent = "1.0.0", .state = state, .suspended = suspended};

    fixture_down(f);
    fixture_clear(f);
    fixture_up(f);
    engine_local_ops()->reconcile(f->engine, &intent, 1);
    fixture_wait(f, NULL, ENGINE_RECONCILED);
}

static void it_sleeps_on_when_the_server_comes_back(void **state)
{
    NEED_ROOT();
    begin_with(worker, 250);
    ask(true);
    reconcile(MODEL_TASK_STOPPING, true);
    fixture_wait(f, "1.0.0", ENGINE_SUSPENDED);
    call(0);
    fixture_wait(f, "1.0.0", ENGINE_WAKE);
    ask(false);
    fixture_wait_log(f, "1.0.0", "called 0");
}

/* The server went before it had written down that the task sleeps: its devices are its own. */
static void it_wakes_when_core_does_not_know_that_it_sleeps(void **state)
{
    NEED_ROOT();
    begin_with(worker, 250);
    ask(true);
    reconcile(MODEL_TASK_RUNNING, false);
    fixture_wait(f, "1.0.0", ENGINE_RESUMED);
    call(0);
    fixture_wait_log(f, "1.0.0", "called 0");
}

/* Core wants its devices back before the engine is sure that they are free. */
static void it_wakes_at_once_when_the_server_comes_back(void **state)
{
    NEED_ROOT();
    begin_with(worker, 250);
    ask(true);
    reconcile(MODEL_TASK_SUSPENDED, true);
    engine_local_ops()->resume(f->engine, "1.0.0");
    fixture_wait(f, "1.0.0", ENGINE_RESUMED);
    call(0);
    fixture_wait_log(f, "1.0.0", "called 0");
    assert_int_equal(fixture_count(f, "1.0.0", ENGINE_SUSPENDED), 0);
}

static void the_last_wish_counts(void **state)
{
    const struct engine_ops *ops = engine_local_ops();

    NEED_ROOT();
    begin_with(worker, 250);
    ops->suspend(f->engine, "1.0.0");
    ops->resume(f->engine, "1.0.0");
    fixture_wait(f, "1.0.0", ENGINE_RESUMED);
    ask(true);
    fixture_clear(f);
    ops->resume(f->engine, "1.0.0");
    ops->suspend(f->engine, "1.0.0");
    fixture_wait(f, "1.0.0", ENGINE_SUSPENDED);
    assert_int_equal(driven_held(0), 0);
}

/* Told again, it is as old as it is: core has to see that it is no answer to a resume. */
static void how_long_it_sleeps_is_told(void **state)
{
    int64_t first_ms;

    NEED_ROOT();
    begin_with(worker, 250);
    first_ms = ask(true).boot_ms;
    fixture_sleep_ms(20);
    assert_int_equal(ask(true).boot_ms, first_ms);
    ask(false);
    assert_true(ask(true).boot_ms > first_ms);
}

static void signal_agent(const char *signal)
{
    char line[256];

    snprintf(line, sizeof(line),
             "for p in $(cat /proc/%d/task/*/children); do"
             " grep -q allot-gpu-agent /proc/$p/comm && exec kill -%s $p; done; exit 1",
             (int)getpid(), signal);
    assert_int_equal(system(line), 0);
}

static void another_agent_goes_on_where_one_died(void **state)
{
    NEED_ROOT();
    begin_with(worker, 250);
    ask(true);
    signal_agent("KILL");
    ask(false);
    call(0);
    fixture_wait_log(f, "1.0.0", "called 0");
}

/* At the very moment when it is to be asked, before its end is noticed. */
static void kill_agent_once(void *ctx, const char *step)
{
    int *left = ctx;

    if (strcmp(step, "agent") != 0 || (*left)-- != 0)
        return;
    signal_agent("KILL");
    fixture_sleep_ms(50); /* its socket closes with it */
}

static void an_agent_that_dies_before_it_is_asked_costs_nothing(void **state)
{
    int before = 1; /* it is asked to save once, and then to restore */

    NEED_ROOT();
    f->config.step = kill_agent_once;
    f->config.step_ctx = &before;
    begin_with(worker, 250);
    ask(true);
    assert_string_equal(ask(false).message, "");
    assert_int_equal(before, -1);
    call(0);
    fixture_wait_log(f, "1.0.0", "called 0");
    fixture_down(f);
}

/* While it sleeps its time on devices is nobody's. */
static void sleep_is_not_metered(void **state)
{
    struct seen before, after;

    NEED_ROOT();
    begin_with(worker, 1000);
    ask(true);
    before = fixture_wait(f, "1.0.0", ENGINE_SUSPENDED);
    fixture_clear(f);
    fixture_sleep_ms(2500);
    after = fixture_wait(f, "1.0.0", ENGINE_USAGE);
    assert_int_equal(after.known_ns, before.known_ns);
    assert_int_equal(after.busy_ns, before.busy_ns);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(a_part_of_a_device_sleeps_and_wakes),
        T(a_whole_device_sleeps_and_wakes),
        T(what_is_in_the_way_is_named_and_it_runs_on),
        T(a_process_that_the_driver_loses_is_the_end_of_its_task),
        T(one_that_sleeps_can_be_stopped),
        T(it_sleeps_on_when_the_server_comes_back),
        T(it_wakes_when_core_does_not_know_that_it_sleeps),
        T(it_wakes_at_once_when_the_server_comes_back),
        T(the_last_wish_counts),
        T(how_long_it_sleeps_is_told),
        T(another_agent_goes_on_where_one_died),
        T(an_agent_that_dies_before_it_is_asked_costs_nothing),
        T(sleep_is_not_metered),
    };

    return cmocka_run_group_tests_name("engine suspend", tests, NULL, NULL);
}
