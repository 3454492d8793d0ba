/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory in the order of a stream, out of pools. A pool reserves memory of its device in chunks,
 * hands out parts of it, and gives chunks back when a synchronisation finds more unused than its
 * threshold. Everything here under driver.mutex.
 */
#include <stdlib.h>

#include "driver.h"

#define MAGIC UINT32_C(0x506f6f6c)

struct cu_pool {
    uint32_t magic;
    uint32_t real;
    bool destroyed;
    uint64_t used, used_high, reserved, reserved_high;
    uint64_t threshold, most;
    int reuse[3];
    int access;
    struct drv_alloc *allocs;
    struct cu_pool *next;
};

static struct {
    struct cu_pool *all;
    struct cu_pool *standard[DBL_DEVICES], *current[DBL_DEVICES];
} pools;

static uint64_t up(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

static struct cu_pool *pool_new(uint32_t real, uint64_t most)
{
    struct cu_pool *pool = calloc(1, sizeof(*pool));

    if (pool == NULL)
        return NULL;
    pool->magic = MAGIC;
    pool->real = real;
    pool->most = most;
    pool->reuse[0] = pool->reuse[1] = pool->reuse[2] = 1;
    pool->access = CU_ACCESS_READWRITE;
    pool->next = pools.all;
    pools.all = pool;
    return pool;
}

static struct cu_pool *standard(uint32_t real)
{
    if (pools.standard[real] == NULL)
        pools.standard[real] = pool_new(real, 0);
    return pools.standard[real];
}

static struct cu_pool *current(uint32_t real)
{
    return pools.current[real] != NULL ? pools.current[real] : standard(real);
}

/* Gives back what is reserved above KEEP and above what is used. */
static void shrink(struct cu_pool *pool, uint64_t keep)
{
    uint64_t least = up(pool->used, DRV_POOL_CHUNK);

    if (keep < least)
        keep = least;
    if (pool->reserved <= keep)
        return;
    dbl_refund(driver.sh, driver.slot, pool->real, DBL_POOL, pool->reserved - keep);
    pool->reserved = keep;
}

static bool grow(struct cu_pool *pool, uint64_t bytes)
{
    if (dbl_charge(driver.sh, driver.slot, pool->real, DBL_POOL, bytes) < 0)
        return false;
    pool->reserved += bytes;
    if (pool->reserved > pool->reserved_high)
        pool->reserved_high = pool->reserved;
    return true;
}

/* Room for NEED more: by whole chunks; if they do not fit, out of what other pools do not use;
 * then by as little as will do. */
static bool make_room(struct cu_pool *pool, uint64_t need)
{
    uint64_t lack = pool->used + need > pool->reserved ? pool->used + need - pool->reserved : 0;
    uint64_t chunks = up(lack, DRV_POOL_CHUNK);

    if (lack == 0)
        return true;
    if (pool->most != 0 && pool->used + need > pool->most)
        return false;
    if (pool->most != 0 && pool->reserved + chunks > pool->most)
        chunks = pool->most - pool->reserved;
    if (grow(pool, chunks))
        return true;
    for (struct cu_pool *other = pools.all; other != NULL; other = other->next)
        if (other != pool && other->real == pool->real)
            shrink(other, 0);
    return grow(pool, chunks) ||
           (chunks > up(lack, DRV_GRANULARITY) && grow(pool, up(lack, DRV_GRANULARITY)));
}

static cu_result take(struct cu_pool *pool, struct cu_ctx *ctx, uint64_t bytes, cu_devptr *ret_ptr)
{
    uint64_t need = up(bytes, DRV_ALIGN);
    struct drv_alloc *alloc;

    if (bytes > UINT64_C(1) << 42 || !make_room(pool, need))
        return CU_OUT_OF_MEMORY;
    alloc = drv_va_new(bytes);
    if (alloc == NULL)
        return CU_OUT_OF_MEMORY;
    alloc->kind = DBL_POOL;
    alloc->charged = need;
    alloc->real = (uint16_t)pool->real;
    alloc->ctx = ctx;
    alloc->pool = pool;
    drv_va_link(&pool->allocs, alloc);
    pool->used += need;
    if (pool->used > pool->used_high)
        pool->used_high = pool->used;
    *ret_ptr = alloc->base;
    return CU_OK;
}

static void end_if_empty(struct cu_pool *pool)
{
    struct cu_pool **at = &pools.all;

    if (!pool->destroyed || pool->used > 0)
        return;
    shrink(pool, 0);
    while (*at != pool)
        at = &(*at)->next;
    *at = pool->next;
    pool->magic = 0;
    free(pool);
}

void drv_pool_release(struct drv_alloc *alloc)
{
    struct cu_pool *pool = alloc->pool;

    pool->used -= alloc->charged;
    end_if_empty(pool);
}

void drv_pools_settle(uint32_t real)
{
    pthread_mutex_lock(&driver.mutex);
    for (struct cu_pool *pool = pools.all; pool != NULL; pool = pool->next)
        if (pool->real == real)
            shrink(pool, pool->threshold);
    pthread_mutex_unlock(&driver.mutex);
}

void drv_pools_drop(uint32_t real)
{
    struct cu_pool *next;

    for (struct cu_pool *pool = pools.all; pool != NULL; pool = next) {
        next = pool->next;
        if (pool->real != real)
            continue;
        while (pool->allocs != NULL) {
            struct drv_alloc *alloc = pool->allocs;

            drv_va_unlink(alloc);
            pool->used -= alloc->charged;
            drv_va_free(alloc);
        }
        shrink(pool, 0);
        end_if_empty(pool);
    }
}

static cu_result allocate(struct cu_pool *pool, cu_devptr *ret_ptr, uint64_t bytes,
                          struct cu_stream *handle, bool per_thread)
{
    struct cu_stream *stream;
    cu_result result;

    if (ret_ptr == NULL || bytes == 0 || (pool != NULL && pool->magic != MAGIC))
        return CU_INVALID_VALUE;
    result = drv_stream(handle, per_thread, &stream);
    if (result != CU_OK)
        return result;
    INJECT(DBL_FAIL_POOL);
    if (drv_capturing(stream))
        return drv_capture_alloc(stream, bytes, ret_ptr);
    pthread_mutex_lock(&driver.mutex);
    if (pool == NULL)
        pool = current(stream->ctx->real);
    result = pool != NULL ? take(pool, stream->ctx, bytes, ret_ptr) : CU_OUT_OF_MEMORY;
    pthread_mutex_unlock(&driver.mutex);
    return result;
}

cu_result cuMemAllocAsync(cu_devptr *ret_ptr, size_t bytes, struct cu_stream *stream)
{
    ENTER();
    return allocate(NULL, ret_ptr, bytes, stream, false);
}

cu_result cuMemAllocAsync_ptsz(cu_devptr *ret_ptr, size_t bytes, struct cu_stream *stream)
{
    ENTER();
    return allocate(NULL, ret_ptr, bytes, stream, true);
}

cu_result cuMemAllocFromPoolAsync(cu_devptr *ret_ptr, size_t bytes, struct cu_pool *pool,
                                  struct cu_stream *stream)
{
    ENTER();
    return pool != NULL ? allocate(pool, ret_ptr, bytes, stream, false) : CU_INVALID_VALUE;
}

cu_result cuMemAllocFromPoolAsync_ptsz(cu_devptr *ret_ptr, size_t bytes, struct cu_pool *pool,
                                       struct cu_stream *stream)
{
    ENTER();
    return pool != NULL ? allocate(pool, ret_ptr, bytes, stream, true) : CU_INVALID_VALUE;
}

static cu_result free_async(cu_devptr ptr, struct cu_stream *handle, bool per_thread)
{
    struct cu_stream *stream;
    cu_result result = drv_stream(handle, per_thread, &stream);

    if (result != CU_OK)
        return result;
    if (ptr == 0)
        return CU_INVALID_VALUE;
    INJECT(DBL_FAIL_FREE);
    return drv_capturing(stream) ? drv_capture_free(stream, ptr) : drv_free(ptr);
}

cu_result cuMemFreeAsync(cu_devptr ptr, struct cu_stream *stream)
{
    ENTER();
    return free_async(ptr, stream, false);
}

cu_result cuMemFreeAsync_ptsz(cu_devptr ptr, struct cu_stream *stream)
{
    ENTER();
    return free_async(ptr, stream, true);
}

cu_result cuMemPoolCreate(struct cu_pool **ret_pool, const struct cu_pool_props *props)
{
    struct cu_pool *pool;

    ENTER();
    if (ret_pool == NULL || props == NULL || props->type != CU_ALLOCATION_PINNED)
        return CU_INVALID_VALUE;
    if (props->location.type != CU_LOCATION_DEVICE || props->handle_types != CU_HANDLE_NONE)
        return CU_NOT_SUPPORTED;
    if (!drv_device_valid(props->location.id))
        return CU_INVALID_DEVICE;
    pthread_mutex_lock(&driver.mutex);
    pool = pool_new(driver.visible[props->location.id], props->max_bytes);
    pthread_mutex_unlock(&driver.mutex);
    if (pool == NULL)
        return CU_OUT_OF_MEMORY;
    *ret_pool = pool;
    return CU_OK;
}

/* Ends when the last of its allocations is freed. A device that used it falls back. */
cu_result cuMemPoolDestroy(struct cu_pool *pool)
{
    cu_result result = CU_INVALID_VALUE;

    ENTER();
    pthread_mutex_lock(&driver.mutex);
    if (pool != NULL && pool->magic == MAGIC && !pool->destroyed &&
        pools.standard[pool->real] != pool) {
        if (pools.current[pool->real] == pool)
            pools.current[pool->real] = NULL;
        pool->destroyed = true;
        end_if_empty(pool);
        result = CU_OK;
    }
    pthread_mutex_unlock(&driver.mutex);
    return result;
}

cu_result cuMemPoolTrimTo(struct cu_pool *pool, size_t keep)
{
    ENTER();
    if (pool == NULL || pool->magic != MAGIC)
        return CU_INVALID_VALUE;
    pthread_mutex_lock(&driver.mutex);
    shrink(pool, keep);
    pthread_mutex_unlock(&driver.mutex);
    return CU_OK;
}

static cu_result get(const struct cu_pool *pool, int attribute, void *ret_value)
{
    uint64_t *number = ret_value;

    switch (attribute) {
    case CU_POOL_REUSE_EVENTS:
    case CU_POOL_REUSE_OPPORTUNISTIC:
    case CU_POOL_REUSE_INTERNAL:
        *(int *)ret_value = pool->reuse[attribute - 1];
        return CU_OK;
    case CU_POOL_RELEASE_THRESHOLD:
        *number = pool->threshold;
        return CU_OK;
    case CU_POOL_RESERVED_CURRENT:
        *number = pool->reserved;
        return CU_OK;
    case CU_POOL_RESERVED_HIGH:
        *number = pool->reserved_high;
        return CU_OK;
    case CU_POOL_USED_CURRENT:
        *number = pool->used;
        return CU_OK;
    case CU_POOL_USED_HIGH:
        *number = pool->used_high;
        return CU_OK;
    default:
        return CU_INVALID_VALUE;
    }
}

static cu_result set(struct cu_pool *pool, int attribute, const void *value)
{
    switch (attribute) {
    case CU_POOL_REUSE_EVENTS:
    case CU_POOL_REUSE_OPPORTUNISTIC:
    case CU_POOL_REUSE_INTERNAL:
        pool->reuse[attribute - 1] = *(const int *)value;
        return CU_OK;
    case CU_POOL_RELEASE_THRESHOLD:
        pool->threshold = *(const uint64_t *)value;
        return CU_OK;
    case CU_POOL_RESERVED_HIGH:
    case CU_POOL_USED_HIGH:
        if (*(const uint64_t *)value != 0)
            return CU_INVALID_VALUE;
        if (attribute == CU_POOL_RESERVED_HIGH)
            pool->reserved_high = pool->reserved;
        else
            pool->used_high = pool->used;
        return CU_OK;
    default:
        return CU_INVALID_VALUE;
    }
}

cu_result cuMemPoolGetAttribute(struct cu_pool *pool, int attribute, void *ret_value)
{
    cu_result result;

    ENTER();
    if (pool == NULL || ret_value == NULL || pool->magic != MAGIC)
        return CU_INVALID_VALUE;
    pthread_mutex_lock(&driver.mutex);
    result = get(pool, attribute, ret_value);
    pthread_mutex_unlock(&driver.mutex);
    return result;
}

cu_result cuMemPoolSetAttribute(struct cu_pool *pool, int attribute, void *value)
{
    cu_result result;

    ENTER();
    if (pool == NULL || value == NULL || pool->magic != MAGIC)
        return CU_INVALID_VALUE;
    pthread_mutex_lock(&driver.mutex);
    result = set(pool, attribute, value);
    pthread_mutex_unlock(&driver.mutex);
    return result;
}

cu_result cuMemPoolSetAccess(struct cu_pool *pool, const struct cu_access *list, size_t count)
{
    ENTER();
    if (pool == NULL || pool->magic != MAGIC || (list == NULL && count > 0))
        return CU_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (list[i].location.type != CU_LOCATION_DEVICE || !drv_device_valid(list[i].location.id))
            return CU_INVALID_DEVICE;
    return CU_OK;
}

cu_result cuMemPoolGetAccess(int *ret_flags, struct cu_pool *pool, struct cu_location *location)
{
    ENTER();
    if (ret_flags == NULL || pool == NULL || location == NULL || pool->magic != MAGIC)
        return CU_INVALID_VALUE;
    if (location->type != CU_LOCATION_DEVICE || !drv_device_valid(location->id))
        return CU_INVALID_DEVICE;
    *ret_flags = driver.visible[location->id] == pool->real ? pool->access : CU_ACCESS_NONE;
    return CU_OK;
}

static cu_result which(struct cu_pool **ret_pool, cu_device device, bool of_the_driver)
{
    struct cu_pool *pool;

    if (ret_pool == NULL)
        return CU_INVALID_VALUE;
    if (!drv_device_valid(device))
        return CU_INVALID_DEVICE;
    pthread_mutex_lock(&driver.mutex);
    pool = of_the_driver ? standard(driver.visible[device]) : current(driver.visible[device]);
    pthread_mutex_unlock(&driver.mutex);
    if (pool == NULL)
        return CU_OUT_OF_MEMORY;
    *ret_pool = pool;
    return CU_OK;
}

cu_result cuDeviceGetDefaultMemPool(struct cu_pool **ret_pool, cu_device device)
{
    ENTER();
    return which(ret_pool, device, true);
}

cu_result cuDeviceGetMemPool(struct cu_pool **ret_pool, cu_device device)
{
    ENTER();
    return which(ret_pool, device, false);
}

cu_result cuMemGetDefaultMemPool(struct cu_pool **ret_pool, struct cu_location *location, int type)
{
    ENTER();
    if (location == NULL || type != CU_ALLOCATION_PINNED)
        return CU_INVALID_VALUE;
    return location->type == CU_LOCATION_DEVICE ? which(ret_pool, location->id, true)
                                                : CU_NOT_SUPPORTED;
}

cu_result cuMemGetMemPool(struct cu_pool **ret_pool, struct cu_location *location, int type)
{
    ENTER();
    if (location == NULL || type != CU_ALLOCATION_PINNED)
        return CU_INVALID_VALUE;
    return location->type == CU_LOCATION_DEVICE ? which(ret_pool, location->id, false)
                                                : CU_NOT_SUPPORTED;
}

static cu_result use(cu_device device, struct cu_pool *pool)
{
    if (!drv_device_valid(device))
        return CU_INVALID_DEVICE;
    if (pool == NULL || pool->magic != MAGIC || pool->real != driver.visible[device])
        return CU_INVALID_VALUE;
    pthread_mutex_lock(&driver.mutex);
    pools.current[pool->real] = pool;
    pthread_mutex_unlock(&driver.mutex);
    return CU_OK;
}

cu_result cuDeviceSetMemPool(cu_device device, struct cu_pool *pool)
{
    ENTER();
    return use(device, pool);
}

cu_result cuMemSetMemPool(struct cu_location *location, int type, struct cu_pool *pool)
{
    ENTER();
    if (location == NULL || type != CU_ALLOCATION_PINNED)
        return CU_INVALID_VALUE;
    return location->type == CU_LOCATION_DEVICE ? use(location->id, pool) : CU_NOT_SUPPORTED;
}
