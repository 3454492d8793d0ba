/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allot run: submit, wait, stream, and end as the task ended.
 *
 * The main thread looks at the workload and talks to the person; readers (follow.h) stream the
 * logs. What runs belongs to the server: losing the connection, or this program, does not end
 * it. ^C asks what is meant.
 *
 *   WAITING   pending, or requeued: place and reason on one line of standard error
 *   STREAMING at least one attempt has begun: the readers follow it and all later ones
 *   ENDED     a final state: the readers drain, then the exit code
 */
#include <errno.h>
#include <json-c/json.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/follow.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/render.h"
#include "cli/session.h"
#include "cli/workload_options.h"

#define LOOK_MIN_MS 20
#define LOOK_MAX_MS 1000
#define DRAIN_MS 10000
#define WAIT_SHOWN_MS 250 /* what starts sooner needs no word about waiting */

enum wish { WISH_NONE, WISH_DETACH, WISH_STOP, WISH_STOP_SENT, WISH_LEAVE };

struct watch {
    struct cli *cli;
    uint64_t id;
    const char *path; /* "/v1/workloads/81" */
    const char *name;
    struct cli_follow *follow; /* NULL = nothing has run yet */
    enum wish wish;
    bool lost;                                  /* the server did not answer the last time */
    bool line_open;                             /* a status line stands on the terminal */
    char said[256];                             /* the status last shown */
    char refusal[sizeof((struct err){0}.text)]; /* of a launch, as last told */
    char state[16];                             /* of the workload, at the last look */
    int64_t restarts;
    int64_t tasks;
    int64_t since_ms;         /* when it began to wait, by the boot clock */
    int look_ms;              /* pause before the next look */
    struct json_object *last; /* the last answer; owned */
};

/* ---- talking ------------------------------------------------------------------------------ */

static void clear_line(struct watch *w)
{
    if (w->line_open)
        fputs("\r\033[K", w->cli->err);
    w->line_open = false;
}

/* A line that stays. */
static void say(struct watch *w, const char *text)
{
    if (w->follow)
        cli_follow_pause(w->follow, true);
    clear_line(w);
    cli_say(w->cli, text);
    fflush(w->cli->err);
    if (w->follow)
        cli_follow_pause(w->follow, false);
}

/* A line that the next one replaces. Where that is impossible it is printed only when KEY, what
 * matters of it, is another: an estimate that counts down is no news. */
static void show_status(struct watch *w, const char *key, const char *text)
{
    bool same = strcmp(key, w->said) == 0;

    snprintf(w->said, sizeof(w->said), "%s", key);
    if (!w->cli->err_tty) {
        if (!same)
            say(w, text);
        return;
    }
    fprintf(w->cli->err, "\r\033[Kallot: %.*s", w->cli->err_width - 8, text);
    fflush(w->cli->err);
    w->line_open = true;
}

/* ---- waiting ------------------------------------------------------------------------------ */

/* "; starts in about 10m", or "" where that is not known. */
static const char *estimate_text(struct cli *cli, struct json_object *x, const char *what)
{
    int64_t in_ms = cli_json_int(x, "start_in_ms", 0);

    if (cli_json_time(x, "start_at") == 0 || in_ms < MS_PER_S)
        return "";
    return arena_printf(&cli->arena, "; %s in about %s", what, cli_duration(in_ms, &cli->arena));
}

/* A launch that failed: why, once for each reason, and when the next is. */
static void show_refusal(struct watch *w, struct json_object *x)
{
    const char *message = cli_safe(w->cli, cli_json_text(w->last, "message"));
    static const char key[] = "waiting to try again";

    if (*message && strncmp(message, w->refusal, sizeof(w->refusal) - 1) != 0) {
        snprintf(w->refusal, sizeof(w->refusal), "%s", message);
        say(w, arena_printf(&w->cli->arena, "%s ('allot stop %llu' ends that)", message,
                            (unsigned long long)w->id));
    }
    if (w->cli->err_tty || *message == '\0')
        show_status(w, key,
                    arena_printf(&w->cli->arena, "%s%s", key, estimate_text(w->cli, x, "next")));
}

/* "waiting, 2 of 5 in research: team at its limit; starts in about 10m" */
static void show_wait(struct watch *w)
{
    _cleanup_json_ struct json_object *x = NULL;
    struct cli *cli = w->cli;
    struct err err = ERR_INIT;
    const char *reason, *key;

    if (cli_get(cli, arena_printf(&cli->arena, "%s/explain", w->path), &x, &err) < 0)
        return;
    reason = cli_json_text(x, "reason");
    if (reason && strcmp(reason, "backoff") == 0)
        show_refusal(w, x);
    if (reason == NULL || cli_json_int(x, "position", 0) == 0)
        return;
    key = arena_printf(
        &cli->arena, "waiting, %lld of %lld in %s: %s", (long long)cli_json_int(x, "position", 0),
        (long long)cli_json_int(x, "pending", 0), cli_safe(cli, cli_json_text(x, "team")),
        cli_reason_text(cli, cli_json_text(x, "reason")));
    show_status(w, key, arena_printf(&cli->arena, "%s%s", key, estimate_text(cli, x, "starts")));
}

static int begin_stream(struct watch *w, struct err *err)
{
    struct cli_follow_options options = {.tail = -1};

    options.task_count = w->tasks > CLI_FOLLOW_MAX ? CLI_FOLLOW_MAX : (uint32_t)w->tasks;
    clear_line(w);
    if (w->tasks > CLI_FOLLOW_MAX)
        say(w, arena_printf(&w->cli->arena,
                            "showing tasks 0 to %d of %lld; 'allot logs --task N' shows others",
                            CLI_FOLLOW_MAX - 1, (long long)w->tasks));
    return cli_follow_start(w->cli, w->id, &options, &w->follow, err);
}

/* ---- looking ------------------------------------------------------------------------------ */

/* The message says who took the place and why. */
static void tell_restart(struct watch *w, struct json_object *now)
{
    const char *message = cli_json_text(now, "message"), *reason = cli_json_text(now, "reason");
    int64_t restarts = cli_json_int(now, "restarts", 0);

    if (restarts <= w->restarts)
        return;
    w->restarts = restarts;
    w->since_ms = clock_boot_ms();
    w->said[0] = '\0';
    if (reason && strcmp(reason, "backoff") == 0)
        return; /* show_refusal() says more */
    say(w, arena_printf(&w->cli->arena, "%s%s; it is queued again and goes on by itself",
                        message ? "" : "stopped to make room",
                        message ? cli_safe(w->cli, message) : ""));
}

static int look(struct watch *w, struct err *err)
{
    struct json_object *now = NULL;
    const char *state;
    int r = cli_get(w->cli, w->path, &now, err);

    if (cli_is_unreachable(r)) {
        if (!w->lost)
            say(w, "lost the server; the workload goes on, waiting for the server to come back");
        w->lost = true;
        return 0;
    }
    if (r < 0)
        return r;
    if (w->lost)
        say(w, "the server is back");
    w->lost = false;
    state = cli_json_text(now, "state");
    if (state == NULL) {
        json_object_put(now);
        return err_set(err, -EPROTO, ERR_INTERNAL, NULL, NULL, "the server's answer has no state");
    }
    snprintf(w->state, sizeof(w->state), "%s", state);
    tell_restart(w, now);
    json_object_put(w->last);
    w->last = now;
    if (strcmp(state, "pending") == 0) {
        if (w->wish == WISH_NONE && clock_boot_ms() - w->since_ms >= WAIT_SHOWN_MS)
            show_wait(w);
    } else if (w->follow == NULL && (!cli_is_final(state) || cli_json_time(now, "started_at"))) {
        return begin_stream(w, err);
    }
    return 0;
}

/* ---- ^C ----------------------------------------------------------------------------------- */

static void put_question(struct cli *cli)
{
    fprintf(cli->err, "[d]etach, [s]top it, or [c]ontinue watching? ");
    fflush(cli->err);
}

/* One of the keys, or 0 when another signal came or the terminal went: that means stop. Any other
 * key brings the question again. */
static char ask_key(struct cli *cli)
{
    struct termios before, raw;
    char keys[16] = ""; /* some send several bytes */

    if (tcgetattr(STDIN_FILENO, &before) < 0)
        return 0;
    raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    while (!cli_interrupt_pending()) {
        struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};

        if (poll(&p, 1, 200) <= 0)
            continue;
        keys[0] = '\0';
        if (read(STDIN_FILENO, keys, sizeof(keys)) <= 0 || (keys[0] && strchr("dDsSqQcC", keys[0])))
            break;
        fputc('\n', cli->err);
        put_question(cli);
    }
    tcsetattr(STDIN_FILENO, TCSANOW, &before);
    return keys[0] && strchr("dDsSqQcC", keys[0]) ? keys[0] : 0;
}

static enum wish ask(struct watch *w)
{
    char key;

    if (w->follow)
        cli_follow_pause(w->follow, true);
    clear_line(w);
    fputc('\n', w->cli->err);
    cli_say(w->cli, arena_printf(&w->cli->arena,
                                 "%s (%llu) runs on the server, with or without this "
                                 "program",
                                 cli_safe(w->cli, w->name), (unsigned long long)w->id));
    put_question(w->cli);
    key = ask_key(w->cli);
    if (cli_interrupt_taken())
        key = 's';
    fprintf(w->cli->err, "%c\n", key ? key : 's');
    if (w->follow)
        cli_follow_pause(w->follow, false);
    switch (key) {
    case 'd':
    case 'D':
    case 'q':
    case 'Q':
        return WISH_DETACH;
    case 'c':
    case 'C':
        return WISH_NONE;
    default:
        return WISH_STOP;
    }
}

static void take_signal(struct watch *w)
{
    int number = cli_interrupt_taken();

    if (number == 0)
        return;
    w->look_ms = LOOK_MIN_MS;
    if (w->wish == WISH_STOP_SENT || w->wish == WISH_STOP)
        w->wish = WISH_LEAVE; /* asked to stop before: do not wait for it */
    else if (number == SIGHUP)
        w->wish = WISH_DETACH;
    else if (number == SIGINT && w->cli->in_tty && w->cli->err_tty)
        w->wish = ask(w);
    else
        w->wish = WISH_STOP;
}

/* Asks again at every look until the server has heard it. */
static void send_stop(struct watch *w)
{
    struct cli_call call = {
        .method = "POST", .body = "{}", .path = arena_printf(&w->cli->arena, "%s/stop", w->path)};
    struct err err = ERR_INIT;
    int r = cli_call(w->cli, &call, NULL, &err);

    if (cli_is_unreachable(r))
        return;
    w->wish = WISH_STOP_SENT;
    if (r < 0 && r != -EEXIST) /* it may have ended by itself */
        say(w, cli_safe(w->cli, err.text));
    else
        say(w, "stopping it, with its grace; ^C again leaves without waiting");
}

/* ---- the loop ----------------------------------------------------------------------------- */

static void rest(struct watch *w)
{
    struct pollfd p = {.fd = w->follow ? cli_follow_fd(w->follow) : -1, .events = POLLIN};
    uint64_t count;

    if (!cli_interrupt_pending() && poll(&p, 1, w->look_ms) > 0 && p.revents &&
        read(p.fd, &count, sizeof(count)) > 0)
        w->look_ms = LOOK_MIN_MS;
    else if (w->look_ms < LOOK_MAX_MS)
        w->look_ms *= 2;
}

static int watch(struct watch *w, struct err *err)
{
    int r = 0;

    w->look_ms = LOOK_MIN_MS;
    w->since_ms = clock_boot_ms();
    while (r == 0 && w->wish != WISH_DETACH && w->wish != WISH_LEAVE) {
        struct arena kept = cli_scratch_begin(w->cli);

        r = look(w, err);
        if (r == 0 && !cli_is_final(w->state)) {
            rest(w);
            take_signal(w);
            if (w->wish == WISH_STOP)
                send_stop(w);
        }
        cli_scratch_end(w->cli, &kept);
        if (cli_is_final(w->state))
            break;
    }
    return r;
}

/* Lets the readers come to the end, or ends them. */
static void finish_stream(struct watch *w, bool drain)
{
    struct err err = ERR_INIT;
    int64_t until = clock_boot_ms() + DRAIN_MS;

    if (w->follow == NULL)
        return;
    while (drain && !cli_follow_finished(w->follow) && clock_boot_ms() < until &&
           !cli_interrupt_pending()) {
        struct pollfd p = {.fd = cli_follow_fd(w->follow), .events = POLLIN};
        uint64_t count;

        if (poll(&p, 1, 100) > 0 && read(p.fd, &count, sizeof(count)) < 0)
            break;
    }
    cli_follow_stop(w->follow);
    if (cli_follow_join(w->follow, &err) < 0 && drain)
        cli_say(w->cli, arena_printf(&w->cli->arena, "the log is incomplete: %s",
                                     cli_safe(w->cli, err.text)));
    w->follow = NULL;
}

static int exit_code(struct watch *w)
{
    struct cli *cli = w->cli;
    int64_t code = cli_json_int(w->last, "exit_code", 0);
    int64_t own = cli_json_int(cli_task_of(w->last, 0), "exit_code", 0);
    const char *message = cli_json_text(w->last, "message");

    if (strcmp(w->state, "succeeded") == 0)
        return 0;
    if (message)
        say(w, arena_printf(&cli->arena, "%s: %s", w->state, cli_safe(cli, message)));
    else
        say(w, arena_printf(&cli->arena, "%s with exit code %lld", w->state, (long long)code));
    if (code == 0)
        code = own; /* a cancelled workload has no code of its own; its task was killed */
    if (code > 0)
        return (int)(code & 0xff);
    return strcmp(w->state, "cancelled") == 0 ? CLI_EXIT_INTERRUPTED : CLI_EXIT_OWN;
}

static int watch_to_end(struct watch *w)
{
    struct err err = ERR_INIT;
    int code = 0, r;

    cli_interrupt_begin();
    r = watch(w, &err);
    finish_stream(w, r == 0 && cli_is_final(w->state));
    clear_line(w);
    if (r < 0) {
        cli_fail(w->cli, &err);
        code = CLI_EXIT_OWN;
    } else if (w->wish == WISH_DETACH) {
        cli_say(w->cli, arena_printf(&w->cli->arena,
                                     "detached; it goes on. 'allot logs -f %llu' watches it",
                                     (unsigned long long)w->id));
    } else if (w->wish == WISH_LEAVE) {
        code = CLI_EXIT_INTERRUPTED;
    } else {
        code = exit_code(w);
    }
    cli_interrupt_end();
    json_object_put(w->last);
    return code;
}

/* Who pipes something in expects the task to read it. */
static void warn_of_input(struct cli *cli)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    struct stat st;
    int waiting = 0;

    if (cli->in_tty || fstat(STDIN_FILENO, &st) < 0)
        return;
    if (S_ISREG(st.st_mode))
        waiting = st.st_size > lseek(STDIN_FILENO, 0, SEEK_CUR);
    else if ((S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)) && poll(&p, 1, 0) > 0)
        (void)ioctl(STDIN_FILENO, FIONREAD, &waiting);
    if (waiting > 0)
        cli_say(cli, "standard input does not reach the task, which reads an empty one; have it "
                     "read a file, or use 'allot exec'");
}

int cli_watch_workload(struct cli *cli, struct json_object *submitted)
{
    struct watch w = {.cli = cli};

    w.id = (uint64_t)cli_json_int(submitted, "id", 0);
    w.tasks = cli_json_int(submitted, "tasks", 1);
    w.path = cli_path(cli, "/v1/workloads/%llu", (unsigned long long)w.id);
    w.name = arena_strdup(&cli->arena, cli_json_text(submitted, "name"));
    cli_say(cli, arena_printf(&cli->arena, "%s (%llu) submitted", cli_safe(cli, w.name),
                              (unsigned long long)w.id));
    return watch_to_end(&w);
}

static int run(struct cli *cli, const struct cli_args *args)
{
    _cleanup_json_ struct json_object *reply = NULL;
    struct err err = ERR_INIT;

    if (cli_submit_options(cli, args, &reply, &err) < 0) {
        cli_fail(cli, &err);
        return CLI_EXIT_OWN;
    }
    if (cli_option_given(args, "dry-run")) {
        cli_print_dry_run(cli, reply);
        return 0;
    }
    if (cli->json)
        cli_print_json(cli, reply);
    else if (cli_option_given(args, "detach"))
        fprintf(cli->out, "%lld\n", (long long)cli_json_int(reply, "id", 0));
    if (cli->json || cli_option_given(args, "detach"))
        return 0;
    warn_of_input(cli);
    return cli_watch_workload(cli, reply);
}

static const struct cli_option options[] = {
    {.name = "detach", .letter = 'd', .help = "print the id and return, as 'allot submit' does"},
    {0},
};

const struct cli_command cli_run_command = {
    .name = "run",
    .group = CLI_WORK,
    .summary = "run a command on GPUs and stream its output",
    .usage = "[OPTIONS] -- COMMAND [ARG...]",
    .description =
        "Submits a workload, shows what it waits for until it starts, streams its output (with "
        "several tasks, each line with its task in front) and ends with the exit code of the "
        "task. Waits and notices go to standard error; standard output is the task's alone.\n\n"
        "The workload belongs to the server: if it is evicted, it is queued again and its next "
        "attempt is followed; if the server restarts, the output goes on where it was. ^C asks "
        "whether to detach or to stop it; ^C again stops it. Without a terminal, SIGINT and "
        "SIGTERM stop it and SIGHUP detaches.\n\n"
        "Standard input of a task is empty. For an interactive shell, or to send it something, "
        "use 'allot exec' in a task that runs.\n\n"
        "Tasks share the network of their machine: a service or notebook is reached at the port "
        "it listens on at its node ('allot show'), and another task, of anyone, may hold that "
        "port. Have the program choose a free one and print it, or derive one from "
        "ALLOT_WORKLOAD_ID and ALLOT_RANK.",
    .examples = "allot run --gpu 0.25 -- python3 train.py\n"
                "allot run --gpus 2 --name digits --max-run-time 2h -- ./train.sh\n"
                "# six tasks that start together, one GPU each\n"
                "allot run --tasks 6 --gpus 1 -w . -- python3 -m trainer\n"
                "# a place to try things: it stays until it is stopped\n"
                "allot submit --kind notebook --gpu 0.25 --name lab -- sleep infinity\n"
                "allot exec lab -- bash\n"
                "# a service on a port of its own\n"
                "allot run --kind service --gpu 1 -- \\\n"
                "  sh -c 'exec ./serve --port $((20000 + ALLOT_WORKLOAD_ID % 10000))'",
    .exit_codes = "0 it succeeded, or goes on after it was detached\n"
                  "N the exit code of the task (of the first that failed); 128 + signal if killed\n"
                  "125 allot itself failed before the task had one\n"
                  "130 stopped before it ran, or left with ^C while it stops\n"
                  "2 the command line is wrong",
    .options = options,
    .shared_options = cli_workload_options,
    .command_at = 1,
    .run = run,
};
