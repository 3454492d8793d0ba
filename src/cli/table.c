/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table.h"

#include <libsmartcols/libsmartcols.h>
#include <stdlib.h>

#include "cli/cli.h"

struct cli_table {
    struct cli *cli;
    struct libscols_table *table;
    struct libscols_line *line;
    size_t columns, next; /* of the current row */
};

/* Out of memory aborts, as in base/arena.h. */
static void need(bool ok)
{
    if (!ok)
        abort();
}

static int column_flags(const struct cli *cli, int flags)
{
    int out = 0;

    if (flags & CLI_COLUMN_RIGHT)
        out |= SCOLS_FL_RIGHT;
    if (flags & CLI_COLUMN_TREE)
        out |= SCOLS_FL_TREE;
    if ((flags & CLI_COLUMN_CUT) && cli->style.tty)
        out |= SCOLS_FL_TRUNC;
    return out;
}

struct cli_table *cli_table_new(struct cli *cli, const struct cli_column *columns, size_t count)
{
    struct cli_table *t = arena_new(&cli->arena, struct cli_table);

    t->cli = cli;
    t->columns = count;
    t->table = scols_new_table();
    need(t->table != NULL);
    scols_table_set_stream(t->table, cli->out);
    scols_table_enable_colors(t->table, cli->style.color);
    scols_table_enable_ascii(t->table, !cli->style.unicode);
    scols_table_enable_minout(t->table, 1);
    scols_table_set_column_separator(t->table, "  ");
    if (cli->style.tty) {
        scols_table_set_termforce(t->table, SCOLS_TERMFORCE_ALWAYS);
        scols_table_set_termwidth(t->table, (size_t)cli->style.width);
    } else {
        scols_table_set_termforce(t->table, SCOLS_TERMFORCE_NEVER);
    }
    for (size_t i = 0; i < count; i++) {
        struct libscols_column *c = scols_table_new_column(t->table, columns[i].title, 0,
                                                           column_flags(cli, columns[i].flags));
        struct libscols_cell *header;

        need(c != NULL);
        header = scols_column_get_header(c);
        if (cli->style.color)
            scols_cell_set_color(header, "\033[2m");
    }
    return t;
}

struct libscols_line *cli_table_row(struct cli_table *t, struct libscols_line *parent)
{
    t->line = scols_table_new_line(t->table, parent);
    need(t->line != NULL);
    t->next = 0;
    return t->line;
}

void cli_table_cell(struct cli_table *t, const char *text, enum cli_color color)
{
    size_t column = t->next++;

    need(column < t->columns);
    need(scols_line_set_data(t->line, column, text && *text ? text : "-") == 0);
    if (color != CLI_PLAIN && t->cli->style.color)
        scols_cell_set_color(scols_line_get_cell(t->line, column),
                             cli_style_begin(&t->cli->style, color));
}

void cli_table_end(struct cli_table *t)
{
    fflush(t->cli->out);
    scols_print_table(t->table);
    scols_unref_table(t->table);
}
