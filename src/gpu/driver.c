/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/driver.h"

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/vec.h"

#define SO ".so."

const char *gpu_driver_library(const char *name, struct arena *arena)
{
    void *library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    const char *path = NULL;
    struct link_map *map;
    char real[PATH_MAX];

    if (library == NULL)
        return NULL;
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && realpath(map->l_name, real))
        path = arena_strdup(arena, real);
    dlclose(library);
    return path;
}

/* What follows ".so." in NAME: the version of an interface ("1") or of the driver ("570.86.15"). */
static const char *version_of(const char *name)
{
    const char *so = strstr(name, SO);

    return so ? so + strlen(SO) : "";
}

/* Is NAME a library for computing? What NVIDIA's container toolkit shows of the driver likewise. */
static bool computes(const char *name)
{
    static const char *const known[] = {"libnvidia-ptxjitcompiler", "libnvidia-nvvm",
                                        "libnvidia-gpucomp",        "libcudadebugger",
                                        "libnvidia-allocator",      "libnvidia-fatbinaryloader",
                                        "libnvidia-opencl",         "libnvidia-compiler",
                                        "libnvidia-pkcs11",         "libnvidia-pkcs11-openssl3"};

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        size_t n = strlen(known[i]);

        if (strncmp(name, known[i], n) == 0 && text_starts_with(name + n, SO))
            return true;
    }
    return false;
}

/* By the number of its interface, or of the driver's version, of which links may be left over. */
static bool belongs(const char *name, const char *version)
{
    const char *own = version_of(name);

    return own[0] && (own[strspn(own, "0123456789")] == '\0' || strcmp(own, version) == 0);
}

const char *const *gpu_driver_companions(const char *driver, struct arena *arena)
{
    const char *slash = strrchr(driver, '/'), *const * list;
    VEC(const char *) found = {0};
    struct dirent *entry;
    char *folder;
    DIR *dir;

    if (slash) {
        folder = arena_strndup(arena, driver, (size_t)(slash - driver));
        dir = opendir(folder[0] ? folder : "/");
        while (dir && (entry = readdir(dir))) {
            const char *path = arena_printf(arena, "%s/%s", folder, entry->d_name);

            if (computes(entry->d_name) && belongs(entry->d_name, version_of(slash)) &&
                access(path, R_OK) == 0)
                vec_push(&found, path);
        }
        if (dir)
            closedir(dir);
    }
    vec_push(&found, NULL);
    list = arena_memdup(arena, found.items, found.len * sizeof(found.items[0]));
    vec_done(&found);
    return list;
}
