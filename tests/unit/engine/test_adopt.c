/* SPDX-License-Identifier: Apache-2.0 */
/* Servers that die: what the next one finds. */
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
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define MANY 200

static struct fixture *f;

static int up(void **state)
{
    f = fixture_new();
    return 0;
}

static int down(void **state)
{
    fixture_drop(f);
    return 0;
}

static const char *const first[] = {"1.0.0"};

/* The next server, which believes that the first task is alive. */
static void come_back(void)
{
    fixture_clear(f);
    fixture_up(f);
    fixture_reconcile(f, first, 1);
    fixture_wait(f, NULL, ENGINE_RECONCILED);
}

static void a_running_task_is_adopted(void **state)
{
    struct seen before, after;

    NEED_ROOT();
    fixture_up(f);
    fixture_script(f, 1, "echo ready; trap 'exit 8' TERM; while :; do sleep 0.05; done");
    fixture_start(f, 1, 0);
    before = fixture_wait(f, "1.0.0", ENGINE_STARTED);
    fixture_wait_log(f, "1.0.0", "ready");
    fixture_down(f);
    come_back();
    after = fixture_wait(f, "1.0.0", ENGINE_STARTED);
    assert_int_equal(after.boot_ms, before.boot_ms);
    engine_local_ops()->stop(f->engine, "1.0.0", 10000);
    assert_int_equal(fixture_wait(f, "1.0.0", ENGINE_EXITED).exit_code, 8);
    assert_int_equal(strncmp(fixture_log(f, "1.0.0"), "ready\n", 6), 0);
}

static void an_end_that_nobody_saw_is_reported(void **state)
{
    NEED_ROOT();
    fixture_up(f);
    fixture_script(f, 1, "sleep 0.4; echo done; exit 5");
    fixture_start(f, 1, 0);
    fixture_wait(f, "1.0.0", ENGINE_STARTED);
    fixture_down(f);
    for (int i = 0; i < FIXTURE_WAIT_MS / 10 && fixture_supervisor(f, "1.0.0") > 0; i++)
        fixture_sleep_ms(10);
    come_back();
    assert_int_equal(fixture_wait(f, "1.0.0", ENGINE_EXITED).exit_code, 5);
    /* Again and again, until it is forgotten. */
    fixture_down(f);
    come_back();
    assert_int_equal(fixture_wait(f, "1.0.0", ENGINE_EXITED).exit_code, 5);
    engine_local_ops()->forget(f->engine, "1.0.0");
    fixture_down(f);
    come_back();
    fixture_wait(f, "1.0.0", ENGINE_LOST);
}

static void a_refusal_that_nobody_saw_is_reported(void **state)
{
    static const char *const command[] = {"no-such-program", NULL};

    NEED_ROOT();
    fixture_up(f);
    f->workloads[1].command = command;
    fixture_start(f, 1, 0);
    fixture_wait(f, "1.0.0", ENGINE_REFUSED);
    fixture_down(f);
    come_back();
    assert_non_null(strstr(fixture_wait(f, "1.0.0", ENGINE_REFUSED).message, "no-such-program"));
}

static void a_supervisor_that_died_meanwhile_is_lost(void **state)
{
    NEED_ROOT();
    fixture_up(f);
    fixture_script(f, 1, "echo ready; sleep 7777.5");
    fixture_start(f, 1, 0);
    fixture_wait_log(f, "1.0.0", "ready");
    fixture_down(f);
    assert_int_equal(kill(fixture_supervisor(f, "1.0.0"), SIGKILL), 0);
    come_back();
    fixture_wait(f, "1.0.0", ENGINE_LOST);
    assert_int_equal(fixture_processes("sleep 7777.5"), 0);
}

static void what_core_does_not_know_is_stopped(void **state)
{
    NEED_ROOT();
    fixture_up(f);
    fixture_script(f, 1, "echo ready; trap '' TERM; sleep 7777.6");
    fixture_start(f, 1, 0);
    fixture_wait_log(f, "1.0.0", "ready");
    fixture_down(f);
    fixture_clear(f);
    fixture_up(f);
    fixture_reconcile(f, NULL, 0);
    fixture_wait(f, NULL, ENGINE_RECONCILED);
    assert_int_equal(fixture_processes("sleep 7777.6"), 0);
    assert_int_equal(fixture_count(f, "1.0.0", ENGINE_EXITED), 0);
    /* Gone, but its log can still be read. */
    assert_string_equal(fixture_log(f, "1.0.0"), "ready\n");
}

static void a_task_that_was_never_started_is_lost(void **state)
{
    NEED_ROOT();
    fixture_up(f);
    fixture_reconcile(f, first, 1);
    assert_non_null(
        strstr(fixture_wait(f, "1.0.0", ENGINE_LOST).message, "before the task was started"));
    fixture_wait(f, NULL, ENGINE_RECONCILED);
}

static void starting_what_runs_already_adopts_it(void **state)
{
    NEED_ROOT();
    fixture_up(f);
    fixture_script(f, 1, "echo once; sleep 100");
    fixture_start(f, 1, 0);
    fixture_wait_log(f, "1.0.0", "once");
    fixture_down(f);
    fixture_clear(f);
    fixture_up(f);
    fixture_start(f, 1, 0);
    fixture_wait(f, "1.0.0", ENGINE_STARTED);
    assert_string_equal(fixture_log(f, "1.0.0"), "once\n");
}

/* ---- a server killed at each step of a start ----------------------------------------------- */

static void die_at(void *ctx, const char *step)
{
    if (strcmp(step, ctx) == 0)
        (void)kill(getpid(), SIGKILL);
}

/* What the task has noted about its runs. */
static const char *runs(void)
{
    static char text[64];
    char path[128];
    size_t n = 0;
    FILE *file;

    snprintf(path, sizeof(path), "%s/checkpoints/1/runs", f->folder);
    file = fopen(path, "re");
    if (file) {
        n = fread(text, 1, sizeof(text) - 1, file);
        fclose(file);
    }
    text[n] = '\0';
    return text;
}

static void killed_at(const char *step)
{
    bool gone = false;
    int status;
    pid_t pid;

    fixture_script(f, 1, "echo ran >> $ALLOT_CHECKPOINT_DIR/runs; sleep 7777.7");
    pid = fork();
    if (pid == 0) {
        f->config.step = die_at;
        f->config.step_ctx = (void *)step;
        fixture_up(f);
        fixture_start(f, 1, 0);
        fixture_sleep_ms(FIXTURE_WAIT_MS);
        _exit(1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    come_back();
    gone = fixture_count(f, "1.0.0", ENGINE_LOST) > 0;
    if (!gone)
        fixture_wait(f, "1.0.0", ENGINE_STARTED);
    for (int i = 0; i < FIXTURE_WAIT_MS / 10 && !gone && runs()[0] == '\0'; i++)
        fixture_sleep_ms(10);
    assert_int_equal(fixture_processes("sleep 7777.7"), gone ? 0 : 2); /* sh -c and sleep */
    /* Started once if at all, and never by the next server. */
    assert_string_equal(runs(), gone ? "" : "ran\n");
    if (!gone) {
        engine_local_ops()->stop(f->engine, "1.0.0", 0);
        fixture_wait(f, "1.0.0", ENGINE_EXITED);
    }
}

#define KILLED_AT(name)                                                 \
    static void a_server_killed_at_##name##_loses_nothing(void **state) \
    {                                                                   \
        NEED_ROOT();                                                    \
        killed_at(#name);                                               \
    }

KILLED_AT(folder)
KILLED_AT(lock)
KILLED_AT(launch)
KILLED_AT(spawn)
KILLED_AT(watch)

/* ---- many ---------------------------------------------------------------------------------- */

static void many_tasks_are_adopted_quickly(void **state)
{
    static char names[MANY][16];
    static const char *intents[MANY];
    int64_t begin;

    NEED_ROOT();
    fixture_up(f);
    fixture_script(f, 1, "exec sleep 100");
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof(names[i]), "1.%d.0", i);
        intents[i] = names[i];
        fixture_start(f, 1, i);
    }
    for (int i = 0; i < MANY; i++)
        fixture_wait(f, intents[i], ENGINE_STARTED);
    fixture_down(f);
    fixture_clear(f);
    fixture_up(f);
    begin = clock_boot_ms();
    fixture_reconcile(f, intents, MANY);
    fixture_wait(f, NULL, ENGINE_RECONCILED);
    print_message("# %d tasks adopted in %d ms\n", MANY, (int)(clock_boot_ms() - begin));
    assert_int_equal(fixture_count(f, NULL, ENGINE_STARTED), MANY);
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, up, down)
    const struct CMUnitTest tests[] = {
        T(a_running_task_is_adopted),
        T(an_end_that_nobody_saw_is_reported),
        T(a_refusal_that_nobody_saw_is_reported),
        T(a_supervisor_that_died_meanwhile_is_lost),
        T(what_core_does_not_know_is_stopped),
        T(a_task_that_was_never_started_is_lost),
        T(starting_what_runs_already_adopts_it),
        T(a_server_killed_at_folder_loses_nothing),
        T(a_server_killed_at_lock_loses_nothing),
        T(a_server_killed_at_launch_loses_nothing),
        T(a_server_killed_at_spawn_loses_nothing),
        T(a_server_killed_at_watch_loses_nothing),
        T(many_tasks_are_adopted_quickly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
