/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the simulated libnvidia-ml.so.1. A handle is the place of a device in the file. The
 * library only reads: it takes no slot, and can be used beside the driver in one process.
 */
#ifndef ALLOT_TESTS_CUDA_NVML_H
#define ALLOT_TESTS_CUDA_NVML_H

#include <stdbool.h>

#include "share/nvml_abi.h"
#include "shared.h"

/* The entry points with default visibility. */
#define NVML_EXPORT(name) fn_##name name __attribute__((visibility("default")))

/* The machine while initialised, else NULL. */
struct dbl_shared *nvml_machine(void);

/*
 * The begin of a call about DEVICE: ret_index is its place. NVML_UNINITIALIZED,
 * NVML_INVALID_ARGUMENT, or a failure that a test asked for.
 */
nvml_result nvml_begin(const struct nvml_device *device, uint32_t *ret_index);

/* The last sampling window that can be seen now: windows are seen `lag_ns` after their end.
 * False: none yet. With the mutex, after a run. */
bool nvml_window(struct dbl_shared *sh, uint64_t *ret_window);

/* Busy time and SM time of METER in WINDOW. */
struct dbl_window nvml_in_window(const struct dbl_meter *meter, uint64_t window);

#endif
