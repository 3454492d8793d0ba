/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Physical memory and mappings of it. The driver keeps the memory as long as a handle or a mapping
 * is there, so a handle that is released while it is mapped stays charged. Whoever imports memory
 * of another process is not charged: its creator is.
 */
#include <stddef.h>

#include "share/blocks.h"
#include "share/charge.h"
#include "share/hooks.h"
#include "share/shim.h"

#define GRANULARITY (UINT64_C(2) << 20) /* mappings begin at multiples of it on all devices */

/* One handle or mapping less; the last one takes the charge along. */
static void drop(cu_vmm handle)
{
    struct block block;

    if (share_block_count(BLOCK_PHYSICAL, handle, -1, &block))
        share_refund(block.device, block.bytes);
}

cu_result hook_cuMemCreate(cu_vmm *ret_handle, size_t bytes, const struct cu_alloc_prop *prop,
                           uint64_t flags)
{
    int device =
        prop && prop->location.type == CU_LOCATION_DEVICE ? share_device(prop->location.id) : -1;
    cu_result r;

    if (!share_charge(device, bytes))
        return CU_OUT_OF_MEMORY;
    r = REAL(cuMemCreate)(ret_handle, bytes, prop, flags);
    if (r == CU_OK && !share_keep(BLOCK_PHYSICAL, *ret_handle, device, bytes)) {
        REAL(cuMemRelease)(*ret_handle);
        r = CU_OUT_OF_MEMORY;
    }
    if (r != CU_OK)
        share_refund(device, bytes);
    return r;
}

cu_result hook_cuMemRelease(cu_vmm handle)
{
    cu_result r = REAL(cuMemRelease)(handle);

    if (r == CU_OK)
        drop(handle);
    return r;
}

cu_result hook_cuMemRetainAllocationHandle(cu_vmm *ret_handle, void *ptr)
{
    cu_result r = REAL(cuMemRetainAllocationHandle)(ret_handle, ptr);
    struct block block;

    if (r == CU_OK)
        share_block_count(BLOCK_PHYSICAL, *ret_handle, 1, &block);
    return r;
}

cu_result hook_cuMemMap(cu_devptr ptr, size_t bytes, size_t offset, cu_vmm handle, uint64_t flags)
{
    cu_result r = REAL(cuMemMap)(ptr, bytes, offset, handle, flags);
    const struct block mapping = {
        .key = ptr, .bytes = bytes, .other = handle, .count = 1, .kind = BLOCK_MAPPING};
    struct block block;

    if (r != CU_OK || !share_block_find(BLOCK_PHYSICAL, handle, &block))
        return r;
    if (share_block_put(&mapping) == 0) {
        share_block_count(BLOCK_PHYSICAL, handle, 1, &block);
        return r;
    }
    REAL(cuMemUnmap)(ptr, bytes);
    return CU_OUT_OF_MEMORY;
}

/* A range may hold several mappings, one behind the other; those of imports are not known. */
cu_result hook_cuMemUnmap(cu_devptr ptr, size_t bytes)
{
    size_t step = 0;
    cu_result r = REAL(cuMemUnmap)(ptr, bytes);
    struct block mapping;

    if (r != CU_OK)
        return r;
    for (uint64_t at = 0; at < bytes; at += step) {
        step = GRANULARITY;
        if (!share_block_take(BLOCK_MAPPING, ptr + at, &mapping))
            continue;
        step = mapping.bytes;
        drop(mapping.other);
    }
    return r;
}

/* ---- what leaves the process, or comes into it -------------------------------------------- */

cu_result hook_cuMemExportToShareableHandle(void *ret_handle, cu_vmm handle, int type,
                                            uint64_t flags)
{
    share_obstacle(SHARE_HAS_IPC);
    return REAL(cuMemExportToShareableHandle)(ret_handle, handle, type, flags);
}

cu_result hook_cuMemImportFromShareableHandle(cu_vmm *ret_handle, void *handle, int type)
{
    share_obstacle(SHARE_HAS_IPC);
    return REAL(cuMemImportFromShareableHandle)(ret_handle, handle, type);
}

cu_result hook_cuMemPoolImportFromShareableHandle(struct cu_pool **ret_pool, void *handle, int type,
                                                  uint64_t flags)
{
    share_obstacle(SHARE_HAS_IPC);
    return REAL(cuMemPoolImportFromShareableHandle)(ret_pool, handle, type, flags);
}

cu_result hook_cuIpcGetMemHandle(struct cu_ipc_mem *ret_handle, cu_devptr ptr)
{
    share_obstacle(SHARE_HAS_IPC);
    return REAL(cuIpcGetMemHandle)(ret_handle, ptr);
}

cu_result hook_cuIpcOpenMemHandle(cu_devptr *ret_ptr, struct cu_ipc_mem handle, unsigned flags)
{
    share_obstacle(SHARE_HAS_IPC);
    return REAL(cuIpcOpenMemHandle)(ret_ptr, handle, flags);
}

cu_result hook_cuIpcOpenMemHandle_v2(cu_devptr *ret_ptr, struct cu_ipc_mem handle, unsigned flags)
{
    share_obstacle(SHARE_HAS_IPC);
    return REAL(cuIpcOpenMemHandle_v2)(ret_ptr, handle, flags);
}

cu_result hook_cuImportExternalMemory(struct cu_external_memory **ret_memory, const void *desc)
{
    share_obstacle(SHARE_HAS_IPC);
    return REAL(cuImportExternalMemory)(ret_memory, desc);
}

cu_result hook_cuMulticastCreate(cu_vmm *ret_handle, const void *prop)
{
    share_obstacle(SHARE_HAS_MULTICAST);
    return REAL(cuMulticastCreate)(ret_handle, prop);
}
