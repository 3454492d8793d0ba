/* SPDX-License-Identifier: Apache-2.0 */
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/strbuf.h"

#define READ_STEP ((size_t)16 * 1024)
#define TEMPORARY_TRIES 1000

int io_read_file(int dirfd, const char *path, size_t max, char **ret_data, size_t *ret_len)
{
    _cleanup_strbuf_ struct strbuf buf = STRBUF_INIT;
    _cleanup_close_ int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    if (fd < 0)
        return -errno;
    /* Files of proc and sysfs tell no size: read until the end, in steps. */
    for (;;) {
        ssize_t n;

        strbuf_reserve(&buf, READ_STEP);
        n = read(fd, buf.data + buf.len, READ_STEP);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        buf.len += (size_t)n;
        buf.data[buf.len] = '\0';
        if (buf.len > max)
            return -EFBIG;
    }
    if (ret_len)
        *ret_len = buf.len;
    *ret_data = strbuf_steal(&buf);
    return 0;
}

int io_write_all(int fd, const void *data, size_t len)
{
    const char *p = data;

    while (len > 0) {
        ssize_t n = write(fd, p, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

int io_write_existing(int dirfd, const char *path, const char *data)
{
    _cleanup_close_ int fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    size_t len = strlen(data);
    ssize_t n;

    if (fd < 0)
        return -errno;
    do {
        n = write(fd, data, len);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    return (size_t)n == len ? 0 : -EIO;
}

/* Creates a new file beside PATH; its name is left in NAME. Returns the descriptor. */
static int open_temporary(int dirfd, const char *path, struct strbuf *name)
{
    int fd = -1;

    for (int i = 0; i < TEMPORARY_TRIES && fd < 0; i++) {
        strbuf_truncate(name, 0);
        strbuf_addf(name, "%s.tmp-%d-%d", path, (int)getpid(), i);
        fd = openat(dirfd, name->data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST)
            return -errno;
    }
    return fd < 0 ? -EEXIST : fd;
}

static int fill_file(int fd, const void *data, size_t len, mode_t mode, int durable)
{
    int r = io_write_all(fd, data, len);

    if (r < 0)
        return r;
    if (fchmod(fd, mode) < 0)
        return -errno;
    if (durable && fsync(fd) < 0)
        return -errno;
    return 0;
}

/* Makes a rename inside the folder of PATH durable. */
static int sync_parent(int dirfd, const char *path)
{
    const char *slash = strrchr(path, '/');
    _cleanup_free_ char *folder = NULL;
    _cleanup_close_ int fd = -1;

    if (slash == NULL)
        folder = strdup(".");
    else
        folder = strndup(path, slash == path ? 1 : (size_t)(slash - path));
    if (folder == NULL)
        return -ENOMEM;
    fd = openat(dirfd, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) < 0)
        return -errno;
    return 0;
}

int io_write_file_atomic(int dirfd, const char *path, const void *data, size_t len, mode_t mode,
                         int durable)
{
    _cleanup_strbuf_ struct strbuf name = STRBUF_INIT;
    _cleanup_close_ int fd = open_temporary(dirfd, path, &name);
    int r;

    if (fd < 0)
        return fd;
    r = fill_file(fd, data, len, mode, durable);
    if (r == 0 && renameat(dirfd, name.data, dirfd, path) < 0)
        r = -errno;
    if (r < 0) {
        unlinkat(dirfd, name.data, 0);
        return r;
    }
    return durable ? sync_parent(dirfd, path) : 0;
}

static int make_folder(const char *path, mode_t mode)
{
    struct stat st;

    if (mkdir(path, mode) == 0)
        return 0;
    if (errno != EEXIST)
        return -errno;
    if (stat(path, &st) < 0)
        return -errno;
    return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

int io_mkdirs(const char *path, mode_t mode)
{
    _cleanup_free_ char *part = strdup(path);
    int r;

    if (part == NULL)
        return -ENOMEM;
    for (char *p = part; *p; p++) {
        if (*p != '/' || p == part)
            continue;
        *p = '\0';
        r = make_folder(part, mode);
        /* A parent may exist where we may not write: only the last one has to be made. */
        if (r < 0 && r != -EACCES && r != -EROFS && r != -EPERM)
            return r;
        *p = '/';
    }
    return make_folder(part, mode);
}
