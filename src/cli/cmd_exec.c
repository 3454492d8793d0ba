/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allot exec: a command inside the sandbox of a running task.
 *
 * After the upgrade the connection carries frames (net/exec_protocol.h). With a terminal on both
 * ends it is put into raw mode, so that every key goes to the task; its size is sent along.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <json-c/json.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/json_writer.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/session.h"
#include "net/exec_protocol.h"

struct relay {
    struct cli *cli;
    int fd;
    bool tty;
    bool input_open;
    bool deaf;        /* the other side takes nothing any more; what it has sent still counts */
    struct strbuf in; /* bytes of frames that have not been complete */
    int exit_code;    /* -1 = not yet */
};

static atomic_bool resized;

static void on_resize(int number)
{
    (void)number;
    atomic_store(&resized, true);
}

/* That the other side has gone is for receive() to find out, after all that it has sent. */
static void send_frame(struct relay *x, char type, const void *data, size_t len)
{
    char header[EXEC_HEADER_BYTES] = {type};
    uint32_t n = htonl((uint32_t)len);

    memcpy(header + 1, &n, sizeof(n));
    if (x->deaf)
        return;
    if (io_write_all(x->fd, header, sizeof(header)) < 0 ||
        (len > 0 && io_write_all(x->fd, data, len) < 0)) {
        x->deaf = true;
        x->input_open = false;
    }
}

static void send_size(struct relay *x)
{
    struct winsize size;
    uint16_t numbers[2];

    if (!x->tty || ioctl(STDIN_FILENO, TIOCGWINSZ, &size) < 0)
        return;
    numbers[0] = htons(size.ws_row);
    numbers[1] = htons(size.ws_col);
    send_frame(x, EXEC_RESIZE, numbers, sizeof(numbers));
}

/* What the command waits for before it starts on a terminal. */
static void introduce(struct relay *x)
{
    const char *term = getenv("TERM");

    if (!x->tty)
        return;
    send_size(x);
    send_frame(x, EXEC_TERM, term, term ? strnlen(term, EXEC_FRAME_MAX) : 0);
}

static void send_input(struct relay *x)
{
    char bytes[16384];
    ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0)
        x->input_open = false;
    send_frame(x, EXEC_IN, bytes, n > 0 ? (size_t)n : 0);
}

static int take_frame(struct relay *x, char type, const char *data, size_t len)
{
    uint32_t code = 0;

    switch (type) {
    case EXEC_OUT:
        return io_write_all(STDOUT_FILENO, data, len);
    case EXEC_ERR:
        return io_write_all(STDERR_FILENO, data, len);
    case EXEC_EXIT:
        if (len == sizeof(code))
            memcpy(&code, data, len);
        x->exit_code = (int)(ntohl(code) & 0xff);
        return 0;
    case EXEC_FAIL:
        fprintf(x->cli->err, "allot: %s%s\n",
                cli_safe(x->cli, arena_strndup(&x->cli->arena, data, len)), x->tty ? "\r" : "");
        x->exit_code = CLI_EXIT_OWN;
        return 0;
    default:
        return 0; /* of a newer server */
    }
}

/* Every complete frame in the buffer. */
static int take_frames(struct relay *x)
{
    size_t at = 0;
    int r = 0;

    while (r == 0 && x->in.len - at >= EXEC_HEADER_BYTES) {
        uint32_t n;

        memcpy(&n, x->in.data + at + 1, sizeof(n));
        n = ntohl(n);
        if (n > EXEC_FRAME_MAX)
            return -EPROTO;
        if (x->in.len - at - EXEC_HEADER_BYTES < n)
            break;
        r = take_frame(x, x->in.data[at], x->in.data + at + EXEC_HEADER_BYTES, n);
        at += EXEC_HEADER_BYTES + n;
    }
    if (at > 0) {
        memmove(x->in.data, x->in.data + at, x->in.len - at);
        strbuf_truncate(&x->in, x->in.len - at);
    }
    return r;
}

/* -ECONNRESET when the connection ends before the exit code came. */
static int receive(struct relay *x)
{
    char bytes[16384];
    ssize_t n = read(x->fd, bytes, sizeof(bytes));

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (n <= 0)
        return -ECONNRESET;
    strbuf_add(&x->in, bytes, (size_t)n);
    return take_frames(x);
}

static int relay(struct relay *x)
{
    int r = 0;

    introduce(x);
    while (r == 0 && x->exit_code < 0) {
        struct pollfd p[] = {{.fd = x->fd, .events = POLLIN},
                             {.fd = x->input_open ? STDIN_FILENO : -1, .events = POLLIN}};
        int number;

        if (poll(p, ARRAY_LEN(p), -1) < 0 && errno != EINTR)
            return -errno;
        number = cli_interrupt_taken();
        if (number) {
            char byte = (char)number;

            send_frame(x, EXEC_SIGNAL, &byte, 1);
        }
        if (atomic_exchange(&resized, false))
            send_size(x);
        if (p[1].revents)
            send_input(x);
        if (p[0].revents)
            r = receive(x);
    }
    return x->exit_code >= 0 ? 0 : r;
}

/* With the terminal raw, if there is one, and as it was afterwards. */
static int relay_with_terminal(struct relay *x)
{
    struct sigaction action = {.sa_handler = on_resize}, before_action;
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before_pipe;
    struct termios before, raw;
    bool is_raw = x->tty && tcgetattr(STDIN_FILENO, &before) == 0;
    int r;

    if (is_raw) {
        raw = before;
        cfmakeraw(&raw);
        tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    }
    sigaction(SIGWINCH, &action, &before_action);
    sigaction(SIGPIPE, &ignore, &before_pipe);
    cli_interrupt_begin();
    r = relay(x);
    cli_interrupt_end();
    sigaction(SIGPIPE, &before_pipe, NULL);
    sigaction(SIGWINCH, &before_action, NULL);
    if (is_raw)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
    return r;
}

static void write_body(const struct cli_args *args, bool tty, struct strbuf *body)
{
    struct json_writer w;

    json_writer_init(&w, body);
    json_begin_object(&w);
    json_key(&w, "command");
    json_begin_array(&w);
    for (size_t i = 0; i < args->command_count; i++)
        json_string(&w, args->command_line[i]);
    json_end_array(&w);
    json_key_bool(&w, "tty", tty);
    json_end_object(&w);
}

static int open_session(struct cli *cli, const struct cli_args *args, bool tty, int *ret_fd,
                        struct err *err)
{
    _cleanup_(http_reply_done) struct http_reply reply = HTTP_REPLY_INIT;
    _cleanup_strbuf_ struct strbuf body = STRBUF_INIT;
    const char *task = cli_option_value(args, "task");
    struct http_client *c;
    const char *path;
    uint64_t id;
    int r = cli_find_workload(cli, args->operands.items[0], &id, err);

    if (r == 0)
        r = cli_client(cli, &c, err);
    if (r < 0)
        return r;
    write_body(args, tty, &body);
    path = arena_printf(&cli->arena, "%s/tasks/%s/exec",
                        cli_path(cli, "/v1/workloads/%llu", (unsigned long long)id),
                        cli_path(cli, "%s", task ? task : "0"));
    *ret_fd = -1;
    r = http_client_upgrade(c, path, body.data, body.len, ret_fd, &reply, err);
    if (r == 0 && *ret_fd < 0)
        return cli_problem(&reply, err);
    return r;
}

static int run(struct cli *cli, const struct cli_args *args)
{
    struct relay x = {.cli = cli, .fd = -1, .input_open = true, .exit_code = -1};
    _cleanup_close_ int fd = -1;
    struct err err = ERR_INIT;
    int r;

    if (args->command_count == 0) {
        err_set(&err, -EINVAL, ERR_MISSING, NULL, "allot exec ID -- bash", "no command to run");
        return cli_fail_usage(cli, &err);
    }
    x.tty = cli->in_tty && cli->style.tty && !cli_option_given(args, "no-tty");
    if (open_session(cli, args, x.tty, &fd, &err) < 0) {
        cli_fail(cli, &err);
        return CLI_EXIT_OWN;
    }
    x.fd = fd;
    r = relay_with_terminal(&x);
    strbuf_done(&x.in);
    if (r < 0) {
        err_set(&err, r, ERR_UNAVAILABLE, NULL, "'allot show' tells whether the task still runs",
                "the session ended without an exit code: %s", strerror(-r));
        cli_fail(cli, &err);
        return CLI_EXIT_OWN;
    }
    return x.exit_code;
}

static const struct cli_option options[] = {
    {.name = "task", .arg = "N", .help = "in the sandbox of this task (default 0)"},
    {.name = "no-tty", .letter = 'T', .help = "no terminal, even where there is one"},
    {.name = "interactive",
     .letter = 'i',
     .help = "accepted for habit: standard input is passed on"},
    {.name = "tty",
     .letter = 't',
     .help = "accepted for habit: a terminal is used where there is one"},
    {0},
};

const struct cli_command cli_exec = {
    .name = "exec",
    .group = CLI_ACT,
    .summary = "run a command inside a running task",
    .usage = "[OPTIONS] ID -- COMMAND [ARG...]",
    .description = "Runs a command in the sandbox of a running task: the same files, devices and "
                   "limits. It ends with the task at the latest.\n\n"
                   "Standard input is passed on. Where allot itself stands on a terminal, the "
                   "command gets one too, of the same kind (TERM) and size; -i and -t, as other "
                   "tools want them, change nothing.",
    .examples = "allot exec 81 -- nvidia-smi\nallot exec digits -- bash\n"
                "allot exec --task 3 81 -- tail -f /tmp/progress",
    .exit_codes = "N the exit code of the command\n"
                  "125 allot itself failed: no such task, no connection\n"
                  "2 the command line is wrong",
    .options = options,
    .min_operands = 1,
    .max_operands = 1,
    .command_at = 2,
    .operand = CLI_COMPLETE_WORKLOAD,
    .run = run,
};
