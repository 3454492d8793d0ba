/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The embedded store: core's store port (core/store_port.h) on SQLite.
 *
 * A data folder holds `allot.db` (with -wal and -shm beside it, mode 0600) and `lock`. The lock
 * is an exclusive flock that names its holder's process id: a second server on the same folder
 * is refused. The folder is made with mode 0700 where it is missing; an existing one keeps its
 * mode, since it may be shared with other things.
 *
 * Durability. The database is in WAL mode with synchronous=FULL: a group is one SQLite
 * transaction and one fsync, each txn of it a savepoint. done() is called once the group is on
 * disk. A group that failed is not there after a crash either: what its commit may have left at
 * the end of the log is cut off (see writer.c).
 *
 * Failure. A txn whose rows are refused fails alone:
 *     -EEXIST   a key or a unique name exists      -ENOENT  it refers to a row that does not
 *     -EINVAL   a value the schema refuses         -ERANGE  a number above 2^63 - 1
 *     -E2BIG    a row above the limit of SQLite
 * A failure of the disk fails every txn of the group:
 *     -ENOSPC   full            -EROFS    read-only        -EIO  any other I/O error
 *     -EUCLEAN  corrupt file    -EBUSY    locked by another program for more than five seconds
 *     -ENOMEM
 * The store stays usable: readers go on and the next group is tried afresh.
 *
 * Threads. One writer thread of the store executes groups in order and calls done(); commit()
 * may be called from any thread and never blocks on the disk. Readers may be called from any
 * thread, callbacks may call readers again. Each reader takes a connection of its own from a
 * pool (opened when first needed) and sees one committed snapshot.
 *
 * Growth. Events are bounded: beyond options.max_events the oldest go, a few with each group.
 * Expired replies go likewise. Ended workloads are kept. Deleted teams leave a row behind that
 * only names past usage.
 *
 *     struct store *store = NULL;
 *     int r = store_open("/var/lib/allot", NULL, &store, &err);
 *     ...
 *     ports.store = &store_sqlite_ops;
 *     ports.store_ctx = store;
 *     ...
 *     store_close(store);
 */
#ifndef ALLOT_STORE_STORE_H
#define ALLOT_STORE_STORE_H

#include <stdint.h>

#include "base/err.h"
#include "core/store_port.h"

struct store;

struct store_options {
    int64_t max_events;       /* kept; 0 = 1,000,000 */
    int32_t readers;          /* connections that stay open between reads; 0 = 4 */
    int32_t checkpoint_pages; /* pages of log before they move to the database; 0 = 2000 */
    const char *vfs;          /* SQLite VFS by name, for fault injection; NULL = the default */
};

/* The store's table of functions; the context is a struct store. */
extern const struct store_ops store_sqlite_ops;

/*
 * Opens or creates the store in FOLDER and starts its writer thread. OPTIONS may be NULL.
 * -EBUSY (another server holds the folder), -EACCES or -EROFS (not writable), -EUCLEAN (not a
 * database, or a damaged one), -EPROTONOSUPPORT (made by a newer release), -ENOSPC, -EIO.
 */
int store_open(const char *folder, const struct store_options *options, struct store **ret_store,
               struct err *err);

/* Finishes the groups handed in, stops the writer thread and closes. NULL is fine. */
void store_close(struct store *store);

#endif
