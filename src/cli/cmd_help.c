/* SPDX-License-Identifier: Apache-2.0 */
/* allot help: the overview, one command, or manual pages. */
#include <errno.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/help.h"
#include "cli/options.h"
#include "cli/suggest.h"

static int find(struct cli *cli, const struct cli_args *args, const struct cli_command **ret)
{
    const char *name = args->operands.items[0];
    struct cli_suggestion s = {.word = name};
    struct err err = ERR_INIT;

    if (args->operands.len == 2)
        name = arena_printf(&cli->arena, "%s %s", name, args->operands.items[1]);
    *ret = cli_find_command(cli, name);
    if (*ret)
        return 0;
    for (size_t i = 0; cli->commands[i]; i++)
        cli_suggestion_offer(&s, cli->commands[i]->name);
    err_set(&err, -ENOENT, ERR_NOT_FOUND, NULL,
            s.best ? arena_printf(&cli->arena, "did you mean '%s'?", s.best)
                   : "'allot help' lists the commands",
            "there is no command '%.80s'", name);
    cli_fail_usage(cli, &err);
    return -ENOENT;
}

static int run(struct cli *cli, const struct cli_args *args)
{
    const char *folder = cli_option_value(args, "man-dir");
    const struct cli_command *c = NULL;
    struct err err = ERR_INIT;

    if (folder)
        return cli_man_write_all(cli, folder, &err) < 0 ? cli_fail(cli, &err) : 0;
    if (args->operands.len > 0 && find(cli, args, &c) < 0)
        return CLI_EXIT_USAGE;
    if (cli_option_given(args, "man"))
        cli_man_page(cli, c, cli->out);
    else if (c)
        cli_help_command(cli, c);
    else
        cli_help_overview(cli);
    return 0;
}

static const struct cli_option options[] = {
    {.name = "man", .help = "print the manual page in roff"},
    {.name = "man-dir",
     .arg = "FOLDER",
     .help = "write all manual pages below FOLDER",
     .complete = CLI_COMPLETE_FILE},
    {0},
};

const struct cli_command cli_help = {
    .name = "help",
    .group = CLI_SETUP,
    .summary = "show the commands, or one of them with examples",
    .usage = "[OPTIONS] [COMMAND]",
    .examples = "allot help run\nallot help team set\nallot help --man run | man -l -",
    .options = options,
    .max_operands = 2,
    .operand = CLI_COMPLETE_COMMAND,
    .run = run,
};
