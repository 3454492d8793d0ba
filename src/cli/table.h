/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables for people, through libsmartcols.
 *
 * On a terminal the table fits its width: columns marked CLI_COLUMN_CUT are shortened first. In
 * a pipe every cell is whole and columns are plain text. Control characters in cells are shown
 * as escapes by the library, so hostile names cannot steer the terminal. Cells are copied.
 *
 *     static const struct cli_column columns[] = {{"ID", CLI_COLUMN_RIGHT}, {"NAME"}};
 *     struct cli_table *t = cli_table_new(cli, columns, ARRAY_LEN(columns));
 *     cli_table_row(t, NULL);
 *     cli_table_cell(t, "81", CLI_PLAIN);
 *     cli_table_cell(t, name, CLI_BOLD);
 *     cli_table_end(t);  // prints and releases
 */
#ifndef ALLOT_CLI_TABLE_H
#define ALLOT_CLI_TABLE_H

#include <stddef.h>

#include "cli/style.h"

struct cli;
struct cli_table;
struct libscols_line;

enum cli_column_flag {
    CLI_COLUMN_RIGHT = 1,
    CLI_COLUMN_CUT = 2, /* may be shortened to fit the terminal */
    CLI_COLUMN_TREE = 4 /* shows the rows' parents */
};

struct cli_column {
    const char *title;
    int flags; /* of enum cli_column_flag */
};

/* An empty table; COLUMNS need not outlive the call. */
struct cli_table *cli_table_new(struct cli *cli, const struct cli_column *columns, size_t count);
/* Begins a row; PARENT (NULL = top) matters with CLI_COLUMN_TREE. */
struct libscols_line *cli_table_row(struct cli_table *t, struct libscols_line *parent);
/* The next cell of the row; NULL becomes "-". */
void cli_table_cell(struct cli_table *t, const char *text, enum cli_color color);
/* Prints to cli->out and releases T. */
void cli_table_end(struct cli_table *t);

#endif
