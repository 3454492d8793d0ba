/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a launch record to a running supervisor.
 *
 * The order makes every crash in between readable from the outside. The lock on the launch file
 * is taken before its first byte is written and handed down to the supervisor with the
 * descriptor, so "somebody cares for this folder" is true without a gap from here to the
 * supervisor's end, and false the moment neither lives.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "engine/local/control.h"
#include "engine/local/engine.h"

#define PROBE_NAME ".probe"
#define PROBE_TIMEOUT_MS 10000

static int write_launch(struct engine_local *e, const char *intent, const struct strbuf *record,
                        int *ret_fd, struct err *err)
{
    char path[MODEL_INTENT_MAX + sizeof(CONTROL_LAUNCH) + 1];
    _cleanup_close_ int fd = -1;
    int r;

    engine_step(e, "folder");
    if (mkdirat(e->tasks_fd, intent, 0711) < 0)
        return err_set(err, -errno, ERR_UNAVAILABLE, NULL, "make room in the data folder",
                       "folder of task '%s' cannot be made: %s", intent, strerror(errno));
    engine_step(e, "lock");
    snprintf(path, sizeof(path), "%s/%s", intent, CONTROL_LAUNCH);
    fd = openat(e->tasks_fd, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
        return err_set(err, -errno, ERR_UNAVAILABLE, NULL, "make room in the data folder",
                       "launch record of task '%s' cannot be made: %s", intent, strerror(errno));
    engine_step(e, "launch");
    r = io_write_all(fd, record->data, record->len);
    if (r < 0)
        return err_set(err, r, ERR_UNAVAILABLE, NULL, "make room in the data folder",
                       "launch record of task '%s' cannot be written: %s", intent, strerror(-r));
    *ret_fd = steal_fd(&fd);
    return 0;
}

/*
 * The environment of a supervisor: empty. Only builds with a sanitizer say where its reports go:
 * a supervisor has no other way to be heard.
 */
static void compose_environment(char *env[], size_t size)
{
    size_t n = 0;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    static const char *const prefixes[] = {"ASAN_OPTIONS=", "LSAN_OPTIONS=", "TSAN_OPTIONS=",
                                           "UBSAN_OPTIONS="};

    for (char **e = environ; *e; e++)
        for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
            if (n + 1 < size && strncmp(*e, prefixes[i], strlen(prefixes[i])) == 0)
                env[n++] = *e;
#endif
    env[n] = NULL;
}

/* A session of its own, no terminal, nothing of ours but CONTROL, LAUNCH (-1: none) and SETTING, a
 * variable (NULL: none). */
static int spawn(const char *program, const char *argument, int control, int launch,
                 const char *setting, pid_t *ret_pid)
{
    char *const argv[] = {(char *)program, (char *)argument, NULL};
    char *env[8] = {(char *)setting};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none, all;
    int r;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attr);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&actions, 0, 1);
    posix_spawn_file_actions_adddup2(&actions, 0, 2);
    posix_spawn_file_actions_adddup2(&actions, control, CONTROL_FD_ENGINE);
    if (launch >= 0)
        posix_spawn_file_actions_adddup2(&actions, launch, CONTROL_FD_LAUNCH);
    posix_spawnattr_setflags(&attr,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    compose_environment(env + (setting != NULL), ARRAY_LEN(env) - 1);
    r = posix_spawn(ret_pid, program, &actions, &attr, argv, env);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    return -r;
}

/* The moves into place must not step on each other: both ends live above the targets. */
static int lift(int *fd)
{
    int high;

    if (*fd > CONTROL_FD_LAUNCH)
        return 0;
    high = fcntl(*fd, F_DUPFD_CLOEXEC, CONTROL_FD_LAUNCH + 1);
    if (high < 0)
        return -errno;
    close(*fd);
    *fd = high;
    return 0;
}

static int start_process(struct engine_local *e, const char *intent, int launch, int *ret_control,
                         pid_t *ret_pid, struct err *err)
{
    char folder[4096];
    int pair[2], r;

    snprintf(folder, sizeof(folder), "%s/%s", e->settings.tasks_dir, intent);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        return err_set(err, -errno, ERR_UNAVAILABLE, NULL, "raise the limit on open files",
                       "no socket for task '%s': %s", intent, strerror(errno));
    engine_step(e, "spawn");
    r = lift(&pair[1]);
    if (r == 0)
        r = spawn(e->settings.supervise_path, folder, pair[1], launch, NULL, ret_pid);
    close(pair[1]);
    if (r < 0) {
        close(pair[0]);
        return err_set(err, r, ERR_UNAVAILABLE, NULL, NULL, "'%s' cannot be run: %s",
                       e->settings.supervise_path, strerror(-r));
    }
    *ret_control = pair[0];
    return 0;
}

int spawn_supervisor(struct engine_local *e, struct local_task *t, const struct strbuf *record,
                     struct err *err)
{
    _cleanup_close_ int launch = -1;
    int control, r;
    pid_t pid;

    r = write_launch(e, t->intent, record, &launch, err);
    if (r == 0 && lift(&launch) < 0)
        r = err_set(err, -EMFILE, ERR_UNAVAILABLE, NULL, "raise the limit on open files",
                    "no descriptor for task '%s'", t->intent);
    if (r == 0)
        r = start_process(e, t->intent, launch, &control, &pid, err);
    if (r < 0) {
        if (r != -EEXIST)
            (void)io_remove_tree(e->tasks_fd, t->intent);
        return r;
    }
    engine_step(e, "watch");
    t->state = STARTING;
    task_set_launch(t, record->data, record->len);
    /* It runs. If it cannot be watched now, it is found again like after a crash. */
    if (task_watch(e, t, control, pid) < 0)
        adopt_task(e, t);
    return 0;
}

/* Waits for a process of ours, not longer than PROBE_TIMEOUT_MS. */
static void wait_or_kill(pid_t pid)
{
    _cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd p = {.fd = pidfd, .events = POLLIN};

    if (pidfd < 0 || poll(&p, 1, PROBE_TIMEOUT_MS) <= 0)
        (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

int spawn_probe(struct engine_local *e, const struct strbuf *record, char **ret_record,
                size_t *ret_len, struct err *err)
{
    _cleanup_close_ int launch = -1;
    int control, r;
    pid_t pid;

    (void)io_remove_tree(e->tasks_fd, PROBE_NAME);
    r = write_launch(e, PROBE_NAME, record, &launch, err);
    if (r == 0 && lift(&launch) < 0)
        r = -EMFILE;
    if (r == 0)
        r = start_process(e, PROBE_NAME, launch, &control, &pid, err);
    if (r == 0) {
        wait_or_kill(pid);
        close(control);
        r = task_read_record(e, PROBE_NAME, ret_record, ret_len);
        if (r < 0)
            r = err_set(err, r, ERR_INTERNAL, NULL, NULL, "the supervisor ended without a word");
    }
    (void)io_remove_tree(e->tasks_fd, PROBE_NAME);
    return r;
}

int spawn_agent(struct engine_local *e, int *ret_control, pid_t *ret_pid, struct err *err)
{
    const struct settings *s = &e->settings;
    _cleanup_free_ char *devices = NULL;
    int pair[2], r;

    if (s->agent_path == NULL || s->driver_path == NULL)
        return err_set(err, -EOPNOTSUPP, ERR_UNSUPPORTED, NULL, "install it beside allot",
                       "this node has no '%s' or no driver for it", "allot-gpu-agent");
    if (s->sim_file && asprintf(&devices, "ALLOT_DOUBLE_FILE=%s", s->sim_file) < 0)
        return -ENOMEM;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        return err_set(err, -errno, ERR_UNAVAILABLE, NULL, "raise the limit on open files",
                       "no socket for the agent: %s", strerror(errno));
    r = lift(&pair[1]);
    if (r == 0)
        r = spawn(s->agent_path, s->driver_path, pair[1], -1, devices, ret_pid);
    close(pair[1]);
    if (r < 0) {
        close(pair[0]);
        return err_set(err, r, ERR_UNAVAILABLE, NULL, NULL, "'%s' cannot be run: %s", s->agent_path,
                       strerror(-r));
    }
    *ret_control = pair[0];
    return 0;
}
