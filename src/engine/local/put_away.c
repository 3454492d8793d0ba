/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that core has forgotten: their folders (logs, work) are kept a while, apart from the
 * live ones, so that a start-up looks at the live ones only.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "engine/local/engine.h"

DEFINE_CLEANUP(DIR *, closedir, closedirp)

struct removal {
    struct worker_job job;
    int dirfd;
    char *name;
};

bool put_away_name_ok(const char *name)
{
    size_t n = strlen(name);

    return n > 0 && n < MODEL_INTENT_MAX && name[0] != '.' &&
           strspn(name, "0123456789.abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_") == n;
}

static void run_removal(struct worker_job *job)
{
    struct removal *r = (struct removal *)job;

    (void)io_remove_tree(r->dirfd, r->name);
    free(r->name);
    free(r);
}

static void remove_later(struct engine_local *e, char *name)
{
    struct removal *r = calloc(1, sizeof(*r));

    if (r == NULL)
        abort(); /* as the arena does */
    r->job.run = run_removal;
    r->dirfd = e->ended_fd;
    r->name = name;
    worker_push(e->cleaner, &r->job);
}

/* Is the folder older than what is kept? */
static bool expired(const struct engine_local *e, const char *name)
{
    struct stat st;

    if (fstatat(e->ended_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return true;
    return clock_wall_ms() - (int64_t)st.st_ctim.tv_sec * MS_PER_S > e->settings.retain_ms;
}

static void enforce(struct engine_local *e)
{
    while (e->retained_first < e->retained.len) {
        size_t count = e->retained.len - e->retained_first;
        char *oldest = e->retained.items[e->retained_first];

        if ((int64_t)count <= e->settings.retain_count && !expired(e, oldest))
            break;
        e->retained_first++;
        remove_later(e, oldest);
    }
    /* Move the rest down once half of the array is behind us. */
    if (e->retained_first > 64 && e->retained_first * 2 > e->retained.len) {
        memmove(e->retained.items, e->retained.items + e->retained_first,
                (e->retained.len - e->retained_first) * sizeof(char *));
        e->retained.len -= e->retained_first;
        e->retained_first = 0;
    }
}

void put_away_folder(struct engine_local *e, const char *intent)
{
    if (renameat(e->tasks_fd, intent, e->ended_fd, intent) < 0) {
        if (errno == EEXIST || errno == ENOTEMPTY) {
            (void)io_remove_tree(e->ended_fd, intent);
            (void)renameat(e->tasks_fd, intent, e->ended_fd, intent);
        } else if (errno != ENOENT) {
            log_warn("folder of task %s cannot be put away: %s", intent, strerror(errno));
        }
        if (errno == ENOENT)
            return;
    }
    vec_push(&e->retained, strdup(intent));
    enforce(e);
}

void put_away_forget(struct engine_local *e, const char *intent)
{
    struct local_task *t = map_get_str(&e->tasks, intent);

    if (t && t->state != ENDED) {
        log_warn("task %s was forgotten while it runs; it goes on", intent);
        return;
    }
    if (t)
        task_free(e, t);
    if (put_away_name_ok(intent))
        put_away_folder(e, intent);
}

struct aged {
    int64_t time;
    char *name;
};

static int by_time(const void *a, const void *b)
{
    const struct aged *x = a, *y = b;

    return (x->time > y->time) - (x->time < y->time);
}

int put_away_load(struct engine_local *e)
{
    _cleanup_(closedirp) DIR *dir = NULL;
    VEC(struct aged) found = {0};
    struct dirent *entry;
    struct stat st;
    int fd = openat(e->ended_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL)
        return -errno;
    while ((entry = readdir(dir)))
        if (entry->d_name[0] != '.' && fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            vec_push(&found, ((struct aged){st.st_ctim.tv_sec, strdup(entry->d_name)}));
    if (found.len > 0)
        qsort(found.items, found.len, sizeof(struct aged), by_time);
    for (size_t i = 0; i < found.len; i++)
        vec_push(&e->retained, found.items[i].name);
    vec_done(&found);
    enforce(e);
    return 0;
}
