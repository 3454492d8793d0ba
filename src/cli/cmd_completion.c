/* SPDX-License-Identifier: Apache-2.0 */
/* allot completion: scripts for shells, and the words that only the server knows. */
#include <errno.h>
#include <json-c/json.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/help.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/session.h"

/* Where the words of a kind come from. */
static const struct {
    enum cli_complete kind;
    const char *path, *list, *field, *also;
} sources[] = {
    {CLI_COMPLETE_WORKLOAD, "/v1/workloads?state=live&limit=200", "workloads", "name", "id"},
    {CLI_COMPLETE_TEAM, "/v1/teams", "teams", "name", NULL},
    {CLI_COMPLETE_NODE, "/v1/nodes", "nodes", "name", NULL},
    {CLI_COMPLETE_USER, "/v1/users", "users", "name", NULL},
};

/* Silent on failure: a shell asks while somebody types. */
static int print_words(struct cli *cli, const char *kind)
{
    for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
        _cleanup_json_ struct json_object *reply = NULL;
        struct err err = ERR_INIT;

        if (strcmp(cli_complete_kind(sources[i].kind), kind) != 0)
            continue;
        if (cli_get(cli, sources[i].path, &reply, &err) < 0)
            return CLI_EXIT_FAILED;
        for (size_t j = 0; j < cli_json_len(reply, sources[i].list); j++) {
            struct json_object *o = cli_json_at(reply, sources[i].list, j);

            fprintf(cli->out, "%s\n", cli_safe(cli, cli_json_text(o, sources[i].field)));
            if (sources[i].also)
                fprintf(cli->out, "%s\n", cli_safe(cli, cli_json_text(o, sources[i].also)));
        }
    }
    return 0;
}

static int run(struct cli *cli, const struct cli_args *args)
{
    const char *kind = cli_option_value(args, "words");
    struct err err = ERR_INIT;
    const char *shell;

    if (kind)
        return print_words(cli, kind);
    if (args->operands.len == 0) {
        err_set(&err, -EINVAL, ERR_MISSING, NULL, NULL, "for which shell? bash or zsh");
        return cli_fail_usage(cli, &err);
    }
    shell = args->operands.items[0];
    if (strcmp(shell, "bash") == 0) {
        cli_completion_bash(cli, cli->out);
    } else if (strcmp(shell, "zsh") == 0) {
        cli_completion_zsh(cli, cli->out);
    } else {
        err_set(&err, -EINVAL, ERR_INVALID, NULL, "use bash or zsh",
                "there is no completion for '%.40s'", shell);
        return cli_fail_usage(cli, &err);
    }
    return 0;
}

static const struct cli_option options[] = {
    {.name = "words",
     .arg = "KIND",
     .help = "print what the server knows of a kind",
     .complete = CLI_COMPLETE_WORDS,
     .words = "workload team node user"},
    {0},
};

const struct cli_command cli_completion = {
    .name = "completion",
    .group = CLI_SETUP,
    .summary = "print a completion script for bash or zsh",
    .usage = "[OPTIONS] bash|zsh",
    .description = "Packages install these scripts; for a program in a folder of your own, put "
                   "one of the lines below into your shell's start file.",
    .examples = "source <(allot completion bash)\nsource <(allot completion zsh)",
    .options = options,
    .max_operands = 1,
    .operand = CLI_COMPLETE_WORDS,
    .operand_words = "bash zsh",
    .run = run,
};
