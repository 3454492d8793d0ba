/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One SQLite connection: opening with the store's settings, prepared statements, and the
 * translation of SQLite's errors.
 *
 * A connection belongs to one thread at a time (it is opened without SQLite's own mutex).
 * Prepared statements are kept per connection under their text. Texts depend on what clients
 * filter by, so there is a limit: a text that finds the table full empties it.
 *
 * Pages are cached in DB_CACHE_KIB; the operating system's cache holds the rest, which keeps an
 * idle server small. Memory mapping stays off: an I/O error under it would be a signal.
 */
#ifndef ALLOT_STORE_DB_H
#define ALLOT_STORE_DB_H

#include <stdbool.h>
#include <sqlite3.h>

#include "base/err.h"
#include "base/map.h"

#define DB_STATEMENTS_MAX 64
#define DB_WRITER_CACHE_KIB 4096
#define DB_READER_CACHE_KIB 1024
#define DB_BUSY_TIMEOUT_MS 5000

enum db_role { DB_WRITER, DB_READER, DB_ARCHIVE }; /* ARCHIVE: not even the log is written */

struct db {
    sqlite3 *handle;
    const char *path; /* for messages; owned by the store */
    struct map statements;
};

/* Opens the existing file PATH. VFS NULL = default. On failure DB is closed already. */
int db_open(struct db *db, const char *path, const char *vfs, enum db_role role, struct err *err);
/* Finalizes all statements and closes; a closed or zeroed DB is fine. */
void db_close(struct db *db);

/* The statement for SQL, reset and ready to bind; give it back with db_release() before the next
 * one is asked for. */
int db_prepare(struct db *db, const char *sql, sqlite3_stmt **ret_stmt, struct err *err);
/* Ends its use; NULL is fine. */
void db_release(sqlite3_stmt *stmt);

/* Runs SQL (one or more statements, no results wanted). */
int db_exec(struct db *db, const char *sql, struct err *err);
/* The first column of the first row as a number. SQL is prepared for this one use. */
int db_query_int(struct db *db, const char *sql, sqlite3_int64 *ret_value, struct err *err);

/* Translates the connection's last error RC (not OK, ROW, DONE); returns the negative errno. */
int db_error(struct db *db, int rc, struct err *err);
/* Did RC come from the rows of one txn, so that the rest of the group may go on? */
bool db_error_is_of_row(int rc);

#endif
