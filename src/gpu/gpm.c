/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/gpm.h"

#include <stddef.h>

#include "base/cleanup.h"

#define PPM_PER_PERCENT 10000

static const struct {
    uint32_t metric;
    size_t offset; /* of an int64_t in an activity */
} figures[] = {
    {NVML_GPM_GRAPHICS_UTIL, offsetof(struct gpu_activity, engine_ppm)},
    {NVML_GPM_SM_UTIL, offsetof(struct gpu_activity, sm_ppm)},
    {NVML_GPM_SM_OCCUPANCY, offsetof(struct gpu_activity, occupancy_ppm)},
    {NVML_GPM_ANY_TENSOR_UTIL, offsetof(struct gpu_activity, tensor_ppm)},
    {NVML_GPM_DRAM_BW_UTIL, offsetof(struct gpu_activity, dram_ppm)},
};

static bool is_supported(const struct nvml *n, struct nvml_device *device)
{
    struct nvml_gpm_support support = {.version = NVML_GPM_SUPPORT_V1};

    return n->gpm_support && n->gpm_alloc && n->gpm_free && n->gpm_sample && n->gpm_metrics &&
           n->gpm_support(device, &support) == NVML_OK && support.supported;
}

void gpm_open(const struct nvml *n, struct nvml_device *device, struct gpm *ret_gpm)
{
    *ret_gpm = (struct gpm){0};
    if (!is_supported(n, device) || n->gpm_alloc(&ret_gpm->last) != NVML_OK)
        return;
    if (n->gpm_alloc(&ret_gpm->next) == NVML_OK)
        return;
    (void)n->gpm_free(ret_gpm->last);
    *ret_gpm = (struct gpm){0};
}

void gpm_close(const struct nvml *n, struct gpm *g)
{
    if (g->last == NULL)
        return;
    (void)n->gpm_free(g->last);
    (void)n->gpm_free(g->next);
    *g = (struct gpm){0};
}

static int64_t ppm(double percent)
{
    if (!(percent >= 0)) /* not a number either */
        return -1;
    return (int64_t)((percent > 100 ? 100 : percent) * PPM_PER_PERCENT + 0.5);
}

/* Between the last sample and the next. */
static void compare(const struct nvml *n, const struct gpm *g, struct gpu_activity *activity)
{
    struct nvml_gpm_metrics m = {.version = NVML_GPM_METRICS_V1,
                                 .count = ARRAY_LEN(figures),
                                 .earlier = g->last,
                                 .later = g->next};

    for (size_t i = 0; i < ARRAY_LEN(figures); i++)
        m.list[i].metric = figures[i].metric;
    if (n->gpm_metrics(&m) != NVML_OK)
        return;
    for (size_t i = 0; i < ARRAY_LEN(figures); i++)
        if (m.list[i].result == NVML_OK)
            *(int64_t *)(void *)((char *)activity + figures[i].offset) = ppm(m.list[i].value);
}

void gpm_read(const struct nvml *n, struct nvml_device *device, struct gpm *g,
              struct gpu_activity *ret_activity)
{
    struct nvml_gpm_sample *taken = g->next;
    bool begun = g->begun;

    *ret_activity = (struct gpu_activity){-1, -1, -1, -1, -1};
    if (taken == NULL)
        return;
    g->begun = n->gpm_sample(device, taken) == NVML_OK;
    if (begun && g->begun)
        compare(n, g, ret_activity);
    g->next = g->last;
    g->last = taken;
}
