/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters of what a device's parts did (GPM), of devices that are called as those that have them.
 * Kernels here are time and SMs: nothing is known of their warps, and tensor cores and memory stand
 * still.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "nvml.h"

NVML_EXPORT(nvmlGpmQueryDeviceSupport);
NVML_EXPORT(nvmlGpmSampleAlloc);
NVML_EXPORT(nvmlGpmSampleFree);
NVML_EXPORT(nvmlGpmSampleGet);
NVML_EXPORT(nvmlGpmMetricsGet);

struct nvml_gpm_sample {
    uint32_t device, sms;
    uint64_t time_ns, busy_ns, sm_ns;
};

static bool is_counted(const struct dbl_device_info *info)
{
    static const char *const models[] = {"H100", "H200", "B200", "B300"};

    for (size_t i = 0; i < ARRAY_LEN(models); i++)
        if (strstr(info->name, models[i]) != NULL)
            return true;
    return false;
}

nvml_result nvmlGpmQueryDeviceSupport(struct nvml_device *device, struct nvml_gpm_support *support)
{
    uint32_t d;
    nvml_result result = nvml_begin(device, &d);

    if (result != NVML_OK)
        return result;
    if (support == NULL)
        return NVML_INVALID_ARGUMENT;
    if (support->version != NVML_GPM_SUPPORT_V1)
        return NVML_VERSION_MISMATCH;
    support->supported = is_counted(dbl_info(nvml_machine(), d));
    return NVML_OK;
}

nvml_result nvmlGpmSampleAlloc(struct nvml_gpm_sample **ret_sample)
{
    if (ret_sample == NULL)
        return NVML_INVALID_ARGUMENT;
    *ret_sample = calloc(1, sizeof(**ret_sample));
    return *ret_sample ? NVML_OK : NVML_UNKNOWN;
}

nvml_result nvmlGpmSampleFree(struct nvml_gpm_sample *sample)
{
    if (sample == NULL)
        return NVML_INVALID_ARGUMENT;
    free(sample);
    return NVML_OK;
}

nvml_result nvmlGpmSampleGet(struct nvml_device *device, struct nvml_gpm_sample *sample)
{
    struct dbl_shared *sh = nvml_machine();
    uint32_t d;
    nvml_result result = nvml_begin(device, &d);

    if (result != NVML_OK)
        return result;
    if (sample == NULL)
        return NVML_INVALID_ARGUMENT;
    if (!is_counted(dbl_info(sh, d)))
        return NVML_NOT_SUPPORTED;
    dbl_lock(sh);
    dbl_reap(sh);
    dbl_sim_run(sh);
    *sample = (struct nvml_gpm_sample){.device = d,
                                       .sms = dbl_info(sh, d)->sms,
                                       .time_ns = dbl_now(sh),
                                       .busy_ns = sh->devices[d].meter.busy_ns,
                                       .sm_ns = sh->devices[d].meter.sm_ns};
    dbl_unlock(sh);
    return NVML_OK;
}

static nvml_result fill(struct nvml_gpm_metric *m, const struct nvml_gpm_sample *a,
                        const struct nvml_gpm_sample *b)
{
    double elapsed = (double)(b->time_ns - a->time_ns);

    switch (m->metric) {
    case NVML_GPM_GRAPHICS_UTIL:
        m->value = 100 * (double)(b->busy_ns - a->busy_ns) / elapsed;
        return NVML_OK;
    case NVML_GPM_SM_UTIL:
        m->value = 100 * (double)(b->sm_ns - a->sm_ns) / (elapsed * b->sms);
        return NVML_OK;
    case NVML_GPM_ANY_TENSOR_UTIL:
    case NVML_GPM_DRAM_BW_UTIL:
        m->value = 0;
        return NVML_OK;
    default:
        return NVML_NOT_SUPPORTED;
    }
}

nvml_result nvmlGpmMetricsGet(struct nvml_gpm_metrics *metrics)
{
    struct dbl_shared *sh = nvml_machine();
    const struct nvml_gpm_sample *a, *b;
    nvml_result result = sh ? dbl_injected(sh, DBL_FAIL_NVML) : NVML_UNINITIALIZED;

    if (result != NVML_OK)
        return result;
    if (metrics == NULL)
        return NVML_INVALID_ARGUMENT;
    if (metrics->version != NVML_GPM_METRICS_V1)
        return NVML_VERSION_MISMATCH;
    a = metrics->earlier;
    b = metrics->later;
    if (a == NULL || b == NULL || metrics->count > NVML_GPM_METRICS_MAX || a->device != b->device ||
        b->time_ns <= a->time_ns)
        return NVML_INVALID_ARGUMENT;
    for (uint32_t i = 0; i < metrics->count; i++)
        metrics->list[i].result = fill(&metrics->list[i], a, b);
    return NVML_OK;
}
