/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices of this machine: real ones through the driver, or simulated ones.
 *
 * Real devices are listed by NVML, which is loaded with dlopen: a machine without a driver needs
 * nothing. How busy they are is read by telemetry.h.
 *
 * Simulated devices hold no work back and no work apart: they are numbers to schedule against.
 * Their busy time is the CPU time of the tasks that hold them, at most the tasks' share of the
 * elapsed time. Every such device is marked.
 *
 * Functions are thread-safe. Units: bytes, milli-GPU, nanoseconds.
 */
#ifndef ALLOT_GPU_GPU_H
#define ALLOT_GPU_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "model/node.h"

struct gpu_inventory {
    const struct model_device *devices; /* NULL when there is none */
    int32_t count;
    bool simulated;
    const char *driver; /* version of the NVIDIA driver that answered, or NULL */
    const char *notice; /* one sentence that people must read, or NULL */
};

/*
 * What SPEC asks for, into ARENA:
 *   NULL           the real devices; none (count 0) when no driver answers
 *   "auto:8xH100"  the real devices, or else simulated ones with a notice
 *   "8xH100"       simulated ones (model_devices_from_spec), even beside a driver
 * -EINVAL or -ERANGE for a bad spec, -EIO when a driver is there and does not work.
 */
int gpu_inventory(const char *spec, struct arena *arena, struct gpu_inventory *ret_inventory,
                  struct err *err);

/* Simulated devices alone. Their uuids are stable: "SIM-H100-0". */
int gpu_sim_inventory(const char *spec, struct arena *arena, struct gpu_inventory *ret_inventory,
                      struct err *err);

/* Real devices alone. -ENOENT: no driver answers. -EIO: it answers with an error. */
int gpu_nvml_inventory(struct arena *arena, struct gpu_inventory *ret_inventory, struct err *err);

/*
 * Busy time of simulated devices: min(CPU_NS, GPU_MILLI * ELAPSED_NS / 1000), never negative.
 * 0 when no device is held.
 */
int64_t gpu_sim_busy_ns(int64_t cpu_ns, int64_t gpu_milli, int64_t elapsed_ns);

#endif
