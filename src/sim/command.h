/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Subcommands of `allot sim`: one file each (cmd_NAME.c) with one constant entry.
 *
 * A new one is a file, a line here and a line in the table of sim_main.c. Its `run` parses its
 * own options (set optind to 0 first), prints to standard output and returns the exit status.
 */
#ifndef ALLOT_SIM_COMMAND_H
#define ALLOT_SIM_COMMAND_H

#include <stdio.h>

#include "base/err.h"
#include "sim/sim.h"

struct sim_command {
    const char *name;    /* "random" */
    const char *summary; /* one line for the list */
    const char *usage;   /* whole help text, newline at its end */
    /* ARGV[0] is the name. 0, 1 something failed, 2 usage or a file that cannot be read. */
    int (*run)(int argc, char **argv);
    /* Instead of `run`: a benchmark, which reports time and memory as METER has them. */
    int (*measure)(int argc, char **argv, const struct sim_meter *meter);
};

/* Says on standard error what failed and what to do; returns 2. */
int sim_complain(const struct err *err);

/* Prints the help of a command; returns STATUS. */
static inline int sim_usage(const struct sim_command *command, FILE *out, int status)
{
    fputs(command->usage, out);
    return status;
}

extern const struct sim_command sim_cmd_scenarios, sim_cmd_random, sim_cmd_pack, sim_cmd_replay,
    sim_cmd_scale;
extern const struct sim_command sim_cmd_whatif, sim_cmd_suggest;

#endif
