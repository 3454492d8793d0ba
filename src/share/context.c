/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts take memory of the device before a program has asked for any: each is charged by what
 * the agent says one takes, from its creation to its end. The agent's reconciliation with the
 * driver's own figures adds what it really is.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "share/blocks.h"
#include "share/charge.h"
#include "share/compute.h"
#include "share/hooks.h"
#include "share/shim.h"

static uint64_t context_bytes(int device)
{
    const struct share_ledger *ledger = share_link();

    return ledger && device >= 0 ? ledger->limits->devices[device].context_bytes : 0;
}

/* ---- primary contexts: one a device, counted by the driver ---------------------------------- */

static pthread_mutex_t primary_lock = PTHREAD_MUTEX_INITIALIZER;
static bool primary_charged[SHARE_DEVICES];

static bool primary_active(cu_device device)
{
    unsigned flags;
    int active;

    return REAL(cuDevicePrimaryCtxGetState)(device, &flags, &active) == CU_OK && active;
}

/* Makes the charge agree with whether the driver has the context; with primary_lock held. */
static void primary_settle(cu_device device, int index)
{
    bool active = primary_active(device);

    if (primary_charged[index] && !active)
        share_refund(index, context_bytes(index));
    primary_charged[index] = active && primary_charged[index];
}

cu_result hook_cuDevicePrimaryCtxRetain(struct cu_ctx **ret_ctx, cu_device device)
{
    int index = share_device(device);
    cu_result r = CU_OUT_OF_MEMORY;

    if (index < 0)
        return REAL(cuDevicePrimaryCtxRetain)(ret_ctx, device);
    pthread_mutex_lock(&primary_lock);
    if (primary_charged[index] || share_charge(index, context_bytes(index))) {
        primary_charged[index] = true;
        r = REAL(cuDevicePrimaryCtxRetain)(ret_ctx, device);
        primary_settle(device, index);
    }
    pthread_mutex_unlock(&primary_lock);
    return r;
}

static cu_result end_primary(fn_cuDevicePrimaryCtxRelease *real, cu_device device)
{
    int index = share_device(device);
    cu_result r;

    if (index < 0)
        return real(device);
    share_compute_forget();
    pthread_mutex_lock(&primary_lock);
    r = real(device);
    primary_settle(device, index);
    pthread_mutex_unlock(&primary_lock);
    return r;
}

cu_result hook_cuDevicePrimaryCtxRelease(cu_device device)
{
    return end_primary(REAL(cuDevicePrimaryCtxRelease), device);
}

cu_result hook_cuDevicePrimaryCtxRelease_v2(cu_device device)
{
    return end_primary(REAL(cuDevicePrimaryCtxRelease_v2), device);
}

cu_result hook_cuDevicePrimaryCtxReset(cu_device device)
{
    return end_primary(REAL(cuDevicePrimaryCtxReset), device);
}

cu_result hook_cuDevicePrimaryCtxReset_v2(cu_device device)
{
    return end_primary(REAL(cuDevicePrimaryCtxReset_v2), device);
}

/* ---- contexts of the program's own ----------------------------------------------------------- */

/* R and *RET_CTX are what the creation answered, for which a context was charged. */
static cu_result keep(cu_result r, struct cu_ctx **ret_ctx, int device)
{
    uint64_t bytes = context_bytes(device);

    if (r == CU_OK && !share_keep(BLOCK_CONTEXT, (uintptr_t)*ret_ctx, device, bytes)) {
        REAL(cuCtxDestroy_v2)(*ret_ctx);
        r = CU_OUT_OF_MEMORY;
    }
    if (r != CU_OK)
        share_refund(device, bytes);
    return r;
}

cu_result hook_cuCtxCreate_v2(struct cu_ctx **ret_ctx, unsigned flags, cu_device device)
{
    int index = share_device(device);

    if (!share_charge(index, context_bytes(index)))
        return CU_OUT_OF_MEMORY;
    return keep(REAL(cuCtxCreate_v2)(ret_ctx, flags, device), ret_ctx, index);
}

cu_result hook_cuCtxCreate_v3(struct cu_ctx **ret_ctx, void *affinity, int count, unsigned flags,
                              cu_device device)
{
    int index = share_device(device);

    if (!share_charge(index, context_bytes(index)))
        return CU_OUT_OF_MEMORY;
    return keep(REAL(cuCtxCreate_v3)(ret_ctx, affinity, count, flags, device), ret_ctx, index);
}

cu_result hook_cuCtxCreate_v4(struct cu_ctx **ret_ctx, struct cu_ctx_create_params *params,
                              unsigned flags, cu_device device)
{
    int index = share_device(device);

    if (!share_charge(index, context_bytes(index)))
        return CU_OUT_OF_MEMORY;
    return keep(REAL(cuCtxCreate_v4)(ret_ctx, params, flags, device), ret_ctx, index);
}

cu_result hook_cuCtxDestroy_v2(struct cu_ctx *ctx)
{
    struct block block;
    bool mine = share_block_take(BLOCK_CONTEXT, (uintptr_t)ctx, &block);

    share_compute_forget();

    return share_freed(REAL(cuCtxDestroy_v2)(ctx), mine, &block);
}
