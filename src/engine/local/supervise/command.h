/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running one command inside the sandbox: the task's own, or one of an exec session.
 *
 * The caller is the sandbox's init process, which has already become the task's user. The child
 * gets its own session, default signals, the launch record's environment and working folder, and
 * the system call filter, then executes. Whether that worked is known when this returns: a
 * command that cannot be run is an error with a text for people, never a mysterious exit 127.
 */
#ifndef ALLOT_ENGINE_LOCAL_SUPERVISE_COMMAND_H
#define ALLOT_ENGINE_LOCAL_SUPERVISE_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

struct command {
    char *const *argv; /* NULL-terminated */
    char *const *env;  /* NULL-terminated, "KEY=value" */
    const char *cwd;
    int in, out, err; /* become 0, 1, 2 */
    bool terminal;    /* IN is a terminal to be the controlling one */
    bool filter;      /* install the system call filter */
};

/* Starts C. 0 and the child in RET_PID, which the caller waits for; or negative errno with ERR. */
int command_run(const struct command *c, pid_t *ret_pid, struct err *err);

#endif
