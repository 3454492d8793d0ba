/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA's management library, loaded when it is there: a machine without a driver needs nothing.
 *
 *     struct nvml nvml;
 *     r = nvml_open(NULL, &nvml, &err);        -ENOENT: no driver answers
 *     r = nvml_check(&nvml, nvml.count(&n), "how many devices there are", &err);
 *     nvml_close(&nvml);
 *
 * The library counts who has opened it; one that stays open saves the driver's start, which takes
 * hundreds of milliseconds on real machines. Thread-safe, as the library is.
 */
#ifndef ALLOT_GPU_NVML_H
#define ALLOT_GPU_NVML_H

#include "base/err.h"
#include "share/nvml_abi.h"

#define NVML_TEXT_BYTES 96 /* enough for names, uuids and versions */

struct nvml {
    void *library;
    fn_nvmlInit_v2 *init;
    fn_nvmlShutdown *shutdown;
    fn_nvmlErrorString *error;
    fn_nvmlSystemGetDriverVersion *driver_version;
    fn_nvmlDeviceGetCount_v2 *count;
    fn_nvmlDeviceGetHandleByIndex_v2 *by_index;
    fn_nvmlDeviceGetName *name;
    fn_nvmlDeviceGetUUID *uuid;
    fn_nvmlDeviceGetMinorNumber *minor;
    fn_nvmlDeviceGetMemoryInfo *memory;

    /* NULL where the driver is too old for it. */
    fn_nvmlDeviceGetMemoryInfo_v2 *memory_v2;
    fn_nvmlDeviceGetPciInfo_v3 *pci;
    fn_nvmlDeviceGetUtilizationRates *rates;
    fn_nvmlDeviceGetPowerUsage *power;
    fn_nvmlDeviceGetTotalEnergyConsumption *energy;
    fn_nvmlDeviceGetTemperature *temperature;
    fn_nvmlDeviceGetClockInfo *clock;
    fn_nvmlDeviceGetProcessUtilization *process_busy;
    fn_nvmlDeviceGetComputeRunningProcesses_v3 *processes;
    fn_nvmlGpmQueryDeviceSupport *gpm_support;
    fn_nvmlGpmSampleAlloc *gpm_alloc;
    fn_nvmlGpmSampleFree *gpm_free;
    fn_nvmlGpmSampleGet *gpm_sample;
    fn_nvmlGpmMetricsGet *gpm_metrics;
};

/* Loads LIBRARY, or the driver's own (NULL), and initialises it. -ENOENT: no driver is here or
 * loaded. -EIO: it answers with an error, or lacks what every supported driver has. */
int nvml_open(const char *library, struct nvml *ret_nvml, struct err *err);
void nvml_close(struct nvml *nvml);

/* 0, or -EIO with "the NVIDIA driver cannot tell WHAT". */
int nvml_check(const struct nvml *nvml, nvml_result code, const char *what, struct err *err);

#endif
