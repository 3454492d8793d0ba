/* SPDX-License-Identifier: Apache-2.0 */
#include "store/row.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

struct row row_begin(sqlite3_stmt *stmt, const char *table, struct err *err)
{
    int64_t key = 0;
    if (sqlite3_column_type(stmt, 0) == SQLITE_INTEGER)
        key = sqlite3_column_int64(stmt, 0);
    return (struct row){.stmt = stmt, .table = table, .key = key, .err = err};
}

int row_refuse(struct row *row, const char *column, const char *expected)
{
    if (row->status == 0)
        row->status = err_set(row->err, -EUCLEAN, ERR_INTERNAL, NULL,
                              "restore the data folder from a backup, or correct the row with "
                              "sqlite3 while the server is stopped",
                              "stored row %lld of '%s' is damaged: '%s' is not %s",
                              (long long)row->key, row->table, column, expected);
    return row->status;
}

int64_t row_int(struct row *row, const char *name, int64_t min, int64_t max)
{
    int i = row->column++;
    if (row->status < 0)
        return 0;
    if (sqlite3_column_type(row->stmt, i) != SQLITE_INTEGER) {
        row_refuse(row, name, "a number");
        return 0;
    }
    int64_t v = sqlite3_column_int64(row->stmt, i);
    if (v < min || v > max) {
        row_refuse(row, name, "in its range");
        return 0;
    }
    return v;
}

int32_t row_i32(struct row *row, const char *name)
{
    return (int32_t)row_int(row, name, INT32_MIN, INT32_MAX);
}

int32_t row_count(struct row *row, const char *name)
{
    return (int32_t)row_int(row, name, 0, INT32_MAX);
}

int64_t row_i64(struct row *row, const char *name)
{
    return row_int(row, name, 0, INT64_MAX);
}

uint64_t row_id(struct row *row, const char *name)
{
    if (sqlite3_column_type(row->stmt, row->column) == SQLITE_NULL) {
        row->column++;
        return 0;
    }
    return (uint64_t)row_int(row, name, 0, INT64_MAX);
}

const char *row_text_or_null(struct row *row, const char *name)
{
    int i = row->column++;
    if (row->status < 0)
        return NULL;
    int type = sqlite3_column_type(row->stmt, i);
    if (type == SQLITE_NULL)
        return NULL;
    const char *text = (const char *)sqlite3_column_text(row->stmt, i);
    size_t len = (size_t)sqlite3_column_bytes(row->stmt, i);
    if (type != SQLITE_TEXT || !text || strlen(text) != len || !text_is_utf8(text, len)) {
        row_refuse(row, name, "a text");
        return NULL;
    }
    return text;
}

const char *row_text(struct row *row, const char *name)
{
    const char *text = row_text_or_null(row, name);
    if (!text)
        row_refuse(row, name, "a text");
    return text;
}
