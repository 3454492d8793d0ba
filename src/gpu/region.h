/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's side of the sharing region of one task: its two files, its socket, its processes.
 *
 * A region is made before the task starts and lives in the process that owns the task. When that
 * dies the task is ended and tried again, so nothing of a region outlives it: its files are
 * anonymous memory, sealed so that no tenant can shrink them under us or write the limits.
 *
 * What a process says of itself is not believed: who it is comes from the socket (SO_PEERCRED), its
 * death from a pidfd. More sockets, messages or processes than there are slots are refused.
 *
 *     struct gpu_region *region;
 *     r = gpu_region_open(&config, &region, &err);
 *     ... in a loop: poll(gpu_region_fd(region), POLLIN); gpu_region_serve(region);
 *     gpu_region_close(region);
 *
 * One region belongs to one thread. Units: bytes, nanoseconds, milli-GPU. DEVICE is an index below
 * device_count.
 */
#ifndef ALLOT_GPU_REGION_H
#define ALLOT_GPU_REGION_H

#include <stdbool.h>
#include <stdint.h>

#include "allot/share.h"
#include "base/err.h"

struct gpu_region_device {
    uint8_t uuid[16];       /* as the driver says */
    uint64_t memory_limit;  /* SHARE_NO_LIMIT: none */
    uint64_t context_bytes; /* charge of a context until the driver's figure is known */
    uint32_t compute_milli; /* 1..1000 */
};

struct gpu_region_config {
    const char *folder; /* of the socket, which the task finds at SHARE_FOLDER; is made, mode 0755,
                           if it is missing */
    uint32_t flags;     /* SHARE_MEMORY, SHARE_COMPUTE */
    const struct gpu_region_device *devices;
    uint32_t device_count; /* at most SHARE_DEVICES */
    /* Called by gpu_region_serve() when a process of the task asks to be woken; may be NULL. */
    void (*wake)(void *ctx);
    void *ctx;
};

struct gpu_region;

/* 0 or negative errno with ERR: folder not usable, no memory, no pidfds in this kernel. */
int gpu_region_open(const struct gpu_region_config *config, struct gpu_region **ret_region,
                    struct err *err);
/* Stops serving. Processes keep what they have mapped. NULL is fine. */
void gpu_region_close(struct gpu_region *region);

/* Readable when there is something to serve. Owned by the region. */
int gpu_region_fd(const struct gpu_region *region);
/* Serves what has come in: new processes, messages, deaths. Never blocks. */
void gpu_region_serve(struct gpu_region *region);

/* Closes the gate (the next call of the driver waits, and asks for a wake) or opens it. */
void gpu_region_gate(struct gpu_region *region, bool open);

/* Bytes of DEVICE that the task holds, what is charged beyond its slots included. */
uint64_t gpu_region_held(const struct gpu_region *region, uint32_t device);
/* The same without what is charged beyond them. */
uint64_t gpu_region_charged(const struct gpu_region *region, uint32_t device);
/* Processes that are attached now. */
uint32_t gpu_region_processes(const struct gpu_region *region);
/* Their pids as seen from here, for the driver's figures of them: at most MAX, and how many. */
uint32_t gpu_region_pids(const struct gpu_region *region, int32_t *ret_pids, uint32_t max);

/* SHARE_HAS_... of all of them: why the task could not be suspended now. */
uint32_t gpu_region_obstacles(const struct gpu_region *region);

/* Charges BYTES of DEVICE that the driver counts and no process accounts for. */
void gpu_region_beyond(struct gpu_region *region, uint32_t device, uint64_t bytes);

/* Lets the task submit to DEVICE until END_NS of CLOCK_BOOTTIME (SHARE_NO_SLICE: as it likes; 0:
 * not at all), and wakes whoever waits for that. The same end once more is no news. */
void gpu_region_slice(struct gpu_region *region, uint32_t device, uint64_t end_ns);

/* What the task's processes say of their use of a device. */
struct gpu_region_use {
    uint64_t busy_ns; /* by ended processes too; never less than at the last look */
    bool waits;       /* somebody waits for a slice */
    bool working;     /* submitted work may still run */
    bool submitted;   /* something was submitted since the last look */
};
void gpu_region_use(struct gpu_region *region, uint32_t device, struct gpu_region_use *ret_use);

#endif
