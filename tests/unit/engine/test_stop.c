/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stop and the steps of a task's life in every order that can be forced: processes that play a
 * part are paused, and the sandbox is built behind a gate.
 */
#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "engine/local/control.h"
#include "engine/local/process.h"
#include "engine/local/record.h"

#define TASK "1.0.0"
#define LONG_MS 3600000
#define WORK "tasks/" TASK "/work/"

static struct fixture *f;
static char gate[128], gated_bwrap[128];

static const char *place(const char *relative)
{
    static char path[200];

    snprintf(path, sizeof(path), "%s/%s", f->folder, relative);
    return path;
}

static void make(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    close(fd);
}

static int up(void **state)
{
    char script[300];

    f = fixture_new();
    if (f == NULL)
        return 0;
    snprintf(gate, sizeof(gate), "%s/gate", f->folder);
    snprintf(gated_bwrap, sizeof(gated_bwrap), "%s/bwrap", f->folder);
    snprintf(script, sizeof(script),
             "#!/bin/sh\nwhile [ ! -e %s ]; do sleep 0.01; done\nexec bwrap \"$@\"\n", gate);
    assert_int_equal(io_write_file_atomic(AT_FDCWD, gated_bwrap, script, strlen(script), 0755, 0),
                     0);
    make(gate);
    f->config.bwrap_path = gated_bwrap;
    fixture_up(f);
    return 0;
}

static int down(void **state)
{
    if (f)
        make(gate);
    fixture_drop(f);
    return 0;
}

static void wait_until(bool (*check)(int pid), int pid, const char *what)
{
    int64_t until = clock_boot_ms() + FIXTURE_WAIT_MS;

    while (!check(pid)) {
        if (clock_boot_ms() > until)
            fail_msg("waited in vain for %s", what);
        fixture_sleep_ms(2);
    }
}

static bool is_building(int pid)
{
    return fixture_processes(gated_bwrap) > 0 && fixture_supervisor(f, TASK) > 0;
}

static bool is_ready(int pid)
{
    return access(place(WORK "ready"), F_OK) == 0;
}

static char state_of(int pid)
{
    _cleanup_free_ char *text = NULL;
    char path[64], *p;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    if (io_read_file(AT_FDCWD, path, 4096, &text, NULL) < 0)
        return 'X';
    p = strrchr(text, ')');
    return p && p[1] ? p[2] : 'X';
}

static bool is_dead(int pid)
{
    return state_of(pid) == 'Z' || state_of(pid) == 'X';
}

static bool is_paused(int pid)
{
    return state_of(pid) == 'T';
}

static void pause_process(int pid)
{
    assert_int_equal(kill(pid, SIGSTOP), 0);
    wait_until(is_paused, pid, "a process to pause");
}

/* Its init, as this namespace numbers it; 0 = not noted yet. */
static int init_of(void)
{
    _cleanup_free_ char *data = NULL;
    size_t len;

    if (io_read_file(AT_FDCWD, place("tasks/" TASK "/" CONTROL_PIDS), 4096, &data, &len) < 0)
        return 0;
    return (int)record_get_i64(data, len, "init", 0);
}

static bool is_noted(int pid)
{
    return init_of() > 0;
}

static int only_child_of(int pid)
{
    _cleanup_free_ char *text = NULL;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
    assert_int_equal(io_read_file(AT_FDCWD, path, 4096, &text, NULL), 0);
    return (int)strtol(text, NULL, 10);
}

/* How often PID has gone to sleep: it has when it has dealt with what woke it. */
static int64_t sleeps_of(int pid)
{
    static const char field[] = "\nvoluntary_ctxt_switches:";
    _cleanup_free_ char *text = NULL;
    char path[64], *p;

    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    if (io_read_file(AT_FDCWD, path, 8192, &text, NULL) < 0)
        return INT64_MAX;
    p = strstr(text, field);
    return p ? strtoll(p + sizeof(field) - 1, NULL, 10) : 0;
}

static void stop(int64_t grace_ms)
{
    engine_local_ops()->stop(f->engine, TASK, grace_ms);
}

/* Returns when the engine has handled all that it was asked to before. */
static void wait_for_engine(void)
{
    int64_t until = clock_boot_ms() + FIXTURE_WAIT_MS;
    int before = fixture_count(f, NULL, ENGINE_RECONCILED);

    fixture_reconcile(f, (const char *const[]){TASK}, 1);
    while (fixture_count(f, NULL, ENGINE_RECONCILED) == before) {
        assert_true(clock_boot_ms() < until);
        fixture_sleep_ms(1);
    }
}

/* Asleep for ten looks on end: it waits in its loop, not on its way there. */
static bool is_settled(int pid)
{
    int64_t sleeps = sleeps_of(pid);

    for (int i = 0; i < 10; i++) {
        if (state_of(pid) != 'S' || sleeps_of(pid) != sleeps)
            return false;
        fixture_sleep_ms(2);
    }
    return true;
}

/* Returns when the supervisor has dealt with it: the word awaits it when it goes on. */
static void stop_and_see(int64_t grace_ms)
{
    int supervisor = fixture_supervisor(f, TASK);
    int64_t paused;

    wait_until(is_settled, supervisor, "the supervisor to wait for what comes");
    pause_process(supervisor);
    stop(grace_ms);
    wait_for_engine();
    paused = sleeps_of(supervisor);
    kill(supervisor, SIGCONT);
    while (!is_dead(supervisor) && (sleeps_of(supervisor) <= paused || state_of(supervisor) != 'S'))
        fixture_sleep_ms(1);
}

static void start(const char *script)
{
    fixture_script(f, 1, script);
    fixture_start(f, 1, 0);
}

static void start_behind_the_gate(const char *script)
{
    assert_int_equal(unlink(gate), 0);
    start(script);
    wait_until(is_building, 0, "the sandbox to be built");
}

/* The attempt's one end. */
static struct seen its_end(void)
{
    struct seen s = fixture_wait(f, TASK, ENGINE_EXITED);

    assert_int_equal(fixture_count(f, TASK, ENGINE_EXITED), 1);
    return s;
}

/* ---- before the command runs --------------------------------------------------------------- */

static void what_is_stopped_while_it_is_built_never_begins(void **state)
{
    struct seen s;

    NEED_ROOT();
    start_behind_the_gate("echo ran; touch ready");
    stop_and_see(LONG_MS);
    make(gate);
    s = its_end();
    assert_int_equal(s.exit_signal, SIGTERM);
    assert_true(s.stopped);
    assert_string_equal(s.message, "stopped before it ran");
    assert_string_equal(fixture_log(f, TASK), "");
    assert_false(is_ready(0));
    assert_int_equal(fixture_count(f, TASK, ENGINE_STARTED), 0);
}

static void without_a_grace_it_never_begins_either(void **state)
{
    struct seen s;

    NEED_ROOT();
    start_behind_the_gate("echo ran");
    stop_and_see(0);
    make(gate);
    s = its_end();
    assert_true(s.stopped);
    assert_string_equal(fixture_log(f, TASK), "");
    assert_int_equal(fixture_count(f, TASK, ENGINE_STARTED), 0);
}

static void a_sandbox_that_hangs_is_killed_after_the_grace(void **state)
{
    struct seen s;

    NEED_ROOT();
    start_behind_the_gate("echo ran");
    stop(50);
    s = its_end();
    assert_int_equal(s.exit_signal, SIGKILL);
    assert_true(s.stopped);
    assert_string_equal(s.message, "killed after a grace of 50 ms");
    assert_string_equal(fixture_log(f, TASK), "");
    assert_int_equal(fixture_processes(gated_bwrap), 0);
}

/* ---- between its begin and the news of it -------------------------------------------------- */

/* The supervisor learns of all of it at once. */
static struct seen stop_unseen(const char *script, bool to_its_end, int64_t grace_ms)
{
    int supervisor, monitor;

    start_behind_the_gate(script);
    supervisor = fixture_supervisor(f, TASK);
    monitor = only_child_of(supervisor);
    pause_process(supervisor);
    make(gate);
    wait_until(is_ready, 0, "the command to run");
    if (to_its_end)
        wait_until(is_dead, monitor, "the sandbox to end");
    stop(grace_ms);
    wait_for_engine();
    kill(supervisor, SIGCONT);
    return its_end();
}

static void what_was_done_before_anybody_knew_is_done(void **state)
{
    struct seen s;

    NEED_ROOT();
    s = stop_unseen("touch ready", true, LONG_MS);
    assert_int_equal(s.exit_code, 0);
    assert_false(s.stopped);
    assert_int_equal(fixture_count(f, TASK, ENGINE_STARTED), 1);
}

static void so_it_is_without_a_grace(void **state)
{
    struct seen s;

    NEED_ROOT();
    s = stop_unseen("touch ready", true, 0);
    assert_int_equal(s.exit_code, 0);
    assert_false(s.stopped);
}

static void what_runs_before_anybody_knows_gets_its_signal_and_grace(void **state)
{
    struct seen s;

    NEED_ROOT();
    s = stop_unseen("trap 'sleep 0.1; echo saved; exit 7' TERM; touch ready; "
                    "while :; do sleep 0.02; done",
                    false, LONG_MS);
    assert_int_equal(s.exit_code, 7);
    assert_true(s.stopped);
    assert_non_null(strstr(fixture_log(f, TASK), "saved"));
}

/* ---- between its end and the news of it ---------------------------------------------------- */

/*
 * Init finds the end of its command and a word to stop it at the same time, and goes without
 * having read the word, which resets its connection before its last words have been heard.
 */
static struct seen stop_the_dead(int64_t grace_ms)
{
    int supervisor, init, command;

    start("trap 'exit 9' TERM; touch ready; until [ -e go ]; do sleep 0.02; done");
    wait_until(is_ready, 0, "the command to run");
    wait_until(is_noted, 0, "its processes to be noted");
    supervisor = fixture_supervisor(f, TASK);
    init = init_of();
    command = only_child_of(init);
    pause_process(init);
    make(place(WORK "go"));
    wait_until(is_dead, command, "the command to end");
    stop_and_see(grace_ms);
    pause_process(supervisor);
    kill(init, SIGCONT);
    wait_until(is_dead, init, "init to end");
    kill(supervisor, SIGCONT);
    return its_end();
}

static void who_ended_before_the_signal_has_ended(void **state)
{
    struct seen s;

    NEED_ROOT();
    s = stop_the_dead(LONG_MS);
    assert_int_equal(s.exit_code, 0);
    assert_false(s.stopped);
}

static void who_ended_before_the_kill_has_ended(void **state)
{
    struct seen s;

    NEED_ROOT();
    s = stop_the_dead(0);
    assert_int_equal(s.exit_code, 0);
    assert_false(s.stopped);
}

/* ---- while it runs ------------------------------------------------------------------------- */

static struct seen stop_the_living(const char *script)
{
    start(script);
    wait_until(is_ready, 0, "the command to run");
    fixture_wait(f, TASK, ENGINE_STARTED);
    stop_and_see(LONG_MS);
    make(place(WORK "go"));
    return its_end();
}

static void who_ignores_the_signal_and_succeeds_was_done(void **state)
{
    struct seen s;

    NEED_ROOT();
    s = stop_the_living("trap '' TERM; touch ready; until [ -e go ]; do sleep 0.02; done");
    assert_int_equal(s.exit_code, 0);
    assert_false(s.stopped);
}

static void who_answers_the_signal_with_success_gave_way(void **state)
{
    struct seen s;

    NEED_ROOT();
    s = stop_the_living("trap 'exit 0' TERM; touch ready; while :; do sleep 0.02; done");
    assert_int_equal(s.exit_code, 0);
    assert_true(s.stopped);
}

static void the_signal_comes_once(void **state)
{
    const char *first;
    struct seen s;

    NEED_ROOT();
    start("trap 'echo heard' TERM; touch ready; until [ -e go ]; do sleep 0.02; done");
    wait_until(is_ready, 0, "the command to run");
    stop(LONG_MS);
    fixture_wait_log(f, TASK, "heard");
    stop_and_see(LONG_MS);
    stop_and_see(LONG_MS - 1000);
    make(place(WORK "go"));
    s = its_end();
    assert_int_equal(s.exit_code, 0);
    assert_true(s.stopped);
    first = strstr(fixture_log(f, TASK), "heard");
    assert_non_null(first);
    assert_null(strstr(first + 1, "heard"));
}

static void a_grace_without_end_is_one(void **state)
{
    NEED_ROOT();
    start("trap 'exit 3' TERM; touch ready; while :; do sleep 0.02; done");
    wait_until(is_ready, 0, "the command to run");
    stop(INT64_MAX);
    assert_int_equal(its_end().exit_code, 3);
}

/* ---- who takes a signal -------------------------------------------------------------------- */

static void note(int sig)
{
}

/* A child that arranges itself for SIGTERM and waits. HANDLER SIG_ERR = blocks it. */
static pid_t child_with(void (*handler)(int))
{
    int ready[2];
    pid_t pid;

    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        if (handler == SIG_ERR)
            sigprocmask(SIG_BLOCK, &set, NULL);
        else
            signal(SIGTERM, handler);
        signal(SIGUSR1, note);
        sigemptyset(&set);
        sigaddset(&set, SIGUSR1);
        sigprocmask(SIG_BLOCK, &set, NULL);
        (void)!write(ready[1], "", 1);
        sigwaitinfo(&set, NULL);
        _exit(0);
    }
    assert_int_equal(read(ready[0], &(char){0}, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void end_child(pid_t pid)
{
    siginfo_t info;

    kill(pid, SIGUSR1);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
}

static void the_dead_and_the_deaf_take_no_signal(void **state)
{
    void (*const handlers[])(int) = {SIG_DFL, SIG_IGN, note, SIG_ERR};

    for (size_t i = 0; i < ARRAY_LEN(handlers); i++) {
        pid_t pid = child_with(handlers[i]);

        assert_int_equal(process_takes(pid, SIGTERM), i >= 2);
        end_child(pid);
        assert_false(process_takes(pid, SIGTERM));
        waitpid(pid, NULL, 0);
        assert_false(process_takes(pid, SIGTERM));
    }
}

static bool has_taken_it(int pid)
{
    return !process_pending(pid, SIGTERM);
}

static void what_was_never_taken_is_pending(void **state)
{
    void (*const handlers[])(int) = {SIG_IGN, note, SIG_ERR};

    for (size_t i = 0; i < ARRAY_LEN(handlers); i++) {
        pid_t pid = child_with(handlers[i]);

        assert_false(process_pending(pid, SIGTERM));
        kill(pid, SIGTERM);
        if (handlers[i] == SIG_ERR) {
            end_child(pid);
            assert_true(process_pending(pid, SIGTERM));
        } else {
            wait_until(has_taken_it, pid, "the signal to be taken");
        }
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        assert_false(process_pending(pid, SIGTERM));
    }
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, up, down)
    const struct CMUnitTest tests[] = {
        T(what_is_stopped_while_it_is_built_never_begins),
        T(without_a_grace_it_never_begins_either),
        T(a_sandbox_that_hangs_is_killed_after_the_grace),
        T(what_was_done_before_anybody_knew_is_done),
        T(so_it_is_without_a_grace),
        T(what_runs_before_anybody_knows_gets_its_signal_and_grace),
        T(who_ended_before_the_signal_has_ended),
        T(who_ended_before_the_kill_has_ended),
        T(who_ignores_the_signal_and_succeeds_was_done),
        T(who_answers_the_signal_with_success_gave_way),
        T(the_signal_comes_once),
        T(a_grace_without_end_is_one),
        cmocka_unit_test(the_dead_and_the_deaf_take_no_signal),
        cmocka_unit_test(what_was_never_taken_is_pending),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
