/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever gives a device work: kernels, in every way there is. Graphs are in graph.c. */
#include <stddef.h>

#include "share/compute.h"
#include "share/hooks.h"
#include "share/shim.h"

/* The call REAL_CALL as a piece of KIND in STREAM; answers for the hook it stands in. */
#define SUBMIT(kind, stream, ptsz, real_call)                    \
    do {                                                         \
        struct piece piece_;                                     \
        uint64_t kind_ = (kind);                                 \
                                                                 \
        if (share_submit_known(kind_, share_lane(stream, ptsz))) \
            return (real_call);                                  \
        share_submit(&piece_, kind_, stream, ptsz);              \
        return share_submitted(&piece_, (real_call));            \
    } while (0)

#define KIND \
    share_kind(function, (uint64_t)grid_x *grid_y *grid_z, (uint64_t)block_x *block_y *block_z)

cu_result hook_cuLaunchKernel(struct cu_function *function, unsigned grid_x, unsigned grid_y,
                              unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                              unsigned shared_bytes, struct cu_stream *stream, void **params,
                              void **extra)
{
    SUBMIT(KIND, stream, false,
           REAL(cuLaunchKernel)(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                shared_bytes, stream, params, extra));
}

cu_result hook_cuLaunchKernel_ptsz(struct cu_function *function, unsigned grid_x, unsigned grid_y,
                                   unsigned grid_z, unsigned block_x, unsigned block_y,
                                   unsigned block_z, unsigned shared_bytes,
                                   struct cu_stream *stream, void **params, void **extra)
{
    SUBMIT(KIND, stream, true,
           REAL_AS(cuLaunchKernel_ptsz, cuLaunchKernel)(function, grid_x, grid_y, grid_z, block_x,
                                                        block_y, block_z, shared_bytes, stream,
                                                        params, extra));
}

cu_result hook_cuLaunchCooperativeKernel(struct cu_function *function, unsigned grid_x,
                                         unsigned grid_y, unsigned grid_z, unsigned block_x,
                                         unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                         struct cu_stream *stream, void **params)
{
    SUBMIT(KIND, stream, false,
           REAL(cuLaunchCooperativeKernel)(function, grid_x, grid_y, grid_z, block_x, block_y,
                                           block_z, shared_bytes, stream, params));
}

cu_result hook_cuLaunchCooperativeKernel_ptsz(struct cu_function *function, unsigned grid_x,
                                              unsigned grid_y, unsigned grid_z, unsigned block_x,
                                              unsigned block_y, unsigned block_z,
                                              unsigned shared_bytes, struct cu_stream *stream,
                                              void **params)
{
    SUBMIT(KIND, stream, true,
           REAL_AS(cuLaunchCooperativeKernel_ptsz,
                   cuLaunchCooperativeKernel)(function, grid_x, grid_y, grid_z, block_x, block_y,
                                              block_z, shared_bytes, stream, params));
}

static uint64_t kind_ex(const struct cu_launch_config *c, const struct cu_function *function)
{
    return share_kind(function, (uint64_t)c->grid_x * c->grid_y * c->grid_z,
                      (uint64_t)c->block_x * c->block_y * c->block_z);
}

cu_result hook_cuLaunchKernelEx(const struct cu_launch_config *config, struct cu_function *function,
                                void **params, void **extra)
{
    if (config == NULL)
        return REAL(cuLaunchKernelEx)(config, function, params, extra);
    SUBMIT(kind_ex(config, function), config->stream, false,
           REAL(cuLaunchKernelEx)(config, function, params, extra));
}

cu_result hook_cuLaunchKernelEx_ptsz(const struct cu_launch_config *config,
                                     struct cu_function *function, void **params, void **extra)
{
    fn_cuLaunchKernelEx *real = REAL_AS(cuLaunchKernelEx_ptsz, cuLaunchKernelEx);

    if (config == NULL)
        return real(config, function, params, extra);
    SUBMIT(kind_ex(config, function), config->stream, true, real(config, function, params, extra));
}

/* One piece, in the stream of its first launch: the others run along with it. */
cu_result hook_cuLaunchCooperativeKernelMultiDevice(struct cu_multi_launch *list, unsigned count,
                                                    unsigned flags)
{
    fn_cuLaunchCooperativeKernelMultiDevice *real = REAL(cuLaunchCooperativeKernelMultiDevice);

    if (list == NULL || count == 0)
        return real(list, count, flags);
    SUBMIT(share_kind(list, list->grid_x, count), list->stream, false, real(list, count, flags));
}

/* The oldest ways: the shape of blocks was set before. */
cu_result hook_cuLaunch(struct cu_function *function)
{
    SUBMIT(share_kind(function, 1, 0), NULL, false, REAL(cuLaunch)(function));
}

cu_result hook_cuLaunchGrid(struct cu_function *function, int width, int height)
{
    SUBMIT(share_kind(function, (uint64_t)width * (uint64_t)height, 0), NULL, false,
           REAL(cuLaunchGrid)(function, width, height));
}

cu_result hook_cuLaunchGridAsync(struct cu_function *function, int width, int height,
                                 struct cu_stream *stream)
{
    SUBMIT(share_kind(function, (uint64_t)width * (uint64_t)height, 0), stream, false,
           REAL(cuLaunchGridAsync)(function, width, height, stream));
}
