/* SPDX-License-Identifier: Apache-2.0 */
/* Linear and pitched memory, and what every free, range and pointer question begins with. */
#include "driver.h"

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + DRV_ALIGN - 1) / DRV_ALIGN * DRV_ALIGN;
}

static cu_result allocate(struct cu_ctx *ctx, uint64_t bytes, cu_devptr *ret_ptr)
{
    uint64_t charged = rounded(bytes);
    struct drv_alloc *alloc;

    if (bytes > UINT64_C(1) << 42)
        return CU_OUT_OF_MEMORY;
    pthread_mutex_lock(&driver.mutex);
    alloc = drv_va_new(bytes);
    if (alloc != NULL && dbl_charge(driver.sh, driver.slot, ctx->real, DBL_LINEAR, charged) < 0) {
        drv_va_free(alloc);
        alloc = NULL;
    }
    if (alloc != NULL) {
        alloc->kind = DBL_LINEAR;
        alloc->charged = charged;
        alloc->real = (uint16_t)ctx->real;
        alloc->ctx = ctx;
        drv_va_link(&ctx->allocs, alloc);
        *ret_ptr = alloc->base;
    }
    pthread_mutex_unlock(&driver.mutex);
    return alloc != NULL ? CU_OK : CU_OUT_OF_MEMORY;
}

cu_result cuMemAlloc_v2(cu_devptr *ret_ptr, size_t bytes)
{
    struct cu_ctx *ctx;
    cu_result result;

    ENTER();
    result = drv_context(&ctx);
    if (result != CU_OK)
        return result;
    if (ret_ptr == NULL || bytes == 0)
        return CU_INVALID_VALUE;
    INJECT(DBL_FAIL_ALLOC);
    result = drv_capture_forbids(ctx);
    return result == CU_OK ? allocate(ctx, bytes, ret_ptr) : result;
}

cu_result cuMemAllocPitch_v2(cu_devptr *ret_ptr, size_t *ret_pitch, size_t width, size_t height,
                             unsigned element)
{
    struct cu_ctx *ctx;
    uint64_t bytes;
    cu_result result;

    ENTER();
    result = drv_context(&ctx);
    if (result != CU_OK)
        return result;
    if (ret_ptr == NULL || ret_pitch == NULL || width == 0 || height == 0 ||
        (element != 4 && element != 8 && element != 16) || width > UINT64_C(1) << 40)
        return CU_INVALID_VALUE;
    if (__builtin_mul_overflow(rounded(width), height, &bytes))
        return CU_OUT_OF_MEMORY;
    INJECT(DBL_FAIL_ALLOC);
    result = allocate(ctx, bytes, ret_ptr);
    if (result == CU_OK)
        *ret_pitch = rounded(width);
    return result;
}

/* With driver.mutex. */
static cu_result take_away(struct drv_alloc *alloc, cu_devptr ptr)
{
    if (alloc == NULL || ptr != alloc->base)
        return CU_INVALID_VALUE;
    if (alloc->kind == DBL_GRAPH)
        return drv_graph_free(alloc);
    if (alloc->kind == DBL_KINDS)
        return CU_INVALID_VALUE; /* another process's: it is closed, not freed */
    drv_va_unlink(alloc);
    if (alloc->pool != NULL)
        drv_pool_release(alloc);
    else
        dbl_refund(driver.sh, driver.slot, alloc->real, DBL_LINEAR, alloc->charged);
    drv_va_free(alloc);
    return CU_OK;
}

cu_result drv_free(cu_devptr ptr)
{
    cu_result result;

    if (drv_managed_free(ptr))
        return CU_OK;
    pthread_mutex_lock(&driver.mutex);
    result = take_away(drv_va_find(ptr), ptr);
    pthread_mutex_unlock(&driver.mutex);
    return result;
}

cu_result cuMemFree_v2(cu_devptr ptr)
{
    struct cu_ctx *ctx;
    cu_result result;

    ENTER();
    result = drv_context(&ctx);
    if (result != CU_OK)
        return result;
    if (ptr == 0)
        return CU_OK;
    INJECT(DBL_FAIL_FREE);
    /* The driver waits for what may still use the memory. */
    if (!driver.bench) {
        result = drv_capture_forbids(ctx);
        if (result == CU_OK)
            result = drv_sync_ctx(ctx);
    }
    return result == CU_OK ? drv_free(ptr) : result;
}

void drv_memory_drop(struct cu_ctx *ctx)
{
    uint64_t charged = 0;

    pthread_mutex_lock(&driver.mutex);
    while (ctx->allocs != NULL) {
        struct drv_alloc *alloc = ctx->allocs;

        drv_va_unlink(alloc);
        alloc->list = NULL;
        if (alloc->kind == DBL_GRAPH) {
            drv_graph_free(alloc); /* its graph still has the address */
            continue;
        }
        charged += alloc->charged;
        drv_va_free(alloc);
    }
    dbl_refund(driver.sh, driver.slot, ctx->real, DBL_LINEAR, charged);
    pthread_mutex_unlock(&driver.mutex);
}

cu_result cuMemGetInfo_v2(size_t *ret_free, size_t *ret_total)
{
    struct cu_ctx *ctx;
    uint64_t used, total;
    cu_result result;
    uint32_t device;

    ENTER();
    result = drv_context(&ctx);
    if (result != CU_OK)
        return result;
    if (ret_free == NULL || ret_total == NULL)
        return CU_INVALID_VALUE;
    if (!driver.bench) {
        dbl_lock(driver.sh);
        dbl_reap(driver.sh);
        dbl_unlock(driver.sh);
    }
    device = driver.proc->moved[ctx->real];
    used = dbl_used(driver.sh, device);
    total = dbl_info(driver.sh, device)->memory;
    *ret_total = total;
    *ret_free = used < total ? total - used : 0;
    return CU_OK;
}

struct range {
    cu_devptr base;
    uint64_t bytes;
    uint32_t real;
    struct cu_ctx *ctx;
    struct cu_pool *pool;
    const void *host;
    int type; /* CU_MEMORY_... */
    bool managed;
};

static bool find_range(cu_devptr ptr, struct range *range)
{
    struct drv_alloc *alloc;
    size_t bytes;
    unsigned flags;

    *range = (struct range){.type = CU_MEMORY_DEVICE};
    pthread_mutex_lock(&driver.mutex);
    alloc = drv_va_find(ptr);
    if (alloc != NULL) {
        range->base = alloc->base;
        range->bytes = alloc->bytes;
        range->real = alloc->real;
        range->ctx = alloc->ctx;
        range->pool = alloc->pool;
    }
    pthread_mutex_unlock(&driver.mutex);
    if (alloc != NULL || drv_vmm_find(ptr, &range->base, &range->bytes, &range->real))
        return true;
    range->managed = true;
    if (drv_managed_find(ptr, &range->base, &range->bytes)) {
        range->host = (const void *)(uintptr_t)range->base;
        return true;
    }
    range->managed = false;
    range->type = CU_MEMORY_HOST;
    if (!drv_host_find((const void *)(uintptr_t)ptr, &range->host, &bytes, &flags))
        return false;
    range->base = (cu_devptr)(uintptr_t)range->host;
    range->bytes = bytes;
    return true;
}

cu_result cuMemGetAddressRange_v2(cu_devptr *ret_base, size_t *ret_bytes, cu_devptr ptr)
{
    struct range range;

    ENTER();
    if (!find_range(ptr, &range) || range.type != CU_MEMORY_DEVICE)
        return CU_NOT_FOUND;
    if (ret_base != NULL)
        *ret_base = range.base;
    if (ret_bytes != NULL)
        *ret_bytes = range.bytes;
    return CU_OK;
}

static int ordinal_of(uint32_t real)
{
    for (int d = 0; d < driver.count; d++)
        if (driver.visible[d] == real)
            return d;
    return -1;
}

static cu_result tell(void *ret_value, int attribute, cu_devptr ptr, const struct range *range)
{
    switch (attribute) {
    case CU_PTR_CONTEXT:
        *(struct cu_ctx **)ret_value = range->ctx;
        return CU_OK;
    case CU_PTR_MEMORY_TYPE:
        *(unsigned *)ret_value = (unsigned)range->type;
        return CU_OK;
    case CU_PTR_DEVICE_POINTER:
        *(cu_devptr *)ret_value = ptr;
        return CU_OK;
    case CU_PTR_HOST_POINTER:
        if (range->host == NULL)
            return CU_INVALID_VALUE;
        *(uintptr_t *)ret_value = (uintptr_t)ptr;
        return CU_OK;
    case CU_PTR_IS_MANAGED:
        *(unsigned *)ret_value = range->managed;
        return CU_OK;
    case CU_PTR_DEVICE_ORDINAL:
        *(int *)ret_value = ordinal_of(range->real);
        return CU_OK;
    case CU_PTR_RANGE_START:
        *(cu_devptr *)ret_value = range->base;
        return CU_OK;
    case CU_PTR_RANGE_SIZE:
        *(size_t *)ret_value = range->bytes;
        return CU_OK;
    case CU_PTR_MAPPED:
        *(char *)ret_value = 1;
        return CU_OK;
    case CU_PTR_POOL:
        *(struct cu_pool **)ret_value = range->pool;
        return CU_OK;
    default:
        return CU_NOT_SUPPORTED;
    }
}

cu_result cuPointerGetAttribute(void *ret_value, int attribute, cu_devptr ptr)
{
    struct range range;

    ENTER();
    if (ret_value == NULL || !find_range(ptr, &range))
        return CU_INVALID_VALUE;
    return tell(ret_value, attribute, ptr, &range);
}

/* Of an address that nobody knows all values are zero, and that is no error. */
cu_result cuPointerGetAttributes(unsigned count, int *attributes, void **ret_values, cu_devptr ptr)
{
    struct range range;

    ENTER();
    if (attributes == NULL || ret_values == NULL)
        return CU_INVALID_VALUE;
    if (!find_range(ptr, &range))
        range = (struct range){0};
    for (unsigned i = 0; i < count; i++) {
        cu_result result = tell(ret_values[i], attributes[i], range.base != 0 ? ptr : 0, &range);

        if (result == CU_NOT_SUPPORTED)
            return result;
    }
    return CU_OK;
}
