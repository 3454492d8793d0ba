/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A failed commit must not come back. SQLite writes the frames of a commit to the end of the
 * log and then syncs; where the sync fails it reports the error and forgets the frames, but
 * they lie in the file, complete, and a recovery after a crash would take them for committed.
 * The next commit overwrites them; until then cut_log() shortens the log to what was committed
 * before. A log that SQLite had restarted (its salt changed) holds nothing valid.
 *
 * Checkpoints. Moving 2000 pages costs two fsyncs and some milliseconds. They are due after
 * checkpoint_pages; the writer does them when no group waits, or in any case at four times as
 * many pages. A failure is not reported: the log is intact and only grows, and if the disk stays
 * broken the next commit says so.
 */
#include "store/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define WAL_HEADER_BYTES 32
#define WAL_FRAME_HEADER_BYTES 24
#define WAL_SALT_OFFSET 16

#define TRIM_EVENTS_MIN 64  /* each group removes twice what it adds, at least this many */
#define TRIM_REPLIES_MAX 64 /* a group */
#define TRIM_REPLIES_EVERY_MS 1000

/* ---- the log ------------------------------------------------------------------------------ */

static int on_commit(void *user, sqlite3 *handle, const char *name, int pages)
{
    struct writer *w = user;
    w->log.pages = pages;
    return SQLITE_OK;
}

static bool read_salt(const struct writer_log *log, uint8_t *salt)
{
    return pread(log->fd, salt, 8, WAL_SALT_OFFSET) == 8;
}

/* After each commit: a restart of the log cannot be told from its length. */
static void note_log(struct writer *w)
{
    w->log.known = read_salt(&w->log, w->log.salt);
    if (w->log.pages < w->log.tried_pages)
        w->log.tried_pages = 0;
}

/* After a failed commit: what lies behind the committed pages must not be recovered. */
static void cut_log(struct writer *w)
{
    uint8_t salt[8];
    sqlite3_int64 page_bytes = 0;
    if (!w->log.known || !read_salt(&w->log, salt) ||
        db_query_int(&w->db, "PRAGMA page_size", &page_bytes, NULL) < 0)
        return;
    off_t valid = 0;
    if (memcmp(salt, w->log.salt, sizeof(salt)) == 0)
        valid = WAL_HEADER_BYTES + (off_t)w->log.pages * (WAL_FRAME_HEADER_BYTES + page_bytes);
    /* Nothing is left to try where this fails too; the next commit overwrites. */
    int r = ftruncate(w->log.fd, valid);
    (void)r;
}

static void checkpoint(struct writer *w, bool idle)
{
    int due = w->log.pages - w->log.tried_pages;
    if (due < w->checkpoint_pages || (!idle && due < 4 * w->checkpoint_pages))
        return;
    w->log.tried_pages = w->log.pages;
    sqlite3_wal_checkpoint_v2(w->db.handle, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
}

/* The log starts empty, so that its valid length is known from the first commit on. */
static int open_log(struct writer *w, const char *path, struct err *err)
{
    _cleanup_free_ char *name = NULL;
    if (asprintf(&name, "%s-wal", path) < 0)
        return err_set(err, -ENOMEM, ERR_UNAVAILABLE, NULL, NULL, "out of memory");
    w->log.fd = open(name, O_RDWR | O_CLOEXEC);
    if (w->log.fd < 0)
        return err_set(err, -errno, ERR_UNAVAILABLE, NULL, "check the data folder's permissions",
                       "cannot open '%s' (%s)", name, strerrordesc_np(errno));
    int rc = sqlite3_wal_checkpoint_v2(w->db.handle, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    /* A full disk or a reader elsewhere leaves the log as it is: valid, of unknown length. */
    w->log.known = rc == SQLITE_OK;
    return 0;
}

/* ---- bounded tables ------------------------------------------------------------------------ */

static int load_retention(struct writer *w, struct err *err)
{
    sqlite3_int64 first = 0, last = 0;
    int r = db_query_int(&w->db, "SELECT min(seq) FROM events", &first, err);
    if (r == 0)
        r = db_query_int(&w->db, "SELECT max(seq) FROM events", &last, err);
    if (r < 0)
        return r;
    w->retention.first_seq = first;
    w->retention.last_seq = last;
    return 0;
}

/* What the operations of a group mean for the bounded tables. */
struct group_effect {
    int64_t events;    /* added */
    int64_t first_seq; /* smallest one added, 0 = none */
    int64_t last_seq;
    int64_t time_ms; /* of its newest event: the store has no clock of its own */
};

static void note_effects(struct group_effect *e, const struct store_txn *txn)
{
    for (const struct store_op *op = txn->first; op; op = op->next) {
        if (op->kind != STORE_ADD_EVENT)
            continue;
        int64_t seq = (int64_t)op->event->seq;
        e->events++;
        if (e->first_seq == 0 || seq < e->first_seq)
            e->first_seq = seq;
        if (seq > e->last_seq)
            e->last_seq = seq;
        if (op->event->time_ms > e->time_ms)
            e->time_ms = op->event->time_ms;
    }
}

static int trim_events(struct writer *w, const struct group_effect *e,
                       struct writer_retention *next)
{
    if (next->first_seq == 0 || (e->first_seq != 0 && e->first_seq < next->first_seq))
        next->first_seq = e->first_seq;
    if (e->last_seq > next->last_seq)
        next->last_seq = e->last_seq;
    int64_t surplus = next->last_seq - next->first_seq + 1 - next->max_events;
    if (next->first_seq == 0 || surplus <= 0)
        return SQLITE_OK;
    int64_t step = 2 * e->events + TRIM_EVENTS_MIN;
    int64_t up_to = next->first_seq + (surplus < step ? surplus : step) - 1;
    int rc = SQLITE_OK;
    sqlite3_stmt *stmt = apply_stmt(&w->apply, APPLY_TRIM_EVENTS, &rc);
    if (!stmt)
        return rc;
    sqlite3_bind_int64(stmt, 1, up_to);
    next->first_seq = up_to + 1;
    return apply_run(&w->apply, APPLY_TRIM_EVENTS);
}

static int trim_replies(struct writer *w, const struct group_effect *e,
                        struct writer_retention *next)
{
    if (e->time_ms < next->next_reply_ms)
        return SQLITE_OK;
    int rc = SQLITE_OK;
    sqlite3_stmt *stmt = apply_stmt(&w->apply, APPLY_TRIM_REPLIES, &rc);
    if (!stmt)
        return rc;
    sqlite3_bind_int64(stmt, 1, e->time_ms);
    sqlite3_bind_int(stmt, 2, TRIM_REPLIES_MAX);
    rc = apply_run(&w->apply, APPLY_TRIM_REPLIES);
    bool more = sqlite3_changes(w->db.handle) == TRIM_REPLIES_MAX;
    next->next_reply_ms = more ? e->time_ms : e->time_ms + TRIM_REPLIES_EVERY_MS;
    return rc;
}

/* ---- groups -------------------------------------------------------------------------------- */

/* Applies the operations of TXN; its status says whether its rows were taken. Returns SQLite's
 * code of a failure that is not TXN's alone. */
static int apply_txn(struct writer *w, struct store_txn *txn)
{
    txn->status = 0;
    txn->err = (struct err)ERR_INIT;
    int rc = apply_run(&w->apply, APPLY_SAVEPOINT);
    if (rc != SQLITE_OK)
        return rc;
    for (const struct store_op *op = txn->first; op; op = op->next) {
        rc = apply_op(&w->apply, op, &txn->err);
        if (rc == SQLITE_OK)
            continue;
        if (rc > 0 && !db_error_is_of_row(rc))
            return rc;
        txn->status = rc > 0 ? db_error(&w->db, rc, &txn->err) : txn->err.errnum;
        rc = apply_run(&w->apply, APPLY_ROLLBACK_TO);
        if (rc != SQLITE_OK)
            return rc;
        break;
    }
    return apply_run(&w->apply, APPLY_RELEASE);
}

/* Everything between BEGIN and COMMIT. NEXT becomes the retention's state on success. */
static int apply_group(struct writer *w, struct writer_group *g, struct writer_retention *next)
{
    struct group_effect effect = {0};
    for (size_t i = 0; i < g->count; i++) {
        int rc = apply_txn(w, g->txns[i]);
        if (rc != SQLITE_OK)
            return rc;
        if (g->txns[i]->status == 0)
            note_effects(&effect, g->txns[i]);
    }
    int rc = trim_events(w, &effect, next);
    return rc != SQLITE_OK ? rc : trim_replies(w, &effect, next);
}

static void fail_group(struct writer *w, struct writer_group *g, int rc)
{
    struct err err = ERR_INIT;
    int status = db_error(&w->db, rc, &err);
    for (size_t i = 0; i < g->count; i++) {
        g->txns[i]->status = status;
        g->txns[i]->err = err;
    }
    /* SQLite has rolled back by itself after some errors. */
    if (!sqlite3_get_autocommit(w->db.handle))
        apply_run(&w->apply, APPLY_ROLLBACK);
}

static void run_group(struct writer *w, struct writer_group *g)
{
    struct writer_retention next = w->retention;
    int rc = apply_run(&w->apply, APPLY_BEGIN);
    if (rc == SQLITE_OK)
        rc = apply_group(w, g, &next);
    if (rc == SQLITE_OK)
        rc = apply_run(&w->apply, APPLY_COMMIT);
    if (rc != SQLITE_OK) {
        fail_group(w, g, rc);
        cut_log(w);
        return;
    }
    w->retention = next;
    note_log(w);
}

/* ---- the thread ---------------------------------------------------------------------------- */

static struct writer_group *take_group(struct writer *w)
{
    pthread_mutex_lock(&w->lock);
    while (!w->first && !w->stopping)
        pthread_cond_wait(&w->wake, &w->lock);
    struct writer_group *g = w->first;
    if (g) {
        w->first = g->next;
        if (!w->first)
            w->last = NULL;
    }
    pthread_mutex_unlock(&w->lock);
    return g;
}

static bool is_idle(struct writer *w)
{
    pthread_mutex_lock(&w->lock);
    bool idle = !w->first;
    pthread_mutex_unlock(&w->lock);
    return idle;
}

static void *writer_main(void *arg)
{
    struct writer *w = arg;
    pthread_setname_np(pthread_self(), "store");
    struct writer_group *g;
    while ((g = take_group(w)) != NULL) {
        run_group(w, g);
        g->done(g->host, g->txns, g->count);
        free(g);
        checkpoint(w, is_idle(w));
    }
    return NULL;
}

int writer_start(struct writer *w, const char *path, struct err *err)
{
    int r = load_retention(w, err);
    if (r == 0)
        r = open_log(w, path, err);
    if (r < 0)
        return r;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->wake, NULL);
    w->apply.db = &w->db;
    sqlite3_wal_hook(w->db.handle, on_commit, w);
    r = pthread_create(&w->thread, NULL, writer_main, w);
    if (r != 0) {
        pthread_cond_destroy(&w->wake);
        pthread_mutex_destroy(&w->lock);
        close(w->log.fd);
        return err_set(err, -r, ERR_UNAVAILABLE, NULL, "raise the limit of threads",
                       "cannot start the store's thread (%s)", strerrordesc_np(r));
    }
    w->running = true;
    return 0;
}

void writer_stop(struct writer *w)
{
    if (!w->running)
        return;
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    w->running = false;
    close(w->log.fd);
    apply_done(&w->apply);
}

void writer_commit(struct writer *w, struct store_txn *const *txns, size_t count,
                   store_done_fn *done, void *host)
{
    struct writer_group *g = malloc(sizeof(*g));
    if (!g)
        abort(); /* as base/arena.h: no caller could answer sensibly */
    *g = (struct writer_group){txns, count, done, host, NULL};
    pthread_mutex_lock(&w->lock);
    if (w->last)
        w->last->next = g;
    else
        w->first = g;
    w->last = g;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
}
