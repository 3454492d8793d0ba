/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hands the history that a server's store holds to the simulator, which reads files alone.
 *
 *     r = recorded_open("/var/lib/allot", &fd, path, &err);    path: "/proc/self/fd/5"
 */
#ifndef ALLOT_BIN_RECORDED_H
#define ALLOT_BIN_RECORDED_H

#include "base/err.h"

#define RECORDED_DEFAULT "/var/lib/allot"
#define RECORDED_PATH_MAX 32

/* The history of the store in FOLDER as a file in memory: RET_PATH (of RECORDED_PATH_MAX bytes)
 * leads to it for as long as RET_FD is open. */
int recorded_open(const char *folder, int *ret_fd, char *ret_path, struct err *err);

#endif
