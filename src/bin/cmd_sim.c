/* SPDX-License-Identifier: Apache-2.0 */
/* `allot sim`: hands its words to the simulator, which has a command line of its own. */
#include "base/cleanup.h"
#include "base/vec.h"
#include "bin/commands.h"
#include "bin/meter.h"
#include "cli/cli.h"
#include "cli/options.h"

static int run(struct cli *cli, const struct cli_args *args)
{
    VEC(char *) words = {0};
    int r;

    (void)cli;
    vec_push(&words, (char *)"sim");
    for (size_t i = 0; i < args->command_count; i++)
        vec_push(&words, (char *)args->command_line[i]);
    vec_push(&words, NULL);
    r = sim_main((int)words.len - 1, words.items, &bin_meter);
    vec_done(&words);
    return r;
}

const struct cli_command bin_sim = {
    .name = "sim",
    .group = CLI_SETUP,
    .summary = "simulate: scenarios, random histories and benchmarks in virtual time",
    .usage = "COMMAND [OPTION]... [FILE...]",
    .description = "Runs the real scheduler in virtual time. 'allot sim help' lists the commands, "
                   "'allot sim COMMAND --help' says more about one.",
    .examples = "allot sim scenarios tests/sim/given.jsonl\n"
                "allot sim scenarios --only X03 --trace tests/sim/given.jsonl\n",
    .min_operands = 0,
    .max_operands = CLI_MANY,
    .command_at = 1,
    .operand = CLI_COMPLETE_FILE,
    .run = run,
};
