/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

struct symbol {
    const char *name;
    void **to;
};

static int load(struct nvml *n, struct err *err)
{
    const struct symbol needed[] = {
        {"nvmlInit_v2", (void **)&n->init},
        {"nvmlShutdown", (void **)&n->shutdown},
        {"nvmlErrorString", (void **)&n->error},
        {"nvmlSystemGetDriverVersion", (void **)&n->driver_version},
        {"nvmlDeviceGetCount_v2", (void **)&n->count},
        {"nvmlDeviceGetHandleByIndex_v2", (void **)&n->by_index},
        {"nvmlDeviceGetName", (void **)&n->name},
        {"nvmlDeviceGetUUID", (void **)&n->uuid},
        {"nvmlDeviceGetMinorNumber", (void **)&n->minor},
        {"nvmlDeviceGetMemoryInfo", (void **)&n->memory},
    };
    const struct symbol wanted[] = {
        {"nvmlDeviceGetMemoryInfo_v2", (void **)&n->memory_v2},
        {"nvmlDeviceGetPciInfo_v3", (void **)&n->pci},
        {"nvmlDeviceGetUtilizationRates", (void **)&n->rates},
        {"nvmlDeviceGetPowerUsage", (void **)&n->power},
        {"nvmlDeviceGetTotalEnergyConsumption", (void **)&n->energy},
        {"nvmlDeviceGetTemperature", (void **)&n->temperature},
        {"nvmlDeviceGetClockInfo", (void **)&n->clock},
        {"nvmlDeviceGetProcessUtilization", (void **)&n->process_busy},
        {"nvmlDeviceGetComputeRunningProcesses_v3", (void **)&n->processes},
        {"nvmlGpmQueryDeviceSupport", (void **)&n->gpm_support},
        {"nvmlGpmSampleAlloc", (void **)&n->gpm_alloc},
        {"nvmlGpmSampleFree", (void **)&n->gpm_free},
        {"nvmlGpmSampleGet", (void **)&n->gpm_sample},
        {"nvmlGpmMetricsGet", (void **)&n->gpm_metrics},
    };

    for (size_t i = 0; i < ARRAY_LEN(needed); i++) {
        *needed[i].to = dlsym(n->library, needed[i].name);
        if (*needed[i].to == NULL)
            return err_set(err, -EIO, ERR_UNSUPPORTED, NULL, "install a newer NVIDIA driver",
                           "the NVIDIA driver's library lacks '%s'", needed[i].name);
    }
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
        *wanted[i].to = dlsym(n->library, wanted[i].name);
    return 0;
}

int nvml_check(const struct nvml *nvml, nvml_result code, const char *what, struct err *err)
{
    if (code == NVML_OK)
        return 0;
    return err_set(err, -EIO, ERR_UNAVAILABLE, NULL, "see nvidia-smi on this machine",
                   "the NVIDIA driver cannot tell %s: %s", what, nvml->error(code));
}

static int start(const struct nvml *n, struct err *err)
{
    nvml_result code = n->init();

    if (code == NVML_DRIVER_NOT_LOADED)
        return err_set(err, -ENOENT, ERR_NOT_FOUND, NULL, "load the NVIDIA driver",
                       "the NVIDIA driver is not loaded");
    return nvml_check(n, code, "anything", err);
}

int nvml_open(const char *library, struct nvml *ret_nvml, struct err *err)
{
    struct nvml n = {
        .library = dlopen(library ? library : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)};
    int r;

    if (n.library == NULL)
        return err_set(err, -ENOENT, ERR_NOT_FOUND, NULL,
                       "install the NVIDIA driver, or simulate devices",
                       "no NVIDIA driver is here");
    r = load(&n, err);
    if (r == 0)
        r = start(&n, err);
    if (r < 0) {
        dlclose(n.library);
        return r;
    }
    *ret_nvml = n;
    return 0;
}

void nvml_close(struct nvml *nvml)
{
    (void)nvml->shutdown();
    dlclose(nvml->library);
    *nvml = (struct nvml){0};
}
