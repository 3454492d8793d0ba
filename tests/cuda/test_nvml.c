/* SPDX-License-Identifier: Apache-2.0 */
/* NVML agrees with the driver about devices, memory, processes and busy time. */
#include <signal.h>
#include <string.h>

#include "harness.h"
#include "share/nvml_abi.h"

fn_nvmlInit_v2 nvmlInit_v2;
fn_nvmlShutdown nvmlShutdown;
fn_nvmlErrorString nvmlErrorString;
fn_nvmlDeviceGetCount_v2 nvmlDeviceGetCount_v2;
fn_nvmlDeviceGetHandleByIndex_v2 nvmlDeviceGetHandleByIndex_v2;
fn_nvmlDeviceGetHandleByUUID nvmlDeviceGetHandleByUUID;
fn_nvmlDeviceGetHandleByPciBusId_v2 nvmlDeviceGetHandleByPciBusId_v2;
fn_nvmlDeviceGetIndex nvmlDeviceGetIndex;
fn_nvmlDeviceGetMinorNumber nvmlDeviceGetMinorNumber;
fn_nvmlDeviceGetUUID nvmlDeviceGetUUID;
fn_nvmlDeviceGetName nvmlDeviceGetName;
fn_nvmlDeviceGetPciInfo_v3 nvmlDeviceGetPciInfo_v3;
fn_nvmlDeviceGetMemoryInfo nvmlDeviceGetMemoryInfo;
fn_nvmlDeviceGetMemoryInfo_v2 nvmlDeviceGetMemoryInfo_v2;
fn_nvmlDeviceGetUtilizationRates nvmlDeviceGetUtilizationRates;
fn_nvmlDeviceGetComputeRunningProcesses nvmlDeviceGetComputeRunningProcesses;
fn_nvmlDeviceGetComputeRunningProcesses_v3 nvmlDeviceGetComputeRunningProcesses_v3;
fn_nvmlDeviceGetProcessUtilization nvmlDeviceGetProcessUtilization;
fn_nvmlDeviceGetProcessesUtilizationInfo nvmlDeviceGetProcessesUtilizationInfo;
fn_nvmlDeviceGetPowerUsage nvmlDeviceGetPowerUsage;
fn_nvmlDeviceGetTemperature nvmlDeviceGetTemperature;
fn_nvmlDeviceGetClockInfo nvmlDeviceGetClockInfo;
fn_nvmlDeviceGetMigMode nvmlDeviceGetMigMode;
fn_nvmlGpmQueryDeviceSupport nvmlGpmQueryDeviceSupport;

static struct dbl_config machine(enum dbl_mode mode)
{
    struct dbl_config config = dbl_config_default;

    config.devices = 2;
    config.mode = mode;
    config.memory = GIB;
    config.reserved = 100 * MIB;
    config.context_bytes = 64 * MIB;
    config.clock = DBL_CLOCK_VIRTUAL;
    config.window_ns = 100 * MS_NS;
    config.lag_ns = 30 * MS_NS;
    return config;
}

static struct nvml_device *device_of(uint32_t index)
{
    struct nvml_device *device;

    SAME(nvmlInit_v2(), NVML_OK);
    SAME(nvmlDeviceGetHandleByIndex_v2(index, &device), NVML_OK);
    return device;
}

static void devices_agree(struct dbl_shared *sh)
{
    struct nvml_device *device, *same;
    struct nvml_pci pci;
    char text[96], bus_id[32], name[64];
    struct nvml_gpm_support gpm = {.version = 1, .supported = 7};
    uint32_t count, current, pending;

    SAME(nvmlDeviceGetCount_v2(&count), NVML_UNINITIALIZED);
    SAME(nvmlShutdown(), NVML_UNINITIALIZED);
    device = device_of(1);
    SAME(nvmlDeviceGetCount_v2(&count), NVML_OK);
    SAME(count, 2);
    SAME(nvmlDeviceGetUUID(device, text, 8), NVML_INSUFFICIENT_SIZE);
    SAME(nvmlDeviceGetUUID(device, text, sizeof(text)), NVML_OK);
    CHECK(strncmp(text, "GPU-", 4) == 0 && strlen(text) == 40);
    SAME(nvmlDeviceGetHandleByUUID(text, &same), NVML_OK);
    CHECK(device == same);
    SAME(nvmlDeviceGetHandleByUUID("GPU-0", &same), NVML_NOT_FOUND);
    SAME(nvmlDeviceGetPciInfo_v3(device, &pci), NVML_OK);
    SAME(nvmlDeviceGetHandleByPciBusId_v2(pci.bus_id, &same), NVML_OK);
    CHECK(device == same);
    /* The driver sees the same device by the list of visible ones. */
    setenv("CUDA_VISIBLE_DEVICES", text, 1);
    OK(cuInit(0));
    OK(cuDeviceGetPCIBusId(bus_id, sizeof(bus_id), 0));
    CHECK(strcasecmp(bus_id, pci.bus_id_legacy) == 0);
    OK(cuDeviceGetName(name, sizeof(name), 0));
    SAME(nvmlDeviceGetName(device, text, sizeof(text)), NVML_OK);
    CHECK(strcmp(text, name) == 0);
    SAME(nvmlDeviceGetMigMode(device, &current, &pending), NVML_OK);
    SAME(current, 0);
    SAME(nvmlGpmQueryDeviceSupport(device, &gpm), NVML_OK);
    SAME(gpm.supported, 0);
    SAME(nvmlDeviceGetName((struct nvml_device *)&pci, text, sizeof(text)), NVML_INVALID_ARGUMENT);
    CHECK(strcmp(nvmlErrorString(NVML_NOT_FOUND), "Not Found") == 0);
    dbl_fail_nth(sh, DBL_FAIL_NVML, 1, NVML_GPU_IS_LOST);
    SAME(nvmlDeviceGetName(device, text, sizeof(text)), NVML_GPU_IS_LOST);
    SAME(nvmlShutdown(), NVML_OK);
    SAME(nvmlDeviceGetName(device, text, sizeof(text)), NVML_UNINITIALIZED);
}

/* As in a container that has the files of some devices alone. */
static void devices_can_be_out_of_sight(struct dbl_shared *sh)
{
    struct nvml_device *device, *hidden;
    char first[48], second[48], both[100], text[96];
    uint32_t value;

    dbl_uuid_text(dbl_info(sh, 0)->uuid, first);
    dbl_uuid_text(dbl_info(sh, 1)->uuid, second);
    hidden = device_of(0);
    setenv("NVIDIA_VISIBLE_DEVICES", second, 1);
    SAME(nvmlDeviceGetCount_v2(&value), NVML_OK);
    SAME(value, 1);
    SAME(nvmlDeviceGetHandleByIndex_v2(0, &device), NVML_OK);
    CHECK(device != hidden);
    SAME(nvmlDeviceGetUUID(device, text, sizeof(text)), NVML_OK);
    CHECK(strcmp(text, second) == 0);
    SAME(nvmlDeviceGetIndex(device, &value), NVML_OK);
    SAME(value, 0);
    SAME(nvmlDeviceGetMinorNumber(device, &value), NVML_OK);
    SAME(value, 1);
    SAME(nvmlDeviceGetHandleByIndex_v2(1, &device), NVML_INVALID_ARGUMENT);
    SAME(nvmlDeviceGetHandleByUUID(first, &device), NVML_NOT_FOUND);
    snprintf(both, sizeof(both), "%s,%s", second, first);
    setenv("NVIDIA_VISIBLE_DEVICES", both, 1);
    SAME(nvmlDeviceGetHandleByIndex_v2(0, &device), NVML_OK);
    CHECK(device == hidden); /* in the order of the machine */
    setenv("NVIDIA_VISIBLE_DEVICES", "all", 1);
    SAME(nvmlDeviceGetCount_v2(&value), NVML_OK);
    SAME(value, 2);
}

static void memory_agrees(struct dbl_shared *sh)
{
    struct nvml_memory_v2 v2 = {.version = 7};
    struct nvml_process list[4];
    struct nvml_process_v1 old[4];
    struct nvml_memory v1;
    struct nvml_device *device = device_of(0);
    size_t free, total;
    uint32_t count = 0;
    cu_devptr ptr;

    SAME(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, NULL), NVML_OK);
    SAME(count, 0);
    begin_on(0);
    OK(cuMemAlloc_v2(&ptr, 200 * MIB));
    OK(cuMemGetInfo_v2(&free, &total));
    SAME(nvmlDeviceGetMemoryInfo(device, &v1), NVML_OK);
    SAME(v1.total, total);
    SAME(v1.free, free);
    SAME(v1.used, 364 * MIB);
    SAME(nvmlDeviceGetMemoryInfo_v2(device, &v2), NVML_VERSION_MISMATCH);
    v2.version = NVML_MEMORY_V2;
    SAME(nvmlDeviceGetMemoryInfo_v2(device, &v2), NVML_OK);
    SAME(v2.used, 264 * MIB);
    SAME(v2.reserved, 100 * MIB);
    SAME(v2.total, v2.used + v2.free + v2.reserved);
    SAME(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, NULL), NVML_INSUFFICIENT_SIZE);
    SAME(count, 1);
    count = 4;
    SAME(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, list), NVML_OK);
    SAME(count, 1);
    SAME(list[0].pid, getpid());
    SAME(list[0].used, 264 * MIB);
    count = 4;
    SAME(nvmlDeviceGetComputeRunningProcesses(device, &count, old), NVML_OK);
    SAME(old[0].used, 264 * MIB);
    count = 4;
    SAME(nvmlDeviceGetComputeRunningProcesses_v3(device_of(1), &count, list), NVML_OK);
    SAME(count, 0);
}

static void work(void *arg)
{
    int *ends = arg;
    struct cu_function *kernel;

    begin_on(0);
    kernel = kernel_of(20 * MS_NS, "108");
    OK(launch_in(kernel, NULL));
    CHECK(write(ends[1], "x", 1) == 1);
    pause();
}

static void utilisation_lags(struct dbl_shared *sh)
{
    struct nvml_device *device = device_of(0);
    struct nvml_process_sample samples[4];
    struct nvml_process_util list[4];
    struct nvml_process_utils utils = {NVML_UTILIZATION_V1, 4, 0, list};
    struct nvml_rates rates;
    uint32_t count = 4, celsius, mw, mhz;
    int ends[2];
    pid_t pid;
    char byte;

    /* The clock starts at 1 s, at the begin of a window of 100 ms. */
    CHECK(pipe(ends) == 0);
    pid = spawn(work, ends);
    CHECK(read(ends[0], &byte, 1) == 1);
    begin_on(0);
    OK(launch_in(kernel_of(30 * MS_NS, "108"), NULL));
    SAME(nvmlDeviceGetProcessUtilization(device, samples, &count, 0), NVML_NOT_FOUND);
    dbl_advance(sh, 129 * MS_NS);
    SAME(nvmlDeviceGetUtilizationRates(device, &rates), NVML_OK);
    SAME(rates.gpu, 0);
    dbl_advance(sh, MS_NS);
    SAME(nvmlDeviceGetUtilizationRates(device, &rates), NVML_OK);
    SAME(rates.gpu, 50);
    SAME(nvmlDeviceGetPowerUsage(device, &mw), NVML_OK);
    CHECK(mw > 200000);
    SAME(nvmlDeviceGetTemperature(device, NVML_TEMPERATURE_GPU, &celsius), NVML_OK);
    SAME(celsius, 52);
    SAME(nvmlDeviceGetClockInfo(device, 1, &mhz), NVML_OK);
    SAME(mhz, 1410);
    SAME(nvmlDeviceGetProcessUtilization(device, NULL, &count, 0), NVML_INSUFFICIENT_SIZE);
    SAME(count, 2);
    count = 4;
    SAME(nvmlDeviceGetProcessUtilization(device, samples, &count, 0), NVML_OK);
    SAME(count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        SAME(samples[i].sm, samples[i].pid == (uint32_t)pid ? 20 : 30);
        SAME(samples[i].time_us, 1100000);
    }
    SAME(nvmlDeviceGetProcessesUtilizationInfo(device, &utils), NVML_OK);
    SAME(utils.count, 2);
    SAME(list[0].sm + list[1].sm, 50);
    /* Not again what was seen, and nothing of a window in which nobody was busy. */
    count = 4;
    SAME(nvmlDeviceGetProcessUtilization(device, samples, &count, 1100000), NVML_NOT_FOUND);
    dbl_advance(sh, 100 * MS_NS);
    count = 4;
    SAME(nvmlDeviceGetProcessUtilization(device, samples, &count, 0), NVML_NOT_FOUND);
    SAME(nvmlDeviceGetUtilizationRates(device, &rates), NVML_OK);
    SAME(rates.gpu, 0);
    kill(pid, SIGKILL);
    CHECK(!ended_well(pid));
}

static void mps_hides_who_it_was(struct dbl_shared *sh)
{
    struct nvml_device *device = device_of(0);
    struct nvml_process_sample samples[4];
    struct nvml_process list[4];
    uint32_t count = 4;

    begin_on(0);
    OK(launch_in(kernel_of(30 * MS_NS, "108"), NULL));
    dbl_advance(sh, 130 * MS_NS);
    SAME(nvmlDeviceGetProcessUtilization(device, samples, &count, 0), NVML_OK);
    SAME(count, 1);
    CHECK(samples[0].pid != (uint32_t)getpid());
    SAME(samples[0].sm, 30);
    count = 4;
    SAME(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, list), NVML_OK);
    SAME(list[0].pid, getpid());
}

static void saved_processes_are_not_listed(struct dbl_shared *sh)
{
    struct nvml_device *device = device_of(0);
    struct nvml_process list[4];
    uint32_t count = 4;
    int ends[2];
    pid_t pid;
    char byte;

    CHECK(pipe(ends) == 0);
    pid = spawn(work, ends);
    CHECK(read(ends[0], &byte, 1) == 1);
    dbl_advance(sh, 20 * MS_NS);
    SAME(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, list), NVML_OK);
    SAME(count, 1);
    OK(cuInit(0));
    OK(cuCheckpointProcessLock(pid, NULL));
    OK(cuCheckpointProcessCheckpoint(pid, NULL));
    count = 4;
    SAME(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, list), NVML_OK);
    SAME(count, 0);
    kill(pid, SIGKILL);
    CHECK(!ended_well(pid));
}

#define CASE(name, mode)                          \
    static void test_##name(void **state)         \
    {                                             \
        struct dbl_config config = machine(mode); \
                                                  \
        on_machine(name, &config);                \
    }

CASE(devices_agree, DBL_TIMESLICE)
CASE(devices_can_be_out_of_sight, DBL_TIMESLICE)
CASE(memory_agrees, DBL_TIMESLICE)
CASE(utilisation_lags, DBL_TIMESLICE)
CASE(mps_hides_who_it_was, DBL_MPS)
CASE(saved_processes_are_not_listed, DBL_TIMESLICE)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_devices_agree),
        cmocka_unit_test(test_devices_can_be_out_of_sight),
        cmocka_unit_test(test_memory_agrees),
        cmocka_unit_test(test_utilisation_lags),
        cmocka_unit_test(test_mps_hides_who_it_was),
        cmocka_unit_test(test_saved_processes_are_not_listed),
    };

    return cmocka_run_group_tests_name("cuda nvml", tests, NULL, NULL);
}
