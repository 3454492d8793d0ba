/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the driver said of one device of a node, at one moment.
 *
 * Plain data without pointers, so that a copy of an array is a copy of all. A figure that the
 * driver does not tell is -1, and stays apart from 0.
 */
#ifndef ALLOT_MODEL_READING_H
#define ALLOT_MODEL_READING_H

#include <stdint.h>

struct model_reading {
    int32_t device;      /* index on its node, as in model_node */
    int32_t minor;       /* N of /dev/nvidiaN */
    char uuid[48];       /* as the driver says it */
    char pci_bus_id[32]; /* "" = not known */
    char name[96];       /* of the product: "NVIDIA H100 80GB HBM3" */
    int64_t busy_percent, memory_busy_percent;
    int64_t memory_used, memory_free, memory_reserved; /* bytes */
    int64_t power_mw, energy_mj;                       /* energy: a counter */
    int64_t temperature_c;
    int64_t sm_clock_mhz, memory_clock_mhz;
    /* What its parts did in the last second, in millionths: see gpu/gpm.h. */
    int64_t engine_active_ppm, sm_active_ppm, sm_occupancy_ppm, tensor_active_ppm, dram_active_ppm;
};

#endif
