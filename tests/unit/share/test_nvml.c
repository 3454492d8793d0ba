/* SPDX-License-Identifier: Apache-2.0 */
/* Monitors in front of the shim of NVML: what they read of a task's part of a device. */
#include "machine.h"
#include "share/nvml_abi.h"

/* A function of NVML as a program finds it: through the shim. */
#define NVML(symbol) ((fn_##symbol *)find_nvml(#symbol))

static void *find_nvml(const char *symbol)
{
    static void *nvml;
    void *function;

    if (nvml == NULL)
        nvml = dlopen(NVML_SHIM, RTLD_NOW | RTLD_LOCAL);
    CHECK(nvml != NULL);
    function = dlsym(nvml, symbol);
    CHECK(function != NULL);
    return function;
}

/* Adds the driver's NVML to M, and finds its device. */
static struct nvml_device *monitor(const struct machine *m)
{
    struct nvml_device *device;
    char path[128];

    path_in(m, "libnvidia-ml.so", path);
    CHECK(symlink(NVML_DRIVER, path) == 0 || errno == EEXIST);
    CHECK(NVML(nvmlInit_v2)() == NVML_OK);
    CHECK(NVML(nvmlDeviceGetHandleByIndex_v2)(0, &device) == NVML_OK);
    return device;
}

static void shows(struct nvml_device *device, uint64_t total, uint64_t used)
{
    struct nvml_memory v1;
    struct nvml_memory_v2 v2 = {.version = NVML_MEMORY_V2};

    CHECK(NVML(nvmlDeviceGetMemoryInfo)(device, &v1) == NVML_OK);
    CHECK(v1.total == total && v1.used == used && v1.free == total - used);
    CHECK(NVML(nvmlDeviceGetMemoryInfo_v2)(device, &v2) == NVML_OK);
    CHECK(v2.total == total && v2.used == used && v2.free == total - used && v2.reserved == 0);
}

/* ---- memory ------------------------------------------------------------------------------- */

PROGRAM(the_part_is_shown)
{
    struct nvml_device *device = monitor(m);
    cu_devptr p;

    shows(device, LIMIT, 0);
    begin();
    shows(device, LIMIT, CONTEXT);
    CHECK(CU(cuMemAlloc_v2)(&p, 10 * MIB) == CU_OK);
    shows(device, LIMIT, CONTEXT + 10 * MIB);
    CHECK(CU(cuMemFree_v2)(p) == CU_OK);
    CHECK(CU(cuMemAlloc_v2)(&p, LIMIT - CONTEXT) == CU_OK);
    shows(device, LIMIT, LIMIT);
}

/* What the driver refuses it refuses, in its words. */
PROGRAM(failures_of_the_driver_are_passed_on)
{
    struct nvml_device *device = monitor(m);
    struct nvml_memory_v2 v2 = {.version = 7};
    struct nvml_memory v1;

    CHECK(NVML(nvmlDeviceGetMemoryInfo)(device, NULL) == NVML_INVALID_ARGUMENT);
    CHECK(NVML(nvmlDeviceGetMemoryInfo)(NULL, &v1) == NVML_INVALID_ARGUMENT);
    CHECK(NVML(nvmlDeviceGetMemoryInfo_v2)(device, &v2) == NVML_VERSION_MISMATCH);
    dbl_fail_nth(m->driver, DBL_FAIL_NVML, 1, NVML_GPU_IS_LOST);
    CHECK(NVML(nvmlDeviceGetMemoryInfo)(device, &v1) == NVML_GPU_IS_LOST);
    shows(device, LIMIT, 0);
    CHECK(NVML(nvmlShutdown)() == NVML_OK);
    CHECK(NVML(nvmlDeviceGetMemoryInfo)(device, &v1) == NVML_UNINITIALIZED);
}

/* Nothing is kept from a task whose agent does not answer but its driver. */
ALONE(without_an_agent_the_device_is_shown)
{
    struct machine *m = machine();

    gpu_region_close(m->region);
    m->region = NULL;
    shows(monitor(m), GIB, 0);
    end_machine(m);
}

/* ---- who looks is no process of the devices ----------------------------------------------- */

static int ends[2]; /* of a pipe */

static void look_and_stay(struct machine *m)
{
    shows(monitor(m), LIMIT, 0);
    CHECK(write(ends[1], "x", 1) == 1);
    for (;;)
        pause();
}

ALONE(a_monitor_is_not_counted)
{
    struct machine *m = machine();
    struct pollfd p = {.events = POLLIN};
    int status;
    pid_t pid;

    CHECK(pipe(ends) == 0);
    p.fd = ends[0];
    pid = program(look_and_stay, m);
    while (poll(&p, 1, 0) == 0)
        CHECK(!serve(m, pid, 1, &status));
    CHECK(gpu_region_processes(m->region) == 0);
    kill(pid, SIGKILL);
    CHECK(waitpid(pid, &status, 0) == pid);
    end_machine(m);
}

/* ---- processes ---------------------------------------------------------------------------- */

PROGRAM(processes_of_the_task_are_listed)
{
    struct nvml_device *device = monitor(m);
    struct nvml_process list[4];
    struct nvml_process_v1 list1[4];
    uint32_t count = 0;

    begin();
    CHECK(NVML(nvmlDeviceGetComputeRunningProcesses_v3)(device, &count, NULL) ==
          NVML_INSUFFICIENT_SIZE);
    CHECK(count == 1);
    count = 4;
    CHECK(NVML(nvmlDeviceGetComputeRunningProcesses_v3)(device, &count, list) == NVML_OK);
    CHECK(count == 1 && list[0].pid == (uint32_t)getpid() && list[0].used == CONTEXT);
    count = 4;
    CHECK(NVML(nvmlDeviceGetComputeRunningProcesses)(device, &count, list1) == NVML_OK);
    CHECK(count == 1 && list1[0].pid == (uint32_t)getpid() && list1[0].used == CONTEXT);
    count = 4;
    CHECK(NVML(nvmlDeviceGetGraphicsRunningProcesses_v3)(device, &count, list) == NVML_OK);
    CHECK(count == 0);
}

/* ---- everything else ---------------------------------------------------------------------- */

PROGRAM(all_else_is_the_driver)
{
    struct nvml_device *device = monitor(m);
    char text[96], line[128];
    uint32_t count = 0;
    FILE *list = fopen(NVML_SYMBOLS_LIST, "r");
    int seen = 0;

    CHECK(NVML(nvmlDeviceGetCount_v2)(&count) == NVML_OK && count == 1);
    CHECK(NVML(nvmlDeviceGetName)(device, text, sizeof(text)) == NVML_OK && text[0]);
    CHECK(strcmp(NVML(nvmlErrorString)(NVML_NOT_FOUND), "Not Found") == 0);
    /* This driver lacks it. */
    CHECK(((fn_nvmlDeviceGetIndex *)find_nvml("nvmlDeviceGetNumFans"))(device, &count) ==
          NVML_FUNCTION_NOT_FOUND);
    CHECK(list != NULL);
    for (; fgets(line, sizeof(line), list); seen++) {
        line[strcspn(line, "\n")] = '\0';
        find_nvml(line);
    }
    CHECK(seen > 400);
    fclose(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_part_is_shown),
        cmocka_unit_test(test_failures_of_the_driver_are_passed_on),
        cmocka_unit_test(test_without_an_agent_the_device_is_shown),
        cmocka_unit_test(test_a_monitor_is_not_counted),
        cmocka_unit_test(test_processes_of_the_task_are_listed),
        cmocka_unit_test(test_all_else_is_the_driver),
    };

    return cmocka_run_group_tests_name("share nvml", tests, NULL, NULL);
}
