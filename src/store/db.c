/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

/* What a primary result code means here; the text follows "store 'PATH'". */
struct code_row {
    int rc;
    int errnum;
    const char *code;
    const char *text;
    const char *remedy;
};

static const struct code_row code_rows[] = {
    {SQLITE_FULL, -ENOSPC, ERR_UNAVAILABLE, "has no space left on its disk",
     "free space on the file system of the data folder; new work is refused until then"},
    {SQLITE_READONLY, -EROFS, ERR_UNAVAILABLE, "is read-only",
     "make the data folder and its files writable for the server"},
    {SQLITE_PERM, -EACCES, ERR_UNAVAILABLE, "may not be used",
     "give the data folder and its files to the server's user"},
    {SQLITE_CANTOPEN, -EACCES, ERR_UNAVAILABLE, "cannot be opened",
     "give the data folder and its files to the server's user"},
    {SQLITE_CORRUPT, -EUCLEAN, ERR_UNAVAILABLE, "is damaged",
     "restore the data folder from a backup, or recover the file with sqlite3 and .recover"},
    {SQLITE_NOTADB, -EUCLEAN, ERR_UNAVAILABLE, "is not a database, or its first page is damaged",
     "restore the data folder from a backup, or name another folder"},
    {SQLITE_NOMEM, -ENOMEM, ERR_UNAVAILABLE, "is out of memory", "give the server more memory"},
    {SQLITE_BUSY, -EBUSY, ERR_UNAVAILABLE, "is locked by another program",
     "close other programs that have the database open"},
    {SQLITE_LOCKED, -EBUSY, ERR_UNAVAILABLE, "is locked", "try again"},
    {SQLITE_PROTOCOL, -EBUSY, ERR_UNAVAILABLE, "is locked by another program",
     "close other programs that have the database open"},
    {SQLITE_TOOBIG, -E2BIG, ERR_TOO_LARGE, "refuses a row this large", "send less at once"},
    {SQLITE_CONSTRAINT_UNIQUE, -EEXIST, ERR_CONFLICT, "has such a row already", NULL},
    {SQLITE_CONSTRAINT_PRIMARYKEY, -EEXIST, ERR_CONFLICT, "has such a row already", NULL},
    {SQLITE_CONSTRAINT_ROWID, -EEXIST, ERR_CONFLICT, "has such a row already", NULL},
    {SQLITE_CONSTRAINT_FOREIGNKEY, -ENOENT, ERR_NOT_FOUND, "lacks a row that this one refers to",
     NULL},
    {SQLITE_CONSTRAINT, -EINVAL, ERR_INVALID, "refuses a value", NULL},
    {SQLITE_IOERR, -EIO, ERR_UNAVAILABLE, "cannot be read or written",
     "check the disk of the data folder and the kernel's log"},
};

static const struct code_row *find_code(int rc)
{
    const struct code_row *found = NULL;
    for (size_t i = 0; i < ARRAY_LEN(code_rows); i++) {
        if (code_rows[i].rc == rc)
            return &code_rows[i];
        if (code_rows[i].rc == (rc & 0xff))
            found = &code_rows[i];
    }
    return found;
}

/* SQLite reports some full and read-only disks as plain I/O errors; the system knows better. */
static int refine(struct db *db, int rc)
{
    int primary = rc & 0xff;
    if (!db->handle || (primary != SQLITE_IOERR && primary != SQLITE_CANTOPEN))
        return rc;
    switch (sqlite3_system_errno(db->handle)) {
    case ENOSPC:
    case EDQUOT:
        return SQLITE_FULL;
    case EROFS:
        return SQLITE_READONLY;
    default:
        return rc;
    }
}

int db_error(struct db *db, int rc, struct err *err)
{
    const char *detail = db->handle ? sqlite3_errmsg(db->handle) : sqlite3_errstr(rc);
    const struct code_row *row = find_code(refine(db, rc));
    if (row)
        return err_set(err, row->errnum, row->code, NULL, row->remedy, "store '%s' %s (%s)",
                       db->path, row->text, detail);
    return err_set(err, -EIO, ERR_INTERNAL, NULL, "report this with the server's log",
                   "store '%s' failed with SQLite error %d (%s)", db->path, rc, detail);
}

bool db_error_is_of_row(int rc)
{
    int primary = rc & 0xff;
    return primary == SQLITE_CONSTRAINT || primary == SQLITE_TOOBIG;
}

int db_exec(struct db *db, const char *sql, struct err *err)
{
    int rc = sqlite3_exec(db->handle, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? 0 : db_error(db, rc, err);
}

int db_query_int(struct db *db, const char *sql, sqlite3_int64 *ret_value, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db->handle, sql, -1, &stmt, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    sqlite3_int64 value = rc == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : 0;
    /* Errors are read from the connection, so before the statement goes. */
    int r = rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : db_error(db, rc, err);
    sqlite3_finalize(stmt);
    if (r == 0)
        *ret_value = value;
    return r;
}

static int apply_settings(struct db *db, enum db_role role, struct err *err)
{
    static const char *const settings[] = {
        [DB_WRITER] = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
                      "PRAGMA wal_autocheckpoint=0; PRAGMA journal_size_limit=67108864;"
                      "PRAGMA foreign_keys=ON; PRAGMA temp_store=MEMORY; PRAGMA mmap_size=0;"
                      "PRAGMA trusted_schema=OFF;",
        [DB_READER] = "PRAGMA query_only=ON; PRAGMA wal_autocheckpoint=0;"
                      "PRAGMA temp_store=MEMORY; PRAGMA mmap_size=0; PRAGMA trusted_schema=OFF;",
        [DB_ARCHIVE] = "PRAGMA temp_store=MEMORY; PRAGMA mmap_size=0; PRAGMA trusted_schema=OFF;",
    };
    int kib = role == DB_WRITER ? DB_WRITER_CACHE_KIB : DB_READER_CACHE_KIB;
    char cache[64];
    snprintf(cache, sizeof(cache), "PRAGMA cache_size=-%d", kib);

    sqlite3_busy_timeout(db->handle, DB_BUSY_TIMEOUT_MS);
    sqlite3_extended_result_codes(db->handle, 1);
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    int r = db_exec(db, cache, err);
    return r < 0 ? r : db_exec(db, settings[role], err);
}

/* SQLite counts its memory under one lock for all connections unless told not to; that is a
 * tenth of a submit. The call fails, harmlessly, where something else initialised it before. */
static void configure_once(void)
{
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

int db_open(struct db *db, const char *path, const char *vfs, enum db_role role, struct err *err)
{
    static pthread_once_t configured = PTHREAD_ONCE_INIT;
    pthread_once(&configured, configure_once);
    *db = (struct db){.path = path};
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
                (role == DB_ARCHIVE ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE);
    int rc = sqlite3_open_v2(path, &db->handle, flags, vfs);
    int r = rc == SQLITE_OK ? apply_settings(db, role, err) : db_error(db, rc, err);
    if (r < 0)
        db_close(db);
    return r;
}

static void drop_statements(struct db *db)
{
    size_t it = 0;
    sqlite3_stmt *stmt;
    while ((stmt = map_next(&db->statements, &it)) != NULL)
        sqlite3_finalize(stmt);
    map_done(&db->statements);
    db->statements = (struct map)MAP_INIT;
}

void db_close(struct db *db)
{
    drop_statements(db);
    sqlite3_close(db->handle);
    *db = (struct db){0};
}

int db_prepare(struct db *db, const char *sql, sqlite3_stmt **ret_stmt, struct err *err)
{
    sqlite3_stmt *stmt = map_get_str(&db->statements, sql);
    if (!stmt) {
        if (db->statements.len >= DB_STATEMENTS_MAX)
            drop_statements(db);
        int rc = sqlite3_prepare_v3(db->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL);
        if (rc != SQLITE_OK)
            return db_error(db, rc, err);
        map_put_str(&db->statements, sqlite3_sql(stmt), stmt);
    }
    *ret_stmt = stmt;
    return 0;
}

void db_release(sqlite3_stmt *stmt)
{
    sqlite3_reset(stmt);
    if (stmt)
        sqlite3_clear_bindings(stmt);
}
