/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/supervise/session.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "net/exec_protocol.h"

#define CHUNK 16384
#define HANGUP_GRACE_MS 2000
#define TERM_WAIT_MS 2000
#define DRAIN_ROUNDS 64
#define TERM_ENTRY "TERM="

struct session {
    int client;
    pid_t pid;
    int pidfd;
    int input;     /* write end to the command, -1 = closed */
    int output[2]; /* read ends: OUT and ERR, -1 = closed */
    bool tty;
    bool introduced; /* the client's terminal is known, or need not be */
    char term[sizeof(TERM_ENTRY) + EXEC_TERM_MAX]; /* "TERM=xterm"; "" = not told */
    bool ended;                                    /* the command has been waited for */
    int status;
    unsigned char frame[EXEC_HEADER_BYTES + EXEC_FRAME_MAX]; /* from the client */
    size_t have;                                             /* bytes of it so far */
    size_t in_done;  /* bytes of an IN frame's body that the command took */
    bool in_waiting; /* FRAME is a whole IN frame that the command has not taken */
};

static int send_all(int fd, const void *data, size_t len)
{
    const char *p = data;

    while (len > 0) {
        ssize_t n = send(fd, p, len, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

static int send_frame(int client, enum exec_frame type, const void *body, size_t len)
{
    unsigned char head[EXEC_HEADER_BYTES] = {(unsigned char)type, (unsigned char)(len >> 24),
                                             (unsigned char)(len >> 16), (unsigned char)(len >> 8),
                                             (unsigned char)len};
    int r = send_all(client, head, sizeof(head));

    return r < 0 ? r : send_all(client, body, len);
}

void session_fail(int client, const char *text)
{
    size_t n = strlen(text);

    (void)send_frame(client, EXEC_FAIL, text, n < EXEC_FRAME_MAX ? n : EXEC_FRAME_MAX);
}

static size_t body_length(const struct session *s)
{
    return (size_t)s->frame[1] << 24 | (size_t)s->frame[2] << 16 | (size_t)s->frame[3] << 8 |
           s->frame[4];
}

static void close_input(struct session *s)
{
    /* A terminal has no end of input but the character for it. */
    if (s->tty && s->input >= 0)
        (void)!write(s->input, "\004", 1);
    else if (s->input >= 0)
        close(s->input);
    if (!s->tty)
        s->input = -1;
}

/* Takes the terminal's kind over for the command's environment. */
static void take_term(struct session *s, const unsigned char *name, size_t len)
{
    s->introduced = true;
    if (len == 0 || len > EXEC_TERM_MAX)
        return;
    for (size_t i = 0; i < len; i++)
        if (!isalnum(name[i]) && (name[i] == '\0' || strchr("-+._:", name[i]) == NULL))
            return;
    snprintf(s->term, sizeof(s->term), TERM_ENTRY "%.*s", (int)len, (const char *)name);
}

/* Acts on a whole frame; IN may have to wait for the command. */
static void take_frame(struct session *s)
{
    const unsigned char *body = s->frame + EXEC_HEADER_BYTES;
    size_t len = body_length(s);

    s->have = 0;
    switch (s->frame[0]) {
    case EXEC_IN:
        s->introduced = true;
        if (len == 0) {
            close_input(s);
        } else if (s->input >= 0) {
            s->in_waiting = true;
            s->in_done = 0;
        }
        break;
    case EXEC_RESIZE:
        if (s->tty && len == 4) {
            struct winsize w = {.ws_row = (unsigned short)(body[0] << 8 | body[1]),
                                .ws_col = (unsigned short)(body[2] << 8 | body[3])};

            (void)ioctl(s->input, TIOCSWINSZ, &w);
        }
        break;
    case EXEC_TERM:
        take_term(s, body, len);
        break;
    case EXEC_SIGNAL:
        if (len == 1 && body[0] > 0 && body[0] < NSIG && s->pid > 0 && !s->ended)
            (void)kill(-s->pid, body[0]);
        break;
    default: /* unknown frames are for a later release */
        break;
    }
}

/* Reads on; false when the client has gone or speaks something else. */
static bool read_client(struct session *s)
{
    size_t want = EXEC_HEADER_BYTES;
    ssize_t n;

    if (s->have >= EXEC_HEADER_BYTES) {
        if (body_length(s) > EXEC_FRAME_MAX)
            return false;
        want += body_length(s);
    }
    if (s->have < want) {
        n = recv(s->client, s->frame + s->have, want - s->have, MSG_DONTWAIT);
        if (n < 0)
            return errno == EINTR || errno == EAGAIN;
        if (n == 0)
            return false;
        s->have += (size_t)n;
    }
    if (s->have >= EXEC_HEADER_BYTES && body_length(s) <= EXEC_FRAME_MAX &&
        s->have == EXEC_HEADER_BYTES + body_length(s))
        take_frame(s);
    return true;
}

static void feed_command(struct session *s)
{
    size_t len = body_length(s);
    ssize_t n = write(s->input, s->frame + EXEC_HEADER_BYTES + s->in_done, len - s->in_done);

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n < 0) {
        s->in_waiting = false;
        if (!s->tty)
            close_input(s);
        return;
    }
    s->in_done += (size_t)n;
    if (s->in_done == len)
        s->in_waiting = false;
}

/* Forwards one chunk. 1 = something came, 0 = nothing or closed, negative = the client is gone. */
static int forward_output(struct session *s, int which)
{
    char chunk[CHUNK];
    ssize_t n;
    int r;

    if (s->output[which] < 0)
        return 0;
    n = read(s->output[which], chunk, sizeof(chunk));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0) {
        /* A terminal answers EIO when nobody has it open any more. */
        if (!s->tty)
            close(s->output[which]);
        s->output[which] = -1;
        return 0;
    }
    r = send_frame(s->client, which == 0 ? EXEC_OUT : EXEC_ERR, chunk, (size_t)n);
    return r < 0 ? r : 1;
}

static void hang_up(struct session *s)
{
    struct pollfd p = {.fd = s->pidfd, .events = POLLIN};

    if (!s->ended) {
        (void)kill(-s->pid, SIGHUP);
        (void)poll(&p, 1, HANGUP_GRACE_MS);
        (void)kill(-s->pid, SIGKILL);
    }
    _exit(0);
}

static int exit_code(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Sends what is left (a background child may hold the pipes open for ever) and the code. */
static void __attribute__((noreturn)) finish(struct session *s)
{
    int code = exit_code(s->status);
    unsigned char body[4] = {0, 0, (unsigned char)(code >> 8), (unsigned char)code};

    for (int i = 0; i < DRAIN_ROUNDS; i++)
        if (forward_output(s, 0) + forward_output(s, 1) <= 0)
            break;
    (void)send_frame(s->client, EXEC_EXIT, body, sizeof(body));
    /* The client closes first: data of its that met a closed connection would reset it and lose
     * the last frame on the way. */
    for (int i = 0; i < DRAIN_ROUNDS; i++) {
        struct pollfd p = {.fd = s->client, .events = POLLIN};

        if (poll(&p, 1, HANGUP_GRACE_MS) <= 0 ||
            recv(s->client, s->frame, sizeof(s->frame), MSG_DONTWAIT) <= 0)
            break;
    }
    _exit(0);
}

static void __attribute__((noreturn)) serve(struct session *s)
{
    for (;;) {
        struct pollfd p[5] = {
            {.fd = s->in_waiting ? -1 : s->client, .events = POLLIN},
            {.fd = s->in_waiting ? s->input : -1, .events = POLLOUT},
            {.fd = s->output[0], .events = POLLIN},
            {.fd = s->output[1], .events = POLLIN},
            {.fd = s->pidfd, .events = POLLIN},
        };

        if (poll(p, ARRAY_LEN(p), -1) < 0 && errno != EINTR)
            _exit(1);
        if (p[2].revents && forward_output(s, 0) < 0)
            hang_up(s);
        if (p[3].revents && forward_output(s, 1) < 0)
            hang_up(s);
        if (p[1].revents)
            feed_command(s);
        if (p[0].revents && !read_client(s))
            hang_up(s);
        if (p[4].revents && waitpid(s->pid, &s->status, WNOHANG) == s->pid) {
            s->ended = true;
            finish(s);
        }
    }
}

static int open_terminal(int *ret_master, int *ret_slave)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    char name[64];

    if (master < 0)
        return -errno;
    if (unlockpt(master) < 0 || ptsname_r(master, name, sizeof(name)) != 0)
        return -errno;
    *ret_slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (*ret_slave < 0)
        return -errno;
    *ret_master = master;
    return 0;
}

/* Until the client has said what terminal it has, or time is up. False when it has gone. */
static bool meet_client(struct session *s)
{
    int64_t until = clock_boot_ms() + TERM_WAIT_MS, left;

    while (!s->introduced && (left = until - clock_boot_ms()) > 0) {
        struct pollfd p = {.fd = s->client, .events = POLLIN};

        if (poll(&p, 1, (int)left) > 0 && !read_client(s))
            return false;
    }
    return true;
}

/* ENV with the client's TERM in place of any other; released by nobody, this process is the
 * session's. */
static char *const *with_term(struct session *s, char *const *env)
{
    size_t count = 0, kept = 0;
    char **copy;

    while (env[count])
        count++;
    copy = calloc(count + 2, sizeof(*copy));
    if (s->term[0] == '\0' || copy == NULL)
        return env;
    for (size_t i = 0; i < count; i++)
        if (strncmp(env[i], TERM_ENTRY, strlen(TERM_ENTRY)) != 0)
            copy[kept++] = env[i];
    copy[kept] = s->term;
    return copy;
}

static int start_on_terminal(struct session *s, struct command *c, struct err *err)
{
    int master = -1, slave = -1, r = open_terminal(&master, &slave);

    if (r < 0)
        return err_set(err, r, ERR_INTERNAL, NULL, NULL, "no terminal in the sandbox: %s",
                       strerror(-r));
    s->input = s->output[0] = master;
    s->output[1] = -1;
    if (!meet_client(s))
        _exit(0);
    c->in = c->out = c->err = slave;
    c->terminal = true;
    c->env = with_term(s, c->env);
    r = command_run(c, &s->pid, err);
    close(slave);
    return r;
}

static int start_on_pipes(struct session *s, struct command *c, struct err *err)
{
    int in[2], out[2], errs[2], r;

    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0 || pipe2(errs, O_CLOEXEC) < 0)
        return err_set(err, -errno, ERR_INTERNAL, NULL, NULL, "no pipe: %s", strerror(errno));
    c->in = in[0];
    c->out = out[1];
    c->err = errs[1];
    c->terminal = false;
    r = command_run(c, &s->pid, err);
    close(in[0]);
    close(out[1]);
    close(errs[1]);
    s->input = in[1];
    s->output[0] = out[0];
    s->output[1] = errs[0];
    return r;
}

void session_run(const struct command *c, bool tty, int client)
{
    struct session *s = calloc(1, sizeof(*s));
    struct command command = *c;
    struct err err = ERR_INIT;
    int r;

    if (s == NULL)
        _exit(1);
    s->client = client;
    s->tty = tty;
    (void)signal(SIGPIPE, SIG_IGN);
    r = tty ? start_on_terminal(s, &command, &err) : start_on_pipes(s, &command, &err);
    if (r < 0) {
        session_fail(client, err.text);
        _exit(1);
    }
    s->pidfd = (int)syscall(SYS_pidfd_open, s->pid, 0);
    (void)fcntl(s->input, F_SETFL, O_NONBLOCK);
    (void)fcntl(s->output[0], F_SETFL, O_NONBLOCK);
    if (s->output[1] >= 0)
        (void)fcntl(s->output[1], F_SETFL, O_NONBLOCK);
    serve(s);
}
