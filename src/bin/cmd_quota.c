/* SPDX-License-Identifier: Apache-2.0 */
/* `allot quota`: that of the command line, and `suggest`, for which the simulator is needed. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bin/commands.h"
#include "bin/meter.h"
#include "bin/recorded.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/options.h"

static int suggest(struct cli *cli, const struct cli_args *args)
{
    const char *data = cli_option_value(args, "data");
    struct recorded recorded = {.cli = cli};
    struct sim_records records = {recorded_open, &recorded};
    char *words[8] = {(char *)"sim", (char *)"suggest"};
    int n = 2;

    if (data) {
        words[n++] = (char *)"--data";
        words[n++] = (char *)data;
    }
    if (cli->json) {
        words[n++] = (char *)"-o";
        words[n++] = (char *)"json";
    }
    return sim_main(n, words, &bin_meter, &records);
}

static int run(struct cli *cli, const struct cli_args *args)
{
    const char *verb = args->operands.len > 0 ? args->operands.items[0] : "";
    struct err err = ERR_INIT;

    if (strcmp(verb, "suggest") == 0 && args->operands.len == 1)
        return suggest(cli, args);
    if (strcmp(verb, "suggest") != 0 && cli_option_given(args, "data")) {
        err_set(&err, -EINVAL, ERR_INVALID, NULL, "write 'allot quota suggest --data FOLDER'",
                "--data is for suggestions only: quotas are shown by a server");
        return cli_fail_usage(cli, &err);
    }
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
     .help = "suggest: from this data folder of a server on this machine",
     .complete = CLI_COMPLETE_FILE},
    {0},
};

const struct cli_command bin_quota = {
    .name = "quota",
    .group = CLI_SEE,
    .summary = "what every team has and uses, as a tree with bars; suggestions",
    .usage = "[OPTIONS] [show] [TEAM] | suggest",
    .description = CLI_QUOTA_ABOUT
    "\n\n"
    "'suggest' proposes guarantees from what the server has recorded: what every team wanted "
    "at a time, how much of it its guarantee covers, and guarantees that never exceed the GPUs "
    "there are. It is for administrators and for those who see all teams.",
    .examples = "allot quota\nallot quota research --all\n"
                "allot quota suggest",
    .options = options,
    .max_operands = 2,
    .operand = CLI_COMPLETE_TEAM,
    .run = run,
};
