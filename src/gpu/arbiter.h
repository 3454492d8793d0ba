/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may use a shared device next, among tasks whose agents are different processes.
 *
 * The agents of one device share a file: the slices (slices.h), and who takes part. There is no
 * process in the middle that could be away or late: each agent tells what it sees of its own task,
 * decides the next turn for all with what the others have told, and takes its own answer.
 *
 *     gpu_arbiter_join(file, boot_id, 250, now, &arbiter, &err);
 *     ... when `next` has come, or some milliseconds have passed while the task uses the device ...
 *     gpu_arbiter_step(arbiter, now, wants, busy_ns, &end_ns, &next);
 *     gpu_region_slice(region, device, end_ns);
 *     gpu_arbiter_leave(arbiter);
 *
 * Death. The lock of the file is robust: who dies with it leaves a state that is whole enough, as
 * each field of slices.h may be anything. An agent that is gone, or stopped for a second, wants
 * nothing any more; what it had is given on. A file of an earlier boot is begun anew.
 *
 * Agents trust each other: the file is theirs alone (0600). One thread each. Units: nanoseconds of
 * CLOCK_BOOTTIME, milli-GPU.
 */
#ifndef ALLOT_GPU_ARBITER_H
#define ALLOT_GPU_ARBITER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "gpu/slices.h"

struct gpu_arbiter;

/* Takes part in FILE, which is made if it is missing, with MILLI of the device. -ENOSPC: as many as
 * can do; -EINVAL: MILLI is not 1..1000; or what the system says of the file. */
int gpu_arbiter_join(const char *file, const char *boot_id, uint32_t milli, uint64_t now,
                     struct gpu_arbiter **ret_arbiter, struct err *err);
/* NULL is fine. */
void gpu_arbiter_leave(struct gpu_arbiter *a);

/*
 * Tells at NOW whether the own task WANTS the device, and its BUSY_NS since it joined; decides.
 * RET_END_NS is until when it may submit, as gpu_slices_end() has it. Returns when to step again at
 * the latest while it wants the device, or GPU_SLICE_NEVER.
 */
uint64_t gpu_arbiter_step(struct gpu_arbiter *a, uint64_t now, bool wants, uint64_t busy_ns,
                          uint64_t *ret_end_ns);

/* How many take part. */
uint32_t gpu_arbiter_tenants(struct gpu_arbiter *a);

#endif
