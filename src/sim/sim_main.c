/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "sim/command.h"

static const struct sim_command *const commands[] = {
    &sim_cmd_scenarios,
    &sim_cmd_random,
    &sim_cmd_pack,
    &sim_cmd_replay,
    &sim_cmd_scale,
    &sim_cmd_whatif,
    &sim_cmd_suggest,
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static int usage(FILE *out, int status)
{
    fputs("usage: allot sim COMMAND [OPTION]...\n\n", out);
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    fputs("\n`allot sim COMMAND --help` says more.\n", out);
    return status;
}

int sim_main(int argc, char **argv, const struct sim_meter *meter,
             const struct sim_records *records)
{
    for (size_t i = 0; argc >= 2 && i < COMMANDS; i++) {
        if (strcmp(argv[1], commands[i]->name) != 0)
            continue;
        if (commands[i]->measure != NULL)
            return commands[i]->measure(argc - 1, argv + 1, meter);
        if (commands[i]->replay != NULL)
            return commands[i]->replay(argc - 1, argv + 1, records);
        return commands[i]->run(argc - 1, argv + 1);
    }
    if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0))
        return usage(stdout, 0);
    if (argc >= 2) {
        fprintf(stderr, "allot: there is no 'allot sim %.60s'\n\n", argv[1]);
        return usage(stderr, 2);
    }
    fputs("allot: name what is to be simulated\n\n", stderr);
    return usage(stderr, 2);
}
