/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What parts of a device were at work: NVIDIA's counters of GPU performance monitoring (GPM), which
 * Hopper and later devices have.
 *
 * The utilisation that every driver tells is the part of the time in which any kernel was on the
 * device, however small. GPM tells how many multiprocessors had work, how full they were, and what
 * tensor cores and memory did. The device keeps the counters; a figure is the difference of two
 * samples and so the mean of all the time between them.
 *
 *     gpm_open(&nvml, handle, &gpm);
 *     ... again and again: gpm_read(&nvml, handle, &gpm, &activity); of the time since the last
 *     gpm_close(&nvml, &gpm);
 *
 * A device or a driver without it, and a call that fails, make figures unknown and nothing else.
 */
#ifndef ALLOT_GPU_GPM_H
#define ALLOT_GPU_GPM_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/nvml.h"

/* Millionths, 0..1000000; -1 not known. */
struct gpu_activity {
    int64_t engine_ppm;    /* of the time: any graphics or compute work */
    int64_t sm_ppm;        /* of the multiprocessors' time: at least one warp */
    int64_t occupancy_ppm; /* of the warps that fit on them */
    int64_t tensor_ppm;    /* of the time: tensor cores */
    int64_t dram_ppm;      /* of the memory's bandwidth */
};

struct gpm {
    struct nvml_gpm_sample *last, *next; /* NULL: the device has none */
    bool begun;                          /* `last` is filled */
};

/* DEVICE's counters; none where it or the driver has none. */
void gpm_open(const struct nvml *n, struct nvml_device *device, struct gpm *ret_gpm);
/* Before the library is closed. */
void gpm_close(const struct nvml *n, struct gpm *g);

/* Since the read before; all unknown in the first, and in the first after one that failed. */
void gpm_read(const struct nvml *n, struct nvml_device *device, struct gpm *g,
              struct gpu_activity *ret_activity);

#endif
