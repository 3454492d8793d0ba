/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shim of NVML from inside: a libnvidia-ml.so.1 that shows a task its part of a device.
 *
 * What a monitor reads of memory is the part: its total, what all processes of the task hold of it,
 * what is left. Lists of processes have those that the task can see, which are its own. Everything
 * else is the driver's answer. Nothing is enforced here, so where no agent answers the driver's
 * figures are shown as they are.
 *
 * The limits are asked for by SHARE_LOOK (allot/share.h) when they are first needed, and stay
 * mapped: a monitor is no user of the devices. There is no gate either: it neither waits for a
 * suspended task nor wakes it.
 *
 * Hooks have the names and types of what they stand in front of, and are thread-safe.
 */
#ifndef ALLOT_SHARE_NVML_NVML_H
#define ALLOT_SHARE_NVML_NVML_H

#include <stdint.h>

#include "share/nvml_abi.h"
#include "share/nvml_symbols.h" /* made by trampolines.py */

/* NVML_HOOKS(X): X(symbol) for each symbol with a hook. */
#define NVML_HOOKS(X)                             \
    X(nvmlDeviceGetMemoryInfo)                    \
    X(nvmlDeviceGetMemoryInfo_v2)                 \
    X(nvmlDeviceGetComputeRunningProcesses)       \
    X(nvmlDeviceGetComputeRunningProcesses_v2)    \
    X(nvmlDeviceGetComputeRunningProcesses_v3)    \
    X(nvmlDeviceGetGraphicsRunningProcesses)      \
    X(nvmlDeviceGetGraphicsRunningProcesses_v2)   \
    X(nvmlDeviceGetGraphicsRunningProcesses_v3)   \
    X(nvmlDeviceGetMPSComputeRunningProcesses)    \
    X(nvmlDeviceGetMPSComputeRunningProcesses_v2) \
    X(nvmlDeviceGetMPSComputeRunningProcesses_v3) \
    X(nvmlDeviceGetRunningProcessDetailList)      \
    X(nvmlDeviceGetProcessUtilization)            \
    X(nvmlDeviceGetProcessesUtilizationInfo)

#define NVML_DECLARE_HOOK(symbol) fn_##symbol hook_##symbol;
NVML_HOOKS(NVML_DECLARE_HOOK)
#undef NVML_DECLARE_HOOK

/* What the trampolines read. */
extern void *nvml_entry[NVML_SYMBOLS];
/* Called by them: fills nvml_entry[SYMBOL]. */
void nvml_resolve(uint32_t symbol);

/* The driver's function, or NULL when this driver has none. */
void *nvml_real(enum nvml_symbol symbol);
/* The driver's own SYMBOL, which is there: its hook was called, or every driver has it. */
#define NVML_REAL(symbol) ((fn_##symbol *)nvml_real(SYM_##symbol))

#endif
