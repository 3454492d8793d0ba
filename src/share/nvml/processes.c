/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of processes, without those of other tasks.
 *
 * A task has its own process numbers: whoever can be found by one is of the task. Drivers list the
 * processes of a device by the numbers that the caller sees; those that it does not see are left
 * out, or stand there with a number that is nobody's.
 *
 * A caller that asks only how many there are is told of all; when it comes with room for as many,
 * it gets fewer, as when some have ended meanwhile.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "share/nvml/nvml.h"

static bool is_own(uint32_t pid)
{
    return pid > 0 && pid <= INT32_MAX && (kill((pid_t)pid, 0) == 0 || errno == EPERM);
}

/* Moves those entries of LIST up that are the task's, and counts them. PID_AT: bytes into one. */
static uint32_t keep_own(void *list, uint32_t count, size_t entry_bytes, size_t pid_at)
{
    uint8_t *entries = list;
    int before = errno;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint8_t *entry = entries + i * entry_bytes;
        uint32_t pid;

        memcpy(&pid, entry + pid_at, sizeof(pid));
        if (!is_own(pid))
            continue;
        memmove(entries + kept * entry_bytes, entry, entry_bytes);
        kept++;
    }
    errno = before;
    return kept;
}

static nvml_result listed_v1(nvml_result r, uint32_t *count, struct nvml_process_v1 *list)
{
    if (r == NVML_OK && list)
        *count = keep_own(list, *count, sizeof(*list), offsetof(struct nvml_process_v1, pid));
    return r;
}

static nvml_result listed(nvml_result r, uint32_t *count, struct nvml_process *list)
{
    if (r == NVML_OK && list)
        *count = keep_own(list, *count, sizeof(*list), offsetof(struct nvml_process, pid));
    return r;
}

nvml_result hook_nvmlDeviceGetComputeRunningProcesses(struct nvml_device *device, uint32_t *count,
                                                      struct nvml_process_v1 *list)
{
    return listed_v1(NVML_REAL(nvmlDeviceGetComputeRunningProcesses)(device, count, list), count,
                     list);
}

nvml_result hook_nvmlDeviceGetGraphicsRunningProcesses(struct nvml_device *device, uint32_t *count,
                                                       struct nvml_process_v1 *list)
{
    return listed_v1(NVML_REAL(nvmlDeviceGetGraphicsRunningProcesses)(device, count, list), count,
                     list);
}

nvml_result hook_nvmlDeviceGetMPSComputeRunningProcesses(struct nvml_device *device,
                                                         uint32_t *count,
                                                         struct nvml_process_v1 *list)
{
    return listed_v1(NVML_REAL(nvmlDeviceGetMPSComputeRunningProcesses)(device, count, list), count,
                     list);
}

/* Versions 2 and 3 have one layout. */
#define LISTED(symbol)                                                      \
    nvml_result hook_##symbol(struct nvml_device *device, uint32_t *count,  \
                              struct nvml_process *list)                    \
    {                                                                       \
        return listed(NVML_REAL(symbol)(device, count, list), count, list); \
    }

LISTED(nvmlDeviceGetComputeRunningProcesses_v2)
LISTED(nvmlDeviceGetComputeRunningProcesses_v3)
LISTED(nvmlDeviceGetGraphicsRunningProcesses_v2)
LISTED(nvmlDeviceGetGraphicsRunningProcesses_v3)
LISTED(nvmlDeviceGetMPSComputeRunningProcesses_v2)
LISTED(nvmlDeviceGetMPSComputeRunningProcesses_v3)

nvml_result hook_nvmlDeviceGetRunningProcessDetailList(struct nvml_device *device,
                                                       struct nvml_process_details *details)
{
    nvml_result r = NVML_REAL(nvmlDeviceGetRunningProcessDetailList)(device, details);

    if (r == NVML_OK && details->list)
        details->count = keep_own(details->list, details->count, sizeof(*details->list),
                                  offsetof(struct nvml_process_detail, pid));
    return r;
}

/* None is an answer of its own. */
nvml_result hook_nvmlDeviceGetProcessUtilization(struct nvml_device *device,
                                                 struct nvml_process_sample *list, uint32_t *count,
                                                 uint64_t last_seen_us)
{
    nvml_result r = NVML_REAL(nvmlDeviceGetProcessUtilization)(device, list, count, last_seen_us);

    if (r != NVML_OK || list == NULL)
        return r;
    *count = keep_own(list, *count, sizeof(*list), offsetof(struct nvml_process_sample, pid));
    return *count > 0 ? NVML_OK : NVML_NOT_FOUND;
}

nvml_result hook_nvmlDeviceGetProcessesUtilizationInfo(struct nvml_device *device,
                                                       struct nvml_process_utils *utils)
{
    nvml_result r = NVML_REAL(nvmlDeviceGetProcessesUtilizationInfo)(device, utils);

    if (r != NVML_OK || utils->list == NULL)
        return r;
    utils->count = keep_own(utils->list, utils->count, sizeof(*utils->list),
                            offsetof(struct nvml_process_util, pid));
    return utils->count > 0 ? NVML_OK : NVML_NOT_FOUND;
}
