/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parser of command lines, driven by the option tables in command.h.
 *
 *   --name VALUE, --name=VALUE, -n VALUE, -nVALUE, -abc for three flags, and -- before operands.
 *
 * Options and operands may be mixed, except that a command line for a task (command_at) begins
 * at its first word and is kept as it is. An option may be repeated; cli_option_value() gives
 * the last, cli_option_each() all. Names are never abbreviated: a script must not change its
 * meaning when an option is added. What is not known is refused with the nearest known name.
 *
 * Values point into argv. A cli_args is released with cli_args_done().
 */
#ifndef ALLOT_CLI_OPTIONS_H
#define ALLOT_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/vec.h"
#include "cli/command.h"

struct cli_given {
    const struct cli_option *option;
    const char *value; /* NULL for a flag */
};

struct cli_args {
    const struct cli_command *command;
    VEC(struct cli_given) given;
    VEC(const char *) operands;
    const char *const *command_line; /* of the task, NULL-terminated; NULL when there is none */
    size_t command_count;
};

/* Accepted by every command: --server, --token, --output, --no-color, --help. */
extern const struct cli_option cli_common_options[];

/* The tables of a command: its own, the shared one, the common ones; an empty table where it has
 * none. Walk each until cli_option_is_end(). */
#define CLI_OPTION_SETS 3
const struct cli_option *cli_option_set(const struct cli_command *c, int set);
bool cli_option_is_end(const struct cli_option *o);

/*
 * Parses ARGV[0..ARGC), the words after the command's name, for COMMAND. 0, or -EINVAL with ERR:
 * unknown option, missing value, a value that is not one of the option's words, too few or too
 * many operands (not checked when --help is given). RET_ARGS is valid on success only.
 */
int cli_args_parse(const struct cli_command *command, int argc, const char *const *argv,
                   struct cli_args *ret_args, struct err *err);
void cli_args_done(struct cli_args *args);
/* Adds option NAME with VALUE, which lives as long, as if it had been given. */
void cli_option_give(struct cli_args *args, const char *name, const char *value);

/* The last value given for option NAME, or NULL. NAME must be in the table (asserted). */
const char *cli_option_value(const struct cli_args *args, const char *name);
/* Was it given? */
bool cli_option_given(const struct cli_args *args, const char *name);
/* Its value as a point in time; see clock_parse_utc(). Where it was not given, RET_MS stays as
 * it is. -EINVAL with ERR. */
int cli_option_time(const struct cli_args *args, const char *name, int64_t *ret_ms,
                    struct err *err);
/* Likewise as a duration in milliseconds. */
int cli_option_duration(const struct cli_args *args, const char *name, int64_t *ret_ms,
                        struct err *err);
/* Likewise as a whole number MIN..MAX; MAX INT64_MAX = no bound. */
int cli_option_number(const struct cli_args *args, const char *name, int64_t min, int64_t max,
                      int64_t *ret_value, struct err *err);
/* Visits every value in order: `size_t it = 0; while ((v = cli_option_each(args, "env", &it)))`. */
const char *cli_option_each(const struct cli_args *args, const char *name, size_t *it);

#endif
