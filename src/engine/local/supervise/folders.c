/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/supervise/folders.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "engine/local/control.h"
#include "engine/local/record.h"

static bool lies_in(const char *path, const char *folder)
{
    size_t n = strlen(folder);

    if (n == 1 && folder[0] == '/')
        return true;
    return strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* Acts on files as UID, GID; 0, 0 goes back. Only root can, and only root needs to. */
static void act_as(uid_t uid, gid_t gid)
{
    if (geteuid() != 0)
        return;
    if (uid != 0) {
        setfsgid(gid);
        setfsuid(uid);
    } else {
        setfsuid(uid);
        setfsgid(gid);
    }
}

static int check_place(const char *data, size_t len, const char *what, const char *path,
                       const char *real, struct err *err)
{
    static const char *const reserved[] = {"/proc", "/sys", "/dev"};
    const char *v, *root;
    size_t it = 0;

    while ((v = record_next(data, len, "forbid", &it)))
        if (lies_in(real, v) || lies_in(v, real))
            return err_set(err, -EPERM, ERR_FORBIDDEN, what, "choose another folder",
                           "%s '%s' holds or lies in the platform's own folder", what, path);
    for (size_t i = 0; i < ARRAY_LEN(reserved); i++)
        if (lies_in(real, reserved[i]))
            return err_set(err, -EPERM, ERR_FORBIDDEN, what, "choose another folder",
                           "%s '%s' is not an ordinary folder", what, path);
    it = 0;
    root = record_next(data, len, "trusted_root", &it);
    if (root == NULL)
        return 0;
    for (; root; root = record_next(data, len, "trusted_root", &it))
        if (lies_in(real, root))
            return 0;
    return err_set(err, -EPERM, ERR_FORBIDDEN, what,
                   "choose a folder beneath one of the server's workdir roots",
                   "%s '%s' is outside the folders that tasks may use", what, path);
}

/* May others than root replace ENTRY of the folder DIR? */
static bool is_replaceable(int dir, const char *entry)
{
    struct stat st, e;

    if (fstatat(dir, "", &st, AT_EMPTY_PATH) < 0)
        return true;
    if (st.st_uid == 0 && !(st.st_mode & S_IWOTH) && (!(st.st_mode & S_IWGRP) || st.st_gid == 0))
        return false;
    return st.st_uid != 0 || !(st.st_mode & S_ISVTX) ||
           fstatat(dir, entry, &e, AT_SYMLINK_NOFOLLOW) < 0 || e.st_uid != 0;
}

/*
 * bubblewrap finds the place of a mount by its path, as root. Whoever can replace a step of that
 * path by a link between our look and its own would have root make folders where the link leads.
 * So the first folder of the path whose next step others can replace is covered with an empty one
 * in the task's view, and the steps behind it are made there anew. COVER is empty if none is.
 */
static int find_cover(const char *what, const char *path, char cover[PATH_MAX], struct err *err)
{
    _cleanup_close_ int dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    _cleanup_free_ char *copy = strdup(path);
    size_t len = 0;
    char *save = NULL;

    cover[0] = '\0';
    if (copy == NULL || dir < 0 || strlen(path) >= PATH_MAX)
        return err_set(err, -ENOMEM, ERR_INTERNAL, what, NULL, "%s cannot be resolved", what);
    for (char *step = strtok_r(copy, "/", &save); step; step = strtok_r(NULL, "/", &save)) {
        int next;

        if (len > 0 && is_replaceable(dir, step))
            return 0;
        next = openat(dir, step, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0)
            return err_set(err, -errno, ERR_INVALID, what, "name the folder by its real path",
                           "%s '%s' leads over a link", what, path);
        close(dir);
        dir = next;
        len += (size_t)snprintf(cover + len, PATH_MAX - len, "/%s", step);
    }
    cover[0] = '\0';
    return 0;
}

static bool is_hidden(const char *data, size_t len, const char *path)
{
    const char *v;
    size_t it = 0;

    while ((v = record_next(data, len, "hide", &it)))
        if (lies_in(path, v))
            return true;
    return false;
}

/* Where PATH will be mounted needs no care in an image (nobody can change it), beneath what is
 * hidden (that is empty), and without root's rights. */
static int cover_named(const char *data, size_t len, const char *what, const char *path,
                       char cover[PATH_MAX], struct err *err)
{
    cover[0] = '\0';
    if (geteuid() != 0 || record_get(data, len, "bwrap") == NULL || record_get(data, len, "root") ||
        is_hidden(data, len, path))
        return 0;
    return find_cover(what, path, cover, err);
}

/* Opens a folder that a person named. CREATE: make it if its parent lets the task's user. */
static int open_named(const char *data, size_t len, const char *what, const char *path, bool create,
                      const struct folders *f, int *ret_fd, struct err *err)
{
    bool trusted = record_get(data, len, "trusted_root") != NULL;
    char link[64], real[PATH_MAX];
    _cleanup_close_ int fd = -1;
    ssize_t n;
    int e, r;

    if (!trusted)
        act_as(f->uid, f->gid);
    fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT && create && mkdir(path, 0700) == 0) {
        fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0 && trusted && geteuid() == 0 &&
            fchownat(fd, "", f->uid, f->gid, AT_EMPTY_PATH) < 0)
            fd = -1;
    }
    e = errno;
    if (!trusted)
        act_as(0, 0);
    if (fd < 0)
        return err_set(err, -e, ERR_INVALID, what,
                       "name a folder that exists and is open to the task's user",
                       "%s '%s' cannot be used: %s", what, path, strerror(e));
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, real, sizeof(real) - 1);
    if (n < 0)
        return err_set(err, -errno, ERR_INTERNAL, what, NULL, "%s '%s' cannot be resolved", what,
                       path);
    real[n] = '\0';
    r = check_place(data, len, what, path, real, err);
    if (r < 0)
        return r;
    *ret_fd = steal_fd(&fd);
    return 0;
}

/* A folder of ours, given to the task's user. */
static int open_own(int dirfd, const char *path, const struct folders *f, int *ret_fd,
                    struct err *err)
{
    _cleanup_close_ int fd = -1;
    struct stat st;

    if (mkdirat(dirfd, path, 0700) < 0 && errno != EEXIST)
        return err_set(err, -errno, ERR_UNAVAILABLE, NULL, NULL, "folder '%s' cannot be made: %s",
                       path, strerror(errno));
    fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set(err, -errno, ERR_UNAVAILABLE, NULL, NULL, "folder '%s' cannot be opened: %s",
                       path, strerror(errno));
    if (geteuid() == 0 && st.st_uid != f->uid && fchown(fd, f->uid, f->gid) < 0)
        return err_set(err, -errno, ERR_UNAVAILABLE, NULL, NULL,
                       "folder '%s' cannot be given to user %d: %s", path, (int)f->uid,
                       strerror(errno));
    *ret_fd = steal_fd(&fd);
    return 0;
}

/* Beneath a trusted root the task acts as the person whose folder it works in. */
static int adopt_owner(const char *data, size_t len, struct folders *f, struct err *err)
{
    struct stat st;

    if (f->workdir < 0 || record_get(data, len, "trusted_root") == NULL || geteuid() != 0)
        return 0;
    if (fstatat(f->workdir, "", &st, AT_EMPTY_PATH) < 0)
        return err_set(err, -errno, ERR_INTERNAL, "workdir", NULL, "workdir cannot be examined");
    if (st.st_uid != 0) {
        f->uid = st.st_uid;
        f->gid = st.st_gid;
    }
    return 0;
}

/* Is FOLDER the folder OF, or beneath it? False for -1. */
static bool is_inside(int folder, int of)
{
    _cleanup_close_ int at = folder < 0 || of < 0 ? -1 : fcntl(folder, F_DUPFD_CLOEXEC, 3);
    struct stat wanted, st, last = {0};

    if (at < 0 || fstat(of, &wanted) < 0)
        return false;
    while (fstat(at, &st) == 0 && (st.st_ino != last.st_ino || st.st_dev != last.st_dev)) {
        int up;

        if (st.st_ino == wanted.st_ino && st.st_dev == wanted.st_dev)
            return true;
        last = st;
        up = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (up < 0)
            return false;
        close(at);
        at = up;
    }
    return false;
}

static void drop(int *fd, char *cover)
{
    close(*fd);
    *fd = -1;
    cover[0] = '\0';
}

int folders_open(const char *data, size_t len, int dirfd, struct folders *ret_folders,
                 struct err *err)
{
    struct folders f = {.uid = (uid_t)record_get_i64(data, len, "uid", geteuid()),
                        .gid = (gid_t)record_get_i64(data, len, "gid", getegid()),
                        .work = -1,
                        .workdir = -1,
                        .checkpoint = -1};
    const char *workdir = record_get(data, len, "workdir");
    const char *named = record_get(data, len, "checkpoint");
    const char *own = record_get(data, len, "own_checkpoint");
    int r = 0;

    if (workdir)
        r = open_named(data, len, "workdir", workdir, false, &f, &f.workdir, err);
    if (r == 0 && workdir)
        r = cover_named(data, len, "workdir", workdir, f.workdir_cover, err);
    if (r == 0)
        r = adopt_owner(data, len, &f, err);
    if (r == 0)
        r = open_own(dirfd, CONTROL_WORK, &f, &f.work, err);
    if (r == 0 && named)
        r = open_named(data, len, "checkpoint_dir", named, true, &f, &f.checkpoint, err);
    if (r == 0 && named)
        r = cover_named(data, len, "checkpoint_dir", named, f.checkpoint_cover, err);
    else if (r == 0 && own)
        r = open_own(AT_FDCWD, own, &f, &f.checkpoint, err);
    if (r < 0) {
        cleanup_close(&f.work);
        cleanup_close(&f.workdir);
        cleanup_close(&f.checkpoint);
        return r;
    }
    /* One in the other is seen through it, and has no place that only we could change. */
    if (named && is_inside(f.checkpoint, f.workdir))
        drop(&f.checkpoint, f.checkpoint_cover);
    else if (named && is_inside(f.workdir, f.checkpoint))
        drop(&f.workdir, f.workdir_cover);
    *ret_folders = f;
    return 0;
}
