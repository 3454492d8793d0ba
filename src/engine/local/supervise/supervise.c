/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/supervise/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/qty.h"
#include "engine/local/cgroup.h"
#include "engine/local/control.h"
#include "engine/local/log_parts.h"
#include "engine/local/process.h"
#include "engine/local/record.h"
#include "engine/local/supervise/folders.h"
#include "engine/local/supervise/sandbox.h"
#include "engine/local/supervise/session.h"
#include "engine/local/supervise/share.h"

#define REASON_BYTES 768
#define GONE_TIMEOUT_MS 10000
#define RETRY_MS 1000
#define OWN_STOP_GRACE_MS 10000
#define DRAIN_ROUNDS 256
#define INIT_KILLS_MS 2000 /* what init is given to kill the task and tell how it ended */

enum phase { BUILDING, RUNNING, ENDING };

enum end_kind { END_EXITED, END_REFUSED, END_WITHDRAWN };

/* How far a stop has gone; it only ever goes on. */
enum stop_step {
    STOP_NONE,
    STOP_TERM, /* init passes SIGTERM on, or does not begin; until the grace is over */
    STOP_KILL, /* init kills the task and tells the exact end, if it can */
    STOP_FORCE /* everything is killed, init included */
};

struct supervise {
    enum phase phase;
    int dirfd;
    char *data; /* launch record */
    size_t len;
    struct cgroup_set cgroups;
    struct folders folders;
    struct share share;
    struct log_writer log;
    int engine, listener, init, log_pipe, signals;
    pid_t monitor;
    pid_t init_pid;
    int init_pidfd;
    enum stop_step stop;
    int64_t stop_next_ms; /* when its next step is due */
    int64_t grace_ms;
    const char *owed; /* what init has to be told next; NULL = nothing */
    int64_t started_ms;
    int64_t user_namespace; /* as init tells */
    bool has_status;        /* init told the wait status of the command */
    bool by_itself;         /* and that it succeeded without having heard of a stop */
    int64_t kernels_mark;   /* of what a notebook's kernels had executed; -1 = not known */
    int status;
    enum end_kind end;
    char reason[REASON_BYTES];
    char code[32];        /* ERR_* of a refusal */
    struct strbuf record; /* the exit record */
    char message[CONTROL_MESSAGE_MAX];
};

static void set_reason(struct supervise *s, const char *text)
{
    snprintf(s->reason, sizeof(s->reason), "%s", text);
}

static void refuse(struct supervise *s, const char *text, const char *remedy, const char *code)
{
    s->end = END_REFUSED;
    snprintf(s->reason, sizeof(s->reason), "%s%s%s", text, remedy && *remedy ? "; " : "",
             remedy ? remedy : "");
    snprintf(s->code, sizeof(s->code), "%s", code ? code : "");
}

static void tell_engine(struct supervise *s, const struct strbuf *b)
{
    if (s->engine >= 0 && control_send(s->engine, b, -1) == -EAGAIN) {
        /* It does not read: it can come back by the socket. */
        close(s->engine);
        s->engine = -1;
    }
}

static void tell_state(struct supervise *s)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

    if (s->phase == ENDING) {
        if (s->record.len > 0)
            tell_engine(s, &s->record);
        return;
    }
    record_add(&b, "op", s->phase == BUILDING ? "starting" : "running");
    record_add_i64(&b, "started_boot_ms", s->started_ms);
    record_add_i64(&b, "closed_ms", share_closed_ms(&s->share));
    record_add_i64(&b, "closed", s->share.closed);
    tell_engine(s, &b);
}

/* What the engine goes by when the task is to sleep or to wake. */
static void tell_gate(struct supervise *s)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

    record_add(&b, "op", "gate");
    record_add_i64(&b, "closed_ms", share_closed_ms(&s->share));
    record_add_i64(&b, "closed", s->share.closed);
    share_describe(&s->share, &b);
    tell_engine(s, &b);
}

/* Signs of life, since the last time; and whether a notebook's kernel has EXECUTED something. */
static void tell_use(struct supervise *s, bool executed)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

    record_add(&b, "op", "use");
    record_add_i64(&b, "submitted", share_in_use(&s->share));
    record_add_i64(&b, "log_bytes", s->log.offset);
    record_add_i64(&b, "beyond", share_beyond(&s->share));
    record_add_i64(&b, "executed", executed);
    tell_engine(s, &b);
}

/* The answer comes soon, or never. */
static void ask_for_kernels(struct supervise *s)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

    record_add(&b, "op", "kernels");
    if (s->phase == RUNNING)
        (void)control_send(s->init, &b, -1);
}

static void hear_of_kernels(struct supervise *s, size_t len)
{
    int64_t mark = record_get_i64(s->message, len, "mark", -1);
    bool moved = mark >= 0 && s->kernels_mark >= 0 && mark != s->kernels_mark;

    if (mark >= 0)
        s->kernels_mark = mark;
    if (moved || record_get_i64(s->message, len, "busy", 0) != 0)
        tell_use(s, true);
}

static void tell_wake(struct supervise *s)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

    s->share.wake = false;
    record_add(&b, "op", "wake");
    tell_engine(s, &b);
}

/* A place to be found, made when the engine that started us has gone. */
static void open_listener(struct supervise *s)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX, .sun_path = CONTROL_SOCKET};

    if (s->listener >= 0)
        return;
    s->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->listener < 0)
        return;
    (void)unlink(CONTROL_SOCKET);
    if (bind(s->listener, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
        chmod(CONTROL_SOCKET, 0600) < 0 || listen(s->listener, 8) < 0) {
        close(s->listener);
        s->listener = -1;
    }
}

static void lose_engine(struct supervise *s)
{
    close(s->engine);
    s->engine = -1;
    open_listener(s);
}

static void accept_engine(struct supervise *s)
{
    int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return;
    if (s->engine >= 0)
        close(s->engine);
    s->engine = fd;
    tell_state(s);
}

/* ---- stopping ------------------------------------------------------------------------------ */

static void kill_now(struct supervise *s)
{
    if (s->init_pidfd >= 0)
        (void)syscall(SYS_pidfd_send_signal, s->init_pidfd, SIGKILL, NULL, 0);
    if (s->monitor > 0)
        (void)kill(s->monitor, SIGKILL);
    (void)cgroup_kill(&s->cgroups);
}

/* In whichever phase: what init does not read yet waits in its socket. */
static void tell_init(struct supervise *s)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

    if (s->owed == NULL)
        return;
    record_add(&b, "op", s->owed);
    if (control_send(s->init, &b, -1) != -EAGAIN)
        s->owed = NULL;
}

static void take_step(struct supervise *s, enum stop_step step)
{
    s->stop = step;
    if (step == STOP_FORCE) {
        kill_now(s);
        return;
    }
    if (step == STOP_KILL)
        s->stop_next_ms = clock_boot_ms() + INIT_KILLS_MS;
    s->owed = step == STOP_KILL ? "kill" : "term";
    tell_init(s);
}

static bool step_awaited(const struct supervise *s)
{
    return s->stop == STOP_TERM || s->stop == STOP_KILL;
}

/* Asked once more, only a shorter grace makes a difference: who saves its work is not disturbed. */
static void stop(struct supervise *s, int64_t grace_ms)
{
    int64_t at = qty_add_sat(clock_boot_ms(), grace_ms > 0 ? grace_ms : 0);

    if (s->stop >= STOP_KILL)
        return;
    if (s->stop == STOP_NONE || at < s->stop_next_ms) {
        s->stop_next_ms = at;
        s->grace_ms = grace_ms > 0 ? grace_ms : 0;
    }
    if (grace_ms <= 0)
        take_step(s, STOP_KILL);
    else if (s->stop == STOP_NONE)
        take_step(s, STOP_TERM);
}

/* ---- requests ------------------------------------------------------------------------------ */

static void pass_on_exec(struct supervise *s, size_t len, int client)
{
    struct strbuf b = {.data = s->message, .len = len};
    int r = s->phase == RUNNING ? control_send(s->init, &b, client) : -ENOENT;

    if (r == -ENOENT)
        session_fail(client, "the task is not running");
    else if (r < 0)
        session_fail(client, "the task's sandbox does not answer");
}

static void take_engine_message(struct supervise *s)
{
    _cleanup_close_ int fd = -1;
    ssize_t n = control_recv(s->engine, s->message, &fd, NULL);
    const char *op;

    if (n == -EAGAIN)
        return;
    if (n <= 0) {
        lose_engine(s);
        return;
    }
    op = record_get(s->message, (size_t)n, "op");
    if (op && strcmp(op, "stop") == 0)
        stop(s, record_get_i64(s->message, (size_t)n, "grace_ms", 0));
    else if (op && strcmp(op, "exec") == 0 && fd >= 0)
        pass_on_exec(s, (size_t)n, fd);
    else if (op && strcmp(op, "gate") == 0) {
        share_gate(&s->share, record_get_i64(s->message, (size_t)n, "open", 1) != 0);
        tell_gate(s);
    } else if (op && strcmp(op, "look") == 0) {
        tell_use(s, false);
        ask_for_kernels(s);
    } else if (op && strcmp(op, "driver") == 0) {
        share_driver_says(&s->share, s->message, (size_t)n);
    }
}

/* For a cleaner that finds neither a supervisor nor control groups. */
static void note_pids(struct supervise *s)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
    _cleanup_close_ int fd = -1;

    record_add_i64(&b, "supervisor", getpid());
    record_add_i64(&b, "supervisor_start", process_start_ticks(getpid()));
    record_add_i64(&b, "init", s->init_pid);
    record_add_i64(&b, "init_start", process_start_ticks(s->init_pid));
    fd = openat(s->dirfd, CONTROL_PIDS, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd >= 0)
        (void)io_write_all(fd, b.data, b.len);
}

/* Length of the message; 0 when init has gone, -EAGAIN when it says nothing. */
static ssize_t take_init_message(struct supervise *s)
{
    pid_t pid;
    ssize_t n = control_recv(s->init, s->message, NULL, &pid);
    const char *op;

    if (n <= 0)
        return n == -EAGAIN ? n : 0;
    op = record_get(s->message, (size_t)n, "op");
    if (op == NULL)
        return n;
    if (strcmp(op, "started") == 0) {
        s->phase = RUNNING;
        s->started_ms = record_get_i64(s->message, (size_t)n, "boot_ms", clock_boot_ms());
        s->user_namespace = record_get_i64(s->message, (size_t)n, "user_namespace", 0);
        s->init_pid = pid;
        s->init_pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
        tell_state(s);
        note_pids(s);
    } else if (strcmp(op, "refused") == 0) {
        const char *text = record_get(s->message, (size_t)n, "message");
        const char *remedy = record_get(s->message, (size_t)n, "remedy");
        const char *code = record_get(s->message, (size_t)n, "code");

        refuse(s, text ? text : "the command could not be run", remedy, code);
    } else if (strcmp(op, "withdrawn") == 0) {
        s->end = END_WITHDRAWN;
    } else if (strcmp(op, "kernels") == 0) {
        hear_of_kernels(s, (size_t)n);
    } else if (strcmp(op, "exited") == 0) {
        s->has_status = true;
        s->status = (int)record_get_i64(s->message, (size_t)n, "status", 0);
        s->by_itself = record_get_i64(s->message, (size_t)n, "gave_way", 1) == 0;
    }
    return n;
}

/* ---- the end ------------------------------------------------------------------------------- */

/* What init said last may still be on its way to us: it counts, however init itself ended. */
static void hear_init_out(struct supervise *s)
{
    while (s->init >= 0 && take_init_message(s) > 0)
        ;
}

/* Returns once nothing of the task is left, however long that takes. */
static void wait_until_gone(struct supervise *s)
{
    if (s->init_pidfd >= 0) {
        struct pollfd p = {.fd = s->init_pidfd, .events = POLLIN};

        (void)syscall(SYS_pidfd_send_signal, s->init_pidfd, SIGKILL, NULL, 0);
        while (poll(&p, 1, GONE_TIMEOUT_MS) == 0)
            (void)syscall(SYS_pidfd_send_signal, s->init_pidfd, SIGKILL, NULL, 0);
    }
    while (cgroup_kill(&s->cgroups) == -ETIMEDOUT)
        ;
}

static int64_t used_cpu_ns(const struct supervise *s)
{
    int64_t ns = cgroup_cpu_ns(&s->cgroups);
    struct rusage u;

    if (ns >= 0)
        return ns;
    if (getrusage(RUSAGE_CHILDREN, &u) < 0)
        return 0;
    return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NS_PER_S +
           (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

/* bubblewrap's complaint is all that is in the log of a sandbox that never came up. */
static void reason_from_log(struct supervise *s)
{
    char text[REASON_BYTES - 64];
    int64_t at;
    size_t n;

    if (log_parts_read(s->dirfd, 0, text, sizeof(text) - 1, &at, &n) < 0 || n == 0)
        n = 0;
    while (n > 0 && text[n - 1] == '\n')
        n--;
    text[n] = '\0';
    snprintf(s->reason, sizeof(s->reason), "the sandbox could not be built: %s",
             n ? text : "no reason was given");
}

/* What became of the command, in the words of the exit record. */
static void judge(struct supervise *s, bool oom, int *ret_code, int *ret_signal)
{
    *ret_code = 0;
    *ret_signal = 0;
    if (s->end == END_REFUSED)
        return;
    if (s->end == END_WITHDRAWN) {
        *ret_signal = SIGTERM;
        set_reason(s, "stopped before it ran");
    } else if (s->phase == BUILDING && s->stop != STOP_FORCE) {
        s->end = END_REFUSED;
        reason_from_log(s);
        return;
    } else if (!s->has_status) {
        *ret_signal = SIGKILL;
    } else if (WIFSIGNALED(s->status)) {
        *ret_signal = WTERMSIG(s->status);
    } else {
        *ret_code = WEXITSTATUS(s->status);
    }
    if (*ret_signal > 0)
        *ret_code = 128 + *ret_signal;
    if (s->reason[0] != '\0')
        return;
    if (oom)
        set_reason(s, "out of memory: the task used more than its memory limit");
    else if (s->stop >= STOP_KILL && *ret_signal == SIGKILL)
        snprintf(s->reason, sizeof(s->reason), "killed after a grace of %" PRId64 " ms",
                 s->grace_ms);
    else if (!s->has_status)
        set_reason(s, "killed from outside the task");
}

static void compose_record(struct supervise *s)
{
    bool oom = cgroup_oom_killed(&s->cgroups);
    _cleanup_free_ char *boot_id = process_boot_id();
    int code, sig;

    judge(s, oom, &code, &sig);
    record_add(&s->record, "op", "end");
    record_add(&s->record, "kind", s->end == END_REFUSED ? "refused" : "exited");
    record_add_i64(&s->record, "exit_code", code);
    record_add_i64(&s->record, "exit_signal", sig);
    record_add_i64(&s->record, "stopped", s->stop != STOP_NONE && !s->by_itself);
    record_add_i64(&s->record, "oom", oom);
    record_add_i64(&s->record, "cpu_ns", used_cpu_ns(s));
    record_add_i64(&s->record, "started_boot_ms", s->started_ms);
    record_add_i64(&s->record, "ended_boot_ms", clock_boot_ms());
    record_add_i64(&s->record, "ended_wall_ms", clock_wall_ms());
    record_add_i64(&s->record, "closed_ms", share_closed_ms(&s->share));
    record_add_i64(&s->record, "log_lost", s->log.lost);
    record_add_i64(&s->record, "user_namespace", s->user_namespace);
    record_add(&s->record, "boot_id", boot_id);
    if (s->reason[0] != '\0')
        record_add(&s->record, "message", s->reason);
    if (s->code[0] != '\0')
        record_add(&s->record, "code", s->code);
}

/*
 * Not durable on purpose: the record has to survive the server, not the machine. A power cut
 * ends the task too, and a task without a record is reported as lost, which is then the truth.
 */
static bool write_record(struct supervise *s)
{
    return io_write_file_atomic(s->dirfd, CONTROL_EXIT, s->record.data, s->record.len, 0600, 0) ==
           0;
}

/* Nobody will ever look there. */
static bool folder_has_gone(const struct supervise *s)
{
    struct stat st;

    return fstat(s->dirfd, &st) == 0 && st.st_nlink == 0;
}

/* The disk is full: hold the record and offer it until it can be written. */
static void wait_for_room(struct supervise *s)
{
    open_listener(s);
    while (!write_record(s) && !folder_has_gone(s)) {
        struct pollfd p[] = {{.fd = s->listener, .events = POLLIN},
                             {.fd = s->engine, .events = POLLIN}};

        if (poll(p, ARRAY_LEN(p), RETRY_MS) <= 0)
            continue;
        if (p[0].revents)
            accept_engine(s);
        if (p[1].revents && control_recv(p[1].fd, s->message, NULL, NULL) == 0 &&
            s->engine == p[1].fd)
            lose_engine(s);
    }
}

static void drain_log(struct supervise *s)
{
    if (s->log_pipe < 0)
        return;
    for (int i = 0; i < DRAIN_ROUNDS; i++)
        if (log_writer_pump(&s->log, s->log_pipe) <= 0)
            break;
}

static int finish(struct supervise *s)
{
    bool written;

    hear_init_out(s); /* who init is, for one */
    wait_until_gone(s);
    hear_init_out(s);
    share_close(&s->share);
    drain_log(s);
    compose_record(s);
    log_writer_done(&s->log);
    (void)cgroup_remove(&s->cgroups);
    s->phase = ENDING;
    written = write_record(s);
    tell_engine(s, &s->record);
    if (!written)
        wait_for_room(s);
    if (s->listener >= 0)
        (void)unlinkat(s->dirfd, CONTROL_SOCKET, 0);
    return 0;
}

/* ---- the loop ------------------------------------------------------------------------------ */

/* True when the monitor has been reaped. */
static bool take_signals(struct supervise *s)
{
    struct signalfd_siginfo info;
    bool ended = false;
    int status;

    while (read(s->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
        if (info.ssi_signo == SIGTERM)
            stop(s, OWN_STOP_GRACE_MS);
    while (s->monitor > 0 && waitpid(s->monitor, &status, WNOHANG) == s->monitor) {
        s->monitor = 0;
        ended = true;
    }
    return ended;
}

static int timeout_ms(const struct supervise *s)
{
    int share_ms = share_timeout_ms(&s->share);
    int64_t left;

    if (!step_awaited(s))
        return share_ms;
    left = s->stop_next_ms - clock_boot_ms();
    if (left < 0)
        return 0;
    left = left > 60000 ? 60000 : left + 1;
    return share_ms >= 0 && share_ms < left ? share_ms : (int)left;
}

static void pump_log(struct supervise *s)
{
    if (log_writer_pump(&s->log, s->log_pipe) == 0) {
        close(s->log_pipe);
        s->log_pipe = -1;
    }
}

static void loop(struct supervise *s)
{
    for (;;) {
        struct pollfd p[] = {
            {.fd = s->init, .events = s->owed ? POLLIN | POLLOUT : POLLIN},
            {.fd = s->signals, .events = POLLIN},
            {.fd = s->log_pipe, .events = POLLIN},
            {.fd = s->engine, .events = POLLIN},
            {.fd = s->listener, .events = POLLIN},
            {.fd = s->share.region ? gpu_region_fd(s->share.region) : -1, .events = POLLIN},
        };

        if (poll(p, ARRAY_LEN(p), timeout_ms(s)) < 0 && errno != EINTR)
            return;
        if (p[2].revents)
            pump_log(s);
        if (p[0].revents && take_init_message(s) == 0) {
            close(s->init);
            s->init = -1;
        }
        if (p[1].revents && take_signals(s))
            return;
        if (p[3].revents)
            take_engine_message(s);
        if (p[4].revents)
            accept_engine(s);
        if (p[5].revents)
            gpu_region_serve(s->share.region);
        share_step(&s->share);
        if (s->share.wake)
            tell_wake(s);
        if (step_awaited(s) && clock_boot_ms() >= s->stop_next_ms)
            take_step(s, s->stop + 1);
        tell_init(s);
    }
}

/* ---- the beginning ------------------------------------------------------------------------- */

static int watch_signals(void)
{
    sigset_t all;

    sigfillset(&all);
    if (sigprocmask(SIG_SETMASK, &all, NULL) < 0)
        return -errno;
    sigemptyset(&all);
    sigaddset(&all, SIGCHLD);
    sigaddset(&all, SIGTERM);
    return signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int start_sandbox(struct supervise *s, int control, int log, struct err *err)
{
    struct cgroup_limits limits = {
        .cpu_milli = record_get_i64(s->data, s->len, "cpu_milli", 1000),
        .memory_bytes = record_get_i64(s->data, s->len, "memory_bytes", 0),
        .pids = record_get_i64(s->data, s->len, "pids", 0),
    };
    struct sandbox box = {.data = s->data,
                          .len = s->len,
                          .folders = &s->folders,
                          .cgroups = &s->cgroups,
                          .control = control,
                          .log = log};
    _cleanup_close_ int launch = openat(s->dirfd, CONTROL_LAUNCH, O_RDONLY | O_CLOEXEC);
    int r;

    if (launch < 0)
        return err_set(err, -errno, ERR_INTERNAL, NULL, NULL, "launch record has gone");
    box.launch = launch;
    r = cgroup_create(&s->cgroups, &limits, err);
    if (r == 0)
        r = share_open(s->data, s->len, &s->share, err);
    box.agent = s->share.agent;
    if (r == 0)
        r = folders_open(s->data, s->len, s->dirfd, &s->folders, err);
    if (r == 0)
        r = sandbox_start(&box, &s->monitor, err);
    cleanup_close(&s->folders.work);
    cleanup_close(&s->folders.workdir);
    cleanup_close(&s->folders.checkpoint);
    cleanup_close(&s->share.agent);
    return r;
}

static int begin(struct supervise *s, struct err *err)
{
    int pair[2], pipe_[2], r;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_set(err, -errno, ERR_INTERNAL, NULL, NULL, "no socket: %s", strerror(errno));
    (void)setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int));
    if (pipe2(pipe_, O_CLOEXEC) < 0) {
        r = -errno;
        close(pair[0]);
        close(pair[1]);
        return err_set(err, r, ERR_INTERNAL, NULL, NULL, "no pipe: %s", strerror(-r));
    }
    (void)fcntl(pipe_[0], F_SETFL, O_NONBLOCK);
    s->init = pair[0];
    s->log_pipe = pipe_[0];
    r = start_sandbox(s, pair[1], pipe_[1], err);
    close(pair[1]);
    close(pipe_[1]);
    return r;
}

static int open_folder(struct supervise *s, const char *folder, int launch)
{
    struct stat st;

    s->dirfd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->dirfd < 0 || fchdir(s->dirfd) < 0 || fstat(launch, &st) < 0)
        return -errno;
    if ((size_t)st.st_size > RECORD_FILE_MAX)
        return -EFBIG;
    s->len = (size_t)st.st_size;
    s->data = malloc(s->len + 1);
    if (s->data == NULL)
        return -ENOMEM;
    if (pread(launch, s->data, s->len, 0) != st.st_size)
        return -EIO;
    s->data[s->len] = '\0';
    return 0;
}

int supervise_run(const char *folder, int engine, int launch)
{
    static struct supervise only; /* the process is one task's, and ends with it */
    struct supervise *s = &only;
    struct err err = ERR_INIT;

    s->engine = engine;
    s->listener = s->init = s->log_pipe = s->init_pidfd = s->share.agent = -1;
    s->kernels_mark = -1;
    s->folders = (struct folders){.work = -1, .workdir = -1, .checkpoint = -1};
    (void)signal(SIGPIPE, SIG_IGN);
    s->signals = watch_signals();
    if (s->signals < 0 || open_folder(s, folder, launch) < 0)
        return 1;
    (void)io_write_existing(AT_FDCWD, "/proc/self/oom_score_adj", "-900");
    log_writer_init(&s->log, s->dirfd, record_get_i64(s->data, s->len, "log_bytes", 0));
    cgroup_set_load(s->data, s->len, &s->cgroups);
    if (begin(s, &err) < 0) {
        refuse(s, err.text, err.remedy, err.code);
    } else {
        loop(s);
    }
    return finish(s);
}
