/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Building the sandbox: the bubblewrap command line of a task, and its start.
 *
 * What a task sees:
 *   - the machine's root (or its image's), read-only;
 *   - fresh: /dev with the usual pseudo-devices, a terminal file system and the task's own
 *     devices; /dev/shm, /tmp; /proc of its own pid namespace; /sys read-only without control
 *     groups;
 *   - empty: everything the engine lists in `hide`. On the machine's root that is /home, /root,
 *     /run (sockets of root's daemons), /var/tmp, /var/log, /var/spool, /var/backups, and the
 *     platform's data folder (store, other tasks, other workloads' checkpoints);
 *   - its own folder as /home/task, its checkpoint folder, the workdir it asked for;
 *   - in /run/allot/gpu, which nobody can write to: the driver of its devices, or, if it holds
 *     parts of them, the shim as that, the agent's socket, and the driver for the shim.
 * Namespaces: mount, pid, ipc, uts, cgroup, and (by the init process) user. The network is the
 * machine's: services listen on it.
 */
#ifndef ALLOT_ENGINE_LOCAL_SUPERVISE_SANDBOX_H
#define ALLOT_ENGINE_LOCAL_SUPERVISE_SANDBOX_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "engine/local/cgroup.h"
#include "engine/local/supervise/folders.h"

struct sandbox {
    const char *data; /* launch record */
    size_t len;
    const struct folders *folders;
    const struct cgroup_set *cgroups;
    int launch;  /* launch record opened anew (not the locked one) */
    int control; /* init's end of the control socket */
    int log;     /* write end of the log's pipe */
    int agent;   /* socket of the sharing region, or -1 */
};

/*
 * Starts the monitor process of the sandbox (or, without bubblewrap, the init process itself) in
 * the task's control groups. The descriptors of S stay the caller's.
 */
int sandbox_start(const struct sandbox *s, pid_t *ret_pid, struct err *err);

#endif
