/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: primary ones, counted, and others; a stack of them per thread. */
#include <stdlib.h>

#include "driver.h"

#define MAGIC UINT32_C(0x43747821)

static bool valid(const struct cu_ctx *ctx)
{
    return ctx != NULL && ctx->magic == MAGIC;
}

static cu_result make(cu_device device, unsigned flags, unsigned api, struct cu_ctx **ret_ctx)
{
    static const size_t limits[CU_LIMIT_COUNT] = {1024, 1 << 20, 8 << 20, 2, 2048, 64};
    uint32_t real = driver.visible[device];
    struct cu_ctx *ctx;

    INJECT(DBL_FAIL_CONTEXT);
    if (dbl_charge(driver.sh, driver.slot, real, DBL_CONTEXT, driver.sh->config.context_bytes) < 0)
        return CU_OUT_OF_MEMORY;
    ctx = calloc(1, sizeof(*ctx));
    if (ctx == NULL)
        return CU_OUT_OF_MEMORY;
    ctx->magic = MAGIC;
    ctx->device = device;
    ctx->real = real;
    ctx->flags = flags;
    ctx->api = api;
    for (int i = 0; i < CU_LIMIT_COUNT; i++)
        ctx->limits[i] = limits[i];
    ctx->id = ++driver.next_context;
    ctx->next = driver.contexts;
    driver.contexts = ctx;
    atomic_fetch_add(&driver.proc->contexts, 1);
    ctx->legacy = drv_stream_new(ctx, 0, 0, true);
    if (ctx->legacy == NULL)
        return CU_OUT_OF_MEMORY;
    *ret_ctx = ctx;
    return CU_OK;
}

static bool device_in_use(uint32_t real)
{
    for (struct cu_ctx *c = driver.contexts; c != NULL; c = c->next)
        if (c->real == real && !c->dead)
            return true;
    return false;
}

/* All that lives in CTX ends with it. Without driver.mutex. */
static void end(struct cu_ctx *ctx)
{
    drv_sync_ctx(ctx);
    drv_arrays_drop(ctx);
    drv_memory_drop(ctx);
    drv_module_drop(ctx);
    drv_stream_drop(ctx->legacy);
    pthread_mutex_lock(&driver.mutex);
    ctx->dead = true;
    atomic_fetch_sub(&driver.proc->contexts, 1);
    dbl_refund(driver.sh, driver.slot, ctx->real, DBL_CONTEXT, driver.sh->config.context_bytes);
    if (!device_in_use(ctx->real)) {
        drv_pools_drop(ctx->real);
        drv_graph_memory_drop(ctx->real);
    }
    pthread_mutex_unlock(&driver.mutex);
}

cu_result cuDevicePrimaryCtxRetain(struct cu_ctx **ret_ctx, cu_device device)
{
    cu_result result = CU_OK;
    struct cu_ctx *ctx;

    ENTER();
    if (ret_ctx == NULL)
        return CU_INVALID_VALUE;
    if (!drv_device_valid(device))
        return CU_INVALID_DEVICE;
    pthread_mutex_lock(&driver.mutex);
    ctx = driver.primary[device];
    if (ctx == NULL)
        result = make(device, driver.primary_flags[device], 13000, &ctx);
    if (result == CU_OK) {
        ctx->primary = true;
        ctx->retained++;
        driver.primary[device] = ctx;
        *ret_ctx = ctx;
    }
    pthread_mutex_unlock(&driver.mutex);
    return result == CU_OK ? drv_service_start() : result;
}

/* Takes the primary context of DEVICE away when COUNT holders (0: all) have let go. */
static cu_result primary_let_go(cu_device device, bool all)
{
    struct cu_ctx *ctx;
    bool last = false;

    if (!drv_device_valid(device))
        return CU_INVALID_DEVICE;
    pthread_mutex_lock(&driver.mutex);
    ctx = driver.primary[device];
    if (ctx != NULL) {
        ctx->retained = all ? 0 : ctx->retained - 1;
        last = ctx->retained == 0;
        if (last)
            driver.primary[device] = NULL;
    }
    pthread_mutex_unlock(&driver.mutex);
    if (last)
        end(ctx);
    return ctx != NULL || all ? CU_OK : CU_INVALID_CONTEXT;
}

cu_result cuDevicePrimaryCtxRelease(cu_device device)
{
    ENTER();
    return primary_let_go(device, false);
}

cu_result cuDevicePrimaryCtxRelease_v2(cu_device device)
{
    ENTER();
    return primary_let_go(device, false);
}

cu_result cuDevicePrimaryCtxReset(cu_device device)
{
    ENTER();
    return primary_let_go(device, true);
}

cu_result cuDevicePrimaryCtxReset_v2(cu_device device)
{
    ENTER();
    return primary_let_go(device, true);
}

cu_result cuDevicePrimaryCtxSetFlags(cu_device device, unsigned flags)
{
    ENTER();
    if (!drv_device_valid(device))
        return CU_INVALID_DEVICE;
    if (flags & ~(unsigned)CU_CTX_FLAGS_MASK)
        return CU_INVALID_VALUE;
    driver.primary_flags[device] = flags;
    return CU_OK;
}

cu_result cuDevicePrimaryCtxSetFlags_v2(cu_device device, unsigned flags)
{
    return cuDevicePrimaryCtxSetFlags(device, flags);
}

cu_result cuDevicePrimaryCtxGetState(cu_device device, unsigned *ret_flags, int *ret_active)
{
    ENTER_QUERY();
    if (!drv_device_valid(device))
        return CU_INVALID_DEVICE;
    if (ret_flags == NULL || ret_active == NULL)
        return CU_INVALID_VALUE;
    pthread_mutex_lock(&driver.mutex);
    *ret_flags = driver.primary_flags[device];
    *ret_active = driver.primary[device] != NULL;
    pthread_mutex_unlock(&driver.mutex);
    return CU_OK;
}

static cu_result push(struct cu_ctx *ctx)
{
    if (drv_thread.depth == DRV_STACK)
        return CU_INVALID_VALUE;
    drv_thread.stack[drv_thread.depth++] = ctx;
    return CU_OK;
}

static cu_result create(struct cu_ctx **ret_ctx, unsigned flags, unsigned api, cu_device device)
{
    struct cu_ctx *ctx = NULL;
    cu_result result;

    if (ret_ctx == NULL || (flags & ~(unsigned)CU_CTX_FLAGS_MASK))
        return CU_INVALID_VALUE;
    if (!drv_device_valid(device))
        return CU_INVALID_DEVICE;
    pthread_mutex_lock(&driver.mutex);
    result = make(device, flags, api, &ctx);
    pthread_mutex_unlock(&driver.mutex);
    if (result != CU_OK)
        return result;
    *ret_ctx = ctx;
    result = push(ctx);
    return result == CU_OK ? drv_service_start() : result;
}

cu_result cuCtxCreate_v2(struct cu_ctx **ret_ctx, unsigned flags, cu_device device)
{
    ENTER();
    return create(ret_ctx, flags, 3020, device);
}

cu_result cuCtxCreate_v3(struct cu_ctx **ret_ctx, void *affinity, int count, unsigned flags,
                         cu_device device)
{
    ENTER();
    if (affinity != NULL || count != 0)
        return CU_NOT_SUPPORTED;
    return create(ret_ctx, flags, 11040, device);
}

cu_result cuCtxCreate_v4(struct cu_ctx **ret_ctx, struct cu_ctx_create_params *params,
                         unsigned flags, cu_device device)
{
    ENTER();
    if (params != NULL &&
        (params->affinity != NULL || params->affinity_count != 0 || params->cig != NULL))
        return CU_NOT_SUPPORTED;
    return create(ret_ctx, flags, 12050, device);
}

cu_result cuCtxDestroy_v2(struct cu_ctx *ctx)
{
    ENTER();
    if (!valid(ctx))
        return CU_INVALID_VALUE;
    if (ctx->dead)
        return CU_CONTEXT_IS_DESTROYED;
    if (ctx->primary)
        return CU_INVALID_CONTEXT;
    if (drv_current() == ctx)
        drv_thread.depth--;
    end(ctx);
    return CU_OK;
}

cu_result cuCtxPushCurrent_v2(struct cu_ctx *ctx)
{
    ENTER_QUERY();
    if (!valid(ctx))
        return CU_INVALID_VALUE;
    return ctx->dead ? CU_CONTEXT_IS_DESTROYED : push(ctx);
}

cu_result cuCtxPopCurrent_v2(struct cu_ctx **ret_ctx)
{
    ENTER_QUERY();
    if (drv_thread.depth == 0)
        return CU_INVALID_CONTEXT;
    drv_thread.depth--;
    if (ret_ctx != NULL)
        *ret_ctx = drv_thread.stack[drv_thread.depth];
    return CU_OK;
}

/* The names of before CUDA 4.0, which took no more and no less. */
cu_result cuCtxDestroy(struct cu_ctx *ctx)
{
    return cuCtxDestroy_v2(ctx);
}

cu_result cuCtxPushCurrent(struct cu_ctx *ctx)
{
    return cuCtxPushCurrent_v2(ctx);
}

cu_result cuCtxPopCurrent(struct cu_ctx **ret_ctx)
{
    return cuCtxPopCurrent_v2(ret_ctx);
}

/* Replaces the top of the stack; NULL takes it off. */
cu_result cuCtxSetCurrent(struct cu_ctx *ctx)
{
    ENTER_QUERY();
    if (ctx != NULL && !valid(ctx))
        return CU_INVALID_VALUE;
    if (ctx != NULL && ctx->dead)
        return CU_CONTEXT_IS_DESTROYED;
    if (drv_thread.depth > 0)
        drv_thread.depth--;
    return ctx != NULL ? push(ctx) : CU_OK;
}

cu_result cuCtxGetCurrent(struct cu_ctx **ret_ctx)
{
    ENTER_QUERY();
    if (ret_ctx == NULL)
        return CU_INVALID_VALUE;
    *ret_ctx = drv_current();
    return CU_OK;
}

/* CTX, or the current one for NULL, as *ret_ctx. */
static cu_result given(struct cu_ctx *ctx, struct cu_ctx **ret_ctx)
{
    if (ctx == NULL)
        return drv_context(ret_ctx);
    if (!valid(ctx))
        return CU_INVALID_CONTEXT;
    if (ctx->dead)
        return CU_CONTEXT_IS_DESTROYED;
    *ret_ctx = ctx;
    return CU_OK;
}

cu_result cuCtxGetDevice_v2(cu_device *ret_device, struct cu_ctx *ctx)
{
    cu_result result;

    ENTER_QUERY();
    result = given(ctx, &ctx);
    if (result == CU_OK && ret_device == NULL)
        result = CU_INVALID_VALUE;
    if (result == CU_OK)
        *ret_device = ctx->device;
    return result;
}

cu_result cuCtxGetDevice(cu_device *ret_device)
{
    return cuCtxGetDevice_v2(ret_device, NULL);
}

cu_result cuCtxGetFlags(unsigned *ret_flags)
{
    struct cu_ctx *ctx;
    cu_result result;

    ENTER_QUERY();
    result = drv_context(&ctx);
    if (result == CU_OK && ret_flags == NULL)
        result = CU_INVALID_VALUE;
    if (result == CU_OK)
        *ret_flags = ctx->flags;
    return result;
}

cu_result cuCtxSetFlags(unsigned flags)
{
    struct cu_ctx *ctx;
    cu_result result;

    ENTER_QUERY();
    result = drv_context(&ctx);
    if (result == CU_OK)
        ctx->flags = flags & CU_CTX_FLAGS_MASK;
    return result;
}

cu_result cuCtxGetId(struct cu_ctx *ctx, uint64_t *ret_id)
{
    cu_result result;

    ENTER_QUERY();
    result = given(ctx, &ctx);
    if (result == CU_OK && ret_id == NULL)
        result = CU_INVALID_VALUE;
    if (result == CU_OK)
        *ret_id = ctx->id;
    return result;
}

static cu_result synchronize(struct cu_ctx *ctx)
{
    cu_result result = given(ctx, &ctx);

    if (result != CU_OK)
        return result;
    INJECT(DBL_FAIL_SYNC);
    result = drv_capture_forbids(ctx);
    return result == CU_OK ? drv_sync_ctx(ctx) : result;
}

cu_result cuCtxSynchronize(void)
{
    ENTER();
    return synchronize(NULL);
}

cu_result cuCtxSynchronize_v2(struct cu_ctx *ctx)
{
    ENTER();
    return synchronize(ctx);
}

cu_result cuCtxSetLimit(int limit, size_t value)
{
    struct cu_ctx *ctx;
    cu_result result;

    ENTER();
    result = drv_context(&ctx);
    if (result != CU_OK)
        return result;
    if (limit < 0 || limit >= CU_LIMIT_COUNT)
        return CU_UNSUPPORTED_LIMIT;
    ctx->limits[limit] = value;
    return CU_OK;
}

cu_result cuCtxGetLimit(size_t *ret_value, int limit)
{
    struct cu_ctx *ctx;
    cu_result result;

    ENTER_QUERY();
    result = drv_context(&ctx);
    if (result != CU_OK)
        return result;
    if (limit < 0 || limit >= CU_LIMIT_COUNT)
        return CU_UNSUPPORTED_LIMIT;
    if (ret_value == NULL)
        return CU_INVALID_VALUE;
    *ret_value = ctx->limits[limit];
    return CU_OK;
}

cu_result cuCtxGetApiVersion(struct cu_ctx *ctx, unsigned *ret_version)
{
    cu_result result;

    ENTER_QUERY();
    result = given(ctx, &ctx);
    if (result == CU_OK && ret_version == NULL)
        result = CU_INVALID_VALUE;
    if (result == CU_OK)
        *ret_version = ctx->api;
    return result;
}

cu_result cuCtxGetStreamPriorityRange(int *ret_least, int *ret_greatest)
{
    struct cu_ctx *ctx;
    cu_result result;

    ENTER_QUERY();
    result = drv_context(&ctx);
    if (result != CU_OK)
        return result;
    if (ret_least != NULL)
        *ret_least = 0;
    if (ret_greatest != NULL)
        *ret_greatest = -5;
    return CU_OK;
}

/* Contexts with ids from 64 on share bits: only who asks twice could tell. */
static cu_result peer(struct cu_ctx *other, bool enable)
{
    struct cu_ctx *ctx;
    cu_result result = drv_context(&ctx);
    uint64_t bit;

    if (result != CU_OK)
        return result;
    if (!valid(other) || other->dead || other == ctx)
        return CU_INVALID_CONTEXT;
    if (other->real == ctx->real)
        return CU_PEER_ACCESS_UNSUPPORTED;
    bit = UINT64_C(1) << other->id % 64;
    if (enable && (ctx->peers & bit))
        return CU_PEER_ACCESS_ALREADY_ENABLED;
    if (!enable && !(ctx->peers & bit))
        return CU_PEER_ACCESS_NOT_ENABLED;
    ctx->peers ^= bit;
    return CU_OK;
}

cu_result cuCtxEnablePeerAccess(struct cu_ctx *other, unsigned flags)
{
    ENTER();
    return flags != 0 ? CU_INVALID_VALUE : peer(other, true);
}

cu_result cuCtxDisablePeerAccess(struct cu_ctx *other)
{
    ENTER();
    return peer(other, false);
}
