/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Row operations of the port as SQL statements on the writer's connection.
 *
 * Values are bound without a copy: the txn's arena outlives the statement. Statements are
 * prepared once each and kept. A PUT is an upsert, never a REPLACE: a replaced row would be
 * deleted first and take with it what refers to it.
 */
#ifndef ALLOT_STORE_APPLY_H
#define ALLOT_STORE_APPLY_H

#include "core/store_port.h"
#include "store/db.h"

enum apply_sql {
    APPLY_PUT_TEAM,
    APPLY_DELETE_TEAM,
    APPLY_FIND_SHAPE,
    APPLY_ADD_SHAPE,
    APPLY_ADD_WORKLOAD,
    APPLY_ADD_LAUNCH,
    APPLY_UPDATE_WORKLOAD,
    APPLY_PUT_TASK,
    APPLY_PUT_NODE,
    APPLY_PUT_ALLOCATION,
    APPLY_PUT_USER,
    APPLY_DELETE_USER,
    APPLY_PUT_TOKEN,
    APPLY_DELETE_TOKEN,
    APPLY_PUT_META,
    APPLY_PUT_REPLY,
    APPLY_ADD_EVENT,
    APPLY_SAVEPOINT,
    APPLY_RELEASE,
    APPLY_ROLLBACK_TO,
    APPLY_BEGIN,
    APPLY_COMMIT,
    APPLY_ROLLBACK,
    APPLY_TRIM_EVENTS,
    APPLY_TRIM_REPLIES,
    APPLY_SQL_COUNT
};

struct apply {
    struct db *db;
    sqlite3_stmt *stmts[APPLY_SQL_COUNT]; /* prepared when first needed */
};

/* Releases the statements; before db_close(). */
void apply_done(struct apply *a);

/*
 * The statement of SQL, reset. NULL with RET_RC where it cannot be prepared.
 */
sqlite3_stmt *apply_stmt(struct apply *a, enum apply_sql sql, int *ret_rc);
/* Runs a statement without parameters. Returns SQLite's result code, SQLITE_OK on success. */
int apply_run(struct apply *a, enum apply_sql sql);

/*
 * Applies one operation inside the transaction under way. Returns SQLITE_OK, SQLite's error
 * code (for db_error()), or -1 where the operation itself is refused; ERR is filled in then, and
 * only then.
 */
int apply_op(struct apply *a, const struct store_op *op, struct err *err);

#endif
