/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the files of the NVIDIA driver are on this machine.
 *
 * The driver is more than libcuda.so.1: it loads others by name when a program needs them, such as
 * the compiler for PTX, which are of its own version and lie in its folder. What is shown of it to
 * a program in another root has to have these beside it.
 */
#ifndef ALLOT_GPU_DRIVER_H
#define ALLOT_GPU_DRIVER_H

#include "base/arena.h"

/* The driver's library NAME ("libcuda.so.1") as programs of this machine find it, links resolved,
 * in ARENA; NULL: there is none. */
const char *gpu_driver_library(const char *name, struct arena *arena);

/*
 * The libraries for computing that belong to the DRIVER at that path and are in its folder, under
 * the names by which they are loaded (paths, NULL at the end, in ARENA). Those of other versions
 * are left out, and so are the driver and NVML themselves.
 */
const char *const *gpu_driver_companions(const char *driver, struct arena *arena);

#endif
