/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands as data.
 *
 * Every command of the program is one constant `struct cli_command` in a file of its own. The
 * entry is all there is to know about it: parsing, --help, the man page, shell completion and
 * suggestions are made from the same table, so that none of them can be out of date. A command
 * with subcommands (`allot team set`) holds their entries; the first of them runs when none is
 * named. bin adds commands of its own (`server`, `sim`) by passing their entries to cli_main().
 *
 * run() returns the exit code of the program: 0, or one of CLI_EXIT_*. It writes to cli->out and
 * cli->err only, never calls exit(), and owns nothing of what it is given.
 *
 *     static int run(struct cli *cli, const struct cli_args *args) { ... }
 *     static const struct cli_option options[] = {
 *         {.name = "grace", .arg = "TIME", .help = "time between SIGTERM and SIGKILL"},
 *         {0},
 *     };
 *     const struct cli_command cli_stop = {
 *         .name = "stop", .group = CLI_ACT, .summary = "stop workloads", .usage = "ID...",
 *         .options = options,
 *         .min_operands = 1, .max_operands = CLI_MANY, .operand = CLI_COMPLETE_WORKLOAD,
 *         .run = run,
 *     };
 */
#ifndef ALLOT_CLI_COMMAND_H
#define ALLOT_CLI_COMMAND_H

#include <stddef.h>

struct cli;
struct cli_args;

/* Exit codes. Where the code of a task is passed on (run, exec), a failure of allot itself
 * before that is CLI_EXIT_OWN, so that the two cannot be mixed up. */
#define CLI_EXIT_FAILED 1 /* the server refused, or could not be reached */
#define CLI_EXIT_USAGE 2  /* the command line is wrong */
#define CLI_EXIT_OWN 125
#define CLI_EXIT_INTERRUPTED 130

#define CLI_MANY (-1)

/* Sections of the overview, in its order. */
enum cli_group { CLI_WORK, CLI_SEE, CLI_ACT, CLI_MANAGE, CLI_SETUP, CLI_GROUP_COUNT };

/* What a word on the command line stands for, for completion. Dynamic kinds ask the server. */
enum cli_complete {
    CLI_COMPLETE_NONE,
    CLI_COMPLETE_FILE,
    CLI_COMPLETE_WORDS, /* those in `words` */
    CLI_COMPLETE_COMMAND,
    CLI_COMPLETE_WORKLOAD,
    CLI_COMPLETE_TEAM,
    CLI_COMPLETE_NODE,
    CLI_COMPLETE_USER,
    CLI_COMPLETE_COUNT
};

/* A table of these ends with an empty entry. */
struct cli_option {
    const char *name; /* long name without dashes; NULL = `help` is a heading */
    char letter;      /* short name, or 0 */
    const char *arg;  /* what the value is called in help: "TIME"; NULL = takes no value */
    const char *help; /* one phrase, lower case, no full stop */
    enum cli_complete complete;
    const char *words; /* CLI_COMPLETE_WORDS: separated by blanks; other values are refused */
};

struct cli_command {
    const char *name;
    enum cli_group group;
    const char *summary;              /* one phrase, lower case, no full stop */
    const char *usage;                /* what follows the name: "[OPTIONS] ID..." */
    const char *description;          /* paragraphs, separated by empty lines; wrapped when shown */
    const char *examples;             /* lines; those that begin with '#' explain the next */
    const char *exit_codes;           /* lines "CODE meaning", or NULL = 0, 1, 2 as usual */
    const struct cli_option *options; /* may be NULL */
    const struct cli_option *shared_options;      /* a table that several commands use, or NULL */
    const struct cli_command *const *subcommands; /* NULL-terminated, or NULL */
    int min_operands, max_operands;               /* CLI_MANY = no upper bound */
    /* > 0: after command_at - 1 operands everything that follows is a command line for a task,
     * options included. "--" may stand before it. */
    int command_at;
    enum cli_complete operand;
    const char *operand_words;
    int section; /* of the manual; 0 = 1 */
    int (*run)(struct cli *cli, const struct cli_args *args);
};

#endif
