/* SPDX-License-Identifier: Apache-2.0 */
/* allot suspend, resume, extend: what becomes of GPUs that a workload does not use. */
#include <json-c/json.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json_writer.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/session.h"

#define LOOK_MS 100
#define SUSPEND_WAIT_MS 120000 /* copies of some hundred GB, and work that has to end first */
#define RESUME_WAIT_MS 3000    /* what waits for longer waits in the queue */

struct change {
    const char *verb; /* and the last part of the route */
    const char *from; /* the state that it leaves */
    bool says_why;    /* its message tells that it does not */
    int64_t wait_ms;
};

static void pause_ms(int64_t ms)
{
    struct timespec t = {.tv_nsec = ms * NS_PER_MS};

    nanosleep(&t, NULL);
}

/* Looks until the workload at PATH has left the state that CHANGE begins with. */
static int watch(struct cli *cli, const struct change *change, const char *path,
                 struct json_object **ret_w, struct err *err)
{
    int64_t end = clock_boot_ms() + change->wait_ms;
    int r;

    for (;;) {
        r = cli_get(cli, path, ret_w, err);
        if (r < 0 || strcmp(cli_json_text(*ret_w, "state"), change->from) != 0 ||
            (change->says_why && cli_json_text(*ret_w, "message")) || clock_boot_ms() >= end)
            return r;
        json_object_put(*ret_w);
        *ret_w = NULL;
        pause_ms(LOOK_MS);
    }
}

static int tell(struct cli *cli, const struct change *change, const char *word,
                struct json_object *w, struct err *err)
{
    const char *state = cli_json_text(w, "state"), *message = cli_json_text(w, "message");

    if (change->says_why && strcmp(state, change->from) == 0)
        return err_set(err, -EBUSY, ERR_CONFLICT, NULL,
                       message ? NULL : "its work may take long to end; see 'allot events'",
                       "'%s' %s", word, message ? message : "is not suspended yet");
    if (cli->json)
        cli_print_json(cli, w);
    else
        fprintf(cli->out, "%s (%lld) %s%s\n", cli_safe(cli, cli_json_text(w, "name")),
                (long long)cli_json_int(w, "id", 0), cli_safe(cli, state),
                strcmp(state, "pending") == 0 ? ": it waits for its GPUs, see 'allot why'" : "");
    return 0;
}

static int change_one(struct cli *cli, const struct change *change, const char *word,
                      struct err *err)
{
    _cleanup_json_ struct json_object *reply = NULL, *w = NULL;
    struct cli_call call = {.method = "POST"};
    const char *path;
    uint64_t id;
    int r = cli_find_workload(cli, word, &id, err);

    if (r < 0)
        return r;
    path = cli_path(cli, "/v1/workloads/%llu", (unsigned long long)id);
    call.path = arena_printf(&cli->arena, "%s/%s", path, change->verb);
    r = cli_call(cli, &call, &reply, err);
    if (r == 0)
        r = watch(cli, change, path, &w, err);
    return r < 0 ? r : tell(cli, change, word, w, err);
}

static int change_all(struct cli *cli, const struct cli_args *args, const struct change *change)
{
    int code = 0;

    for (size_t i = 0; i < args->operands.len; i++) {
        struct err err = ERR_INIT;

        if (change_one(cli, change, args->operands.items[i], &err) < 0)
            code = cli_fail(cli, &err);
    }
    return code;
}

static int run_suspend(struct cli *cli, const struct cli_args *args)
{
    return change_all(cli, args, &(struct change){"suspend", "running", true, SUSPEND_WAIT_MS});
}

static int run_resume(struct cli *cli, const struct cli_args *args)
{
    return change_all(cli, args, &(struct change){"resume", "pending", false, RESUME_WAIT_MS});
}

const struct cli_command cli_suspend = {
    .name = "suspend",
    .group = CLI_ACT,
    .summary = "give the GPUs of workloads back while they live on",
    .usage = "ID...",
    .description =
        "What the workload holds on its GPUs moves to host memory, and its GPUs are free for "
        "others. Its processes live on; the next call of a GPU that one of them makes, or 'allot "
        "resume', asks for the GPUs again, and the call goes on when they are back.\n\n"
        "For notebooks, and what was submitted with --handling suspend, of one task. What "
        "cannot be suspended (managed memory, memory shared with other processes, too little host "
        "memory) is named, and the workload runs on.",
    .examples = "allot suspend lab\nallot resume lab",
    .min_operands = 1,
    .max_operands = CLI_MANY,
    .operand = CLI_COMPLETE_WORKLOAD,
    .run = run_suspend,
};

const struct cli_command cli_resume = {
    .name = "resume",
    .group = CLI_ACT,
    .summary = "let suspended workloads have their GPUs again",
    .usage = "ID...",
    .description =
        "A suspended workload waits for the very GPUs that it had, at its place in the queue: "
        "'allot why' says for what. It goes on where it was.",
    .examples = "allot resume lab",
    .min_operands = 1,
    .max_operands = CLI_MANY,
    .operand = CLI_COMPLETE_WORKLOAD,
    .run = run_resume,
};

static int run_extend(struct cli *cli, const struct cli_args *args)
{
    const char *time = cli_option_value(args, "for");
    _cleanup_strbuf_ struct strbuf body = STRBUF_INIT;
    struct cli_call call = {.method = "POST"};
    struct err err = ERR_INIT;
    struct json_writer w;
    int64_t ms;
    int code = 0;

    if (cli_option_duration(args, "for", &ms, &err) < 0)
        return cli_fail_usage(cli, &err);
    json_writer_init(&w, &body);
    json_begin_object(&w);
    if (time)
        json_key_string(&w, "for", time);
    json_end_object(&w);
    call.body = strbuf_str(&body);
    for (size_t i = 0; i < args->operands.len; i++) {
        _cleanup_json_ struct json_object *reply = NULL;
        uint64_t id;
        int r = cli_find_workload(cli, args->operands.items[i], &id, &err);

        call.path = cli_path(cli, "/v1/workloads/%llu/extend", (unsigned long long)id);
        if (r == 0)
            r = cli_call(cli, &call, &reply, &err);
        if (r < 0)
            code = cli_fail(cli, &err);
        else if (cli->json)
            cli_print_json(cli, reply);
        else
            fprintf(cli->out, "%s may be idle for longer\n",
                    cli_safe(cli, args->operands.items[i]));
    }
    return code;
}

static const struct cli_option extend_options[] = {
    {.name = "for", .arg = "TIME", .help = "for how long from now (default: as the policy says)"},
    {0},
};

const struct cli_command cli_extend = {
    .name = "extend",
    .group = CLI_ACT,
    .summary = "let workloads be idle for longer",
    .usage = "[--for TIME] ID...",
    .description =
        "A team may say what becomes of workloads that hold GPUs and do nothing ('allot team set "
        "--idle'): they are reported, suspended or stopped, after two warnings ('allot show', "
        "'allot events'). This gives them more time.",
    .examples = "allot extend lab\nallot extend --for 8h lab",
    .options = extend_options,
    .min_operands = 1,
    .max_operands = CLI_MANY,
    .operand = CLI_COMPLETE_WORKLOAD,
    .run = run_extend,
};
