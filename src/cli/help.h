/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that is made from the command tables for people to read: the overview, the help of
 * a command, its manual page, and completion scripts for shells.
 */
#ifndef ALLOT_CLI_HELP_H
#define ALLOT_CLI_HELP_H

#include <stdio.h>

#include "base/err.h"
#include "cli/command.h"

struct cli;

/* "Run work", ...: the heading of a group. */
const char *cli_group_title(enum cli_group group);
/* The last word of a command's name: "set" of "team set". */
const char *cli_command_word(const struct cli_command *c);

/* `allot help`: every command with its summary. */
void cli_help_overview(struct cli *cli);
/* `allot help NAME`. */
void cli_help_command(struct cli *cli, const struct cli_command *c);

/* The manual page of C in roff, with its subcommands; C NULL = allot(1). */
void cli_man_page(struct cli *cli, const struct cli_command *c, FILE *out);
/* All pages into FOLDER/man1 and FOLDER/man8, which are made. */
int cli_man_write_all(struct cli *cli, const char *folder, struct err *err);

/* A completion script. */
void cli_completion_bash(struct cli *cli, FILE *out);
void cli_completion_zsh(struct cli *cli, FILE *out);
/* "workload": the word for a dynamic kind, as `allot completion --words` takes it; NULL for the
 * static ones. */
const char *cli_complete_kind(enum cli_complete complete);

#endif
