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
    if (r == 0)
        r = adopt_owner(data, len, &f, err);
    if (r == 0)
        r = open_own(dirfd, CONTROL_WORK, &f, &f.work, err);
    if (r == 0 && named)
        r = open_named(data, len, "checkpoint_dir", named, true, &f, &f.checkpoint, err);
    else if (r == 0 && own)
        r = open_own(AT_FDCWD, own, &f, &f.checkpoint, err);
    if (r < 0) {
        cleanup_close(&f.work);
        cleanup_close(&f.workdir);
        cleanup_close(&f.checkpoint);
        return r;
    }
    *ret_folders = f;
    return 0;
}
