/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/supervise/command.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "engine/local/supervise/syscall_filter.h"

#define OPEN_FILES_SOFT 65536

/* What a child reports when it cannot execute. */
struct failure {
    int errnum;
    char what[24]; /* step that failed */
};

static void __attribute__((noreturn)) give_up(int report, const char *what)
{
    struct failure f = {.errnum = errno};

    snprintf(f.what, sizeof(f.what), "%s", what);
    (void)io_write_all(report, &f, sizeof(f));
    _exit(127);
}

static void default_signals(void)
{
    struct sigaction sa = {.sa_handler = SIG_DFL};
    sigset_t none;

    for (int s = 1; s < NSIG; s++)
        if (s != SIGKILL && s != SIGSTOP)
            (void)sigaction(s, &sa, NULL);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The server may have raised its own limits; core files would fill the disk. */
static void default_limits(void)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur > OPEN_FILES_SOFT) {
        r.rlim_cur = OPEN_FILES_SOFT;
        (void)setrlimit(RLIMIT_NOFILE, &r);
    }
    if (getrlimit(RLIMIT_CORE, &r) == 0) {
        r.rlim_cur = 0;
        (void)setrlimit(RLIMIT_CORE, &r);
    }
}

/* Descriptors 0, 1, 2 from three others that may overlap them in any way. */
static int place_descriptors(const struct command *c)
{
    int in = fcntl(c->in, F_DUPFD_CLOEXEC, 10);
    int out = fcntl(c->out, F_DUPFD_CLOEXEC, 10);
    int err = fcntl(c->err, F_DUPFD_CLOEXEC, 10);

    if (in < 0 || out < 0 || err < 0)
        return -errno;
    if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
        return -errno;
    return 0;
}

static void __attribute__((noreturn)) become(const struct command *c, int report)
{
    if (setsid() < 0)
        give_up(report, "session");
    if (place_descriptors(c) < 0)
        give_up(report, "descriptors");
    if (c->terminal && ioctl(0, TIOCSCTTY, 0) < 0)
        give_up(report, "terminal");
    default_signals();
    default_limits();
    umask(022);
    if (chdir(c->cwd) < 0)
        give_up(report, "chdir");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        give_up(report, "no new privileges");
    if (c->filter && syscall_filter_install() < 0)
        give_up(report, "system call filter");
    environ = (char **)c->env; /* also where the search path comes from */
    execvp(c->argv[0], c->argv);
    give_up(report, "exec");
}

static int explain(const struct command *c, const struct failure *f, struct err *err)
{
    if (strcmp(f->what, "chdir") == 0)
        return err_set(err, -f->errnum, ERR_INVALID, "workdir",
                       "choose a folder that exists in the task's view and is open to its user",
                       "working folder '%s' cannot be entered: %s", c->cwd, strerror(f->errnum));
    if (strcmp(f->what, "exec") != 0)
        return err_set(err, -f->errnum, ERR_INTERNAL, NULL, NULL,
                       "the sandbox cannot set up '%s': %s", f->what, strerror(f->errnum));
    if (f->errnum == ENOENT)
        return err_set(err, -ENOENT, ERR_NOT_FOUND, "command",
                       "check the spelling, give the whole path, or choose an image that has it",
                       "command '%s' was not found", c->argv[0]);
    return err_set(err, -f->errnum, ERR_INVALID, "command", NULL, "command '%s' cannot be run: %s",
                   c->argv[0], strerror(f->errnum));
}

/*
 * vfork, because a copy of this process would only cost page faults. What the child changes
 * (signals, descriptors, folder, filter) is its own; of our memory it only sets environ, which
 * nobody else reads.
 */
static pid_t spawn(const struct command *c, int report)
{
    pid_t pid = vfork();

    if (pid == 0)
        become(c, report);
    return pid;
}

int command_run(const struct command *c, pid_t *ret_pid, struct err *err)
{
    struct failure failure;
    int report[2];
    ssize_t n;

    if (pipe2(report, O_CLOEXEC) < 0)
        return err_set(err, -errno, ERR_UNAVAILABLE, NULL, NULL, "no pipe: %s", strerror(errno));
    *ret_pid = spawn(c, report[1]);
    close(report[1]);
    if (*ret_pid < 0) {
        int e = errno;

        close(report[0]);
        return err_set(err, -e, ERR_UNAVAILABLE, NULL, "raise the limit on processes",
                       "no process for command '%s': %s", c->argv[0], strerror(e));
    }
    /* The end of file is the exec: it closes the child's copy. */
    do {
        n = read(report[0], &failure, sizeof(failure));
    } while (n < 0 && errno == EINTR);
    close(report[0]);
    if (n != (ssize_t)sizeof(failure))
        return 0;
    (void)waitpid(*ret_pid, NULL, 0);
    return explain(c, &failure, err);
}
