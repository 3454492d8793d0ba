/* SPDX-License-Identifier: Apache-2.0 */
/* allot stop: end workloads with grace. */
#include <json-c/json.h>

#include "base/cleanup.h"
#include "base/json_writer.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/session.h"

/* "digits (81)" */
static const char *name_text(struct cli *cli, uint64_t id)
{
    _cleanup_json_ struct json_object *w = NULL;
    struct err err = ERR_INIT;
    const char *name = NULL;

    if (cli_get(cli, cli_path(cli, "/v1/workloads/%llu", (unsigned long long)id), &w, &err) == 0)
        name = cli_json_text(w, "name");
    return name
               ? arena_printf(&cli->arena, "%s (%llu)", cli_safe(cli, name), (unsigned long long)id)
               : arena_printf(&cli->arena, "%llu", (unsigned long long)id);
}

static int stop_one(struct cli *cli, const char *word, const char *body, struct err *err)
{
    _cleanup_json_ struct json_object *reply = NULL;
    struct cli_call call = {.method = "POST", .body = body};
    uint64_t id;
    int r = cli_find_workload(cli, word, &id, err);

    if (r < 0)
        return r;
    call.path = cli_path(cli, "/v1/workloads/%llu/stop", (unsigned long long)id);
    r = cli_call(cli, &call, &reply, err);
    if (r < 0)
        return r;
    if (cli->json && reply)
        cli_print_json(cli, reply);
    else if (!cli->json)
        fprintf(cli->out, "%s %s\n", name_text(cli, id),
                reply && cli_json_text(reply, "state")
                    ? cli_safe(cli, cli_json_text(reply, "state"))
                    : "stopping");
    return 0;
}

static int run(struct cli *cli, const struct cli_args *args)
{
    const char *grace = cli_option_given(args, "now") ? "0s" : cli_option_value(args, "grace");
    _cleanup_strbuf_ struct strbuf body = STRBUF_INIT;
    struct err err = ERR_INIT;
    struct json_writer w;
    int64_t ms;
    int code = 0;

    if (cli_option_duration(args, "grace", &ms, &err) < 0)
        return cli_fail_usage(cli, &err);
    json_writer_init(&w, &body);
    json_begin_object(&w);
    if (grace)
        json_key_string(&w, "grace", grace);
    json_end_object(&w);
    /* one that cannot be stopped does not keep the others from it */
    for (size_t i = 0; i < args->operands.len; i++)
        if (stop_one(cli, args->operands.items[i], strbuf_str(&body), &err) < 0)
            code = cli_fail(cli, &err);
    return code;
}

static const struct cli_option options[] = {
    {.name = "grace",
     .letter = 'g',
     .arg = "TIME",
     .help = "time between SIGTERM and SIGKILL (default: the workload's own)"},
    {.name = "now", .help = "no grace: SIGKILL at once"},
    {0},
};

const struct cli_command cli_stop = {
    .name = "stop",
    .group = CLI_ACT,
    .summary = "stop workloads, waiting or running",
    .usage = "[OPTIONS] ID...",
    .description =
        "Stops workloads, by number or name. A running one gets SIGTERM, its grace, then "
        "SIGKILL; a waiting one is taken out of the queue. It does not run again.",
    .examples = "allot stop 81\nallot stop --grace 5s digits\n"
                "# everything of mine that still waits\n"
                "allot ps --owner \"$USER\" --state pending -o json |\n"
                "  jq -r '.workloads[].id' | xargs allot stop",
    .options = options,
    .min_operands = 1,
    .max_operands = CLI_MANY,
    .operand = CLI_COMPLETE_WORKLOAD,
    .run = run,
};
