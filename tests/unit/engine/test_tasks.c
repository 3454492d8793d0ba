/* SPDX-License-Identifier: Apache-2.0 */
/* Start, end, stop, logs: one task's life. */
#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct fixture *f;

static int up(void **state)
{
    f = fixture_new();
    if (f)
        fixture_up(f);
    return 0;
}

static int down(void **state)
{
    fixture_drop(f);
    return 0;
}

static void the_node_is_reported(void **state)
{
    struct seen s;

    NEED_ROOT();
    s = fixture_wait(f, NULL, ENGINE_NODE);
    print_message("# limits %s, isolation %s\n", s.limits, s.isolation);
    assert_int_equal(s.devices, 4);
    assert_true(strcmp(s.limits, "cgroup1") == 0 || strcmp(s.limits, "cgroup2") == 0 ||
                strcmp(s.limits, "none") == 0);
    assert_int_equal(strncmp(s.isolation, "bubblewrap", 10), 0);
}

static void a_task_runs_and_ends(void **state)
{
    struct seen started, exited;

    NEED_ROOT();
    fixture_script(f, 1, "echo hello; echo world >&2; exit 3");
    fixture_start(f, 1, 0);
    started = fixture_wait(f, "1.0.0", ENGINE_STARTED);
    exited = fixture_wait(f, "1.0.0", ENGINE_EXITED);
    assert_int_equal(exited.exit_code, 3);
    assert_int_equal(exited.exit_signal, 0);
    assert_true(exited.boot_ms >= started.boot_ms);
    assert_string_equal(fixture_log(f, "1.0.0"), "hello\nworld\n");
}

static void starting_twice_starts_once(void **state)
{
    NEED_ROOT();
    fixture_script(f, 1, "echo once; sleep 100");
    fixture_start(f, 1, 0);
    fixture_start(f, 1, 0);
    fixture_wait_log(f, "1.0.0", "once");
    fixture_wait(f, "1.0.0", ENGINE_STARTED);
    fixture_start(f, 1, 0);
    fixture_sleep_ms(100);
    assert_string_equal(fixture_log(f, "1.0.0"), "once\n");
    assert_int_equal(fixture_count(f, "1.0.0", ENGINE_STARTED), 2); /* the third asked again */
}

static void a_command_that_is_not_there_is_refused(void **state)
{
    static const char *const command[] = {"no-such-program", "--fast", NULL};
    struct seen s;

    NEED_ROOT();
    f->workloads[1].command = command;
    fixture_start(f, 1, 0);
    s = fixture_wait(f, "1.0.0", ENGINE_REFUSED);
    assert_non_null(strstr(s.message, "no-such-program"));
    assert_non_null(strstr(s.message, "not found"));
    assert_int_equal(fixture_count(f, "1.0.0", ENGINE_STARTED), 0);
}

static void a_workload_that_cannot_be_loaded_is_refused(void **state)
{
    NEED_ROOT();
    fixture_start(f, 9, 0);
    assert_non_null(strstr(fixture_wait(f, "9.0.0", ENGINE_REFUSED).message, "no workload 9"));
}

static void a_stop_lets_the_command_finish_its_work(void **state)
{
    struct seen s;

    NEED_ROOT();
    fixture_script(f, 1,
                   "trap 'echo saving; sleep 0.2; echo saved; exit 7' TERM; echo ready; "
                   "while :; do sleep 0.05; done");
    fixture_start(f, 1, 0);
    fixture_wait_log(f, "1.0.0", "ready");
    engine_local_ops()->stop(f->engine, "1.0.0", 10000);
    s = fixture_wait(f, "1.0.0", ENGINE_EXITED);
    assert_int_equal(s.exit_code, 7);
    assert_int_equal(s.exit_signal, 0);
    assert_non_null(strstr(fixture_log(f, "1.0.0"), "saved"));
}

static void a_stop_tells_the_signal(void **state)
{
    struct seen s;

    NEED_ROOT();
    fixture_script(f, 1, "echo ready; exec sleep 100");
    fixture_start(f, 1, 0);
    fixture_wait_log(f, "1.0.0", "ready");
    engine_local_ops()->stop(f->engine, "1.0.0", 10000);
    s = fixture_wait(f, "1.0.0", ENGINE_EXITED);
    assert_int_equal(s.exit_signal, SIGTERM);
    assert_int_equal(s.exit_code, 128 + SIGTERM);
}

static void a_task_that_ignores_the_stop_is_killed_after_its_grace(void **state)
{
    struct seen s;

    NEED_ROOT();
    fixture_script(f, 1, "trap '' TERM; echo ready; while :; do sleep 1000; done");
    fixture_start(f, 1, 0);
    fixture_wait_log(f, "1.0.0", "ready");
    engine_local_ops()->stop(f->engine, "1.0.0", 300);
    s = fixture_wait(f, "1.0.0", ENGINE_EXITED);
    assert_int_equal(s.exit_signal, SIGKILL);
    assert_int_equal(s.exit_code, 137);
    assert_non_null(strstr(s.message, "grace"));
}

static void a_second_stop_may_shorten_the_grace(void **state)
{
    NEED_ROOT();
    fixture_script(f, 1, "trap '' TERM; echo ready; while :; do sleep 1000; done");
    fixture_start(f, 1, 0);
    fixture_wait_log(f, "1.0.0", "ready");
    engine_local_ops()->stop(f->engine, "1.0.0", 3600000);
    engine_local_ops()->stop(f->engine, "1.0.0", 0);
    assert_int_equal(fixture_wait(f, "1.0.0", ENGINE_EXITED).exit_signal, SIGKILL);
}

static void stopping_an_ended_task_tells_its_end_again(void **state)
{
    NEED_ROOT();
    fixture_script(f, 1, "exit 5");
    fixture_start(f, 1, 0);
    fixture_wait(f, "1.0.0", ENGINE_EXITED);
    fixture_clear(f);
    engine_local_ops()->stop(f->engine, "1.0.0", 0);
    assert_int_equal(fixture_wait(f, "1.0.0", ENGINE_EXITED).exit_code, 5);
}

static void a_stop_at_once_after_the_start_ends_it(void **state)
{
    NEED_ROOT();
    fixture_script(f, 1, "sleep 1000");
    fixture_start(f, 1, 0);
    engine_local_ops()->stop(f->engine, "1.0.0", 50);
    fixture_wait(f, "1.0.0", ENGINE_EXITED);
}

static void await(const char *relative, bool there)
{
    char path[200];

    snprintf(path, sizeof(path), "%s/%s", f->folder, relative);
    for (int i = 0; i < FIXTURE_WAIT_MS / 10 && (access(path, F_OK) == 0) != there; i++)
        fixture_sleep_ms(5);
    assert_int_equal(access(path, F_OK) == 0, there);
}

static void a_forgotten_task_keeps_its_log(void **state)
{
    NEED_ROOT();
    fixture_script(f, 1, "echo kept");
    fixture_start(f, 1, 0);
    fixture_wait(f, "1.0.0", ENGINE_EXITED);
    engine_local_ops()->forget(f->engine, "1.0.0");
    await("ended/1.0.0", true);
    assert_string_equal(fixture_log(f, "1.0.0"), "kept\n");
}

static void only_so_many_ended_tasks_are_kept(void **state)
{
    NEED_ROOT();
    fixture_down(f);
    f->config.retain_count = 2;
    fixture_up(f);
    for (int n = 1; n <= 4; n++) {
        char intent[16];

        snprintf(intent, sizeof(intent), "%d.0.0", n);
        fixture_script(f, n, "true");
        fixture_start(f, n, 0);
        fixture_wait(f, intent, ENGINE_EXITED);
        engine_local_ops()->forget(f->engine, intent);
    }
    await("ended/4.0.0", true);
    await("ended/2.0.0", false);
    await("ended/3.0.0", true);
}

static void the_log_of_nothing_is_not_found(void **state)
{
    char data[16];
    int64_t at;
    size_t n;

    NEED_ROOT();
    assert_int_equal(engine_local_ops()->read_log(f->engine, "7.0.0", 0, data, 16, &at, &n),
                     -ENOENT);
    assert_int_equal(engine_local_ops()->read_log(f->engine, "../x", 0, data, 16, &at, &n),
                     -ENOENT);
}

static void busy_time_is_the_cpu_time_of_the_task(void **state)
{
    struct seen s, started;

    NEED_ROOT();
    fixture_script(f, 1, "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done");
    fixture_start(f, 1, 0);
    s = fixture_wait(f, "1.0.0", ENGINE_EXITED);
    started = fixture_wait(f, "1.0.0", ENGINE_STARTED);
    assert_true(s.busy_ns > 20000000);
    assert_true(s.busy_ns <= s.known_ns);
    assert_true(s.known_ns == (s.boot_ms - started.boot_ms) * 1000000);
}

static void usage_is_reported_while_it_runs(void **state)
{
    struct seen s;

    NEED_ROOT();
    fixture_script(f, 1, "while :; do :; done");
    fixture_start(f, 1, 0);
    s = fixture_wait(f, "1.0.0", ENGINE_USAGE);
    assert_true(s.busy_ns > 0);
}

static void hundred_tasks_run_side_by_side(void **state)
{
    NEED_ROOT();
    fixture_script(f, 1, "echo $ALLOT_RANK; sleep 0.2");
    f->task_count = 100;
    for (int i = 0; i < 100; i++)
        fixture_start(f, 1, i);
    for (int i = 0; i < 100; i++) {
        char intent[16], text[16];

        snprintf(intent, sizeof(intent), "1.%d.0", i);
        snprintf(text, sizeof(text), "%d\n", i);
        assert_int_equal(fixture_wait(f, intent, ENGINE_EXITED).exit_code, 0);
        assert_string_equal(fixture_log(f, intent), text);
    }
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, up, down)
    const struct CMUnitTest tests[] = {
        T(the_node_is_reported),
        T(a_task_runs_and_ends),
        T(starting_twice_starts_once),
        T(a_command_that_is_not_there_is_refused),
        T(a_workload_that_cannot_be_loaded_is_refused),
        T(a_stop_lets_the_command_finish_its_work),
        T(a_stop_tells_the_signal),
        T(a_task_that_ignores_the_stop_is_killed_after_its_grace),
        T(a_second_stop_may_shorten_the_grace),
        T(stopping_an_ended_task_tells_its_end_again),
        T(a_stop_at_once_after_the_start_ends_it),
        T(a_forgotten_task_keeps_its_log),
        T(only_so_many_ended_tasks_are_kept),
        T(the_log_of_nothing_is_not_found),
        T(busy_time_is_the_cpu_time_of_the_task),
        T(usage_is_reported_while_it_runs),
        T(hundred_tasks_run_side_by_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
