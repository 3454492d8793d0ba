/* SPDX-License-Identifier: Apache-2.0 */
#include "store/readers.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

void readers_init(struct readers *r, const char *path, const char *vfs, int keep)
{
    *r = (struct readers){.path = path, .vfs = vfs, .keep = keep};
    pthread_mutex_init(&r->lock, NULL);
}

static void reader_destroy(struct reader *reader)
{
    db_close(&reader->db);
    free(reader);
}

void readers_done(struct readers *r)
{
    while (r->idle) {
        struct reader *reader = r->idle;
        r->idle = reader->next;
        reader_destroy(reader);
    }
    r->idle_count = 0;
    pthread_mutex_destroy(&r->lock);
}

static int take(struct readers *r, struct reader **ret_reader, struct err *err)
{
    pthread_mutex_lock(&r->lock);
    struct reader *reader = r->idle;
    if (reader) {
        r->idle = reader->next;
        r->idle_count--;
    }
    pthread_mutex_unlock(&r->lock);
    if (!reader) {
        reader = calloc(1, sizeof(*reader));
        if (!reader)
            abort(); /* as base/arena.h */
        int e = db_open(&reader->db, r->path, r->vfs, DB_READER, err);
        if (e < 0) {
            free(reader);
            return e;
        }
    }
    *ret_reader = reader;
    return 0;
}

static void put_back(struct readers *r, struct reader *reader)
{
    pthread_mutex_lock(&r->lock);
    bool kept = r->idle_count < r->keep;
    if (kept) {
        reader->next = r->idle;
        r->idle = reader;
        r->idle_count++;
    }
    pthread_mutex_unlock(&r->lock);
    if (!kept)
        reader_destroy(reader);
}

int query_begin(struct readers *r, const char *sql, struct query *q, struct err *err)
{
    int e = take(r, &q->reader, err);
    if (e < 0)
        return e;
    q->readers = r;
    return query_next(q, sql, err);
}

int query_next(struct query *q, const char *sql, struct err *err)
{
    db_release(q->stmt);
    q->stmt = NULL;
    return db_prepare(&q->reader->db, sql, &q->stmt, err);
}

int query_step(struct query *q, struct err *err)
{
    int rc = sqlite3_step(q->stmt);
    if (rc == SQLITE_ROW)
        return 1;
    return rc == SQLITE_DONE ? 0 : db_error(&q->reader->db, rc, err);
}

void query_end(struct query *q)
{
    if (!q->reader)
        return;
    db_release(q->stmt);
    put_back(q->readers, q->reader);
    *q = (struct query)QUERY_INIT;
}
