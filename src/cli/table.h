/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables for people, laid out here and printed through libsmartcols.
 *
 * On a terminal the table fits its width: what is too wide is taken from the columns marked
 * CLI_COLUMN_CUT, the widest of them first, and cut cells end with an ellipsis. In a pipe every
 * cell is whole and columns are plain text. Cells are copied, and made harmless for a terminal.
 *
 *     static const struct cli_column columns[] = {{"ID", CLI_COLUMN_RIGHT}, {"NAME"}};
 *     struct cli_table *t = cli_table_new(cli, columns, ARRAY_LEN(columns));
 *     cli_table_row(t, CLI_TABLE_TOP);
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

enum cli_column_flag {
    CLI_COLUMN_RIGHT = 1,
    CLI_COLUMN_CUT = 2, /* may be shortened to fit the terminal */
    CLI_COLUMN_TREE = 4 /* shows the rows' parents */
};

struct cli_column {
    const char *title; /* static */
    int flags;         /* of enum cli_column_flag */
};

/* The parent of a row that has none. */
#define CLI_TABLE_TOP ((size_t)-1)

/* An empty table; COLUMNS must live until cli_table_end(). */
struct cli_table *cli_table_new(struct cli *cli, const struct cli_column *columns, size_t count);
/* Begins a row and returns its number; PARENT (a number, or CLI_TABLE_TOP) matters with
 * CLI_COLUMN_TREE. */
size_t cli_table_row(struct cli_table *t, size_t parent);
/* The next cell of the row. NULL and "" become "-", and so do cells that are left out. */
void cli_table_cell(struct cli_table *t, const char *text, enum cli_color color);
/* Prints to cli->out and releases T. */
void cli_table_end(struct cli_table *t);

/* Columns of a terminal that TEXT takes. */
int cli_text_width(const char *text);

#endif
