/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How busy real devices are, and whose processes keep them so, read from the driver again and
 * again.
 *
 * What is read. The driver tells for each device which part of a recent window had a kernel on it,
 * and for each process which part of the device it used; windows are a sixth of a second to a
 * second long. A reader that looks once a second takes each window for the time since it looked
 * last, so busy time is an estimate: exact for steady work, off by what changed between two looks
 * for other work. A pause of more than GPU_TELEMETRY_GAP_MS between two looks is not filled in:
 * what nobody saw counts neither as busy nor as idle (`known_ns` does not grow).
 *
 * Where the device has counters of what its parts did, they are read too (gpu/gpm.h).
 *
 * What is not known is -1 and stays apart from 0. Under MPS the driver names the server's process
 * and not the clients; only the device's own figures hold then.
 *
 *     struct gpu_telemetry *t;
 *     r = gpu_telemetry_open(NULL, &t, &err);
 *     ... once a second: gpu_telemetry_read(t, clock_boot_ms());
 *     for each i: gpu_telemetry_device(t, i)->busy_ns ...
 *     gpu_telemetry_close(t);
 *
 * The library of the driver stays loaded meanwhile. One reader belongs to one thread; what the
 * functions return lives until the next read. Units: nanoseconds, milliseconds of CLOCK_BOOTTIME,
 * bytes, milliwatts, millijoules, whole percents, degrees Celsius, MHz.
 */
#ifndef ALLOT_GPU_TELEMETRY_H
#define ALLOT_GPU_TELEMETRY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "gpu/gpm.h"

#define GPU_TELEMETRY_GAP_MS 5000

/* One device. Figures of the moment are -1 when the driver does not tell them. */
struct gpu_device_reading {
    char uuid[48];
    char pci_bus_id[32]; /* "" when not known */
    char name[96];       /* of the product */
    int32_t minor;       /* N of /dev/nvidiaN */
    int64_t read_ms;     /* when, 0 = never */
    int32_t busy_percent;
    int32_t memory_busy_percent; /* of the time in which memory was read or written */
    int64_t memory_total, memory_used, memory_reserved, memory_free;
    int64_t power_mw, energy_mj;
    int32_t temperature_c;
    int32_t sm_clock_mhz, memory_clock_mhz;
    struct gpu_activity activity; /* since the read before */
    int64_t busy_ns;              /* sum since the reader was opened */
    int64_t known_ns;             /* of how much time that is known */
};

/* One process on one device, in the time since the read before. */
struct gpu_process_reading {
    pid_t pid;
    int32_t device;       /* index */
    int64_t busy_ns;      /* of this interval */
    int64_t memory_bytes; /* that it holds, -1 not known */
};

struct gpu_telemetry;

/* LIBRARY: of the driver's management, NULL = the machine's own. -ENOENT: no driver answers. -EIO:
 * it answers with an error. */
int gpu_telemetry_open(const char *library, struct gpu_telemetry **ret_telemetry, struct err *err);
/* NULL is fine. */
void gpu_telemetry_close(struct gpu_telemetry *t);

/*
 * Reads all devices and processes at NOW_MS, which must not run backwards. A device that does not
 * answer has -1 in everything and the others go on; -EIO when none does.
 */
int gpu_telemetry_read(struct gpu_telemetry *t, int64_t now_ms);

/* Devices of this machine, at most 64. */
int32_t gpu_telemetry_device_count(const struct gpu_telemetry *t);
/* INDEX as the driver numbers them, below the count. */
const struct gpu_device_reading *gpu_telemetry_device(const struct gpu_telemetry *t, int32_t index);
/* All processes that the driver told of in the last read, by device. */
const struct gpu_process_reading *gpu_telemetry_processes(const struct gpu_telemetry *t,
                                                          size_t *ret_count);
#endif
