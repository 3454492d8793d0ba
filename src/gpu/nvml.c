/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The few calls of NVIDIA's management library that the inventory needs. Names, numbers and
 * layouts are those of its public, versioned ABI; the header is not needed to build.
 */
#include "gpu/gpu.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"

#define NVML_SUCCESS 0
#define NVML_ERROR_DRIVER_NOT_LOADED 9
#define TEXT_BYTES 96

typedef void *nvml_device;

struct nvml_memory {
    unsigned long long total, free, used;
};

struct nvml {
    void *library;
    int (*init)(void);
    int (*shutdown)(void);
    int (*driver_version)(char *text, unsigned bytes);
    int (*count)(unsigned *ret);
    int (*by_index)(unsigned index, nvml_device *ret);
    int (*name)(nvml_device d, char *text, unsigned bytes);
    int (*uuid)(nvml_device d, char *text, unsigned bytes);
    int (*minor)(nvml_device d, unsigned *ret);
    int (*memory)(nvml_device d, struct nvml_memory *ret);
    const char *(*error)(int code);
};

static int load(struct nvml *n, struct err *err)
{
    const struct {
        const char *symbol;
        void **to;
    } wanted[] = {
        {"nvmlInit_v2", (void **)&n->init},
        {"nvmlShutdown", (void **)&n->shutdown},
        {"nvmlSystemGetDriverVersion", (void **)&n->driver_version},
        {"nvmlDeviceGetCount_v2", (void **)&n->count},
        {"nvmlDeviceGetHandleByIndex_v2", (void **)&n->by_index},
        {"nvmlDeviceGetName", (void **)&n->name},
        {"nvmlDeviceGetUUID", (void **)&n->uuid},
        {"nvmlDeviceGetMinorNumber", (void **)&n->minor},
        {"nvmlDeviceGetMemoryInfo", (void **)&n->memory},
        {"nvmlErrorString", (void **)&n->error},
    };

    n->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (n->library == NULL)
        return err_set(err, -ENOENT, ERR_NOT_FOUND, NULL,
                       "install the NVIDIA driver, or simulate devices",
                       "no NVIDIA driver is here");
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        *wanted[i].to = dlsym(n->library, wanted[i].symbol);
        if (*wanted[i].to == NULL)
            return err_set(err, -EIO, ERR_UNSUPPORTED, NULL, "install a newer NVIDIA driver",
                           "the NVIDIA driver's library lacks '%s'", wanted[i].symbol);
    }
    return 0;
}

static int check(const struct nvml *n, int code, const char *what, struct err *err)
{
    if (code == NVML_SUCCESS)
        return 0;
    return err_set(err, -EIO, ERR_UNAVAILABLE, NULL, "see nvidia-smi on this machine",
                   "the NVIDIA driver cannot tell %s: %s", what, n->error(code));
}

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

static int read_device(const struct nvml *n, unsigned index, struct arena *arena,
                       struct model_device *d, struct err *err)
{
    char name[TEXT_BYTES], uuid[TEXT_BYTES];
    struct nvml_memory memory;
    unsigned minor;
    nvml_device h;
    struct stat st;
    int r = check(n, n->by_index(index, &h), "a device's handle", err);

    if (r == 0)
        r = check(n, n->name(h, name, sizeof(name)), "a device's name", err);
    if (r == 0)
        r = check(n, n->uuid(h, uuid, sizeof(uuid)), "a device's uuid", err);
    if (r == 0)
        r = check(n, n->memory(h, &memory), "a device's memory", err);
    if (r == 0)
        r = check(n, n->minor(h, &minor), "a device's number", err);
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
    char driver[TEXT_BYTES];
    struct model_device *devices;
    unsigned count;
    int r = check(n, n->driver_version(driver, sizeof(driver)), "its version", err);

    if (r == 0)
        r = check(n, n->count(&count), "how many devices there are", err);
    if (r < 0)
        return r;
    if (count > MODEL_DEVICES_MAX)
        count = MODEL_DEVICES_MAX;
    devices = arena_new_array(arena, struct model_device, count);
    for (unsigned i = 0; i < count; i++) {
        r = read_device(n, i, arena, &devices[i], err);
        if (r < 0)
            return r;
    }
    *inv = (struct gpu_inventory){.devices = count ? devices : NULL,
                                  .count = (int32_t)count,
                                  .driver = arena_strdup(arena, driver),
                                  .notice = "busy time of real devices is not measured yet"};
    return 0;
}

int gpu_nvml_inventory(struct arena *arena, struct gpu_inventory *ret_inventory, struct err *err)
{
    struct nvml n = {0};
    int r = load(&n, err), code;

    if (r == 0) {
        code = n.init();
        if (code == NVML_ERROR_DRIVER_NOT_LOADED) {
            r = err_set(err, -ENOENT, ERR_NOT_FOUND, NULL, "load the NVIDIA driver",
                        "the NVIDIA driver is not loaded");
        } else {
            r = check(&n, code, "anything", err);
            if (r == 0) {
                r = read_all(&n, arena, ret_inventory, err);
                (void)n.shutdown();
            }
        }
    }
    if (n.library)
        dlclose(n.library);
    return r;
}
