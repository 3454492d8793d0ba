/* SPDX-License-Identifier: Apache-2.0 */
#include "share/place.h"

#include "allot/share.h"

#ifndef SHARE_TEST

const char *share_place_driver(void)
{
    return SHARE_DRIVER;
}

const char *share_place_nvml(void)
{
    return SHARE_NVML;
}

const char *share_place_socket(void)
{
    return SHARE_SOCKET;
}

const char *share_place_open(void)
{
    return SHARE_OPEN;
}

#else

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

static const char *in_folder(char path[PATH_MAX], const char *name)
{
    const char *folder = getenv("ALLOT_SHARE_FOLDER");

    snprintf(path, PATH_MAX, "%s/%s", folder ? folder : SHARE_FOLDER, name);
    return path;
}

const char *share_place_driver(void)
{
    static _Thread_local char path[PATH_MAX];
    return in_folder(path, "libcuda.so");
}

const char *share_place_nvml(void)
{
    static _Thread_local char path[PATH_MAX];
    return in_folder(path, "libnvidia-ml.so");
}

const char *share_place_socket(void)
{
    static _Thread_local char path[PATH_MAX];
    return in_folder(path, "agent");
}

const char *share_place_open(void)
{
    static _Thread_local char path[PATH_MAX];
    return in_folder(path, "open");
}

#endif
