/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readers: a pool of read connections, and queries on them.
 *
 * A query takes a connection of its own until it ends, so that its statement is one snapshot
 * and a callback may start another query. Nobody waits: where all pooled connections are in
 * use another one is opened, and closed again on return if the pool is full. The mutex guards
 * the list of idle connections only.
 *
 *     _cleanup_query_ struct query q = QUERY_INIT;
 *     int r = query_begin(&store->readers, "SELECT ...", &q, err);
 *     while (r == 0 && (r = query_step(&q, err)) > 0) {
 *         struct row row = row_begin(q.stmt, "teams", err);
 *         ...
 *     }
 */
#ifndef ALLOT_STORE_READERS_H
#define ALLOT_STORE_READERS_H

#include <pthread.h>
#include <sqlite3.h>

#include "base/err.h"
#include "store/db.h"

struct reader {
    struct db db;
    struct reader *next; /* in the list of idle ones */
};

struct readers {
    const char *path, *vfs; /* owned by the store */
    int keep;               /* idle connections that stay open */
    pthread_mutex_t lock;   /* guards idle and idle_count */
    struct reader *idle;
    int idle_count;
};

struct query {
    struct readers *readers;
    struct reader *reader;
    sqlite3_stmt *stmt;
};

#define QUERY_INIT \
    {              \
        0          \
    }
#define _cleanup_query_ __attribute__((cleanup(query_end)))

/* PATH and VFS must outlive R. Opens nothing yet. */
void readers_init(struct readers *r, const char *path, const char *vfs, int keep);
/* Closes the idle connections; no query may be under way. */
void readers_done(struct readers *r);

/* Takes a connection and prepares SQL on it; bind to q->stmt, then step. */
int query_begin(struct readers *r, const char *sql, struct query *q, struct err *err);
/* Another statement on the same connection; the former one is given back. */
int query_next(struct query *q, const char *sql, struct err *err);
/* 1 with a row, 0 at the end, negative errno. */
int query_step(struct query *q, struct err *err);
/* Gives statement and connection back; an ended or unused query is fine. */
void query_end(struct query *q);

#endif
