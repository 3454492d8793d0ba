/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/log_parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/vec.h"

#define PART_NAME_BYTES 32
#define PUMP_BYTES ((size_t)256 * 1024)
#define PUMP_ROUNDS 4
#define READ_TRIES 3

DEFINE_CLEANUP(DIR *, closedir, closedirp)

static void part_name(int64_t start, char *name)
{
    snprintf(name, PART_NAME_BYTES, "log.%" PRId64, start);
}

void log_writer_init(struct log_writer *w, int dirfd, int64_t limit_bytes)
{
    *w = (struct log_writer){.dirfd = dirfd, .fd = -1};
    if (limit_bytes < LOG_LIMIT_MIN)
        limit_bytes = LOG_LIMIT_MIN;
    w->part_bytes = limit_bytes / LOG_PARTS;
}

/* All parts have the same size, so the name of the one to drop is known. */
static int next_part(struct log_writer *w)
{
    char name[PART_NAME_BYTES];
    int64_t oldest = w->offset - w->part_bytes * LOG_PARTS;

    if (w->fd >= 0)
        close(w->fd);
    if (oldest >= 0) {
        part_name(oldest, name);
        (void)unlinkat(w->dirfd, name, 0);
    }
    part_name(w->offset, name);
    w->part_start = w->offset;
    w->fd = openat(w->dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    return w->fd < 0 ? -errno : 0;
}

/* Keeps the pipe moving when the disk does not: what cannot be stored is dropped. */
static ssize_t discard(struct log_writer *w, int pipe)
{
    char scrap[16384];
    ssize_t n = read(pipe, scrap, sizeof(scrap));

    if (n > 0)
        w->lost += n;
    return n;
}

static ssize_t move_some(struct log_writer *w, int pipe)
{
    int64_t room = w->part_start + w->part_bytes - w->offset;
    ssize_t n;

    if (w->fd < 0 || room <= 0) {
        struct pollfd p = {.fd = pipe, .events = POLLIN};

        /* Make no file before there is something to put in it. */
        if (poll(&p, 1, 0) <= 0 || (p.revents & POLLIN) == 0) {
            errno = EAGAIN;
            return p.revents & POLLHUP ? 0 : -1;
        }
        if (next_part(w) < 0)
            return discard(w, pipe);
        room = w->part_bytes;
    }
    n = splice(pipe, NULL, w->fd, NULL, (size_t)room < PUMP_BYTES ? (size_t)room : PUMP_BYTES,
               SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    if (n > 0)
        w->offset += n;
    else if (n < 0 && errno != EAGAIN && errno != EINTR)
        return discard(w, pipe);
    return n;
}

int64_t log_writer_pump(struct log_writer *w, int pipe)
{
    int64_t moved = 0;

    for (int i = 0; i < PUMP_ROUNDS; i++) {
        ssize_t n = move_some(w, pipe);

        if (n <= 0 && moved > 0)
            return moved;
        if (n == 0)
            return 0;
        if (n < 0)
            return errno == EINTR ? -EAGAIN : -errno;
        moved += n;
    }
    return moved;
}

void log_writer_done(struct log_writer *w)
{
    if (w->fd >= 0)
        close(w->fd);
    w->fd = -1;
}

struct starts VEC_BODY(int64_t);

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* Offsets of the parts in folder DIRFD, in order. */
static int list_parts(int dirfd, struct starts *parts)
{
    _cleanup_(closedirp) DIR *dir = NULL;
    struct dirent *e;
    int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    dir = fdopendir(fd);
    if (dir == NULL) {
        close(fd);
        return -ENOMEM;
    }
    while ((e = readdir(dir)))
        if (strncmp(e->d_name, "log.", 4) == 0)
            vec_push(parts, strtoll(e->d_name + 4, NULL, 10));
    if (parts->len > 0)
        qsort(parts->items, parts->len, sizeof(int64_t), by_number);
    return 0;
}

static int read_part(int dirfd, int64_t start, int64_t offset, char *data, size_t size,
                     size_t *ret_len)
{
    char name[PART_NAME_BYTES];
    _cleanup_close_ int fd = -1;
    ssize_t n;

    part_name(start, name);
    fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    do {
        n = pread(fd, data, size, offset - start);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    *ret_len = (size_t)n;
    return 0;
}

/* One look at the parts. -ENOENT: a part was rotated away between the listing and the open. */
static int try_read(int dirfd, int64_t offset, char *data, size_t size, int64_t *ret_offset,
                    size_t *ret_len)
{
    struct starts parts = {0};
    int r = list_parts(dirfd, &parts);
    size_t len = 0, i = 0;

    if (r == 0 && parts.len > 0) {
        while (i + 1 < parts.len && parts.items[i + 1] <= offset)
            i++;
        if (offset < parts.items[i])
            offset = parts.items[i];
        r = read_part(dirfd, parts.items[i], offset, data, size, &len);
        /* At the end of a part that another follows in the meantime. */
        if (r == 0 && len == 0 && i + 1 < parts.len) {
            offset = parts.items[i + 1];
            r = read_part(dirfd, parts.items[i + 1], offset, data, size, &len);
        }
    }
    vec_done(&parts);
    if (r < 0)
        return r;
    *ret_offset = offset;
    *ret_len = len;
    return 0;
}

int log_parts_read(int dirfd, int64_t offset, char *data, size_t size, int64_t *ret_offset,
                   size_t *ret_len)
{
    int r = -ENOENT;

    if (offset < 0)
        return -EINVAL;
    for (int i = 0; i < READ_TRIES && r == -ENOENT; i++)
        r = try_read(dirfd, offset, data, size, ret_offset, ret_len);
    return r;
}
