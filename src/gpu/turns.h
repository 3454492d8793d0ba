/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who of several tasks may use a device next, where each task has an owner of its own.
 *
 * The owners, supervisors of one node that trust each other, meet at a *board*: a file for each
 * device, mapped by all of them. Each has a row, in which it writes what its task wants and has
 * had, and reads until when the task may submit. One of them *leads*: it runs gpu_slices over all
 * rows and writes their slices. No process is needed for that but those that are there anyway:
 * the server may restart, and tasks that run alone need nobody.
 *
 *     r = gpu_turns_open(path, 250, true, &turns, &err);
 *     ... in a loop:
 *         gpu_region_use(region, device, &use);
 *         next = gpu_turns_step(turns, now, &use, &end);
 *         gpu_region_slice(region, device, end);
 *         ... sleep until next ...
 *     gpu_turns_close(turns);
 *
 * Death stops nobody. To lead, and to have a row, is to hold a lock of the file, which the system
 * takes back from the dead: the next to step leads, and a row whose lock is free is free. The
 * board has no locks of its own and nothing that two of them write; a new leader begins with what
 * it sees. A leader that lives but does not step for GPU_TURNS_STALE_NS is not waited for: until
 * it does, every other task may submit as it likes.
 *
 * A slice is given when the one before is over and its work is done, or has not been for as long
 * as a slice once more: so that a device is not divided further by its driver meanwhile, and what
 * is measured as busy is that.
 *
 * One board belongs to one thread. Units: nanoseconds of CLOCK_BOOTTIME, milli-GPU.
 */
#ifndef ALLOT_GPU_TURNS_H
#define ALLOT_GPU_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "gpu/region.h"

#define GPU_TURNS_STALE_NS UINT64_C(200000000)

struct gpu_turns;

/*
 * Takes a row for a task with MILLI of the device of the board at PATH, which is made if it is
 * missing; UNUSED_USABLE as of gpu_slices_init(), the same for all. 0 or negative errno with ERR:
 * -EINVAL MILLI is not 1..1000; -ENOSPC all rows are taken; -EPROTO not a board of ours; or as the
 * system says.
 */
int gpu_turns_open(const char *path, uint32_t milli, bool unused_usable,
                   struct gpu_turns **ret_turns, struct err *err);
/* Gives the row back, and the lead. NULL is fine. */
void gpu_turns_close(struct gpu_turns *turns);

/* Tells the others USE of our task at NOW and leads if nobody else does. *RET_END_NS is what
 * gpu_region_slice() is to be told. Returns when to step again at the latest. Never blocks. */
uint64_t gpu_turns_step(struct gpu_turns *turns, uint64_t now, const struct gpu_region_use *use,
                        uint64_t *ret_end_ns);

#endif
