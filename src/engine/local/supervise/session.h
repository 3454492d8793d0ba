/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One exec session: a process inside the sandbox between a command's terminal or pipes and the
 * client's socket, speaking the frames of net/exec_protocol.h.
 *
 * It is a child of the sandbox's init process and dies with the sandbox. Input is taken from the
 * client only as fast as the command reads it; output only as fast as the client does. When the
 * client goes away the command gets SIGHUP and, two seconds later, SIGKILL.
 */
#ifndef ALLOT_ENGINE_LOCAL_SUPERVISE_SESSION_H
#define ALLOT_ENGINE_LOCAL_SUPERVISE_SESSION_H

#include <stdbool.h>

#include "engine/local/supervise/command.h"

/* Runs C (its descriptors are ignored) and serves CLIENT until the end. Never returns. */
void session_run(const struct command *c, bool tty, int client) __attribute__((noreturn));

/* Tells CLIENT that nothing could be run. */
void session_fail(int client, const char *text);

#endif
