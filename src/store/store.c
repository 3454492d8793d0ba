/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/qty.h"
#include "store/schema.h"
#include "store/store_private.h"

#define DEFAULT_MAX_EVENTS 1000000
#define DEFAULT_READERS 4
#define DEFAULT_CHECKPOINT_PAGES 2000
#define LOCK_TEXT_MAX 32
#define LOCK_TRIES 200
#define LOCK_PAUSE_US 10000

/* ---- the folder ---------------------------------------------------------------------------- */

static int folder_error(struct err *err, int errnum, const char *folder, const char *what)
{
    return err_set(err, -errnum, ERR_UNAVAILABLE, NULL,
                   "name another folder, or make this one writable for the server's user",
                   "cannot %s data folder '%s' (%s)", what, folder, strerrordesc_np(errnum));
}

/* The file's text is the holder's process id. */
static void read_holder(int fd, char *pid)
{
    ssize_t n = pread(fd, pid, LOCK_TEXT_MAX - 1, 0);
    pid[n > 0 ? (size_t)n : 0] = '\0';
    pid[strspn(pid, "0123456789")] = '\0';
}

/*
 * A server that is killed while it starts a process leaves the lock to that process for the
 * instant before it executes its program. So a lock whose holder is dead is waited for.
 */
static int take_lock(int fd)
{
    char pid[LOCK_TEXT_MAX];
    for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; i++) {
        read_holder(fd, pid);
        bool dead = pid[0] && kill((pid_t)strtol(pid, NULL, 10), 0) < 0 && errno == ESRCH;
        if (!dead || i >= LOCK_TRIES)
            return -EWOULDBLOCK;
        usleep(LOCK_PAUSE_US);
    }
    return 0;
}

static int refuse_second(int fd, const char *folder, struct err *err)
{
    char pid[LOCK_TEXT_MAX];
    read_holder(fd, pid);
    return err_set(err, -EBUSY, ERR_CONFLICT, NULL,
                   "stop that server first, or name another folder",
                   "data folder '%s' is in use by the server with process id %s", folder,
                   pid[0] ? pid : "unknown");
}

static int lock_folder(const char *folder, int *ret_fd, struct err *err)
{
    _cleanup_free_ char *path = NULL;
    if (asprintf(&path, "%s/lock", folder) < 0)
        return folder_error(err, ENOMEM, folder, "lock");
    _cleanup_close_ int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return folder_error(err, errno, folder, "write to");
    if (take_lock(fd) < 0)
        return refuse_second(fd, folder, err);
    char text[LOCK_TEXT_MAX];
    int len = snprintf(text, sizeof(text), "%d\n", (int)getpid());
    int r = ftruncate(fd, 0) < 0 ? -errno : io_write_all(fd, text, (size_t)len);
    if (r < 0)
        return folder_error(err, -r, folder, "write to");
    *ret_fd = steal_fd(&fd);
    return 0;
}

/* SQLite gives -wal and -shm the mode of the database: so that one is made here. */
static int create_database(const char *folder, const char *path, struct err *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return folder_error(err, errno, folder, "write to");
    close(fd);
    return 0;
}

/* ---- opening ------------------------------------------------------------------------------- */

static int open_database(struct store *s, const struct store_options *o, struct err *err)
{
    struct writer *w = &s->writer;
    int r = create_database(s->folder, s->path, err);
    if (r == 0)
        r = db_open(&w->db, s->path, s->vfs, DB_WRITER, err);
    if (r == 0)
        r = schema_migrate(&w->db, schema_steps, schema_step_count, err);
    if (r < 0)
        return r;
    w->retention.max_events = o->max_events > 0 ? o->max_events : DEFAULT_MAX_EVENTS;
    w->checkpoint_pages = o->checkpoint_pages > 0 ? o->checkpoint_pages : DEFAULT_CHECKPOINT_PAGES;
    return writer_start(w, s->path, err);
}

int store_open(const char *folder, const struct store_options *options, struct store **ret_store,
               struct err *err)
{
    struct store_options none = {0};
    const struct store_options *o = options ? options : &none;
    struct store *s = calloc(1, sizeof(*s));
    if (!s)
        return folder_error(err, ENOMEM, folder, "open");
    s->lock_fd = -1;
    s->folder = strdup(folder);
    s->vfs = o->vfs ? strdup(o->vfs) : NULL;
    bool named = asprintf(&s->path, "%s/allot.db", folder) >= 0;
    if (!named)
        s->path = NULL;
    readers_init(&s->readers, s->path, s->vfs, o->readers > 0 ? o->readers : DEFAULT_READERS);

    int r = s->folder && named && (s->vfs || !o->vfs) ? io_mkdirs(folder, 0700) : -ENOMEM;
    if (r < 0)
        folder_error(err, -r, folder, "create");
    if (r == 0)
        r = lock_folder(folder, &s->lock_fd, err);
    if (r == 0)
        r = open_database(s, o, err);
    if (r < 0) {
        store_close(s);
        return r;
    }
    *ret_store = s;
    return 0;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    writer_stop(&store->writer);
    readers_done(&store->readers);
    /* The last connection moves the log into the database. */
    db_close(&store->writer.db);
    if (store->lock_fd >= 0)
        close(store->lock_fd);
    free(store->folder);
    free(store->path);
    free(store->vfs);
    free(store);
}

/* ---- the port ------------------------------------------------------------------------------ */

static void commit(void *store, struct store_txn *const *txns, size_t count, store_done_fn *done,
                   void *host)
{
    struct store *s = store;
    writer_commit(&s->writer, txns, count, done, host);
}

const struct store_ops store_sqlite_ops = {
    .commit = commit,
    .each_shape = read_each_shape,
    .each_team = read_each_team,
    .each_node = read_each_node,
    .each_user = read_each_user,
    .each_token = read_each_token,
    .each_live_workload = read_each_live_workload,
    .each_live_task = read_each_live_task,
    .each_open_allocation = read_each_open_allocation,
    .list_workloads = read_list_workloads,
    .get_workload = read_get_workload,
    .list_tasks = read_list_tasks,
    .list_allocations = read_list_allocations,
    .list_events = read_list_events,
    .usage = read_usage,
    .find_token = read_find_token,
    .get_team = read_get_team,
    .get_meta = read_get_meta,
    .get_reply = read_get_reply,
    .history = read_history,
    .last_ids = read_last_ids,
};
