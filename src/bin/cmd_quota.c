/* SPDX-License-Identifier: Apache-2.0 */
/* `allot quota`: that of the command line, and `suggest`, for which the simulator is needed. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "bin/commands.h"
#include "bin/meter.h"
#include "bin/recorded.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/options.h"

static int suggest(struct cli *cli, const struct cli_args *args)
{
    const char *data = cli_option_value(args, "data");
    char path[RECORDED_PATH_MAX];
    _cleanup_close_ int fd = -1;
    struct err err = ERR_INIT;
    char *words[] = {(char *)"sim", (char *)"suggest", path, NULL, NULL, NULL};

    if (recorded_open(data ? data : RECORDED_DEFAULT, &fd, path, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json) {
        words[3] = (char *)"-o";
        words[4] = (char *)"json";
    }
    return sim_main(cli->json ? 5 : 3, words, &bin_meter);
}

static int run(struct cli *cli, const struct cli_args *args)
{
    const char *verb = args->operands.len > 0 ? args->operands.items[0] : "";
    struct err err = ERR_INIT;

    if (strcmp(verb, "suggest") == 0 && args->operands.len == 1)
        return suggest(cli, args);
    if (strcmp(verb, "suggest") == 0)
        err_set(&err, -EINVAL, ERR_INVALID, NULL, "leave the team out",
                "a suggestion is for all teams, since it divides what there is among them");
    else if (args->operands.len == 2 && strcmp(verb, "show") != 0)
        err_set(&err, -EINVAL, ERR_INVALID, NULL, "write 'allot quota show TEAM'",
                "'%.60s' is neither show nor suggest", verb);
    else
        return cli_quota.run(cli, args);
    return cli_fail(cli, &err);
}

static const struct cli_option options[] = {
    CLI_QUOTA_ALL,
    {.name = "data",
     .arg = "FOLDER",
     .help = "suggest: data folder of the server (" RECORDED_DEFAULT ")",
     .complete = CLI_COMPLETE_FILE},
    {0},
};

const struct cli_command bin_quota = {
    .name = "quota",
    .group = CLI_SEE,
    .summary = "what every team has and uses, as a tree with bars; suggestions",
    .usage = "[OPTIONS] [show] [TEAM] | suggest",
    .description =
        CLI_QUOTA_ABOUT
        "\n\n"
        "'suggest' proposes guarantees from what the store of a server on this machine has "
        "recorded: what every team wanted at a time, how much of it its guarantee covers, and "
        "guarantees that never exceed the GPUs there are.",
    .examples = "allot quota\nallot quota research --all\n"
                "allot quota suggest --data /var/lib/allot",
    .options = options,
    .max_operands = 2,
    .operand = CLI_COMPLETE_TEAM,
    .run = run,
};
