/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer: one thread, one connection, one group after the other.
 *
 * A group is BEGIN, for each txn SAVEPOINT .. RELEASE (or ROLLBACK TO where its rows are
 * refused), trimming, COMMIT. done() follows from the same thread, so groups are answered in
 * the order in which they came. The log is moved into the database between groups, after
 * done(), never inside a commit.
 */
#ifndef ALLOT_STORE_WRITER_H
#define ALLOT_STORE_WRITER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/store_port.h"
#include "store/apply.h"
#include "store/db.h"

/* A group handed in, until its done() was called. */
struct writer_group {
    struct store_txn *const *txns;
    size_t count;
    store_done_fn *done;
    void *host;
    struct writer_group *next;
};

/* What is kept bounded. Changed only by the writer thread, after a successful commit. */
struct writer_retention {
    int64_t max_events;
    int64_t first_seq, last_seq; /* of the events stored; 0 = none */
    int64_t next_reply_ms;       /* time of the next look for expired replies */
};

/* How much of the log is valid, to cut off what a failed commit left. */
struct writer_log {
    int fd;          /* of the -wal file; SQLite holds no locks on that one */
    bool known;      /* pages and salt are those of the last commit */
    int pages;       /* frames up to and with the last commit */
    uint8_t salt[8]; /* of the log that these pages are in */
    int tried_pages; /* pages when a checkpoint was last tried */
};

struct writer {
    struct db db;
    struct apply apply;
    struct writer_retention retention;
    struct writer_log log;
    int checkpoint_pages;

    pthread_t thread;
    bool running;         /* the thread was started */
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    struct writer_group *first, *last;
    bool stopping;
};

/* Starts the thread on W, whose db is open and migrated; PATH is that of the database. */
int writer_start(struct writer *w, const char *path, struct err *err);
/* Finishes what was handed in and ends the thread; fine where none was started. The db stays
 * open. */
void writer_stop(struct writer *w);
/* The port's commit(). */
void writer_commit(struct writer *w, struct store_txn *const *txns, size_t count,
                   store_done_fn *done, void *host);

#endif
