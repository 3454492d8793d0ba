/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folders that a task may write to, and the user it runs as.
 *
 * A task never runs as root of the machine. Its user is the number that the engine chose for its
 * team (`uid` of the launch record). Folders that a person names (workdir, checkpoint folder)
 * are opened with that user's rights, every component of the path included, so that naming a
 * folder gives nothing that the machine does not give to everybody. Where the operator has
 * configured trusted roots (`trusted_root`), a named folder must lie beneath one of them, is
 * opened with the server's rights, and the task runs as the owner of its workdir (unless that
 * is root): that is how people work in their own home folders.
 *
 * A folder that holds or lies in the platform's data folder (`forbid`) is refused.
 *
 * Descriptors are opened once and handed to the sandbox as such, and a place that others could
 * swap for a link is not used: what surrounds it is covered in the task's view.
 */
#ifndef ALLOT_ENGINE_LOCAL_SUPERVISE_FOLDERS_H
#define ALLOT_ENGINE_LOCAL_SUPERVISE_FOLDERS_H

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

struct folders {
    uid_t uid;
    gid_t gid;
    int work;       /* the task's own folder */
    int workdir;    /* the folder that was asked for, or -1 */
    int checkpoint; /* or -1 */
    /* Folders that the sandbox covers with empty ones first, "" = none: see find_cover(). */
    char workdir_cover[PATH_MAX], checkpoint_cover[PATH_MAX];
};

/* Opens and makes them for the launch record DATA of the task in DIRFD. The caller closes. */
int folders_open(const char *data, size_t len, int dirfd, struct folders *ret_folders,
                 struct err *err);

#endif
