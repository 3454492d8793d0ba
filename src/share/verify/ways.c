/* SPDX-License-Identifier: Apache-2.0 */
/* Every way of asking a driver for memory, but for that of fill.c. */
#include <stddef.h>

#include "share/verify/verify.h"

#define LOOKUP_VERSION 12000 /* of the CUDA that asks */
#define SIDE UINT64_C(4096)  /* of a square of VERIFY_BLOCK bytes */
_Static_assert(SIDE *SIDE == VERIFY_BLOCK, "a square");

/* What a driver without the functions answers. */
#define NEED(condition)              \
    do {                             \
        if (!(condition))            \
            return CU_NOT_SUPPORTED; \
    } while (0)

static cu_result linear(const struct driver *d, int device)
{
    cu_devptr p;
    cu_result r = d->cuMemAlloc_v2(&p, VERIFY_BLOCK);

    if (r == CU_OK)
        d->cuMemFree_v2(p);
    return r;
}

/* As the CUDA runtime finds its functions. */
static cu_result looked_up(const struct driver *d, int device)
{
    struct driver other = *d;
    void *alloc = NULL, *release = NULL;

    NEED(d->cuGetProcAddress_v2);
    if (d->cuGetProcAddress_v2("cuMemAlloc", &alloc, LOOKUP_VERSION, 0, NULL) != CU_OK ||
        d->cuGetProcAddress_v2("cuMemFree", &release, LOOKUP_VERSION, 0, NULL) != CU_OK)
        return CU_NOT_SUPPORTED;
    NEED(alloc && release);
    other.cuMemAlloc_v2 = (fn_cuMemAlloc_v2 *)alloc;
    other.cuMemFree_v2 = (fn_cuMemFree_v2 *)release;
    return linear(&other, device);
}

static cu_result pitched(const struct driver *d, int device)
{
    size_t pitch;
    cu_devptr p;
    cu_result r;

    NEED(d->cuMemAllocPitch_v2);
    r = d->cuMemAllocPitch_v2(&p, &pitch, SIDE, SIDE, 4);
    if (r == CU_OK)
        d->cuMemFree_v2(p);
    return r;
}

static cu_result managed(const struct driver *d, int device)
{
    cu_devptr p;
    cu_result r;

    NEED(d->cuMemAllocManaged);
    r = d->cuMemAllocManaged(&p, VERIFY_BLOCK, CU_ATTACH_GLOBAL);
    if (r == CU_OK)
        d->cuMemFree_v2(p);
    return r;
}

/* From the pool that the device has. A pool keeps what is freed until it is trimmed. */
static cu_result async(const struct driver *d, int device)
{
    struct cu_pool *pool;
    cu_devptr p;
    cu_result r;

    NEED(d->cuMemAllocAsync && d->cuMemFreeAsync && d->cuStreamSynchronize &&
         d->cuDeviceGetDefaultMemPool && d->cuMemPoolTrimTo);
    r = d->cuMemAllocAsync(&p, VERIFY_BLOCK, NULL);
    if (r != CU_OK)
        return r;
    d->cuMemFreeAsync(p, NULL);
    d->cuStreamSynchronize(NULL);
    if (d->cuDeviceGetDefaultMemPool(&pool, device) == CU_OK)
        d->cuMemPoolTrimTo(pool, 0);
    return r;
}

static cu_result own_pool(const struct driver *d, int device)
{
    const struct cu_pool_props props = {.type = CU_ALLOCATION_PINNED,
                                        .location = {CU_LOCATION_DEVICE, device}};
    struct cu_pool *pool;
    cu_devptr p;
    cu_result r;

    NEED(d->cuMemPoolCreate && d->cuMemPoolDestroy && d->cuMemAllocFromPoolAsync &&
         d->cuMemFreeAsync && d->cuStreamSynchronize);
    r = d->cuMemPoolCreate(&pool, &props);
    if (r != CU_OK)
        return r;
    r = d->cuMemAllocFromPoolAsync(&p, VERIFY_BLOCK, pool, NULL);
    if (r == CU_OK) {
        d->cuMemFreeAsync(p, NULL);
        d->cuStreamSynchronize(NULL);
    }
    d->cuMemPoolDestroy(pool);
    return r;
}

/* Its size is a multiple of any granularity there is. */
static cu_result physical(const struct driver *d, int device)
{
    const struct cu_alloc_prop prop = {.type = CU_ALLOCATION_PINNED,
                                       .location = {CU_LOCATION_DEVICE, device}};
    cu_vmm handle;
    cu_result r;

    NEED(d->cuMemCreate && d->cuMemRelease);
    r = d->cuMemCreate(&handle, VERIFY_BLOCK, &prop, 0);
    if (r == CU_OK)
        d->cuMemRelease(handle);
    return r;
}

static cu_result array(const struct driver *d, int device)
{
    const struct cu_array_desc desc = {
        .width = SIDE, .height = SIDE, .format = CU_FORMAT_U8, .channels = 1};
    struct cu_array *array;
    cu_result r;

    NEED(d->cuArrayCreate_v2 && d->cuArrayDestroy);
    r = d->cuArrayCreate_v2(&array, &desc);
    if (r == CU_OK)
        d->cuArrayDestroy(array);
    return r;
}

const struct way verify_ways[] = {
    {"linear", linear},           {"looked up", looked_up}, {"pitched", pitched},
    {"managed", managed},         {"async", async},         {"own pool", own_pool},
    {"virtual memory", physical}, {"array", array},         {NULL, NULL},
};
