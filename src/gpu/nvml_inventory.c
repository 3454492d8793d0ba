/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/gpu.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "gpu/nvml.h"

/* "NVIDIA H100 80GB HBM3" -> "H100", "Tesla V100-SXM2-16GB" -> "V100": the first word that
 * names a model, without its form factor. */
static const char *short_type(const char *name, struct arena *arena)
{
    static const char *const brands[] = {"NVIDIA", "Tesla", "GeForce", "RTX", "Quadro", "Graphics"};
    const char *p = name;

    while (*p) {
        size_t n = strcspn(p, " ");
        bool brand = false;

        for (size_t i = 0; i < ARRAY_LEN(brands); i++)
            brand |= strlen(brands[i]) == n && memcmp(brands[i], p, n) == 0;
        if (!brand)
            return arena_strndup(arena, p, strcspn(p, " -"));
        p += n + (p[n] == ' ');
    }
    return arena_strdup(arena, name);
}

static int read_device(const struct nvml *n, uint32_t index, struct arena *arena,
                       struct model_device *d, struct err *err)
{
    char name[NVML_TEXT_BYTES], uuid[NVML_TEXT_BYTES];
    struct nvml_memory memory;
    uint32_t minor;
    struct nvml_device *h;
    struct stat st;
    int r = nvml_check(n, n->by_index(index, &h), "a device's handle", err);

    if (r == 0)
        r = nvml_check(n, n->name(h, name, sizeof(name)), "a device's name", err);
    if (r == 0)
        r = nvml_check(n, n->uuid(h, uuid, sizeof(uuid)), "a device's uuid", err);
    if (r == 0)
        r = nvml_check(n, n->memory(h, &memory), "a device's memory", err);
    if (r == 0)
        r = nvml_check(n, n->minor(h, &minor), "a device's number", err);
    if (r < 0)
        return r;
    *d = (struct model_device){.uuid = arena_strdup(arena, uuid),
                               .type = short_type(name, arena),
                               .memory_bytes = (int64_t)memory.total,
                               .path = arena_printf(arena, "/dev/nvidia%u", minor)};
    if (stat(d->path, &st) < 0)
        d->path = NULL;
    return 0;
}

static int read_all(const struct nvml *n, struct arena *arena, struct gpu_inventory *inv,
                    struct err *err)
{
    char driver[NVML_TEXT_BYTES];
    struct model_device *devices;
    uint32_t count;
    int r = nvml_check(n, n->driver_version(driver, sizeof(driver)), "its version", err);

    if (r == 0)
        r = nvml_check(n, n->count(&count), "how many devices there are", err);
    if (r < 0)
        return r;
    if (count > MODEL_DEVICES_MAX)
        count = MODEL_DEVICES_MAX;
    devices = arena_new_array(arena, struct model_device, count);
    for (uint32_t i = 0; i < count; i++) {
        r = read_device(n, i, arena, &devices[i], err);
        if (r < 0)
            return r;
    }
    *inv = (struct gpu_inventory){.devices = count ? devices : NULL,
                                  .count = (int32_t)count,
                                  .driver = arena_strdup(arena, driver)};
    return 0;
}

int gpu_nvml_inventory(struct arena *arena, struct gpu_inventory *ret_inventory, struct err *err)
{
    struct nvml n;
    int r = nvml_open(NULL, &n, err);

    if (r < 0)
        return r;
    r = read_all(&n, arena, ret_inventory, err);
    nvml_close(&n);
    return r;
}
