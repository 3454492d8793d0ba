/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A strict reader of comma-separated tables.
 *
 * Purpose. Public traces come as CSV. A column that is missing, a row that is cut short or a
 * number that is none must be an error that names file and line, never a benchmark that silently
 * measures something else.
 *
 * Format. The first line names the columns; every further line has exactly as many fields. A
 * field may stand in double quotes, with "" for a quote inside; line breaks inside quotes, text
 * after a closing quote, control characters and invalid UTF-8 are refused. Lines end in LF or
 * CR LF; the last one may lack its end. Blank lines are refused, but for the end of the file.
 *
 * Ownership. The reader owns the file's text; field texts point into it and live until
 * csv_close(), so a loader may keep them as long as it keeps the reader. One thread at a time.
 *
 *     _cleanup_(csv_close) struct csv c = {0};
 *     size_t name, gpus;
 *     int r = csv_open(&c, path, err);
 *     if (r < 0 || (r = csv_column(&c, "sn", &name, err)) < 0 || ...)
 *         return r;
 *     while ((r = csv_next(&c, err)) > 0) {
 *         int64_t count;
 *         if ((r = csv_int(&c, gpus, 0, 1024, &count, err)) < 0)
 *             return r;
 *     }
 */
#ifndef ALLOT_SIM_CSV_H
#define ALLOT_SIM_CSV_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/vec.h"

#define CSV_BYTES_MAX (1L << 30)
#define CSV_COLUMNS_MAX 1024

struct csv {
    char *path, *text; /* owned */
    char *next, *end;  /* of the text that is not read yet */
    size_t line;       /* of the current row, from 1 */
    VEC(char *) header, fields;
};

/* Reads the file and its header. 0 or a negative errno; C needs no csv_close() then. */
int csv_open(struct csv *c, const char *path, struct err *err);
/* Releases everything; a zeroed reader is fine. */
void csv_close(struct csv *c);

/* Index of the column NAME; -ENOENT. */
int csv_column(const struct csv *c, const char *name, size_t *ret_column, struct err *err);
/* The next row: 1, or 0 at the end, or -EINVAL. */
int csv_next(struct csv *c, struct err *err);

/* Field of the current row. "" where nothing stands. */
static inline const char *csv_text(const struct csv *c, size_t column)
{
    return c->fields.items[column];
}
/* A whole number within MIN..MAX; "3.0" counts as one, as tables written by data tools have it.
 * -EINVAL or -ERANGE. */
int csv_int(const struct csv *c, size_t column, int64_t min, int64_t max, int64_t *ret_value,
            struct err *err);
/* Fills ERR with file, line and column of the current row; returns -EINVAL. */
int csv_fail(const struct csv *c, size_t column, struct err *err, const char *remedy,
             const char *what);

#endif
