/* SPDX-License-Identifier: Apache-2.0 */
/* Linear, pitched and managed memory: charged by what was asked for. */
#include <stddef.h>

#include "share/blocks.h"
#include "share/charge.h"
#include "share/hooks.h"
#include "share/settle.h"
#include "share/shim.h"

/* Remembers what PTR holds, so that its free gives it back. What cannot be remembered is freed. */
static cu_result keep(cu_devptr ptr, int device, uint64_t bytes)
{
    if (share_keep(BLOCK_MEMORY, ptr, device, bytes))
        return CU_OK;
    REAL(cuMemFree_v2)(ptr);
    share_refund(device, bytes);
    return CU_OUT_OF_MEMORY;
}

cu_result hook_cuMemAlloc_v2(cu_devptr *ret_ptr, size_t bytes)
{
    int device = share_here();
    cu_result r;

    if (!share_charge(device, bytes))
        return CU_OUT_OF_MEMORY;
    r = REAL(cuMemAlloc_v2)(ret_ptr, bytes);
    if (r == CU_OK)
        return keep(*ret_ptr, device, bytes);
    share_refund(device, bytes);
    return r;
}

/*
 * The pitch is the driver's to choose; no driver chose one beyond the next multiple of PITCH_MAX.
 * That much is reserved, and what the pitch did not take is given back.
 */
#define PITCH_MAX UINT64_C(4096)

cu_result hook_cuMemAllocPitch_v2(cu_devptr *ret_ptr, size_t *ret_pitch, size_t width,
                                  size_t height, unsigned element)
{
    int device = share_here();
    uint64_t most, bytes;
    cu_result r;

    if (__builtin_add_overflow((uint64_t)width, PITCH_MAX - 1, &most) ||
        __builtin_mul_overflow(most & ~(PITCH_MAX - 1), (uint64_t)height, &most) ||
        !share_charge(device, most))
        return CU_OUT_OF_MEMORY;
    r = REAL(cuMemAllocPitch_v2)(ret_ptr, ret_pitch, width, height, element);
    if (r != CU_OK) {
        share_refund(device, most);
        return r;
    }
    bytes = (uint64_t)*ret_pitch * height;
    if (bytes <= most) {
        share_refund(device, most - bytes);
    } else if (!share_charge(device, bytes - most)) {
        REAL(cuMemFree_v2)(*ret_ptr);
        share_refund(device, most);
        return CU_OUT_OF_MEMORY;
    }
    return keep(*ret_ptr, device, bytes);
}

cu_result hook_cuMemAllocManaged(cu_devptr *ret_ptr, size_t bytes, unsigned flags)
{
    int device = share_here();
    cu_result r;

    if (!share_charge(device, bytes))
        return CU_OUT_OF_MEMORY;
    r = REAL(cuMemAllocManaged)(ret_ptr, bytes, flags);
    if (r != CU_OK) {
        share_refund(device, bytes);
        return r;
    }
    share_obstacle(SHARE_HAS_MANAGED);
    return keep(*ret_ptr, device, bytes);
}

cu_result hook_cuMemFree_v2(cu_devptr ptr)
{
    struct block block;
    bool mine = share_block_take(BLOCK_MEMORY, ptr, &block);
    cu_result r = REAL(cuMemFree_v2)(ptr);

    if (!mine)
        share_dirty(); /* it may be of a pool */
    return share_freed(r, mine, &block);
}
