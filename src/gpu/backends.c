/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/backends.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

#define FILE_MAX 65536

static const char *const mps_programs[] = {"/usr/bin/nvidia-cuda-mps-control",
                                           "/usr/local/bin/nvidia-cuda-mps-control", NULL};

const struct gpu_backend_places gpu_backend_places = {
    .cgroups = "/sys/fs/cgroup",
    .mps_programs = mps_programs,
    .mps_pipe = "/tmp/nvidia-mps/control",
};

/* Does FILE of the root of control groups have WORD at the begin of one of its words? */
static bool cgroup_says(const struct gpu_backend_places *places, struct arena *a, const char *file,
                        const char *word, bool whole)
{
    const char *path = arena_printf(a, "%s/%s", places->cgroups, file);
    _cleanup_free_ char *text = NULL;
    size_t len = 0, n = strlen(word);

    if (io_read_file(AT_FDCWD, path, FILE_MAX, &text, &len) < 0)
        return false;
    for (const char *at = text; (at = strstr(at, word)); at += n)
        if ((at == text || strchr(" \n", at[-1])) && (!whole || strchr(" \n", at[n])))
            return true;
    return false;
}

static struct model_backend look_for_dmem(const struct gpu_backend_places *places, struct arena *a)
{
    struct model_backend b = {.name = "dmem"};

    if (!cgroup_says(places, a, "cgroup.controllers", "dmem", true)) {
        b.reason = "this kernel has no dmem controller of control groups (Linux 6.14 and later do)";
    } else if (!cgroup_says(places, a, "dmem.capacity", "nvidia/", false)) {
        b.reason = "the driver does not account for its memory there (release 615 and later do)";
    } else {
        b.state = MODEL_BACKEND_FOUND;
        b.reason = "the driver accounts for its memory; allot sets no limits there";
    }
    return b;
}

static struct model_backend look_for_mps(const struct gpu_backend_places *places)
{
    struct model_backend b = {.name = "mps", .reason = "nvidia-cuda-mps-control is not installed"};

    for (const char *const *p = places->mps_programs; *p && b.state == MODEL_BACKEND_ABSENT; p++)
        if (access(*p, X_OK) == 0)
            b.state = MODEL_BACKEND_FOUND;
    if (b.state == MODEL_BACKEND_FOUND)
        b.reason = access(places->mps_pipe, F_OK) == 0 ? "a server runs, which tasks do not see"
                                                       : "no server runs; allot starts none";
    return b;
}

static struct model_backend look_for_mig(const struct gpu_inventory *devices)
{
    for (int32_t i = 0; i < devices->count; i++)
        if (devices->devices[i].mig_profile)
            return (struct model_backend){"mig", MODEL_BACKEND_USED, "slices are devices here"};
    return (struct model_backend){"mig", MODEL_BACKEND_ABSENT, "no device is cut into slices"};
}

int32_t gpu_backends(const struct gpu_inventory *devices, const char *shim_reason,
                     const struct gpu_backend_places *places, struct arena *arena,
                     const struct model_backend **ret_backends)
{
    static const char simulated[] = "devices are simulated";
    struct model_backend *b = arena_new_array(arena, struct model_backend, 4);

    b[0] = (struct model_backend){"shim", shim_reason ? MODEL_BACKEND_ABSENT : MODEL_BACKEND_USED,
                                  shim_reason};
    b[1] = look_for_mig(devices);
    if (devices->simulated) {
        b[2] = (struct model_backend){"mps", MODEL_BACKEND_ABSENT, simulated};
        b[3] = (struct model_backend){"dmem", MODEL_BACKEND_ABSENT, simulated};
    } else {
        b[2] = look_for_mps(places);
        b[3] = look_for_dmem(places, arena);
    }
    *ret_backends = b;
    return 4;
}
