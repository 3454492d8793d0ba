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

/* SHARE_HOOKS(X): X(symbol) for each symbol with a hook of its own. */
#define SHARE_HOOKS(X)                                                                          \
    X(cuInit)                                                                                   \
    X(cuGetProcAddress)                                                                         \
    X(cuGetProcAddress_v2)                                                                      \
    X(cuDeviceTotalMem_v2)                                                                      \
    X(cuDevicePrimaryCtxRetain)                                                                 \
    X(cuDevicePrimaryCtxRelease)                                                                \
    X(cuDevicePrimaryCtxRelease_v2)                                                             \
    X(cuDevicePrimaryCtxReset)                                                                  \
    X(cuDevicePrimaryCtxReset_v2)                                                               \
    X(cuCtxCreate_v2)                                                                           \
    X(cuCtxCreate_v3)                                                                           \
    X(cuCtxCreate_v4)                                                                           \
    X(cuCtxDestroy_v2)                                                                          \
    X(cuMemGetInfo_v2)                                                                          \
    X(cuMemAlloc_v2)                                                                            \
    X(cuMemAllocPitch_v2)                                                                       \
    X(cuMemAllocManaged)                                                                        \
    X(cuMemFree_v2)

#define SHARE_DECLARE_HOOK(symbol) fn_##symbol hook_##symbol;
SHARE_HOOKS(SHARE_DECLARE_HOOK)

#endif
