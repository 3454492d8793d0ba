/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the binary interface of NVML (libnvidia-ml.so.1) looks like, in our own words: as much of
 * it as the double implements and what stands in front of the driver hooks. As in
 * "share/cuda_abi.h" there is one type per entry point, `fn_nvmlInit_v2` for nvmlInit_v2, and a
 * structure that grows is a new structure.
 *
 * Every call but init, shutdown and the error strings answers NVML_UNINITIALIZED before an init.
 * Lists are asked for twice: with a count of 0 the count is written and the answer is
 * NVML_INSUFFICIENT_SIZE, unless the list is empty. Units: bytes; milliwatts; millijoules;
 * microseconds in time stamps; whole percents; degrees Celsius; MHz.
 */
#ifndef ALLOT_SHARE_NVML_ABI_H
#define ALLOT_SHARE_NVML_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef int nvml_result;

enum {
    NVML_OK = 0,
    NVML_UNINITIALIZED = 1,
    NVML_INVALID_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NO_PERMISSION = 4,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_DRIVER_NOT_LOADED = 9,
    NVML_FUNCTION_NOT_FOUND = 13,
    NVML_GPU_IS_LOST = 15,
    NVML_VERSION_MISMATCH = 25,
    NVML_UNKNOWN = 999
};

#define NVML_MEMORY_V2 UINT32_C(0x02000028)      /* size and version in one */
#define NVML_UTILIZATION_V1 UINT32_C(0x01000018) /* of struct nvml_process_utils */
#define NVML_NO_INSTANCE UINT32_C(0xffffffff)    /* gpu and compute instance without MIG */
#define NVML_VALUE_UNKNOWN UINT64_MAX            /* memory that cannot be told */
#define NVML_TEMPERATURE_GPU 0

#define NVML_GPM_SUPPORT_V1 1
#define NVML_GPM_METRICS_V1 1
#define NVML_GPM_METRICS_MAX 333

enum {
    NVML_GPM_GRAPHICS_UTIL = 1,
    NVML_GPM_SM_UTIL = 2,
    NVML_GPM_SM_OCCUPANCY = 3,
    NVML_GPM_ANY_TENSOR_UTIL = 5,
    NVML_GPM_DRAM_BW_UTIL = 10
};

struct nvml_device;

struct nvml_memory {
    uint64_t total, free, used; /* used contains what the driver reserves */
};

struct nvml_memory_v2 {
    uint32_t version; /* NVML_MEMORY_V2, set by the caller */
    uint64_t total, reserved, free, used;
};

struct nvml_rates {
    uint32_t gpu, memory;
};

struct nvml_pci_v2 {
    char bus_id[16];
    uint32_t domain, bus, device, id, subsystem;
    uint32_t reserved[4];
};

struct nvml_pci {
    char bus_id_legacy[16];
    uint32_t domain, bus, device, id, subsystem;
    char bus_id[32];
};

struct nvml_process_v1 {
    uint32_t pid;
    uint64_t used;
};

struct nvml_process { /* v2 and v3 */
    uint32_t pid;
    uint64_t used;
    uint32_t gpu_instance, compute_instance;
};

struct nvml_process_detail {
    uint32_t pid;
    uint64_t used;
    uint32_t gpu_instance, compute_instance;
    uint64_t used_protected;
};

struct nvml_process_details {
    uint32_t version;
    uint32_t mode; /* which processes */
    uint32_t count;
    struct nvml_process_detail *list;
};

struct nvml_process_sample {
    uint32_t pid;
    uint64_t time_us;
    uint32_t sm, memory, encoder, decoder;
};

struct nvml_process_util {
    uint64_t time_us;
    uint32_t pid;
    uint32_t sm, memory, encoder, decoder, jpeg, ofa;
};

struct nvml_process_utils {
    uint32_t version;
    uint32_t count; /* room, then how many there are */
    uint64_t last_seen_us;
    struct nvml_process_util *list;
};

struct nvml_gpm_support {
    uint32_t version, supported;
};

struct nvml_gpm_sample; /* the library's, of its counters at one moment */

struct nvml_gpm_metric {
    uint32_t metric;    /* which, set by the caller */
    nvml_result result; /* of this one alone: the value holds with NVML_OK */
    double value;       /* per cent for those below */
    const char *short_name, *long_name, *unit;
};

/* The list has grown with the metrics, under one version; drivers look at the first `count`. */
struct nvml_gpm_metrics {
    uint32_t version, count;
    struct nvml_gpm_sample *earlier, *later; /* of one device */
    struct nvml_gpm_metric list[NVML_GPM_METRICS_MAX];
};

_Static_assert(sizeof(struct nvml_memory_v2) == 40, "ABI");
_Static_assert(sizeof(struct nvml_pci) == 68 && sizeof(struct nvml_pci_v2) == 52, "ABI");
_Static_assert(sizeof(struct nvml_process) == 24, "ABI");
_Static_assert(sizeof(struct nvml_process_detail) == 32, "ABI");
_Static_assert(sizeof(struct nvml_process_details) == 24, "ABI");
_Static_assert(sizeof(struct nvml_process_sample) == 32, "ABI");
_Static_assert(sizeof(struct nvml_process_util) == 40, "ABI");
_Static_assert(sizeof(struct nvml_process_utils) == 24, "ABI");
_Static_assert(sizeof(struct nvml_gpm_metric) == 40, "ABI");
_Static_assert(offsetof(struct nvml_gpm_metrics, list) == 24, "ABI");

/* Library. */
typedef nvml_result fn_nvmlInit_v2(void);
typedef fn_nvmlInit_v2 fn_nvmlInit;
typedef nvml_result fn_nvmlInitWithFlags(uint32_t flags);
typedef nvml_result fn_nvmlShutdown(void);
typedef const char *fn_nvmlErrorString(nvml_result code);
typedef nvml_result fn_nvmlSystemGetDriverVersion(char *text, uint32_t bytes);
typedef nvml_result fn_nvmlSystemGetNVMLVersion(char *text, uint32_t bytes);
typedef nvml_result fn_nvmlSystemGetCudaDriverVersion(int *ret_version);
typedef fn_nvmlSystemGetCudaDriverVersion fn_nvmlSystemGetCudaDriverVersion_v2;

/* Devices. */
typedef nvml_result fn_nvmlDeviceGetCount_v2(uint32_t *ret_count);
typedef fn_nvmlDeviceGetCount_v2 fn_nvmlDeviceGetCount;
typedef nvml_result fn_nvmlDeviceGetHandleByIndex_v2(uint32_t index,
                                                     struct nvml_device **ret_device);
typedef fn_nvmlDeviceGetHandleByIndex_v2 fn_nvmlDeviceGetHandleByIndex;
typedef nvml_result fn_nvmlDeviceGetHandleByUUID(const char *uuid, struct nvml_device **ret_device);
typedef nvml_result fn_nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id,
                                                        struct nvml_device **ret_device);
typedef nvml_result fn_nvmlDeviceGetName(struct nvml_device *device, char *text, uint32_t bytes);
typedef fn_nvmlDeviceGetName fn_nvmlDeviceGetUUID;
typedef fn_nvmlDeviceGetName fn_nvmlDeviceGetSerial;
typedef nvml_result fn_nvmlDeviceGetIndex(struct nvml_device *device, uint32_t *ret_value);
typedef fn_nvmlDeviceGetIndex fn_nvmlDeviceGetMinorNumber;
typedef nvml_result fn_nvmlDeviceGetPciInfo_v3(struct nvml_device *device,
                                               struct nvml_pci *ret_pci);
typedef nvml_result fn_nvmlDeviceGetPciInfo_v2(struct nvml_device *device,
                                               struct nvml_pci_v2 *ret_pci);
typedef nvml_result fn_nvmlDeviceGetMemoryInfo(struct nvml_device *device,
                                               struct nvml_memory *ret_memory);
typedef nvml_result fn_nvmlDeviceGetMemoryInfo_v2(struct nvml_device *device,
                                                  struct nvml_memory_v2 *memory);
typedef nvml_result fn_nvmlDeviceGetUtilizationRates(struct nvml_device *device,
                                                     struct nvml_rates *ret_rates);
typedef nvml_result fn_nvmlDeviceGetCudaComputeCapability(struct nvml_device *device,
                                                          int *ret_major, int *ret_minor);
typedef nvml_result fn_nvmlDeviceGetPowerUsage(struct nvml_device *device, uint32_t *ret_mw);
typedef fn_nvmlDeviceGetPowerUsage fn_nvmlDeviceGetEnforcedPowerLimit;
typedef fn_nvmlDeviceGetPowerUsage fn_nvmlDeviceGetPowerManagementLimit;
typedef nvml_result fn_nvmlDeviceGetTotalEnergyConsumption(struct nvml_device *device,
                                                           uint64_t *ret_mj);
typedef nvml_result fn_nvmlDeviceGetTemperature(struct nvml_device *device, int sensor,
                                                uint32_t *ret_celsius);
typedef nvml_result fn_nvmlDeviceGetClockInfo(struct nvml_device *device, int clock,
                                              uint32_t *ret_mhz);
typedef fn_nvmlDeviceGetClockInfo fn_nvmlDeviceGetMaxClockInfo;
typedef nvml_result fn_nvmlDeviceGetMigMode(struct nvml_device *device, uint32_t *ret_current,
                                            uint32_t *ret_pending);
typedef nvml_result fn_nvmlDeviceGetPersistenceMode(struct nvml_device *device, int *ret_mode);
typedef fn_nvmlDeviceGetPersistenceMode fn_nvmlDeviceGetComputeMode;
typedef nvml_result fn_nvmlGpmQueryDeviceSupport(struct nvml_device *device,
                                                 struct nvml_gpm_support *support);
typedef nvml_result fn_nvmlGpmSampleAlloc(struct nvml_gpm_sample **ret_sample);
typedef nvml_result fn_nvmlGpmSampleFree(struct nvml_gpm_sample *sample);
typedef nvml_result fn_nvmlGpmSampleGet(struct nvml_device *device, struct nvml_gpm_sample *sample);
typedef nvml_result fn_nvmlGpmMetricsGet(struct nvml_gpm_metrics *metrics);

/* Processes; pids are those that the caller sees. */
typedef nvml_result fn_nvmlDeviceGetComputeRunningProcesses(struct nvml_device *device,
                                                            uint32_t *count,
                                                            struct nvml_process_v1 *list);
typedef fn_nvmlDeviceGetComputeRunningProcesses fn_nvmlDeviceGetGraphicsRunningProcesses;
typedef fn_nvmlDeviceGetComputeRunningProcesses fn_nvmlDeviceGetMPSComputeRunningProcesses;
typedef nvml_result fn_nvmlDeviceGetComputeRunningProcesses_v2(struct nvml_device *device,
                                                               uint32_t *count,
                                                               struct nvml_process *list);
typedef fn_nvmlDeviceGetComputeRunningProcesses_v2 fn_nvmlDeviceGetComputeRunningProcesses_v3;
typedef fn_nvmlDeviceGetComputeRunningProcesses_v2 fn_nvmlDeviceGetGraphicsRunningProcesses_v2;
typedef fn_nvmlDeviceGetComputeRunningProcesses_v2 fn_nvmlDeviceGetGraphicsRunningProcesses_v3;
typedef fn_nvmlDeviceGetComputeRunningProcesses_v2 fn_nvmlDeviceGetMPSComputeRunningProcesses_v2;
typedef fn_nvmlDeviceGetComputeRunningProcesses_v2 fn_nvmlDeviceGetMPSComputeRunningProcesses_v3;
typedef nvml_result fn_nvmlDeviceGetRunningProcessDetailList(struct nvml_device *device,
                                                             struct nvml_process_details *details);
typedef nvml_result fn_nvmlDeviceGetProcessUtilization(struct nvml_device *device,
                                                       struct nvml_process_sample *list,
                                                       uint32_t *count, uint64_t last_seen_us);
typedef nvml_result fn_nvmlDeviceGetProcessesUtilizationInfo(struct nvml_device *device,
                                                             struct nvml_process_utils *utils);

#endif
