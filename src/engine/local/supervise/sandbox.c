/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/supervise/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "allot/share.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/vec.h"
#include "engine/local/record.h"
#include "engine/local/supervise/inside.h"

/* Descriptors that only bubblewrap uses; the numbers above are for the init process. */
#define FD_WORK 6
#define FD_WORKDIR 7
#define FD_CHECKPOINT 8
#define FD_AGENT 9
#define FD_FIRST_FREE 16

struct args VEC_BODY(const char *);

struct build {
    const struct sandbox *s;
    struct args args;
    struct arena arena;
};

static void add(struct build *b, const char *a)
{
    vec_push(&b->args, a);
}

static void add2(struct build *b, const char *a, const char *c)
{
    add(b, a);
    add(b, c);
}

static void add3(struct build *b, const char *a, const char *c, const char *d)
{
    add2(b, a, c);
    add(b, d);
}

static const char *field(const struct build *b, const char *key)
{
    return record_get(b->s->data, b->s->len, key);
}

/* A memory file system that everybody in the sandbox may write to, of bounded size. */
static void add_scratch(struct build *b, const char *place)
{
    const char *size = field(b, "tmp_bytes");

    add2(b, "--perms", "1777");
    if (size)
        add2(b, "--size", size);
    add2(b, "--tmpfs", place);
}

/* bubblewrap makes missing parents for root alone; these are for everybody. */
static void add_parents(struct build *b, const char *place)
{
    for (const char *slash = strchr(place + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        add2(b, "--perms", "0755");
        add2(b, "--dir", arena_strndup(&b->arena, place, (size_t)(slash - place)));
    }
}

static void add_folder(struct build *b, int fd, int number, const char *place)
{
    if (fd < 0 || place == NULL)
        return;
    add_parents(b, place);
    add3(b, "--bind-fd", arena_printf(&b->arena, "%d", number), place);
}

static void add_cover(struct build *b, const char *place)
{
    if (place[0] == '\0')
        return;
    add2(b, "--perms", "0755");
    add2(b, "--tmpfs", place);
}

/* A LIBRARY of the driver AT the place where programs find it; or a SHIM, which finds the library
 * BEHIND itself, and stands over others that are in sight (OVER, a field), too. */
static void add_library(struct build *b, const char *library, const char *at, const char *shim,
                        const char *behind, const char *over)
{
    const char *v;
    size_t it = 0;

    add3(b, "--ro-bind", shim ? shim : library, at);
    if (shim == NULL)
        return;
    add3(b, "--ro-bind", library, behind);
    while ((v = record_next(b->s->data, b->s->len, over, &it)))
        add3(b, "--ro-bind", shim, v);
}

/* Where programs find the driver of their devices, and the shims find what belongs to it. */
static void add_driver(struct build *b, const char *driver)
{
    const char *file = field(b, "driver_file"), *nvml = field(b, "nvml"), *v;
    size_t it = 0;

    add2(b, "--perms", "0755");
    add2(b, "--dir", SHARE_FOLDER "/lib");
    add_library(b, driver, SHARE_FOLDER "/lib/libcuda.so.1", field(b, "shim"), SHARE_DRIVER,
                "shim_over");
    if (nvml)
        add_library(b, nvml, SHARE_FOLDER "/lib/libnvidia-ml.so.1", field(b, "nvml_shim"),
                    SHARE_NVML, "nvml_over");
    while ((v = record_next(b->s->data, b->s->len, "companion", &it)))
        add3(b, "--ro-bind", v,
             arena_printf(&b->arena, SHARE_FOLDER "/lib%s", strrchr(v, '/')));
    if (file)
        add3(b, "--bind", file, SHARE_FOLDER "/devices");
    if (field(b, "shim"))
        add3(b, "--ro-bind-fd", arena_printf(&b->arena, "%d", FD_AGENT), SHARE_SOCKET);
}

/* What belongs to the devices of the task, in a folder that nobody can change. */
static void add_gpu(struct build *b)
{
    const char *driver = field(b, "driver"), *verify = field(b, "verify");

    if (driver == NULL && verify == NULL)
        return;
    add_parents(b, SHARE_FOLDER);
    add2(b, "--perms", "0755");
    add2(b, "--tmpfs", SHARE_FOLDER);
    if (verify)
        add3(b, "--ro-bind", verify, SHARE_VERIFY);
    if (driver)
        add_driver(b, driver);
    add2(b, "--remount-ro", SHARE_FOLDER);
}

static void add_mounts(struct build *b)
{
    const char *root = field(b, "root"), *v;
    size_t it = 0;

    add3(b, "--ro-bind", root ? root : "/", "/");
    if (root)
        add3(b, "--ro-bind", "/sys", "/sys");
    while ((v = record_next(b->s->data, b->s->len, "hide", &it)))
        add2(b, "--tmpfs", v);
    add2(b, "--proc", "/proc");
    add2(b, "--dev", "/dev");
    add_scratch(b, "/dev/shm");
    add_scratch(b, "/tmp");
    add_cover(b, b->s->folders->workdir_cover);
    add_cover(b, b->s->folders->checkpoint_cover);
    for (it = 0; (v = record_next(b->s->data, b->s->len, "show", &it));) {
        add_parents(b, v);
        add3(b, "--ro-bind", v, v);
    }
    for (it = 0; (v = record_next(b->s->data, b->s->len, "device", &it));)
        add3(b, "--dev-bind", v, v);
    add_gpu(b);
    add_folder(b, b->s->folders->work, FD_WORK, field(b, "work_at"));
    add_folder(b, b->s->folders->workdir, FD_WORKDIR, field(b, "workdir"));
    add_folder(b, b->s->folders->checkpoint, FD_CHECKPOINT, field(b, "checkpoint_at"));
}

static void build_arguments(struct build *b)
{
    const char *bwrap = field(b, "bwrap");

    if (bwrap) {
        add(b, bwrap);
        add3(b, "--unshare-pid", "--unshare-ipc", "--unshare-uts");
        add(b, "--unshare-cgroup-try");
        if (geteuid() != 0)
            add(b, "--unshare-user");
        add3(b, "--die-with-parent", "--as-pid-1", "--clearenv");
        add_mounts(b);
        add2(b, "--chdir", "/");
        add(b, "--");
    }
    add(b, arena_printf(&b->arena, "/proc/self/fd/%d", INSIDE_FD_SELF));
    add(b, INSIDE_ARGUMENT);
    add(b, arena_printf(&b->arena, "%u", b->s->folders->uid));
    add(b, arena_printf(&b->arena, "%u", b->s->folders->gid));
    add(b, NULL);
}

/* Moves descriptors to the numbers that init and bubblewrap expect, clear of each other. */
static int place_descriptors(const struct sandbox *s)
{
    const struct {
        int from, to;
    } moves[] = {{s->control, INSIDE_FD_CONTROL},
                 {s->launch, INSIDE_FD_LAUNCH},
                 {-2, INSIDE_FD_SELF},
                 {s->folders->work, FD_WORK},
                 {s->folders->workdir, FD_WORKDIR},
                 {s->folders->checkpoint, FD_CHECKPOINT},
                 {s->agent, FD_AGENT}};
    int held[ARRAY_LEN(moves)];

    for (size_t i = 0; i < ARRAY_LEN(moves); i++) {
        int from = moves[i].from;
        int fd = from == -2 ? open("/proc/self/exe", O_RDONLY | O_CLOEXEC) : from;

        held[i] = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, FD_FIRST_FREE);
        if (held[i] < 0 && from != -1)
            return -errno;
    }
    for (size_t i = 0; i < ARRAY_LEN(moves); i++)
        if (held[i] >= 0 && dup2(held[i], moves[i].to) < 0)
            return -errno;
    return 0;
}

static void __attribute__((noreturn)) become_monitor(const struct build *b)
{
    char *const env[] = {NULL};
    sigset_t none;
    struct err err = ERR_INIT;
    int log = b->s->log;

    /* From here on the log is the place to complain: the supervisor reads the reason there. */
    (void)dup2(log, 1);
    (void)dup2(log, 2);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    /* The supervisor is spared when memory runs out, a task is not. Only root can still say so. */
    (void)io_write_existing(AT_FDCWD, "/proc/self/oom_score_adj", "0");
    if (cgroup_join(b->s->cgroups, &err) < 0) {
        dprintf(2, "%s\n", err.text);
        _exit(126);
    }
    if (place_descriptors(b->s) < 0) {
        dprintf(2, "descriptors cannot be arranged: %s\n", strerror(errno));
        _exit(126);
    }
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    execve(b->args.items[0], (char *const *)b->args.items, env);
    dprintf(2, "'%s' cannot be run: %s\n", b->args.items[0], strerror(errno));
    _exit(126);
}

/* The child only arranges descriptors and executes: a copy of this process would be a waste. */
static pid_t spawn_monitor(const struct build *b)
{
    pid_t pid = vfork();

    if (pid == 0)
        become_monitor(b);
    return pid;
}

int sandbox_start(const struct sandbox *s, pid_t *ret_pid, struct err *err)
{
    struct build b = {.s = s};
    int r = 0;

    build_arguments(&b);
    *ret_pid = spawn_monitor(&b);
    if (*ret_pid < 0)
        r = err_set(err, -errno, ERR_UNAVAILABLE, NULL, NULL, "no process for the sandbox: %s",
                    strerror(errno));
    vec_done(&b.args);
    arena_done(&b.arena);
    return r;
}
