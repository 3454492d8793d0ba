/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks that misbehave, and supervisors that die. */
#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "engine/local/log_parts.h"

static struct fixture *f;
static char limits[64];

static int up(void **state)
{
    f = fixture_new();
    if (f) {
        fixture_up(f);
        snprintf(limits, sizeof(limits), "%s", fixture_wait(f, NULL, ENGINE_NODE).limits);
    }
    return 0;
}

static int down(void **state)
{
    fixture_drop(f);
    return 0;
}

#define NEED_LIMITS()                                         \
    NEED_ROOT();                                              \
    if (strcmp(limits, "none") == 0) {                        \
        print_message("# no control groups here: skipped\n"); \
        skip();                                               \
    }

/* Nothing of the task may be left: its words are in no command line. */
static void nothing_left(const char *words)
{
    assert_int_equal(fixture_processes(words), 0);
}

static void tasks_that_exit_at_once_all_end(void **state)
{
    NEED_ROOT();
    fixture_script(f, 1, "exit 0");
    for (int i = 0; i < 30; i++)
        fixture_start(f, 1, i);
    for (int i = 0; i < 30; i++) {
        char intent[16];

        snprintf(intent, sizeof(intent), "1.%d.0", i);
        assert_int_equal(fixture_wait(f, intent, ENGINE_EXITED).exit_code, 0);
        assert_int_equal(fixture_count(f, intent, ENGINE_STARTED), 1);
    }
}

static void a_thousand_children_end_with_their_task(void **state)
{
    int seen = 0;

    NEED_ROOT();
    fixture_script(f, 1,
                   "i=0; while [ $i -lt 1000 ]; do sleep 7777.1 & i=$((i+1)); done; echo forked; "
                   "trap '' TERM; sleep 7777.1");
    fixture_start(f, 1, 0);
    fixture_wait_log(f, "1.0.0", "forked");
    /* One that is just being executed shows no command line for a moment, so the count may fall. */
    for (int i = 0; i < FIXTURE_WAIT_MS / 10 && seen < 1000; i++) {
        fixture_sleep_ms(10);
        seen = fixture_processes("sleep 7777.1");
    }
    assert_true(seen >= 1000);
    engine_local_ops()->stop(f->engine, "1.0.0", 0);
    fixture_wait(f, "1.0.0", ENGINE_EXITED);
    nothing_left("sleep 7777.1");
}

static void a_fork_bomb_meets_its_limit(void **state)
{
    NEED_LIMITS();
    fixture_down(f);
    f->config.pids_max = 64;
    fixture_up(f);
    fixture_script(f, 1,
                   "i=0; while [ $i -lt 200 ]; do (sleep 7777.2 &) 2>/dev/null || break; "
                   "i=$((i+1)); done; echo at $i; sleep 7777.2");
    fixture_start(f, 1, 0);
    fixture_wait(f, "1.0.0", ENGINE_STARTED);
    fixture_sleep_ms(1000);
    assert_true(fixture_processes("sleep 7777.2") <= 64);
    engine_local_ops()->stop(f->engine, "1.0.0", 0);
    fixture_wait(f, "1.0.0", ENGINE_EXITED);
    nothing_left("sleep 7777.2");
}

static void daemons_end_with_their_task(void **state)
{
    NEED_ROOT();
    fixture_script(
        f, 1, "setsid sh -c 'setsid nohup sleep 7777.3 >/dev/null 2>&1 &' & sleep 0.3; exit 4");
    fixture_start(f, 1, 0);
    assert_int_equal(fixture_wait(f, "1.0.0", ENGINE_EXITED).exit_code, 4);
    nothing_left("sleep 7777.3");
}

static void a_stop_reaches_every_process(void **state)
{
    NEED_ROOT();
    fixture_script(f, 1,
                   "trap 'echo parent; wait; exit 0' TERM; "
                   "sh -c 'trap \"echo child; exit\" TERM; echo ready; while :; do sleep 0.02; "
                   "done' & while :; do sleep 0.02; done");
    fixture_start(f, 1, 0);
    fixture_wait_log(f, "1.0.0", "ready");
    engine_local_ops()->stop(f->engine, "1.0.0", 10000);
    fixture_wait(f, "1.0.0", ENGINE_EXITED);
    assert_non_null(strstr(fixture_log(f, "1.0.0"), "child"));
    assert_non_null(strstr(fixture_log(f, "1.0.0"), "parent"));
}

static int64_t bytes_of_logs(const char *intent)
{
    char path[600];
    struct dirent *e;
    struct stat st;
    int64_t sum = 0;
    DIR *dir;

    snprintf(path, sizeof(path), "%s/tasks/%s", f->folder, intent);
    dir = opendir(path);
    assert_non_null(dir);
    while ((e = readdir(dir))) {
        snprintf(path, sizeof(path), "%s/tasks/%s/%s", f->folder, intent, e->d_name);
        if (strncmp(e->d_name, "log.", 4) == 0 && stat(path, &st) == 0)
            sum += st.st_size;
    }
    closedir(dir);
    return sum;
}

static void a_log_stays_within_its_limit_and_keeps_its_end(void **state)
{
    char data[256] = "";
    int64_t at, offset;
    size_t n = 0;

    NEED_ROOT();
    fixture_down(f);
    f->config.log_bytes = 1024 * 1024;
    fixture_up(f);
    /* 100,000 numbered lines of 100 bytes: ten times the limit. */
    fixture_script(f, 1, "seq -f '%099.0f' 1 100000");
    fixture_start(f, 1, 0);
    fixture_wait(f, "1.0.0", ENGINE_EXITED);
    assert_true(bytes_of_logs("1.0.0") <= 1024 * 1024);
    /* From the beginning: later than asked, and on a boundary of parts. */
    assert_int_equal(
        engine_local_ops()->read_log(f->engine, "1.0.0", 0, data, sizeof(data), &at, &n), 0);
    assert_true(at > 0);
    assert_int_equal(at % (1024 * 1024 / LOG_PARTS), 0);
    /* The last line is there, and nothing after it. */
    offset = 100000 * 100LL - 100;
    assert_int_equal(
        engine_local_ops()->read_log(f->engine, "1.0.0", offset, data, sizeof(data), &at, &n), 0);
    assert_int_equal(at, offset);
    assert_int_equal(n, 100);
    assert_int_equal(strtoll(data, NULL, 10), 100000);
    assert_int_equal(
        engine_local_ops()->read_log(f->engine, "1.0.0", offset + 100, data, sizeof(data), &at, &n),
        0);
    assert_int_equal(n, 0);
}

static void a_log_is_followed_across_parts_without_a_gap(void **state)
{
    int64_t offset = 0, lines = 0;
    static char data[8192];
    bool ended = false;

    NEED_ROOT();
    fixture_down(f);
    f->config.log_bytes = 64 * 1024 * 1024;
    fixture_up(f);
    fixture_script(f, 1, "seq -f '%099.0f' 1 200000");
    fixture_start(f, 1, 0);
    for (;;) {
        int64_t at;
        size_t n = 0;
        int r = engine_local_ops()->read_log(f->engine, "1.0.0", offset, data,
                                             sizeof(data) / 100 * 100, &at, &n);

        if (r == -ENOENT || (r == 0 && n == 0)) {
            if (ended)
                break;
            ended = fixture_count(f, "1.0.0", ENGINE_EXITED) > 0;
            continue;
        }
        assert_int_equal(r, 0);
        assert_int_equal(at, offset);
        for (size_t i = 0; i < n; i++)
            lines += data[i] == '\n';
        offset += (int64_t)n;
    }
    assert_int_equal(lines, 200000);
    assert_int_equal(offset, 200000 * 100LL);
}

static void memory_above_the_limit_ends_the_task_and_says_so(void **state)
{
    struct seen s;

    NEED_LIMITS();
    f->request.memory_bytes = 64 * 1024 * 1024;
    fixture_script(f, 1, "exec python3 -c 'x = bytearray(512 * 1024 * 1024); print(len(x))'");
    fixture_start(f, 1, 0);
    s = fixture_wait(f, "1.0.0", ENGINE_EXITED);
    assert_int_equal(s.exit_signal, SIGKILL);
    assert_non_null(strstr(s.message, "out of memory"));
}

static void a_killed_supervisor_is_seen_and_its_task_cleaned_up(void **state)
{
    int pid;

    NEED_ROOT();
    fixture_script(f, 1, "(setsid sleep 7777.4 &); echo ready; sleep 7777.4");
    fixture_start(f, 1, 0);
    fixture_wait_log(f, "1.0.0", "ready");
    pid = fixture_supervisor(f, "1.0.0");
    assert_true(pid > 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_non_null(strstr(fixture_wait(f, "1.0.0", ENGINE_LOST).message, "supervisor"));
    nothing_left("sleep 7777.4");
    /* It stays lost, also for the next server. */
    fixture_down(f);
    fixture_clear(f);
    fixture_up(f);
    fixture_reconcile(f, (const char *const[]){"1.0.0"}, 1);
    fixture_wait(f, "1.0.0", ENGINE_LOST);
    fixture_wait(f, NULL, ENGINE_RECONCILED);
}

static void a_task_that_is_killed_from_inside_reports_the_signal(void **state)
{
    struct seen s;

    NEED_ROOT();
    fixture_script(f, 1, "kill -9 $$");
    fixture_start(f, 1, 0);
    s = fixture_wait(f, "1.0.0", ENGINE_EXITED);
    assert_int_equal(s.exit_signal, SIGKILL);
}

static void a_task_cannot_end_its_sandbox_by_signals(void **state)
{
    NEED_ROOT();
    fixture_script(f, 1, "kill -9 1; kill -TERM 1; kill -STOP 1; echo alive; exit 6");
    fixture_start(f, 1, 0);
    assert_int_equal(fixture_wait(f, "1.0.0", ENGINE_EXITED).exit_code, 6);
    assert_non_null(strstr(fixture_log(f, "1.0.0"), "alive"));
}

static void a_supervisor_stops_its_task_on_sigterm(void **state)
{
    NEED_ROOT();
    fixture_script(f, 1, "trap 'echo bye; exit 9' TERM; echo ready; while :; do sleep 0.05; done");
    fixture_start(f, 1, 0);
    fixture_wait_log(f, "1.0.0", "ready");
    assert_int_equal(kill(fixture_supervisor(f, "1.0.0"), SIGTERM), 0);
    assert_int_equal(fixture_wait(f, "1.0.0", ENGINE_EXITED).exit_code, 9);
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, up, down)
    const struct CMUnitTest tests[] = {
        T(tasks_that_exit_at_once_all_end),
        T(a_thousand_children_end_with_their_task),
        T(a_fork_bomb_meets_its_limit),
        T(daemons_end_with_their_task),
        T(a_stop_reaches_every_process),
        T(a_log_stays_within_its_limit_and_keeps_its_end),
        T(a_log_is_followed_across_parts_without_a_gap),
        T(memory_above_the_limit_ends_the_task_and_says_so),
        T(a_killed_supervisor_is_seen_and_its_task_cleaned_up),
        T(a_task_that_is_killed_from_inside_reports_the_signal),
        T(a_task_cannot_end_its_sandbox_by_signals),
        T(a_supervisor_stops_its_task_on_sigterm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
