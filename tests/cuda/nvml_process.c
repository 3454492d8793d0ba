/* SPDX-License-Identifier: Apache-2.0 */
/* NVML: processes on a device, their memory and their utilisation. */
#include "nvml.h"

#include <stdlib.h>

#include "base/cleanup.h"

#define SERVER_PID 1 /* stands for the MPS server, to which activity is attributed */

NVML_EXPORT(nvmlDeviceGetComputeRunningProcesses);
NVML_EXPORT(nvmlDeviceGetComputeRunningProcesses_v2);
NVML_EXPORT(nvmlDeviceGetComputeRunningProcesses_v3);
NVML_EXPORT(nvmlDeviceGetGraphicsRunningProcesses_v3);
NVML_EXPORT(nvmlDeviceGetMPSComputeRunningProcesses_v3);
NVML_EXPORT(nvmlDeviceGetProcessUtilization);
NVML_EXPORT(nvmlDeviceGetProcessesUtilizationInfo);

/* Live processes that hold memory of device D, as LIST with room for DBL_PROCS. */
static uint32_t list_processes(struct dbl_shared *sh, uint32_t d, struct nvml_process *list)
{
    uint32_t count = 0;

    dbl_lock(sh);
    dbl_reap(sh);
    for (uint32_t i = 0; i < sh->procs_high; i++) {
        int pid = 0;

        if (!dbl_alive(sh, i, &pid) || sh->procs[i].swapped || dbl_held(sh, i, d) == 0)
            continue;
        list[count++] = (struct nvml_process){(uint32_t)pid, dbl_held(sh, i, d), NVML_NO_INSTANCE,
                                              NVML_NO_INSTANCE};
    }
    dbl_unlock(sh);
    return count;
}

/* The count of what there is into *count; whether it fits into what was there. */
static nvml_result settle_count(uint32_t there, uint32_t *count, const void *list)
{
    bool fits = list != NULL ? there <= *count : there == 0;

    *count = there;
    return fits ? NVML_OK : NVML_INSUFFICIENT_SIZE;
}

nvml_result nvmlDeviceGetComputeRunningProcesses_v2(struct nvml_device *device, uint32_t *count,
                                                    struct nvml_process *list)
{
    struct nvml_process all[DBL_PROCS];
    uint32_t d, there;
    nvml_result result = nvml_begin(device, &d);

    if (result != NVML_OK)
        return result;
    if (count == NULL)
        return NVML_INVALID_ARGUMENT;
    there = list_processes(nvml_machine(), d, all);
    result = settle_count(there, count, list);
    for (uint32_t i = 0; result == NVML_OK && i < there; i++)
        list[i] = all[i];
    return result;
}

nvml_result nvmlDeviceGetComputeRunningProcesses_v3(struct nvml_device *device, uint32_t *count,
                                                    struct nvml_process *list)
{
    return nvmlDeviceGetComputeRunningProcesses_v2(device, count, list);
}

nvml_result nvmlDeviceGetComputeRunningProcesses(struct nvml_device *device, uint32_t *count,
                                                 struct nvml_process_v1 *list)
{
    struct nvml_process all[DBL_PROCS];
    uint32_t d, there;
    nvml_result result = nvml_begin(device, &d);

    if (result != NVML_OK)
        return result;
    if (count == NULL)
        return NVML_INVALID_ARGUMENT;
    there = list_processes(nvml_machine(), d, all);
    result = settle_count(there, count, list);
    for (uint32_t i = 0; result == NVML_OK && i < there; i++)
        list[i] = (struct nvml_process_v1){all[i].pid, all[i].used};
    return result;
}

/* Nobody draws. */
nvml_result nvmlDeviceGetGraphicsRunningProcesses_v3(struct nvml_device *device, uint32_t *count,
                                                     struct nvml_process *list)
{
    uint32_t d;
    nvml_result result = nvml_begin(device, &d);

    if (result != NVML_OK)
        return result;
    if (count == NULL)
        return NVML_INVALID_ARGUMENT;
    *count = 0;
    return NVML_OK;
}

/* Clients of an MPS server: all, under MPS. */
nvml_result nvmlDeviceGetMPSComputeRunningProcesses_v3(struct nvml_device *device, uint32_t *count,
                                                       struct nvml_process *list)
{
    uint32_t d;
    nvml_result result = nvml_begin(device, &d);

    if (result != NVML_OK)
        return result;
    if (nvml_machine()->config.mode == DBL_MPS)
        return nvmlDeviceGetComputeRunningProcesses_v2(device, count, list);
    return nvmlDeviceGetGraphicsRunningProcesses_v3(device, count, list);
}

static uint32_t percent(uint64_t part, uint64_t whole)
{
    uint64_t p = (part * 100 + whole - 1) / whole;

    return p > 100 ? 100 : (uint32_t)p;
}

/* Who was busy on D in the last window that can be seen, if it ended after LAST_SEEN_US. */
static uint32_t list_samples(struct dbl_shared *sh, uint32_t d, uint64_t last_seen_us,
                             struct nvml_process_sample *list)
{
    uint64_t window, end_us, length = sh->config.window_ns;
    uint32_t count = 0;

    dbl_lock(sh);
    dbl_reap(sh);
    dbl_sim_run(sh);
    if (nvml_window(sh, &window) && (end_us = (window + 1) * length / 1000) > last_seen_us) {
        uint32_t server = percent(nvml_in_window(&sh->devices[d].meter, window).busy_ns, length);

        if (sh->config.mode == DBL_MPS && server > 0)
            list[count++] = (struct nvml_process_sample){SERVER_PID, end_us, server, 0, 0, 0};
        for (uint32_t i = 0; sh->config.mode != DBL_MPS && i < sh->procs_high; i++) {
            uint64_t busy = nvml_in_window(&sh->procs[i].meter[d], window).busy_ns;
            int pid = 0;

            if (busy > 0 && dbl_alive(sh, i, &pid))
                list[count++] = (struct nvml_process_sample){
                    (uint32_t)pid, end_us, percent(busy, length), 0, 0, 0};
        }
    }
    dbl_unlock(sh);
    return count;
}

nvml_result nvmlDeviceGetProcessUtilization(struct nvml_device *device,
                                            struct nvml_process_sample *list, uint32_t *count,
                                            uint64_t last_seen_us)
{
    struct nvml_process_sample all[DBL_PROCS];
    uint32_t d, there;
    nvml_result result = nvml_begin(device, &d);

    if (result != NVML_OK)
        return result;
    if (count == NULL)
        return NVML_INVALID_ARGUMENT;
    there = list_samples(nvml_machine(), d, last_seen_us, all);
    if (there == 0) {
        *count = 0;
        return NVML_NOT_FOUND;
    }
    result = settle_count(there, count, list);
    for (uint32_t i = 0; result == NVML_OK && i < there; i++)
        list[i] = all[i];
    return result;
}

nvml_result nvmlDeviceGetProcessesUtilizationInfo(struct nvml_device *device,
                                                  struct nvml_process_utils *utils)
{
    struct nvml_process_sample all[DBL_PROCS];
    uint32_t d, there;
    nvml_result result = nvml_begin(device, &d);

    if (result != NVML_OK)
        return result;
    if (utils == NULL)
        return NVML_INVALID_ARGUMENT;
    if (utils->version != NVML_UTILIZATION_V1)
        return NVML_VERSION_MISMATCH;
    there = list_samples(nvml_machine(), d, utils->last_seen_us, all);
    if (there == 0) {
        utils->count = 0;
        return NVML_NOT_FOUND;
    }
    result = settle_count(there, &utils->count, utils->list);
    for (uint32_t i = 0; result == NVML_OK && i < there; i++)
        utils->list[i] =
            (struct nvml_process_util){all[i].time_us, all[i].pid, all[i].sm, 0, 0, 0, 0, 0};
    return result;
}
