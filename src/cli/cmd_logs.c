/* SPDX-License-Identifier: Apache-2.0 */
/* allot logs: what the tasks of a workload printed. */
#include <errno.h>
#include <json-c/json.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/follow.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/render.h"
#include "cli/session.h"
#include "model/workload.h"

struct output {
    struct cli *cli;
    bool any; /* something was printed */
};

static int write_bytes(void *user, const char *data, size_t len)
{
    struct output *o = user;

    if (cli_interrupt_pending())
        return 1;
    if (len == 0)
        return 0;
    o->any = true;
    return cli_write(o->cli, data, len) < 0;
}

/* Why a workload that waits, or never ran, has written nothing. Silence of one that runs or ran
 * speaks for itself. */
static void tell_why_silent(struct cli *cli, uint64_t id)
{
    const char *path = cli_path(cli, "/v1/workloads/%llu", (unsigned long long)id);
    _cleanup_json_ struct json_object *w = NULL;
    struct err err = ERR_INIT;
    const char *state, *message;

    if (cli_get(cli, path, &w, &err) < 0)
        return;
    state = cli_json_text(w, "state");
    message = cli_safe(cli, cli_json_text(w, "message"));
    if (state && strcmp(state, "pending") == 0)
        cli_say(cli, arena_printf(&cli->arena, "no output yet: %s ('allot why %llu' tells more)",
                                  *message ? message : "it waits", (unsigned long long)id));
    else if (cli_is_final(state) && cli_json_time(w, "started_at") == 0)
        cli_say(cli, arena_printf(&cli->arena, "no output: it never ran%s%s", *message ? ": " : "",
                                  message));
}

/* One read of what is there. */
static int print_once(struct cli *cli, uint64_t id, const struct cli_args *args, struct err *err)
{
    static const char *const passed[] = {"task", "attempt", "tail", "offset"};
    _cleanup_(http_reply_done) struct http_reply reply = HTTP_REPLY_INIT;
    const char *path = cli_path(cli, "/v1/workloads/%llu/logs", (unsigned long long)id);
    struct output output = {.cli = cli};
    struct http_client *c;
    const char *separator = "?";
    int r = cli_client(cli, &c, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < ARRAY_LEN(passed); i++) {
        const char *v = cli_option_value(args, passed[i]);

        if (v == NULL)
            continue;
        path = arena_printf(&cli->arena, "%s%s%s=%s", path, separator, passed[i],
                            cli_path(cli, "%s", v));
        separator = "&";
    }
    r = http_client_stream(c, path, NULL, write_bytes, &output, &reply, err);
    if (r == 0 && reply.status != 200)
        r = cli_problem(&reply, err);
    if ((r == 0 || r == -ENOENT) && !output.any)
        tell_why_silent(cli, id);
    return r < 0 ? r : 0;
}

/* All tasks of the workload, as many as are followed at once. */
static int all_tasks(struct cli *cli, uint64_t id, uint32_t *ret_count, struct err *err)
{
    _cleanup_json_ struct json_object *w = NULL;
    int r = cli_get(cli, cli_path(cli, "/v1/workloads/%llu", (unsigned long long)id), &w, err);
    int64_t count;

    if (r < 0)
        return r;
    count = cli_json_int(w, "tasks", 1);
    if (count > CLI_FOLLOW_MAX)
        cli_say(cli,
                arena_printf(&cli->arena, "showing tasks 0 to %d of %lld; --task N shows another",
                             CLI_FOLLOW_MAX - 1, (long long)count));
    *ret_count = count < 1 ? 1 : count > CLI_FOLLOW_MAX ? CLI_FOLLOW_MAX : (uint32_t)count;
    return 0;
}

/* With --follow to the end, without it what is there of all tasks. */
static int follow(struct cli *cli, uint64_t id, const struct cli_args *args, struct err *err)
{
    struct cli_follow_options options = {
        .task_count = 1, .from_now = true, .once = !cli_option_given(args, "follow")};
    struct cli_follow *f;
    int64_t task = 0;
    int r = cli_option_number(args, "task", 0, MODEL_TASKS_MAX - 1, &task, err);

    options.tail = -1;
    if (r == 0)
        r = cli_option_number(args, "tail", 0, INT64_MAX, &options.tail, err);
    options.first_task = (uint32_t)task;
    if (r == 0 && cli_option_given(args, "all"))
        r = all_tasks(cli, id, &options.task_count, err);
    if (r == 0)
        tell_why_silent(cli, id);
    if (r == 0)
        r = cli_follow_start(cli, id, &options, &f, err);
    if (r < 0)
        return r;
    while (!cli_follow_finished(f)) {
        struct pollfd p = {.fd = cli_follow_fd(f), .events = POLLIN};
        uint64_t count;

        poll(&p, 1, 500);
        if (p.revents && read(p.fd, &count, sizeof(count)) < 0)
            continue;
        if (cli_interrupt_pending())
            cli_follow_stop(f);
    }
    return cli_follow_join(f, err);
}

static int run(struct cli *cli, const struct cli_args *args)
{
    struct err err = ERR_INIT;
    int64_t number;
    uint64_t id;
    int r;

    if (cli_option_number(args, "task", 0, MODEL_TASKS_MAX - 1, &number, &err) < 0 ||
        cli_option_number(args, "tail", 0, INT64_MAX, &number, &err) < 0 ||
        cli_option_number(args, "attempt", 0, INT32_MAX, &number, &err) < 0)
        return cli_fail_usage(cli, &err);
    r = cli_find_workload(cli, args->operands.items[0], &id, &err);
    if (r < 0)
        return cli_fail(cli, &err);
    cli_interrupt_begin();
    if (cli_option_given(args, "follow") || cli_option_given(args, "all"))
        r = follow(cli, id, args, &err);
    else
        r = print_once(cli, id, args, &err);
    cli_interrupt_end();
    return r < 0 ? cli_fail(cli, &err) : 0;
}

static const struct cli_option options[] = {
    {.name = "follow", .letter = 'f', .help = "go on until the workload has ended"},
    {.name = "task", .letter = 't', .arg = "N", .help = "of this task (default 0)"},
    {.name = "all", .letter = 'a', .help = "of all tasks, each line with its task in front"},
    {.name = "tail", .letter = 'n', .arg = "LINES", .help = "begin with the last so many lines"},
    {.name = "attempt", .arg = "N", .help = "of an earlier attempt (default: the newest)"},
    {.name = "offset", .arg = "BYTES", .help = "begin at this byte"},
    {0},
};

const struct cli_command cli_logs = {
    .name = "logs",
    .group = CLI_SEE,
    .summary = "print what a workload's tasks wrote",
    .usage = "[OPTIONS] ID",
    .description =
        "Prints standard output and standard error of a task, in the order written; with --all of "
        "every task, one after the other. With --follow "
        "it goes on until the workload has ended, through evictions (the next attempt is taken "
        "up) and restarts of the server (nothing is lost or printed twice).",
    .examples = "allot logs 81\nallot logs -f digits\nallot logs -f --all digits\n"
                "allot logs --task 3 --tail 100 81",
    .options = options,
    .min_operands = 1,
    .max_operands = 1,
    .operand = CLI_COMPLETE_WORKLOAD,
    .run = run,
};
