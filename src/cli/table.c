/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table.h"

#include <libsmartcols/libsmartcols.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/text.h"
#include "base/vec.h"
#include "cli/cli.h"

#define EMPTY "-"    /* a cell that says nothing */
#define GAP 2        /* blanks between columns */
#define CUT_MIN 8    /* columns are not cut below this */
#define TREE_WIDTH 2 /* of one level */

struct cell {
    const char *text;
    enum cli_color color;
};

struct row {
    size_t parent;
    int depth;
    struct cell *cells;
};

struct cli_table {
    struct cli *cli;
    const struct cli_column *columns;
    size_t column_count, next; /* next: cell of the row under way */
    VEC(struct row) rows;
};

/* Out of memory aborts, as in base/arena.h. */
static void need(bool ok)
{
    if (!ok)
        abort();
}

/* Width and length of the character at S; what is not one counts as a byte of width 1. */
static int char_width(const char *s, size_t left, size_t *ret_len)
{
    mbstate_t state = {0};
    wchar_t c;
    size_t len = text_utf8_len(s, left);
    int width;

    if (len <= 1) {
        *ret_len = 1;
        return 1;
    }
    *ret_len = len;
    if (mbrtowc(&c, s, len, &state) != len)
        return 1;
    width = wcwidth(c);
    return width >= 0 ? width : 1;
}

int cli_text_width(const char *text)
{
    size_t left = strlen(text), len;
    int width = 0;

    for (; left > 0; text += len, left -= len)
        width += char_width(text, left, &len);
    return width;
}

struct cli_table *cli_table_new(struct cli *cli, const struct cli_column *columns, size_t count)
{
    struct cli_table *t = arena_new(&cli->arena, struct cli_table);

    t->cli = cli;
    t->columns = columns;
    t->column_count = count;
    return t;
}

size_t cli_table_row(struct cli_table *t, size_t parent)
{
    struct row row = {.parent = parent};

    if (parent != CLI_TABLE_TOP)
        row.depth = t->rows.items[parent].depth + 1;
    row.cells = arena_new_array(&t->cli->arena, struct cell, t->column_count);
    for (size_t i = 0; i < t->column_count; i++)
        row.cells[i].text = EMPTY;
    vec_push(&t->rows, row);
    t->next = 0;
    return t->rows.len - 1;
}

void cli_table_cell(struct cli_table *t, const char *text, enum cli_color color)
{
    struct cell *cell = &t->rows.items[t->rows.len - 1].cells[t->next];

    need(t->next < t->column_count);
    t->next++;
    cell->text = text && *text ? cli_safe(t->cli, text) : EMPTY;
    cell->color = color;
}

/* ---- layout -------------------------------------------------------------------------------- */

static int cell_width(const struct cli_table *t, const struct row *row, size_t column)
{
    int width = cli_text_width(row->cells[column].text);

    return t->columns[column].flags & CLI_COLUMN_TREE ? width + row->depth * TREE_WIDTH : width;
}

static int column_width(const struct cli_table *t, size_t column)
{
    int width = cli_text_width(t->columns[column].title);

    for (size_t i = 0; i < t->rows.len; i++) {
        int w = cell_width(t, &t->rows.items[i], column);

        if (w > width)
            width = w;
    }
    return width;
}

/* TEXT in at most WIDTH columns, the last of them an ellipsis. */
static const char *shorten(struct cli *cli, const char *text, int width)
{
    size_t at = 0, left = strlen(text), len;
    int used = 0;

    while (at < left) {
        int w = char_width(text + at, left - at, &len);

        if (used + w > width - 1)
            break;
        used += w;
        at += len;
    }
    return arena_printf(&cli->arena, "%.*s%s", (int)at, text, cli->style.unicode ? "\u2026" : "~");
}

static void cut_column(struct cli_table *t, size_t column, int width)
{
    for (size_t i = 0; i < t->rows.len; i++) {
        struct row *row = &t->rows.items[i];
        int too_much = cell_width(t, row, column) - width;

        if (too_much > 0)
            row->cells[column].text = shorten(t->cli, row->cells[column].text,
                                              cli_text_width(row->cells[column].text) - too_much);
    }
}

/* The widest column that may still be cut, the last of equals; column_count where none may. */
static size_t widest(const struct cli_table *t, const int *widths)
{
    size_t best = t->column_count;

    for (size_t i = 0; i < t->column_count; i++) {
        int floor = cli_text_width(t->columns[i].title);

        if (!(t->columns[i].flags & CLI_COLUMN_CUT) ||
            widths[i] <= (floor > CUT_MIN ? floor : CUT_MIN))
            continue;
        if (best == t->column_count || widths[i] >= widths[best])
            best = i;
    }
    return best;
}

/* Takes what is too wide from the widest columns, so that none is cut while another has more. */
static void fit(struct cli_table *t)
{
    int *widths = arena_new_array(&t->cli->arena, int, t->column_count);
    int total = -GAP;

    for (size_t i = 0; i < t->column_count; i++) {
        widths[i] = column_width(t, i);
        total += widths[i] + GAP;
    }
    for (size_t at; total > t->cli->style.width; total--) {
        at = widest(t, widths);
        if (at == t->column_count)
            break;
        widths[at]--;
    }
    for (size_t i = 0; i < t->column_count; i++)
        cut_column(t, i, widths[i]);
}

/* ---- printing ------------------------------------------------------------------------------ */

static struct libscols_table *make_table(struct cli_table *t)
{
    const struct cli_style *style = &t->cli->style;
    struct libscols_table *out = scols_new_table();

    need(out != NULL);
    scols_table_set_stream(out, t->cli->out);
    scols_table_enable_colors(out, style->color);
    scols_table_enable_ascii(out, !style->unicode);
    scols_table_enable_minout(out, 1);
    scols_table_set_column_separator(out, "  ");
    /* the layout is done: nothing is left for the library to shorten */
    scols_table_set_termforce(out, SCOLS_TERMFORCE_NEVER);
    for (size_t i = 0; i < t->column_count; i++) {
        int flags = t->columns[i].flags;
        struct libscols_column *c =
            scols_table_new_column(out, t->columns[i].title, 0,
                                   (flags & CLI_COLUMN_RIGHT ? SCOLS_FL_RIGHT : 0) |
                                       (flags & CLI_COLUMN_TREE ? SCOLS_FL_TREE : 0));

        need(c != NULL);
        if (style->color)
            scols_cell_set_color(scols_column_get_header(c), cli_style_begin(style, CLI_DIM));
    }
    return out;
}

static void add_row(struct cli_table *t, struct libscols_line *line, const struct row *row)
{
    for (size_t i = 0; i < t->column_count; i++) {
        const struct cell *cell = &row->cells[i];

        need(scols_line_set_data(line, i, cell->text) == 0);
        if (cell->color != CLI_PLAIN && t->cli->style.color)
            scols_cell_set_color(scols_line_get_cell(line, i),
                                 cli_style_begin(&t->cli->style, cell->color));
    }
}

void cli_table_end(struct cli_table *t)
{
    struct libscols_line **lines =
        arena_new_array(&t->cli->arena, struct libscols_line *, t->rows.len + 1);
    struct libscols_table *out;

    if (t->cli->style.tty)
        fit(t);
    out = make_table(t);
    for (size_t i = 0; i < t->rows.len; i++) {
        const struct row *row = &t->rows.items[i];

        lines[i] =
            scols_table_new_line(out, row->parent == CLI_TABLE_TOP ? NULL : lines[row->parent]);
        need(lines[i] != NULL);
        add_row(t, lines[i], row);
    }
    fflush(t->cli->out);
    scols_print_table(out);
    scols_unref_table(out);
    vec_done(&t->rows);
}
