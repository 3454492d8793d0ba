/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Subcommands of `allot sim`: one file each (cmd_NAME.c) with one constant entry.
 *
 * A new one is a file, a line here and a line in the table of sim_main.c. Its `run` parses its
 * own options (set optind to 0 first), prints to standard output and returns the exit status.
 */
#ifndef ALLOT_SIM_COMMAND_H
#define ALLOT_SIM_COMMAND_H

#include <getopt.h>
#include <stdint.h>
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
    /* Likewise: what works on records, which may be NULL. */
    int (*replay)(int argc, char **argv, const struct sim_records *records);
};

/* Says on standard error what failed and what to do; returns 2. */
int sim_complain(const struct err *err);
/* Likewise for a command line that is wrong; where ERR has no remedy, where the options are
 * listed. Returns 2. */
int sim_misused(const struct sim_command *command, const struct err *err);

/*
 * The next option as getopt_long() has it, its value in optarg, its name in RET_NAME: its
 * character, 0 behind the last one, or a negative errno with ERR naming what is wrong. Every
 * command has -h. LONGS must give values above 0.
 */
int sim_option(int argc, char **argv, const struct option *longs, const char **ret_name,
               struct err *err);
/* The value TEXT of option NAME as a whole number MIN..MAX; -ERANGE with ERR. */
int sim_number(const char *name, const char *text, int64_t min, int64_t max, int64_t *ret_value,
               struct err *err);
/* -EINVAL with ERR naming the first word that is left behind the options, if there is one. */
int sim_no_operands(int argc, char **argv, struct err *err);

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
