/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/supervise/inside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "engine/local/control.h"
#include "engine/local/process.h"
#include "engine/local/record.h"
#include "engine/local/supervise/command.h"
#include "engine/local/supervise/kernels.h"
#include "engine/local/supervise/session.h"

struct inside {
    char *data; /* launch record */
    size_t len;
    char **argv, **env;
    const char *cwd;
    bool bare;
    bool user_namespace; /* in one of its own */
    pid_t command;
    pid_t asker; /* asks for kernels; 0 or less: nobody does */
    bool told;   /* SIGTERM has reached code of the command's own */
    int signals; /* signalfd */
    char message[CONTROL_MESSAGE_MAX];
};

static int report_refused(const struct err *err)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

    record_add(&b, "op", "refused");
    record_add(&b, "message", err->text);
    record_add(&b, "remedy", err->remedy);
    record_add(&b, "code", err->code);
    (void)control_send(INSIDE_FD_CONTROL, &b, -1);
    return 1;
}

static int load_launch(struct inside *in, struct err *err)
{
    struct stat st;
    ssize_t n;

    if (fstat(INSIDE_FD_LAUNCH, &st) < 0 || (size_t)st.st_size > RECORD_FILE_MAX)
        return err_set(err, -EINVAL, ERR_INTERNAL, NULL, NULL, "launch record is not readable");
    in->data = malloc((size_t)st.st_size + 1);
    if (in->data == NULL)
        return err_set(err, -ENOMEM, ERR_INTERNAL, NULL, NULL, "out of memory");
    n = pread(INSIDE_FD_LAUNCH, in->data, (size_t)st.st_size, 0);
    if (n != st.st_size)
        return err_set(err, -EIO, ERR_INTERNAL, NULL, NULL, "launch record is not readable");
    in->len = (size_t)n;
    in->data[n] = '\0';
    close(INSIDE_FD_LAUNCH);
    in->argv = record_list(in->data, in->len, "arg", NULL);
    in->env = record_list(in->data, in->len, "env", NULL);
    in->cwd = record_get(in->data, in->len, "cwd");
    in->bare = record_get(in->data, in->len, "bwrap") == NULL;
    if (in->argv[0] == NULL || in->cwd == NULL)
        return err_set(err, -EINVAL, ERR_INTERNAL, NULL, NULL, "launch record lacks a command");
    return 0;
}

/*
 * A user namespace that knows one user: the task's. Its rights end at the next exec. A machine
 * that allows none loses one layer: the task is still no root, without privileges to gain, in
 * namespaces that belong to root. The engine reports it.
 */
static int enter_user_namespace(struct inside *in, uid_t uid, gid_t gid, struct err *err)
{
    char map[64];

    /* Changing the user hid /proc/self from itself; the map must be written there. */
    (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    if (unshare(CLONE_NEWUSER) < 0)
        return 0;
    in->user_namespace = true;
    snprintf(map, sizeof(map), "%u %u 1", uid, uid);
    if (io_write_existing(AT_FDCWD, "/proc/self/uid_map", map) < 0)
        return err_set(err, -errno, ERR_UNSUPPORTED, NULL, NULL, "user map is refused: %s",
                       strerror(errno));
    snprintf(map, sizeof(map), "%u %u 1", gid, gid);
    if (io_write_existing(AT_FDCWD, "/proc/self/setgroups", "deny") < 0 ||
        io_write_existing(AT_FDCWD, "/proc/self/gid_map", map) < 0)
        return err_set(err, -errno, ERR_UNSUPPORTED, NULL, NULL, "group map is refused: %s",
                       strerror(errno));
    return 0;
}

static int become_user(struct inside *in, uid_t uid, gid_t gid, struct err *err)
{
    int r = 0;

    if (getuid() == 0) {
        if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
            return err_set(err, -errno, ERR_UNSUPPORTED, NULL, NULL,
                           "the task's user %u cannot be taken: %s", uid, strerror(errno));
        if (!in->bare)
            r = enter_user_namespace(in, uid, gid, err);
    } else {
        in->user_namespace = !in->bare; /* bubblewrap made one: it could not do without */
    }
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    /* Changing the user has cleared it. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (in->bare)
        (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    return r;
}

static int block_signals(void)
{
    sigset_t all;

    sigfillset(&all);
    if (sigprocmask(SIG_SETMASK, &all, NULL) < 0)
        return -errno;
    sigemptyset(&all);
    sigaddset(&all, SIGCHLD);
    return signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Signals the descendants of PID, deepest first; returns how many there were. */
static int signal_descendants(pid_t pid, int sig)
{
    char path[64];
    _cleanup_free_ char *text = NULL;
    int count = 0;
    char *p, *end;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
    if (io_read_file(AT_FDCWD, path, (size_t)1 << 20, &text, NULL) < 0)
        return 0;
    for (p = text; *p; p = end) {
        long child = strtol(p, &end, 10);

        if (end == p)
            break;
        while (*end == ' ')
            end++;
        count += 1 + signal_descendants((pid_t)child, sig);
        (void)kill((pid_t)child, sig);
    }
    return count;
}

static void signal_task(const struct inside *in, int sig)
{
    if (in->bare)
        signal_descendants(getpid(), sig);
    else
        (void)kill(-1, sig); /* everything in the namespace but this process */
}

/* Nothing but the kernel ends a pid namespace better; without one, hunt until nothing is left. */
static void clean_up(const struct inside *in)
{
    while (in->bare && signal_descendants(getpid(), SIGKILL) > 0)
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
}

/* What the command had not taken notice of when it ended, did not make it end. */
static void look_at_the_dead(struct inside *in)
{
    siginfo_t info = {0};

    if (in->told && waitid(P_PID, (id_t)in->command, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid == in->command && process_pending(in->command, SIGTERM))
        in->told = false;
}

/* Reaps; returns true when the command itself has ended. */
static bool reap(struct inside *in)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
    struct signalfd_siginfo info;
    bool ended = false;
    int status, command_status = 0;
    pid_t pid;

    while (read(in->signals, &info, sizeof(info)) > 0)
        ;
    look_at_the_dead(in);
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (pid == in->command) {
            ended = true;
            command_status = status;
        } else if (pid == in->asker) {
            in->asker = 0;
        }
    if (!ended)
        return false;
    clean_up(in);
    record_add(&b, "op", "exited");
    record_add_i64(&b, "status", command_status);
    record_add_i64(&b, "gave_way", in->told || command_status != 0);
    record_add_i64(&b, "boot_ms", clock_boot_ms());
    (void)control_send(INSIDE_FD_CONTROL, &b, -1);
    return true;
}

static void start_session(struct inside *in, size_t len, int client)
{
    bool tty = record_get_i64(in->message, len, "tty", 0) != 0;
    _cleanup_free_ char **argv = record_list(in->message, len, "arg", NULL);
    struct command c = {.argv = argv, .env = in->env, .cwd = in->cwd, .filter = true};
    pid_t pid;

    if (argv[0] == NULL) {
        session_fail(client, "no command was given");
        return;
    }
    pid = fork();
    if (pid < 0)
        session_fail(client, "the task may not start more processes");
    if (pid != 0)
        return;
    close(INSIDE_FD_CONTROL);
    close(in->signals);
    session_run(&c, tty, client);
}

/* One at a time. */
static void ask_for_kernels(struct inside *in)
{
    if (in->asker > 0 || !kernels_exist(in->env))
        return;
    in->asker = fork();
    if (in->asker != 0)
        return;
    close(in->signals);
    kernels_report(in->env, INSIDE_FD_CONTROL);
}

/* False when the supervisor has gone. */
static bool take_request(struct inside *in)
{
    _cleanup_close_ int fd = -1;
    ssize_t n = control_recv(INSIDE_FD_CONTROL, in->message, &fd, NULL);
    const char *op;

    if (n == -EAGAIN)
        return true;
    if (n <= 0)
        return false;
    op = record_get(in->message, (size_t)n, "op");
    if (op && strcmp(op, "term") == 0) {
        /* Who handles SIGTERM may answer it with success; who does not, and succeeds, was done. */
        in->told |= process_takes(in->command, SIGTERM);
        signal_task(in, SIGTERM);
    } else if (op && strcmp(op, "kill") == 0) {
        signal_task(in, SIGKILL);
    } else if (op && strcmp(op, "exec") == 0 && fd >= 0)
        start_session(in, (size_t)n, fd);
    else if (op && strcmp(op, "kernels") == 0)
        ask_for_kernels(in);
    return true;
}

static int run(struct inside *in)
{
    for (;;) {
        struct pollfd p[] = {{.fd = INSIDE_FD_CONTROL, .events = POLLIN},
                             {.fd = in->signals, .events = POLLIN}};

        if (poll(p, ARRAY_LEN(p), -1) < 0 && errno != EINTR)
            return 1;
        if (p[1].revents && reap(in))
            return 0;
        if (p[0].revents && !take_request(in)) {
            signal_task(in, SIGKILL);
            clean_up(in);
            return 1;
        }
    }
}

/* False when the supervisor has gone, or has asked to stop while the sandbox was built. */
static bool may_begin(struct inside *in)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
    const char *op;
    ssize_t n;

    while ((n = control_recv(INSIDE_FD_CONTROL, in->message, NULL, NULL)) > 0) {
        op = record_get(in->message, (size_t)n, "op");
        if (op && (strcmp(op, "term") == 0 || strcmp(op, "kill") == 0)) {
            record_add(&b, "op", "withdrawn");
            (void)control_send(INSIDE_FD_CONTROL, &b, -1);
            return false;
        }
    }
    return n == -EAGAIN;
}

static int start_command(struct inside *in, struct err *err)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
    struct command c = {.argv = in->argv,
                        .env = in->env,
                        .cwd = in->cwd,
                        .in = 0,
                        .out = 1,
                        .err = 2,
                        .filter = true};
    int r = command_run(&c, &in->command, err);

    if (r < 0)
        return r;
    record_add(&b, "op", "started");
    record_add_i64(&b, "boot_ms", clock_boot_ms());
    record_add_i64(&b, "user_namespace", in->user_namespace);
    (void)control_send(INSIDE_FD_CONTROL, &b, -1);
    /* The log must end with the task, not with this process. */
    (void)dup2(0, 1);
    (void)dup2(0, 2);
    return 0;
}

static int live(struct inside *in, uid_t uid, gid_t gid)
{
    struct err err = ERR_INIT;

    for (int fd = INSIDE_FD_CONTROL; fd < INSIDE_FD_SELF; fd++)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    (void)close_range(INSIDE_FD_SELF, ~0U, 0);
    in->signals = block_signals();
    if (in->signals < 0) {
        (void)err_set(&err, in->signals, ERR_INTERNAL, NULL, NULL, "signals cannot be watched");
        return report_refused(&err);
    }
    if (load_launch(in, &err) < 0 || become_user(in, uid, gid, &err) < 0)
        return report_refused(&err);
    if (!may_begin(in))
        return 1;
    if (start_command(in, &err) < 0)
        return report_refused(&err);
    return run(in);
}

int inside_main(uid_t uid, gid_t gid)
{
    struct inside *in = calloc(1, sizeof(*in));
    int r;

    if (in == NULL)
        return 1;
    r = live(in, uid, gid);
    free(in->argv);
    free(in->env);
    free(in->data);
    free(in);
    return r;
}
