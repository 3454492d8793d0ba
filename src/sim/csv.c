/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/csv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/qty.h"
#include "base/text.h"

static int fail_line(const struct csv *c, struct err *err, const char *remedy, const char *what)
{
    return err_set(err, -EINVAL, ERR_INVALID, NULL, remedy, "'%s:%zu': %s", c->path, c->line, what);
}

int csv_fail(const struct csv *c, size_t column, struct err *err, const char *remedy,
             const char *what)
{
    return err_set(err, -EINVAL, ERR_INVALID, c->header.items[column], remedy,
                   "'%s:%zu': %s '%.60s' %s", c->path, c->line, c->header.items[column],
                   csv_text(c, column), what);
}

/* Cuts a quoted field out of the line, in place; NULL where the quotes are wrong. */
static char *cut_quoted(char **at, char *end)
{
    char *from = *at + 1, *to = from, *text = from;
    for (; from < end; from++) {
        if (*from == '"') {
            if (from + 1 == end || from[1] != '"')
                break;
            from++;
        }
        *to++ = *from;
    }
    if (from == end || (from + 1 < end && from[1] != ','))
        return NULL;
    *to = '\0';
    *at = from + 1;
    return text;
}

static char *cut_plain(char **at, char *end)
{
    char *text = *at;
    char *comma = memchr(text, ',', (size_t)(end - text));
    *at = comma != NULL ? comma : end;
    return text;
}

/* Splits the line at c->next, ends each field with NUL and goes to the next line. */
static int split_line(struct csv *c, struct err *err)
{
    char *at = c->next;
    char *newline = memchr(at, '\n', (size_t)(c->end - at));
    char *end = newline != NULL ? newline : c->end;
    c->next = newline != NULL ? newline + 1 : c->end;
    c->line++;
    if (end > at && end[-1] == '\r')
        end--;
    if (end == at)
        return fail_line(c, err, "remove it", "the line is empty");
    for (const char *p = at; p < end; p++)
        if ((unsigned char)*p < ' ' || *p == 127)
            return fail_line(c, err, "give plain text", "a control character");
    if (!text_is_utf8(at, (size_t)(end - at)))
        return fail_line(c, err, "store the file as UTF-8", "invalid UTF-8");
    vec_clear(&c->fields);
    for (bool more = true; more;) {
        char *field = at < end && *at == '"' ? cut_quoted(&at, end) : cut_plain(&at, end);
        if (field == NULL)
            return fail_line(c, err, "close the quote before the comma or the end of the line",
                             "a quoted field does not end");
        if (c->fields.len == CSV_COLUMNS_MAX)
            return fail_line(c, err, "give fewer", "too many columns");
        vec_push(&c->fields, field);
        more = at < end;
        *at++ = '\0'; /* a comma, or the end of the line: the text ends in NUL */
    }
    return 0;
}

static int read_header(struct csv *c, struct err *err)
{
    if (c->next == c->end)
        return err_set(err, -EINVAL, ERR_INVALID, NULL, "name the columns in the first line",
                       "'%s' is empty", c->path);
    int r = split_line(c, err);
    for (size_t i = 0; r >= 0 && i < c->fields.len; i++)
        vec_push(&c->header, c->fields.items[i]);
    return r;
}

int csv_open(struct csv *c, const char *path, struct err *err)
{
    *c = (struct csv){0};
    size_t len;
    int r = io_read_file(AT_FDCWD, path, CSV_BYTES_MAX, &c->text, &len);
    if (r < 0)
        return err_set(err, r, r == -ENOENT ? ERR_NOT_FOUND : ERR_INVALID, NULL,
                       "give the path of a readable CSV file", "cannot read '%.300s': %s", path,
                       strerror(-r));
    c->next = c->text;
    c->end = c->text + len;
    c->path = strdup(path);
    if (c->path == NULL)
        abort(); /* as in base/arena.h */
    r = read_header(c, err);
    if (r < 0)
        csv_close(c);
    return r;
}

void csv_close(struct csv *c)
{
    free(c->path);
    free(c->text);
    vec_done(&c->header);
    vec_done(&c->fields);
    *c = (struct csv){0};
}

int csv_column(const struct csv *c, const char *name, size_t *ret_column, struct err *err)
{
    for (size_t i = 0; i < c->header.len; i++) {
        if (strcmp(c->header.items[i], name) != 0)
            continue;
        *ret_column = i;
        return 0;
    }
    return err_set(err, -ENOENT, ERR_MISSING, name, "see the header of the public file",
                   "'%s' has no column '%s'", c->path, name);
}

/* Is nothing left but line ends? */
static bool only_blank(const struct csv *c)
{
    const char *at = c->next;
    while (at < c->end && (*at == '\n' || *at == '\r'))
        at++;
    return at == c->end;
}

int csv_next(struct csv *c, struct err *err)
{
    if (only_blank(c))
        return 0;
    int r = split_line(c, err);
    if (r < 0)
        return r;
    if (c->fields.len != c->header.len)
        return err_set(err, -EINVAL, ERR_INVALID, NULL, "give every column of the header",
                       "'%s:%zu': %zu fields instead of %zu", c->path, c->line, c->fields.len,
                       c->header.len);
    return 1;
}

int csv_int(const struct csv *c, size_t column, int64_t min, int64_t max, int64_t *ret_value,
            struct err *err)
{
    const char *text = csv_text(c, column);
    char digits[32];
    size_t n = strspn(text, "0123456789");
    bool whole = text[n] == '\0' || (text[n] == '.' && text[n + 1] != '\0' &&
                                     strspn(text + n + 1, "0") == strlen(text + n + 1));
    if (n == 0 || n >= sizeof(digits) || !whole)
        return csv_fail(c, column, err, "give a whole number", "is not a whole number");
    memcpy(digits, text, n);
    digits[n] = '\0';
    int64_t value;
    if (qty_parse_int(digits, &value, NULL) < 0 || value < min || value > max) {
        err_set(err, -ERANGE, ERR_OUT_OF_RANGE, c->header.items[column], "check the file",
                "'%s:%zu': %s '%.60s' is not within %lld to %lld", c->path, c->line,
                c->header.items[column], text, (long long)min, (long long)max);
        return -ERANGE;
    }
    *ret_value = value;
    return 0;
}
