/* SPDX-License-Identifier: Apache-2.0 */
/* `allot sim`: hands its words to the simulator, which has a command line of its own. */
#include "base/vec.h"
#include "bin/commands.h"
#include "bin/meter.h"
#include "bin/recorded.h"
#include "cli/cli.h"
#include "cli/options.h"

static int run(struct cli *cli, const struct cli_args *args)
{
    struct recorded recorded = {.cli = cli};
    struct sim_records records = {recorded_open, &recorded};
    VEC(char *) words = {0};
    int r;

    vec_push(&words, (char *)"sim");
    for (size_t i = 0; i < args->command_count; i++)
        vec_push(&words, (char *)args->command_line[i]);
    vec_push(&words, NULL);
    r = sim_main((int)words.len - 1, words.items, &bin_meter, &records);
    vec_done(&words);
    return r;
}

const struct cli_command bin_sim = {
    .name = "sim",
    .group = CLI_SETUP,
    .summary = "simulate: what if, scenarios, random histories, benchmarks",
    .usage = "COMMAND [OPTION]... [FILE...]",
    .description = "Runs the real scheduler in virtual time. 'allot sim help' lists the commands, "
                   "'allot sim COMMAND --help' says more about one.",
    .examples = "# what would have been with eight GPUs more, on the record of the server\n"
                "allot sim whatif --nodes +1x8xH100\n"
                "allot sim scenarios tests/sim/shares.jsonl\n"
                "allot sim scenarios --only FS15 --trace tests/sim/shares.jsonl\n",
    .min_operands = 0,
    .max_operands = CLI_MANY,
    .command_at = 1,
    .operand = CLI_COMPLETE_FILE,
    .run = run,
};
