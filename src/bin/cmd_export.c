/* SPDX-License-Identifier: Apache-2.0 */
/* `allot export`: what a store holds, for other programs. */
#include <stdio.h>

#include "base/cleanup.h"
#include "bin/commands.h"
#include "bin/recorded.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "store/history.h"

static int run_history(struct cli *cli, const struct cli_args *args)
{
    const char *data = cli_option_value(args, "data");
    struct err err = ERR_INIT;

    if (store_history_write(data ? data : RECORDED_DEFAULT, cli->out, &err) < 0)
        return cli_fail(cli, &err);
    return 0;
}

static const struct cli_option options[] = {
    {.name = "data",
     .arg = "FOLDER",
     .help = "data folder of the server (" RECORDED_DEFAULT ")",
     .complete = CLI_COMPLETE_FILE},
    {0},
};

static const struct cli_command history = {
    .name = "export history",
    .group = CLI_SETUP,
    .summary = "what ran when, as lines of JSON",
    .usage = "[OPTIONS]",
    .description =
        "Reads the store of a server on this machine, also while it runs, and prints its teams, "
        "nodes, workloads and the times of all their runs. Nothing personal goes out but names of "
        "teams and workloads. 'allot sim whatif' and 'allot sim suggest' read it.",
    .examples = "allot export history --data /var/lib/allot > history.jsonl",
    .options = options,
    .run = run_history,
};

static const struct cli_command *const subcommands[] = {&history, NULL};

const struct cli_command bin_export = {
    .name = "export",
    .group = CLI_SETUP,
    .summary = "print what a store holds, for other programs",
    .usage = "COMMAND",
    .subcommands = subcommands,
};
