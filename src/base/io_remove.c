/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rm -r for folders that hostile programs have filled.
 *
 * Links are never followed. A tree may be deeper than descriptors or the stack allow: at
 * DEPTH_MAX a folder is moved to the top of the tree and removed from there in a further pass,
 * so that each pass makes the tree flatter. Folders without permissions for their owner are
 * opened up first. Files that appear meanwhile end the work with -ENOTEMPTY after a while.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

#define DEPTH_MAX 32
#define IDLE_PASSES_MAX 16
#define MOVED_NAME_MAX 48

struct removal {
    int top_fd;          /* the root of the tree, where deep folders are moved to */
    unsigned long moved; /* folders moved in all passes; part of their names */
};

DEFINE_CLEANUP(DIR *, closedir, closedirp)

static int open_folder(int dirfd, const char *name)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(dirfd, name, flags);

    if (fd < 0 && errno == EACCES && fchmodat(dirfd, name, 0700, AT_SYMLINK_NOFOLLOW) == 0)
        fd = openat(dirfd, name, flags);
    if (fd < 0)
        return -errno;
    /* Deleting inside takes write and search permission; the deletion will tell if it fails. */
    (void)fchmod(fd, 0700);
    return fd;
}

static int move_to_top(struct removal *rm, int dirfd, const char *name)
{
    char target[MOVED_NAME_MAX];

    /* A folder takes write permission to itself to change its "..". */
    (void)fchmodat(dirfd, name, 0700, AT_SYMLINK_NOFOLLOW);
    do {
        snprintf(target, sizeof(target), ".removing-%lu", rm->moved++);
        if (renameat2(dirfd, name, rm->top_fd, target, RENAME_NOREPLACE) == 0)
            return 0;
    } while (errno == EEXIST);
    return -errno;
}

static int remove_children(struct removal *rm, int fd, int depth);

static int remove_entry(struct removal *rm, int dirfd, const char *name, int depth)
{
    _cleanup_close_ int fd = -1;
    int r;

    if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -errno;
    if (unlinkat(dirfd, name, AT_REMOVEDIR) == 0)
        return 0;
    if (errno != ENOTEMPTY && errno != EEXIST && errno != EACCES)
        return -errno;
    if (depth >= DEPTH_MAX)
        return move_to_top(rm, dirfd, name);
    fd = open_folder(dirfd, name);
    if (fd < 0)
        return fd;
    r = remove_children(rm, fd, depth);
    if (r < 0)
        return r;
    /* What appeared meanwhile is found by the next pass. */
    if (unlinkat(dirfd, name, AT_REMOVEDIR) < 0 && errno != ENOTEMPTY && errno != ENOENT)
        return -errno;
    return 0;
}

/* Removes all that FD holds. FD stays open. */
static int remove_children(struct removal *rm, int fd, int depth)
{
    _cleanup_(closedirp) DIR *dir = NULL;
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int first_error = 0;

    if (copy < 0)
        return -errno;
    dir = fdopendir(copy);
    if (dir == NULL) {
        close(copy);
        return -ENOMEM;
    }
    for (struct dirent *e; (e = readdir(dir));) {
        int r;

        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        r = remove_entry(rm, fd, e->d_name, depth + 1);
        if (first_error == 0)
            first_error = r;
    }
    return first_error;
}

int io_remove_tree(int dirfd, const char *path)
{
    _cleanup_close_ int fd = -1;
    struct removal rm;
    int idle = 0;

    if (unlinkat(dirfd, path, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -errno;
    fd = open_folder(dirfd, path);
    if (fd < 0)
        return fd;
    rm = (struct removal){.top_fd = fd};
    while (idle < IDLE_PASSES_MAX) {
        unsigned long before = rm.moved;
        int r = remove_children(&rm, fd, 0);

        if (r < 0)
            return r;
        if (unlinkat(dirfd, path, AT_REMOVEDIR) == 0 || errno == ENOENT)
            return 0;
        if (errno != ENOTEMPTY && errno != EEXIST)
            return -errno;
        idle = rm.moved == before ? idle + 1 : 0;
    }
    return -ENOTEMPTY;
}
