/* SPDX-License-Identifier: Apache-2.0 */
/* `allot sim`: hands its words to the simulator, which has a command line of its own. */
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "bin/commands.h"
#include "bin/meter.h"
#include "bin/recorded.h"
#include "cli/cli.h"
#include "cli/options.h"

static bool reads_history(const char *command)
{
    return strcmp(command, "whatif") == 0 || strcmp(command, "suggest") == 0;
}

/* Instead of "--data FOLDER" a path that leads to the history of that store. */
static int run(struct cli *cli, const struct cli_args *args)
{
    char path[RECORDED_PATH_MAX];
    _cleanup_close_ int fd = -1;
    VEC(char *) words = {0};
    struct err err = ERR_INIT;
    int r = 0;

    vec_push(&words, (char *)"sim");
    for (size_t i = 0; r == 0 && i < args->command_count; i++) {
        const char *word = args->command_line[i];

        if (fd < 0 && reads_history(args->command_line[0]) && strcmp(word, "--data") == 0 &&
            i + 1 < args->command_count) {
            r = recorded_open(args->command_line[++i], &fd, path, &err);
            word = path;
        }
        vec_push(&words, (char *)word);
    }
    vec_push(&words, NULL);
    r = r < 0 ? cli_fail(cli, &err) : sim_main((int)words.len - 1, words.items, &bin_meter);
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
    .examples = "allot sim scenarios tests/sim/shares.jsonl\n"
                "allot sim scenarios --only FS15 --trace tests/sim/shares.jsonl\n",
    .min_operands = 0,
    .max_operands = CLI_MANY,
    .command_at = 1,
    .operand = CLI_COMPLETE_FILE,
    .run = run,
};
