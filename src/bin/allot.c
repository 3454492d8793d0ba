/* SPDX-License-Identifier: Apache-2.0 */
/* The program: the commands of the command line, and those that bring their own layers. */
#include "bin/commands.h"
#include "cli/cli.h"

static const struct cli_command *const extra[] = {
    &bin_server,
    &bin_sim,
    &bin_export,
    &bin_quota,
    NULL,
};

int main(int argc, char **argv)
{
    return cli_main(argc, argv, extra);
}
