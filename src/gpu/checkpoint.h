/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moving what processes hold on devices to host memory and back, by the driver's checkpoints
 * (CUDA 12.8, driver 570 and later).
 *
 * A process goes RUNNING -> LOCKED -> CHECKPOINTED and back the same way. The driver keeps these
 * states; so both functions below ask it where a process is, go on from there, and may be called
 * again after whoever called them was killed.
 *
 * Processes of a task go together: all or none. One that has ended meanwhile has nothing to move.
 * On an error the driver does not try to leave a process in a good state: such a process is lost,
 * its next call of the driver never returns, and all that is left is to end it.
 *
 *     struct gpu_checkpoint *c;
 *     r = gpu_checkpoint_open(library, &c, &err);      once in a process: starts the driver
 *     r = gpu_checkpoint_suspend(c, pids, count, 5000, &err);
 *     r = gpu_checkpoint_resume(c, pids, count, &err);
 *
 * Calls block for as long as the copies take. Thread-safe. Process ids are those of the caller's
 * pid namespace. Errors of both: -EIO: a process is lost.
 */
#ifndef ALLOT_GPU_CHECKPOINT_H
#define ALLOT_GPU_CHECKPOINT_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

struct gpu_checkpoint;

/* LIBRARY: path of the driver's libcuda.so.1. -ENOENT: it cannot be loaded; -EOPNOTSUPP: it cannot
 * do this; -EIO: it does not start. */
int gpu_checkpoint_open(const char *library, struct gpu_checkpoint **ret_checkpoint,
                        struct err *err);

/*
 * Moves all that PIDS hold to host memory. -EBUSY: work did not end within LOCK_MS, or one of them
 * is only just starting; -EOPNOTSUPP, -ENOMEM: as the driver says. After these they run on.
 */
int gpu_checkpoint_suspend(struct gpu_checkpoint *c, const pid_t *pids, size_t count,
                           unsigned lock_ms, struct err *err);

/* Moves it back to the devices where it was, and lets them run. -ENOMEM: a device has no room;
 * those that had none stay as they were. */
int gpu_checkpoint_resume(struct gpu_checkpoint *c, const pid_t *pids, size_t count,
                          struct err *err);

#endif
