/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <stdio.h>

#include "share/verify/verify.h"

static void find_functions(struct driver *d, void *library)
{
#define VERIFY_FIND(name) d->name = (fn_##name *)dlsym(library, #name);
    VERIFY_FUNCTIONS(VERIFY_FIND)
#undef VERIFY_FIND
}

const char *driver_open(struct driver *ret_driver)
{
    static char text[200];
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    struct driver *d = ret_driver;
    cu_result r;

    *d = (struct driver){0};
    if (library == NULL)
        return "there is no NVIDIA driver here: libcuda.so.1 cannot be loaded";
    find_functions(d, library);
    if (!d->cuInit || !d->cuDeviceGetCount || !d->cuDeviceGetName || !d->cuDeviceGetUuid ||
        !d->cuDevicePrimaryCtxRetain || !d->cuCtxSetCurrent || !d->cuMemGetInfo_v2 ||
        !d->cuMemAlloc_v2 || !d->cuMemFree_v2)
        return "libcuda.so.1 lacks what every supported driver has";
    r = d->cuInit(0);
    if (r == CU_OK)
        r = d->cuDeviceGetCount(&d->devices);
    if (r == CU_OK && d->devices > 0)
        return NULL;
    if (r == CU_OK || r == CU_NO_DEVICE)
        return "the driver shows no device";
    snprintf(text, sizeof(text), "the driver cannot be used: it answers %d", r);
    return text;
}

cu_result driver_enter(const struct driver *d, int device)
{
    struct cu_ctx *ctx;
    cu_result r = d->cuDevicePrimaryCtxRetain(&ctx, device);

    return r == CU_OK ? d->cuCtxSetCurrent(ctx) : r;
}
