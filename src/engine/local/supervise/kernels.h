/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the Jupyter servers of a task say of their kernels: a sign of life that neither CPU nor
 * output shows, when a cell waits for something far away or takes a millisecond.
 *
 * A server leaves a file in its runtime folder that says where it listens and what lets one in. So
 * whoever runs a notebook has nothing to declare, and a task without that folder costs one look.
 *
 * Files and answers are the task's own, and it may make them up. Who asks is therefore a child of
 * the sandbox's init process, the task's user in the task's namespaces: it gets nowhere where the
 * task itself could not. It ends after KERNELS_PATIENCE_S whatever it waits for. What it says is
 * worth as much as CPU time, of which a task can waste as much as it likes, too.
 *
 * Not asked are servers with a certificate, behind a socket file, or with a password and no token:
 * of their kernels nothing is known, which is neither activity nor idleness.
 */
#ifndef ALLOT_ENGINE_LOCAL_SUPERVISE_KERNELS_H
#define ALLOT_ENGINE_LOCAL_SUPERVISE_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#define KERNELS_PATIENCE_S 3
#define KERNELS_TEXT_MAX 256

/* Where a server listens. */
struct kernels_server {
    char host[KERNELS_TEXT_MAX]; /* IPv4 */
    char base[KERNELS_TEXT_MAX]; /* of its paths: "/" */
    char token[KERNELS_TEXT_MAX];
    uint16_t port;
};

struct kernels {
    bool busy;     /* one executes */
    bool known;    /* all servers have answered, and `mark` is of them all */
    uint64_t mark; /* changes when a kernel has executed something, comes or goes */
};

/* The server of a runtime file's TEXT. False: it makes no sense, or cannot be asked. */
bool kernels_find_server(const char *text, struct kernels_server *ret_server);

/* Adds what a server's ANSWER, with its head, says to K. False: it is not an answer. */
bool kernels_add_answer(const char *answer, struct kernels *k);

/* Whether ENV ("KEY=value", NULL-terminated) leads to a runtime folder. */
bool kernels_exist(char *const *env);

/* Asks all servers that ENV leads to, and says so to the supervisor behind CONTROL (control.h).
 * Ends the process, which has no other threads. */
void kernels_report(char *const *env, int control) __attribute__((noreturn));

#endif
