/* SPDX-License-Identifier: Apache-2.0 */
/* What a task sees, may do, and must not. */
#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"

static struct fixture *f;
static char outside[64]; /* a folder beside the data folder */

static int up(void **state)
{
    f = fixture_new();
    if (f == NULL)
        return 0;
    fixture_up(f);
    snprintf(outside, sizeof(outside), "/tmp/allot-outside-XXXXXX");
    return mkdtemp(outside) ? 0 : -1;
}

static int down(void **state)
{
    if (f)
        (void)io_remove_tree(AT_FDCWD, outside);
    fixture_drop(f);
    return 0;
}

/* Runs SCRIPT to its end and returns the log. */
static const char *run(const char *script)
{
    fixture_script(f, 1, script);
    fixture_start(f, 1, 0);
    fixture_wait(f, "1.0.0", ENGINE_EXITED);
    return fixture_log(f, "1.0.0");
}

static void assert_prints(const char *script, const char *expected)
{
    assert_string_equal(run(script), expected);
}

static void a_task_is_not_root(void **state)
{
    NEED_ROOT();
    assert_prints(
        "test $(id -u) -ge 1000 && test $(id -u) = $(id -g) && echo user; "
        "grep -c '^Cap[IPEA].*0000000000000000' /proc/self/status; cat /proc/self/setgroups; "
        "wc -l < /proc/self/uid_map",
        "user\n4\ndeny\n1\n");
}

static void a_task_sees_only_its_own_processes(void **state)
{
    NEED_ROOT();
    assert_prints("ls /proc | grep -c '^[0-9]*$' | awk '{ print ($1 < 8) }'; "
                  "cat /proc/1/environ 2>/dev/null | wc -c; ls /proc/1/fd 2>/dev/null | wc -l",
                  "1\n0\n0\n");
}

static void the_platform_and_other_people_are_hidden(void **state)
{
    NEED_ROOT();
    f->workloads[1].env[0] = (struct model_pair){"DATA", f->folder};
    f->workloads[1].env_count = 1;
    assert_prints("ls -A /root /var/log /var/tmp /tmp /sys/fs/cgroup | grep -v ':$' | tr -d '\\n'; "
                  "ls -A /home; ls -A /run; ls $DATA 2>/dev/null; cat /etc/shadow 2>/dev/null; "
                  "ls /dev | tr '\\n' ' '",
                  "task\nallot\ncore fd full null ptmx pts random shm stderr stdin stdout "
                  "tty urandom zero ");
}

static void the_root_cannot_be_written(void **state)
{
    NEED_ROOT();
    assert_prints("for d in / /usr /etc /var /home /run /sys /proc/sys; do "
                  "touch $d/x 2>/dev/null && echo $d; done; "
                  "echo 1 2>/dev/null > /proc/sys/kernel/panic && echo panic; "
                  "for d in /tmp /dev/shm /home/task $ALLOT_CHECKPOINT_DIR; do "
                  "echo x > $d/x && cat $d/x; done",
                  "x\nx\nx\nx\n");
}

static void dangerous_calls_are_refused(void **state)
{
    /* mount, umount2, unshare(user), setns, bpf, keyctl, perf, reboot, io_uring, open_by_handle. */
    static const char *const command[] = {
        "python3", "-c",
        "import ctypes, errno\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "def call(*a):\n"
        "    r = libc.syscall(*a)\n"
        "    return errno.errorcode[ctypes.get_errno()] if r < 0 else 'allowed'\n"
        "for n, a in [(165, (0, b'/tmp', b'tmpfs', 0, 0)), (166, (b'/tmp', 0)),\n"
        "             (272, (0x10000000,)), (272, (0x20000,)), (308, (0, 0)), (321, (0, 0, 0)),\n"
        "             (250, (0, 0)), (298, (0, 0, -1, -1, 0)), (169, (0, 0, 0, 0)),\n"
        "             (425, (1, 0)), (304, (0, 0, 0)), (323, (0,)), (161, (b'/',)),\n"
        "             (56, (0x10000000, 0, 0, 0, 0)), (435, (0, 0))]:\n"
        "    print(call(n, *a), end=' ')\n"
        "print(call(39) == 'allowed')\n",
        NULL};

    NEED_ROOT();
#ifndef __x86_64__
    print_message("# the numbers of the calls are of another machine: skipped\n");
    skip();
#endif
    f->workloads[1].command = command;
    fixture_start(f, 1, 0);
    fixture_wait(f, "1.0.0", ENGINE_EXITED);
    assert_string_equal(fixture_log(f, "1.0.0"),
                        "EPERM EPERM EPERM EPERM EPERM EPERM EPERM EPERM EPERM ENOSYS EPERM EPERM "
                        "EPERM EPERM ENOSYS True\n");
}

static void new_privileges_cannot_be_had(void **state)
{
    NEED_ROOT();
    assert_prints("grep NoNewPrivs /proc/self/status | tr -d '\\t'; "
                  "grep -w Seccomp /proc/self/status | tr -d '\\t'; unshare -U true 2>&1 | grep -c "
                  "'not permitted'",
                  "NoNewPrivs:1\nSeccomp:2\n1\n");
}

static void a_task_is_not_spared_when_memory_runs_out(void **state)
{
    NEED_ROOT();
    assert_prints("cat /proc/self/oom_score_adj", "0\n");
}

static void the_environment_is_the_platforms_and_the_workloads_alone(void **state)
{
    NEED_ROOT();
    setenv("SECRET_OF_THE_SERVER", "1", 1);
    f->workloads[1].env[0] = (struct model_pair){"LR", "0.1 and\nmore"};
    f->workloads[1].env[1] = (struct model_pair){"HOME", "/elsewhere"};
    f->workloads[1].env[2] = (struct model_pair){"ALLOT_RANK", "99"};
    f->workloads[1].env_count = 3;
    f->devices[0] = 2;
    f->devices[1] = 3;
    f->device_count = f->request.device_count = 2;
    f->task_count = 3;
    assert_prints("env | sort",
                  "ALLOT_CHECKPOINT_DIR=/run/allot/checkpoint\n"
                  "ALLOT_DEVICES=2,3\n"
                  "ALLOT_GPU_MEMORY=85899345920\n"
                  "ALLOT_GPU_MILLI=2000\n"
                  "ALLOT_NODE_LIST=node\n"
                  "ALLOT_RANK=0\n"
                  "ALLOT_REPORT_PATH=/home/task/.allot-report\n"
                  "ALLOT_RESTART_COUNT=0\n"
                  "ALLOT_TASK_COUNT=3\n"
                  "ALLOT_TEAM=research\n"
                  "ALLOT_WORKLOAD_ID=1\n"
                  "ALLOT_WORKLOAD_NAME=digits\n"
                  "CUDA_VISIBLE_DEVICES=\n"
                  "HOME=/elsewhere\n"
                  "LANG=C.UTF-8\n"
                  "LOCAL_RANK=0\n"
                  "LOGNAME=ada\n"
                  "LR=0.1 and\n"
                  "MASTER_ADDR=127.0.0.1\n"
                  "MASTER_PORT=24996\n"
                  "NVIDIA_VISIBLE_DEVICES=void\n"
                  "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
                  "PWD=/home/task\n"
                  "RANK=0\n"
                  "USER=ada\n"
                  "WORLD_SIZE=3\n"
                  "more\n");
}

static void the_checkpoint_folder_is_the_workloads(void **state)
{
    NEED_ROOT();
    fixture_script(f, 1,
                   "cat $ALLOT_CHECKPOINT_DIR/x 2>/dev/null; echo $ALLOT_RANK >> "
                   "$ALLOT_CHECKPOINT_DIR/x");
    fixture_start(f, 1, 0);
    fixture_wait(f, "1.0.0", ENGINE_EXITED);
    fixture_start(f, 1, 1);
    fixture_wait(f, "1.1.0", ENGINE_EXITED);
    assert_string_equal(fixture_log(f, "1.1.0"), "0\n");
    /* Another workload has its own. */
    fixture_script(f, 2, "ls -A $ALLOT_CHECKPOINT_DIR");
    fixture_start(f, 2, 0);
    fixture_wait(f, "2.0.0", ENGINE_EXITED);
    assert_string_equal(fixture_log(f, "2.0.0"), "");
}

static void a_workdir_that_is_open_is_used(void **state)
{
    NEED_ROOT();
    assert_int_equal(chmod(outside, 0777), 0);
    f->workloads[1].workdir = outside;
    run("pwd; echo result > out");
    assert_int_equal(strncmp(fixture_log(f, "1.0.0"), outside, strlen(outside)), 0);
    assert_int_equal(chdir(outside), 0);
    assert_int_equal(access("out", F_OK), 0);
    assert_int_equal(chdir("/"), 0);
}

static void assert_refused(const char *reason)
{
    fixture_script(f, 1, "true");
    fixture_start(f, 1, 0);
    assert_non_null(strstr(fixture_wait(f, "1.0.0", ENGINE_REFUSED).message, reason));
}

static void a_workdir_that_is_closed_to_others_is_refused(void **state)
{
    NEED_ROOT(); /* mkdtemp made it for root alone */
    char inner[100];

    snprintf(inner, sizeof(inner), "%s/inner", outside);
    assert_int_equal(mkdir(inner, 0777), 0);
    f->workloads[1].workdir = inner;
    assert_refused("Permission denied");
}

static void a_workdir_that_is_not_there_is_refused(void **state)
{
    NEED_ROOT();
    f->workloads[1].workdir = "/no/such/folder";
    assert_refused("No such file");
}

static void a_workdir_in_the_platforms_folder_is_refused(void **state)
{
    char link[100], tasks[100];

    NEED_ROOT();
    assert_int_equal(chmod(f->folder, 0777), 0);
    assert_int_equal(chmod(outside, 0777), 0);
    snprintf(tasks, sizeof(tasks), "%s/tasks", f->folder);
    snprintf(link, sizeof(link), "%s/link", outside);
    assert_int_equal(symlink(tasks, link), 0);
    f->workloads[1].workdir = link;
    assert_refused("platform's own folder");
}

static void the_root_as_workdir_is_refused(void **state)
{
    NEED_ROOT();
    f->workloads[1].workdir = "/";
    assert_refused("platform's own folder");
}

static void beneath_a_trusted_root_a_task_is_the_owner(void **state)
{
    static const char *const roots[] = {outside, NULL};
    char inner[100];
    struct stat st;

    NEED_ROOT();
    fixture_down(f);
    f->config.workdir_roots = roots;
    fixture_up(f);
    snprintf(inner, sizeof(inner), "%s/inner", outside);
    assert_int_equal(mkdir(inner, 0700), 0);
    assert_int_equal(chown(inner, 4711, 4711), 0);
    f->workloads[1].workdir = inner;
    assert_prints("id -u; touch made", "4711\n");
    snprintf(inner, sizeof(inner), "%s/inner/made", outside);
    assert_int_equal(stat(inner, &st), 0);
    assert_int_equal(st.st_uid, 4711);
}

static void outside_the_trusted_roots_nothing_may_be_named(void **state)
{
    static const char *const roots[] = {"/usr/share", NULL};

    NEED_ROOT();
    fixture_down(f);
    f->config.workdir_roots = roots;
    fixture_up(f);
    assert_int_equal(chmod(outside, 0777), 0);
    f->workloads[1].workdir = outside;
    assert_refused("outside the folders");
    f->config.workdir_roots = NULL;
}

static void a_hidden_folder_may_be_shown_but_not_written(void **state)
{
    static const char *const shown[] = {outside, NULL};
    char file[100];

    NEED_ROOT();
    fixture_down(f);
    f->config.shown_dirs = shown;
    fixture_up(f);
    assert_int_equal(chmod(outside, 0777), 0);
    snprintf(file, sizeof(file), "%s/data", outside);
    assert_int_equal(io_write_file_atomic(AT_FDCWD, file, "42\n", 3, 0644, 0), 0);
    f->workloads[1].env[0] = (struct model_pair){"SHOWN", outside};
    f->workloads[1].env_count = 1;
    assert_prints("cat $SHOWN/data; touch $SHOWN/x 2>/dev/null || echo closed", "42\nclosed\n");
}

static void a_named_checkpoint_folder_is_made_where_the_task_may(void **state)
{
    char named[100];

    NEED_ROOT();
    assert_int_equal(chmod(outside, 01777), 0);
    snprintf(named, sizeof(named), "%s/state", outside);
    f->workloads[1].checkpoint_dir = named;
    run("echo $ALLOT_CHECKPOINT_DIR; echo 1 > $ALLOT_CHECKPOINT_DIR/step");
    assert_int_equal(strncmp(fixture_log(f, "1.0.0"), named, strlen(named)), 0);
    snprintf(named, sizeof(named), "%s/state/step", outside);
    assert_int_equal(access(named, F_OK), 0);
}

static void scratch_space_is_bounded(void **state)
{
    NEED_ROOT();
    fixture_down(f);
    f->config.tmp_bytes = 1024 * 1024;
    fixture_up(f);
    assert_prints("head -c 2000000 /dev/zero > /tmp/x 2>/dev/null || echo full; "
                  "head -c 2000000 /dev/zero > /dev/shm/x 2>/dev/null || echo full",
                  "full\nfull\n");
}

static void without_a_sandbox_tasks_are_refused_and_the_node_says_why(void **state)
{
    NEED_ROOT();
    fixture_down(f);
    f->config.bwrap_path = "/bin/false";
    fixture_clear(f);
    fixture_up(f);
    assert_int_equal(strncmp(fixture_wait(f, NULL, ENGINE_NODE).isolation, "none: ", 6), 0);
    assert_refused("cannot isolate tasks");
    f->config.bwrap_path = NULL;
}

static void unsandboxed_tasks_run_where_that_is_allowed_and_end_clean(void **state)
{
    NEED_ROOT();
    fixture_down(f);
    f->config.bwrap_path = "/bin/false";
    f->config.allow_unsandboxed = true;
    assert_int_equal(chmod(f->folder, 0711), 0);
    fixture_clear(f);
    fixture_up(f);
    assert_int_equal(strncmp(fixture_wait(f, NULL, ENGINE_NODE).isolation, "none: ", 6), 0);
    fixture_script(f, 1,
                   "test $(id -u) -ge 1000 && echo user; (setsid sleep 7777.8 &); "
                   "trap 'exit 3' TERM; "
                   "echo x > $HOME/x && echo x > $ALLOT_CHECKPOINT_DIR/x && echo wrote; "
                   "while :; do sleep 0.05; done");
    fixture_start(f, 1, 0);
    fixture_wait_log(f, "1.0.0", "user\nwrote\n");
    engine_local_ops()->stop(f->engine, "1.0.0", 5000);
    assert_int_equal(fixture_wait(f, "1.0.0", ENGINE_EXITED).exit_code, 3);
    assert_int_equal(fixture_processes("sleep 7777.8"), 0);
    f->config.bwrap_path = NULL;
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, up, down)
    const struct CMUnitTest tests[] = {
        T(a_task_is_not_root),
        T(a_task_sees_only_its_own_processes),
        T(the_platform_and_other_people_are_hidden),
        T(the_root_cannot_be_written),
        T(dangerous_calls_are_refused),
        T(new_privileges_cannot_be_had),
        T(a_task_is_not_spared_when_memory_runs_out),
        T(the_environment_is_the_platforms_and_the_workloads_alone),
        T(the_checkpoint_folder_is_the_workloads),
        T(a_workdir_that_is_open_is_used),
        T(a_workdir_that_is_closed_to_others_is_refused),
        T(a_workdir_that_is_not_there_is_refused),
        T(a_workdir_in_the_platforms_folder_is_refused),
        T(the_root_as_workdir_is_refused),
        T(beneath_a_trusted_root_a_task_is_the_owner),
        T(outside_the_trusted_roots_nothing_may_be_named),
        T(a_hidden_folder_may_be_shown_but_not_written),
        T(a_named_checkpoint_folder_is_made_where_the_task_may),
        T(scratch_space_is_bounded),
        T(without_a_sandbox_tasks_are_refused_and_the_node_says_why),
        T(unsandboxed_tasks_run_where_that_is_allowed_and_end_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
