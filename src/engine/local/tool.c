/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define KEEP_MAX ((size_t)1024 * 1024)
#define CHUNK 4096
#define POLL_MS 60000

static int start(const char *const *argv, int out, int errs, pid_t *ret_pid)
{
    static char *const env[] = {
        (char *)"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        (char *)"HOME=/root", (char *)"LANG=C.UTF-8", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none;
    int r;

    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attr);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out, 1);
    posix_spawn_file_actions_adddup2(&actions, errs, 2);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setsigmask(&attr, &none);
    r = posix_spawnp(ret_pid, argv[0], &actions, &attr, (char *const *)argv, env);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    return -r;
}

/* False at the end of input. */
static bool collect(int fd, struct strbuf *to)
{
    char chunk[CHUNK];
    ssize_t n = read(fd, chunk, sizeof(chunk));

    if (n < 0)
        return errno == EINTR;
    if (n > 0 && to && to->len + (size_t)n <= KEEP_MAX)
        strbuf_add(to, chunk, (size_t)n);
    return n > 0;
}

static int listen_to(int out, int errs, int cancel, int64_t end_ms, struct strbuf *output,
                     struct strbuf *complaint)
{
    struct pollfd p[] = {{.fd = out, .events = POLLIN},
                         {.fd = errs, .events = POLLIN},
                         {.fd = cancel, .events = POLLIN}};

    while (p[0].fd >= 0 || p[1].fd >= 0) {
        int64_t left_ms = end_ms - clock_boot_ms();

        if (left_ms <= 0)
            return -ETIMEDOUT;
        if (poll(p, ARRAY_LEN(p), left_ms > POLL_MS ? POLL_MS : (int)left_ms) < 0 && errno != EINTR)
            return -errno;
        if (p[2].revents)
            return -ECANCELED;
        if (p[0].revents && !collect(p[0].fd, output))
            p[0].fd = -1;
        if (p[1].revents && !collect(p[1].fd, complaint))
            p[1].fd = -1;
    }
    return 0;
}

static const char *last_line(struct strbuf *b)
{
    char *line;

    while (b->len > 0 && (b->data[b->len - 1] == '\n' || b->data[b->len - 1] == '\r'))
        strbuf_truncate(b, b->len - 1);
    if (b->len == 0)
        return "it gave no reason";
    line = strrchr(b->data, '\n');
    return line ? line + 1 : b->data;
}

static void bound(pid_t pid)
{
    const struct rlimit files = {TOOL_FILE_MAX, TOOL_FILE_MAX};

    (void)prlimit(pid, RLIMIT_FSIZE, &files, NULL);
}

int tool_run(const char *const *argv, int cancel, int64_t limit_ms, struct strbuf *out,
             struct err *err)
{
    _cleanup_strbuf_ struct strbuf complaint = STRBUF_INIT;
    int o[2], e[2], status = 0, r;
    pid_t pid;

    if (pipe2(o, O_CLOEXEC) < 0)
        return err_set(err, -errno, ERR_UNAVAILABLE, NULL, NULL, "no pipe: %s", strerror(errno));
    if (pipe2(e, O_CLOEXEC) < 0) {
        close(o[0]);
        close(o[1]);
        return err_set(err, -EMFILE, ERR_UNAVAILABLE, NULL, NULL, "no pipe");
    }
    r = start(argv, o[1], e[1], &pid);
    close(o[1]);
    close(e[1]);
    if (r == 0) {
        bound(pid);
        r = listen_to(o[0], e[0], cancel, clock_boot_ms() + limit_ms, out, &complaint);
        if (r < 0)
            (void)kill(-pid, SIGKILL);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
        if (r == -ETIMEDOUT)
            r = err_set(err, r, ERR_UNAVAILABLE, NULL, NULL, "%s took longer than %lld s", argv[0],
                        (long long)(limit_ms / MS_PER_S));
        if (r == 0 && status != 0)
            r = err_set(err, -EIO, ERR_UNAVAILABLE, NULL, NULL, "%s failed: %s", argv[0],
                        last_line(&complaint));
    } else {
        (void)err_set(err, r, ERR_NOT_FOUND, NULL, "install it", "program '%s' cannot be run: %s",
                      argv[0], strerror(-r));
    }
    close(o[0]);
    close(e[0]);
    return r;
}
