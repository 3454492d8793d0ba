/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a device, as much as the task has of it. Never less than nothing. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "share/ledger.h"
#include "share/look.h"
#include "share/nvml/nvml.h"

#define UUID_TEXT 96

/* ---- the region of the task ----------------------------------------------------------------- */

/* Two threads that look at one time map it twice, to the same end. */
static const struct share_counters *counters;
static _Atomic(const struct share_limits *) known_limits; /* written after `counters` */

/* NULL: no agent answers; the next call asks again. */
static const struct share_limits *look_at_limits(void)
{
    const struct share_limits *limits = atomic_load_explicit(&known_limits, memory_order_acquire);
    struct share_view view;

    if (limits || share_look(&view) < 0)
        return limits;
    counters = view.counters;
    atomic_store_explicit(&known_limits, view.limits, memory_order_release);
    return view.limits;
}

/* ---- a device of it ------------------------------------------------------------------------- */

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* TEXT is "GPU-" and hexadecimal digits in groups. */
static bool parse_uuid(const char *text, uint8_t ret_uuid[16])
{
    int n = 0;

    if (strncmp(text, "GPU-", 4) != 0)
        return false;
    for (text += 4; *text; text++) {
        int d = digit(*text);

        if (*text == '-')
            continue;
        if (d < 0 || n == 32)
            return false;
        ret_uuid[n / 2] = (uint8_t)(n % 2 ? ret_uuid[n / 2] | d : d << 4);
        n++;
    }
    return n == 32;
}

/* What the task may use of DEVICE, and what it holds. False: it is not limited. */
static bool find_part(struct nvml_device *device, uint64_t *ret_limit, uint64_t *ret_held)
{
    const struct share_limits *limits = look_at_limits();
    char text[UUID_TEXT];
    uint8_t uuid[16];

    if (limits == NULL || !(limits->flags & SHARE_MEMORY) ||
        NVML_REAL(nvmlDeviceGetUUID)(device, text, sizeof(text)) != NVML_OK ||
        !parse_uuid(text, uuid))
        return false;
    for (uint32_t i = 0; i < limits->device_count; i++) {
        if (memcmp(limits->devices[i].uuid, uuid, sizeof(uuid)) != 0)
            continue;
        *ret_limit = limits->devices[i].memory_limit;
        *ret_held = share_ledger_held(limits, counters, i);
        return *ret_limit != SHARE_NO_LIMIT;
    }
    return false;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Free is what both the task and the device have left. */
static void show_part(uint64_t limit, uint64_t held, uint64_t *total, uint64_t *left,
                      uint64_t *used)
{
    *total = least(*total, limit);
    *used = least(held, *total);
    *left = least(*left, *total - *used);
}

nvml_result hook_nvmlDeviceGetMemoryInfo(struct nvml_device *device, struct nvml_memory *ret_memory)
{
    nvml_result r = NVML_REAL(nvmlDeviceGetMemoryInfo)(device, ret_memory);
    uint64_t limit, held;

    if (r == NVML_OK && find_part(device, &limit, &held))
        show_part(limit, held, &ret_memory->total, &ret_memory->free, &ret_memory->used);
    return r;
}

/* What the driver reserves is no part of anybody's. */
nvml_result hook_nvmlDeviceGetMemoryInfo_v2(struct nvml_device *device,
                                            struct nvml_memory_v2 *memory)
{
    nvml_result r = NVML_REAL(nvmlDeviceGetMemoryInfo_v2)(device, memory);
    uint64_t limit, held;

    if (r == NVML_OK && find_part(device, &limit, &held)) {
        show_part(limit, held, &memory->total, &memory->free, &memory->used);
        memory->reserved = 0;
    }
    return r;
}
