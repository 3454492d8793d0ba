/* SPDX-License-Identifier: Apache-2.0 */
/* `allot export`: what a server holds, for other programs. */
#include <stdio.h>

#include "bin/commands.h"
#include "bin/recorded.h"
#include "cli/cli.h"
#include "cli/options.h"

static int run_history(struct cli *cli, const struct cli_args *args)
{
    struct sim_place place = {.data = cli_option_value(args, "data")};
    struct err err = ERR_INIT;

    return recorded_write(cli, &place, cli->out, &err) < 0 ? cli_fail(cli, &err) : 0;
}

static const struct cli_option options[] = {
    {.name = "data",
     .arg = "FOLDER",
     .help = "read this data folder of a server on this machine instead",
     .complete = CLI_COMPLETE_FILE},
    {0},
};

static const struct cli_command history = {
    .name = "export history",
    .group = CLI_SETUP,
    .summary = "what ran when, as lines of JSON",
    .usage = "[OPTIONS]",
    .description =
        "Prints what a server has recorded: its teams, nodes, workloads and the times of all their "
        "runs, with every change of quotas and nodes. Nothing personal goes out but names of "
        "teams and workloads. It is for administrators and for those who see all teams. 'allot sim "
        "whatif' and 'allot quota suggest' read it.\n\n"
        "With --data a data folder is read instead, also while its server runs.",
    .examples = "allot export history > history.jsonl\n"
                "allot export history --data /var/lib/allot | allot sim whatif -",
    .options = options,
    .run = run_history,
};

static const struct cli_command *const subcommands[] = {&history, NULL};

const struct cli_command bin_export = {
    .name = "export",
    .group = CLI_SETUP,
    .summary = "print what a server holds, for other programs",
    .usage = "COMMAND",
    .subcommands = subcommands,
};
