/* SPDX-License-Identifier: Apache-2.0 */
/* allot gpu: what is promised of GPUs, tried. */
#include <json-c/json.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/session.h"
#include "cli/workload_options.h"

#define PROGRAM "/run/allot/gpu/verify" /* in each task that holds a GPU */
#define PART "0.25"
#define NAME "gpu-verify"
#define MAX_RUN_TIME "10m"

/* Why NODE does not use the shim, as it says itself; "" = it does not say. */
static const char *shim_reason(struct json_object *node)
{
    for (size_t i = 0; i < cli_json_len(node, "sharing_backends"); i++) {
        struct json_object *b = cli_json_at(node, "sharing_backends", i);
        const char *name = cli_json_text(b, "name"), *reason = cli_json_text(b, "reason");

        if (name && reason && strcmp(name, "shim") == 0)
            return reason;
    }
    return "";
}

/* Why parts are not enforced on NODE, or (NULL) on any node; NULL = somewhere they are. */
static const char *unenforced(struct json_object *list, const char *node)
{
    const char *reason = NULL;

    for (size_t i = 0; i < cli_json_len(list, "nodes"); i++) {
        struct json_object *n = cli_json_at(list, "nodes", i);
        const char *name = cli_json_text(n, "name"), *sharing = cli_json_text(n, "sharing");

        if (cli_json_len(n, "devices") == 0 || (node && name && strcmp(name, node) != 0))
            continue;
        if (sharing == NULL || strcmp(sharing, "none") != 0)
            return NULL;
        reason = shim_reason(n);
    }
    return reason;
}

/* It is tried all the same: what the program finds is the truth, not what the node says. */
static void warn_of_node(struct cli *cli, const char *node)
{
    _cleanup_json_ struct json_object *list = NULL;
    struct err err = ERR_INIT;
    const char *reason;

    if (cli_get(cli, "/v1/nodes", &list, &err) < 0)
        return;
    reason = unenforced(list, node);
    if (reason == NULL)
        return;
    cli_say(cli, arena_printf(&cli->arena,
                              "%s%s enforce%s no parts of GPUs%s%s; trying it all the same",
                              node ? "node " : "the nodes", node ? cli_safe(cli, node) : "",
                              node ? "s" : "", *reason ? ": " : "", cli_safe(cli, reason)));
}

/* Unless one of the options that ask for a GPU was given. */
static bool asks_for_gpu(const struct cli_args *args)
{
    return cli_option_given(args, "gpu") || cli_option_given(args, "gpus") ||
           cli_option_given(args, "gpu-memory") || cli_option_given(args, "mig");
}

static void give_default(struct cli_args *asked, const char *option, const char *value)
{
    if (!cli_option_given(asked, option))
        cli_option_give(asked, option, value);
}

/* ASKED, as given, becomes what describes the workload. */
static void complete(struct cli *cli, struct cli_args *asked, const char *node)
{
    static const char *const line[] = {PROGRAM, "--json", NULL};

    asked->command_line = line;
    asked->command_count = cli->json ? 2 : 1;
    if (!asks_for_gpu(asked))
        cli_option_give(asked, "gpu", PART);
    give_default(asked, "name", NAME);
    give_default(asked, "max-run-time", MAX_RUN_TIME);
    if (node)
        cli_option_give(asked, "label", arena_printf(&cli->arena, "host=%s", node));
}

static int verify(struct cli *cli, const struct cli_args *args)
{
    const char *node = cli_option_value(args, "node");
    struct cli_args asked = {.command = args->command};
    _cleanup_json_ struct json_object *reply = NULL;
    struct err err = ERR_INIT;
    int r;

    for (size_t i = 0; i < args->given.len; i++)
        vec_push(&asked.given, args->given.items[i]);
    complete(cli, &asked, node);
    warn_of_node(cli, node);
    r = cli_submit_options(cli, &asked, &reply, &err);
    cli_args_done(&asked);
    if (r == 0)
        return cli_watch_workload(cli, reply);
    cli_fail(cli, &err);
    return CLI_EXIT_OWN;
}

static const struct cli_option verify_options[] = {
    {.name = "node",
     .arg = "NAME",
     .help = "on this node (default: where there is room)",
     .complete = CLI_COMPLETE_NODE},
    {0},
};

static const struct cli_command verify_command = {
    .name = "gpu verify",
    .summary = "try whether a part of a GPU holds",
    .usage = "[OPTIONS]",
    .description =
        "Runs a task that tries to take more memory of its GPU than its part: it fills the part to "
        "the last byte and then asks for more in every way there is, also from a second process. "
        "Then it computes all it can for two seconds, and tells how much of the GPU's time it got "
        "and whether others wanted it meanwhile: more than its part is no fault, as what nobody "
        "else wants is usable, but work that the shim does not see is one. What happened is "
        "printed, way by way. Without --gpu, --gpu-memory, --gpus or --mig it is a quarter of a "
        "GPU. With --image it is tried as programs of that image would.\n\n"
        "It does no harm where nothing is enforced: it never asks for more than 64 MiB beyond the "
        "part, and gives back all that it took.",
    .examples = "allot gpu verify\nallot gpu verify --gpu-memory 10GiB --node gpu-07\n"
                "# as an object, for a script\nallot gpu verify -o json | jq .verdict",
    .exit_codes = "0 everything held, or the task had a whole GPU\n"
                  "1 not enforced: the task was given more than its part\n"
                  "2 it could not be tried, or the command line is wrong\n"
                  "125 allot itself failed before the task ran\n"
                  "126, 127 the program could not be started there: the message says why\n"
                  "130 stopped before it ran, or left with ^C while it stops",
    .options = verify_options,
    .shared_options = cli_workload_options,
    .run = verify,
};

static const struct cli_command *const subcommands[] = {&verify_command, NULL};

const struct cli_command cli_gpu = {
    .name = "gpu",
    .group = CLI_ACT,
    .summary = "try what is promised of GPUs",
    .usage = "[verify]",
    .description = "Whether parts of a GPU are enforced is said per node ('allot node show'); this "
                   "shows that it is so.",
    .examples = "allot gpu verify --gpu 0.5",
    .subcommands = subcommands,
};
