/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conversation of engine, supervisor and the init process inside the sandbox.
 *
 * Both connections are SOCK_SEQPACKET sockets whose messages are records (record.h) of at most
 * CONTROL_MESSAGE_MAX bytes with `op` as first key; one descriptor may travel with a message.
 *
 *   engine -> supervisor     stop {grace_ms}, exec {tty, arg...} + descriptor, gate {open},
 *                            look {}, driver {bytes...}: what the driver says that the task's
 *                            processes hold of each device
 *   supervisor -> engine     starting {}, running {started_boot_ms, closed, closed_ms}, then `end`
 *                            (below); on a new connection the present state is sent first.
 *                            gate {closed, closed_ms, pid..., obstacle..., held} answers gate;
 *                            wake {}: a program waits at the closed gate. use {submitted,
 *                            log_bytes, beyond, executed} answers look, and comes by itself when
 *                            a kernel executed something
 *   supervisor -> init       term {}, kill {}, exec as above, kernels {}
 *   init -> supervisor       started {boot_ms}, refused {message}, withdrawn {}, exited {status},
 *                            kernels {busy, mark}: see supervise/kernels.h; no mark: not known
 *
 * A `term` or `kill` may come before init has begun the command. Then it does not begin it and
 * says `withdrawn`; so what was asked to stop either never ran, or was signalled and tells its
 * exact wait status. Only an init that does not carry out a `kill` is killed itself.
 *
 * `end` carries the exit record as it is in the file: kind=exited|refused, exit_code,
 * exit_signal, stopped, cpu_ns, started_boot_ms, ended_boot_ms, boot_id, message.
 *
 * Who is alive is never asked on the socket: a supervisor holds an exclusive flock on its
 * `launch` file from before it is spawned (the engine takes it and hands it down) until it dies.
 */
#ifndef ALLOT_ENGINE_LOCAL_CONTROL_H
#define ALLOT_ENGINE_LOCAL_CONTROL_H

#include <stddef.h>
#include <sys/types.h>

#include "base/strbuf.h"

#define CONTROL_MESSAGE_MAX ((size_t)192 * 1024)

/* Names inside a task's folder. */
#define CONTROL_LAUNCH "launch"
#define CONTROL_SOCKET "socket"
#define CONTROL_EXIT "exit"
#define CONTROL_PIDS "pids"
#define CONTROL_WORK "work"

/* Descriptors that a supervisor is born with. */
#define CONTROL_FD_ENGINE 3
#define CONTROL_FD_LAUNCH 4

/*
 * Sends one message, with PASS_FD unless it is -1. Never blocks and never raises SIGPIPE.
 * 0 or negative errno (-EAGAIN: the peer does not read; -EMSGSIZE; -EPIPE).
 */
int control_send(int fd, const struct strbuf *message, int pass_fd);

/*
 * Receives one message into DATA of CONTROL_MESSAGE_MAX bytes. Returns its length, 0 when the
 * peer has gone and all that it sent has been received, -EAGAIN when there is none. RET_FD (may be
 * NULL: descriptors are closed) is -1 or a descriptor that the caller owns; RET_PID (may be NULL)
 * is the sender in our pid namespace where the socket has SO_PASSCRED, else 0.
 */
ssize_t control_recv(int fd, char *data, int *ret_fd, pid_t *ret_pid);

#endif
