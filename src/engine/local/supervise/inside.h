/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The init process of a sandbox.
 *
 * bubblewrap builds the mounts and namespaces as root and executes this program as process 1 of
 * them. It becomes the task's user in a user namespace of its own (so nothing in the sandbox has
 * a right over the mounts that were built), runs the command, reaps orphans, forwards the stop
 * request to every process of the sandbox, starts exec sessions, and reports the command's exact
 * wait status. When it ends, the kernel kills whatever is left; when its supervisor dies, it
 * sees the closed socket and ends.
 *
 * It is not dumpable, so the task, which runs as the same user, cannot look into it or trace it.
 *
 * Without a sandbox (`mode=bare`) there is no pid namespace: it is a subreaper instead and hunts
 * its descendants through /proc before it ends.
 */
#ifndef ALLOT_ENGINE_LOCAL_SUPERVISE_INSIDE_H
#define ALLOT_ENGINE_LOCAL_SUPERVISE_INSIDE_H

#include <sys/types.h>

/* Descriptors it is born with, besides 0 (nothing), 1 and 2 (the log). */
#define INSIDE_FD_CONTROL 3
#define INSIDE_FD_LAUNCH 4
#define INSIDE_FD_SELF 5
#define INSIDE_ARGUMENT "inside"

/* Runs the task as UID, GID to its end. Exit code: 0 = done, 1 = refused or supervisor gone. */
int inside_main(uid_t uid, gid_t gid);

#endif
