/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line's own state: where to write, how it may look, whom to ask.
 *
 * One `struct cli` lives for one invocation, on one thread. Commands get it from cli_main();
 * tests build one with memory streams and a fixed clock. Strings that a command makes live in
 * its arena, until the program ends.
 *
 * Errors: functions return 0 or a negative errno and fill a struct err; a command ends with
 * `return cli_fail(cli, &err)`, which prints
 *     allot: gpu '1.5' is out of range
 *     hint: use 0.001 to 0.999, or a whole number
 * wrapped at words where it stands on a terminal. A field is added where it leads somewhere the
 * text does not: "(tasks[3].gpu)".
 * Text that came from elsewhere is made harmless for a terminal before it is printed
 * (cli_safe(), and the tables do it themselves); only task output is passed through.
 *
 *     int main(int argc, char **argv) { return cli_main(argc, argv, extra); }
 */
#ifndef ALLOT_CLI_CLI_H
#define ALLOT_CLI_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/err.h"
#include "cli/command.h"
#include "cli/config.h"
#include "cli/style.h"

struct http_client;

struct cli {
    FILE *out, *err;
    int out_error;          /* of the first write to `out` that failed, positive; 0 = none */
    struct cli_style style; /* of `out` */
    bool json;              /* -o json */
    bool err_tty;           /* is `err` a terminal: may a line be rewritten in place? */
    int err_width;          /* columns of `err`, where that is a terminal; 0 = do not wrap */
    bool in_tty;            /* may a question be asked? */
    int64_t fixed_now_ms;   /* 0 = the wall clock; tests set it */
    struct cli_config config;
    struct http_client *client; /* made on first use; see session.h */
    struct arena arena;
    const struct cli_command *const *commands; /* all, NULL-terminated */
};

/*
 * The program: finds the command, parses, runs. EXTRA (NULL-terminated, may be NULL) are further
 * commands; one with the name of a built-in command takes its place. Returns the exit code.
 */
int cli_main(int argc, char **argv, const struct cli_command *const *extra);

/* Parses and runs one command line (without the program's name) in CLI. For tests. */
int cli_run(struct cli *cli, int argc, const char *const *argv);

/* The built-in commands, NULL-terminated, in the order of the overview. */
extern const struct cli_command *const cli_builtin_commands[];

/* The entry called NAME ("run", "team set"), or NULL. */
const struct cli_command *cli_find_command(const struct cli *cli, const char *name);

/* Prints ERR and its remedy; CLI_EXIT_FAILED. */
int cli_fail(struct cli *cli, const struct err *err);
/* Likewise for a wrong command line; CLI_EXIT_USAGE. */
int cli_fail_usage(struct cli *cli, const struct err *err);

/* Writes DATA to cli->out, as it is. 0 or negative errno, also of an earlier write. */
int cli_write(struct cli *cli, const char *data, size_t len);

/*
 * Writes out what has been printed. Negative errno once a write has failed, now or before: what
 * prints without end then stops. That it failed is said at the end, for all commands.
 */
int cli_flush(struct cli *cli);

/* "allot: TEXT" on cli->err, wrapped where that is a terminal. TEXT is safe. */
void cli_say(struct cli *cli, const char *text);

/*
 * Between the two, what is made in cli->arena is released again at the end: for commands that go
 * on for days.
 *     struct arena kept = cli_scratch_begin(cli);
 *     ...
 *     cli_scratch_end(cli, &kept);
 */
struct arena cli_scratch_begin(struct cli *cli);
void cli_scratch_end(struct cli *cli, const struct arena *kept);

/* Milliseconds since 1970. */
int64_t cli_now_ms(const struct cli *cli);

/* Control characters and invalid UTF-8 replaced by '?'; NULL becomes "". In the arena. */
const char *cli_safe(struct cli *cli, const char *text);

#endif
