/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hooks: what stands in front of the driver's functions of the same name. `hook_cuMemAlloc_v2`
 * has the type of cuMemAlloc_v2 and answers what it would, within the limits of the task.
 *
 * Add one here and in hooks.c; `static_assert`s there are not needed, since each declaration is
 * made from the type of its symbol.
 */
#ifndef ALLOT_SHARE_HOOKS_H
#define ALLOT_SHARE_HOOKS_H

#include "share/cuda_fns.h"

/* SHARE_HOOKS(X): X(symbol, type) for each symbol with a hook, and whose type it has. */
#define SHARE_HOOKS(X)                                                        \
    X(cuInit, cuInit)                                                         \
    X(cuGetProcAddress, cuGetProcAddress)                                     \
    X(cuGetProcAddress_v2, cuGetProcAddress_v2)                               \
    X(cuDeviceTotalMem_v2, cuDeviceTotalMem_v2)                               \
    X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain)                     \
    X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease)                   \
    X(cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxRelease_v2)             \
    X(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset)                       \
    X(cuDevicePrimaryCtxReset_v2, cuDevicePrimaryCtxReset_v2)                 \
    X(cuCtxCreate_v2, cuCtxCreate_v2)                                         \
    X(cuCtxCreate_v3, cuCtxCreate_v3)                                         \
    X(cuCtxCreate_v4, cuCtxCreate_v4)                                         \
    X(cuCtxDestroy_v2, cuCtxDestroy_v2)                                       \
    X(cuCtxSynchronize, cuCtxSynchronize)                                     \
    X(cuCtxSynchronize_v2, cuCtxSynchronize_v2)                               \
    X(cuStreamSynchronize, cuStreamSynchronize)                               \
    X(cuEventSynchronize, cuEventSynchronize)                                 \
    X(cuLaunchKernel, cuLaunchKernel)                                         \
    X(cuLaunchKernel_ptsz, cuLaunchKernel)                                    \
    X(cuLaunchKernelEx, cuLaunchKernelEx)                                     \
    X(cuLaunchKernelEx_ptsz, cuLaunchKernelEx)                                \
    X(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel)                   \
    X(cuLaunchCooperativeKernel_ptsz, cuLaunchCooperativeKernel)              \
    X(cuLaunchCooperativeKernelMultiDevice, cuLaunchCooperativeKernelMultiDevice)\
    X(cuLaunch, cuLaunch)                                                     \
    X(cuLaunchGrid, cuLaunchGrid)                                             \
    X(cuLaunchGridAsync, cuLaunchGridAsync)                                   \
    X(cuMemGetInfo_v2, cuMemGetInfo_v2)                                       \
    X(cuMemAlloc_v2, cuMemAlloc_v2)                                           \
    X(cuMemAllocPitch_v2, cuMemAllocPitch_v2)                                 \
    X(cuMemAllocManaged, cuMemAllocManaged)                                   \
    X(cuMemFree_v2, cuMemFree_v2)                                             \
    X(cuMemAllocAsync, cuMemAllocAsync)                                       \
    X(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync)                       \
    X(cuMemFreeAsync, cuMemFreeAsync)                                         \
    X(cuMemPoolTrimTo, cuMemPoolTrimTo)                                       \
    X(cuMemPoolDestroy, cuMemPoolDestroy)                                     \
    X(cuMemPoolImportFromShareableHandle, cuMemPoolImportFromShareableHandle) \
    X(cuMemCreate, cuMemCreate)                                               \
    X(cuMemRelease, cuMemRelease)                                             \
    X(cuMemRetainAllocationHandle, cuMemRetainAllocationHandle)               \
    X(cuMemMap, cuMemMap)                                                     \
    X(cuMemUnmap, cuMemUnmap)                                                 \
    X(cuMemExportToShareableHandle, cuMemExportToShareableHandle)             \
    X(cuMemImportFromShareableHandle, cuMemImportFromShareableHandle)         \
    X(cuIpcGetMemHandle, cuIpcGetMemHandle)                                   \
    X(cuIpcOpenMemHandle, cuIpcOpenMemHandle)                                 \
    X(cuIpcOpenMemHandle_v2, cuIpcOpenMemHandle_v2)                           \
    X(cuImportExternalMemory, cuImportExternalMemory)                         \
    X(cuMulticastCreate, cuMulticastCreate)                                   \
    X(cuArrayCreate_v2, cuArrayCreate_v2)                                     \
    X(cuArray3DCreate_v2, cuArray3DCreate_v2)                                 \
    X(cuArrayDestroy, cuArrayDestroy)                                         \
    X(cuMipmappedArrayCreate, cuMipmappedArrayCreate)                         \
    X(cuMipmappedArrayDestroy, cuMipmappedArrayDestroy)                       \
    X(cuGraphInstantiate, cuGraphInstantiate)                                 \
    X(cuGraphInstantiate_v2, cuGraphInstantiate_v2)                           \
    X(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags)               \
    X(cuGraphInstantiateWithParams, cuGraphInstantiateWithParams)             \
    X(cuGraphExecDestroy, cuGraphExecDestroy)                                 \
    X(cuGraphLaunch, cuGraphLaunch)                                           \
    X(cuGraphUpload, cuGraphUpload)                                           \
    X(cuDeviceGraphMemTrim, cuDeviceGraphMemTrim)                             \
    X(cuStreamSynchronize_ptsz, cuStreamSynchronize)                          \
    X(cuMemAllocAsync_ptsz, cuMemAllocAsync)                                  \
    X(cuMemAllocFromPoolAsync_ptsz, cuMemAllocFromPoolAsync)                  \
    X(cuMemFreeAsync_ptsz, cuMemFreeAsync)                                    \
    X(cuGraphInstantiateWithParams_ptsz, cuGraphInstantiateWithParams)        \
    X(cuGraphLaunch_ptsz, cuGraphLaunch)                                      \
    X(cuGraphUpload_ptsz, cuGraphUpload)

#define SHARE_DECLARE_HOOK(symbol, type) fn_##type hook_##symbol;
SHARE_HOOKS(SHARE_DECLARE_HOOK)

#endif
