/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory in the order of a stream: charged by what its pool takes of the device. While a stream
 * is captured nothing is allocated; the graph that comes of it is charged when it is launched.
 */
#include <stddef.h>

#include "share/blocks.h"
#include "share/charge.h"
#include "share/hooks.h"
#include "share/settle.h"
#include "share/shim.h"

static bool capturing(struct cu_stream *stream, bool ptsz)
{
    fn_cuStreamIsCapturing *is =
        ptsz ? REAL_AS(cuStreamIsCapturing_ptsz, cuStreamIsCapturing) : REAL(cuStreamIsCapturing);
    int status = CU_CAPTURE_NONE;

    return is(stream, &status) == CU_OK && status != CU_CAPTURE_NONE;
}

/* Undoes an allocation that made its pool pass the limit. */
static cu_result undo(cu_devptr ptr, struct cu_pool *pool, struct cu_stream *stream, bool ptsz)
{
    fn_cuMemFreeAsync *release =
        ptsz ? REAL_AS(cuMemFreeAsync_ptsz, cuMemFreeAsync) : REAL(cuMemFreeAsync);

    release(ptr, stream);
    REAL(cuCtxSynchronize)();
    REAL(cuMemPoolTrimTo)(pool, 0);
    share_settle();
    return CU_OUT_OF_MEMORY;
}

/* POOL NULL: the one that the current device has now. */
static cu_result allocate(cu_devptr *ret_ptr, size_t bytes, struct cu_pool *pool,
                          struct cu_stream *stream, bool ptsz, void *real)
{
    bool chosen = pool != NULL;
    struct growth growth;
    cu_device ordinal;
    cu_result r;
    int device = -1;

    if (!capturing(stream, ptsz) && REAL(cuCtxGetDevice)(&ordinal) == CU_OK &&
        (pool || REAL(cuDeviceGetMemPool)(&pool, ordinal) == CU_OK))
        device = share_device(ordinal);
    if (!share_grow_begin(&growth, pool, device < 0 ? -1 : ordinal, device, bytes))
        return CU_OUT_OF_MEMORY;
    r = chosen ? ((fn_cuMemAllocFromPoolAsync *)real)(ret_ptr, bytes, pool, stream)
               : ((fn_cuMemAllocAsync *)real)(ret_ptr, bytes, stream);
    if (!share_grow_end(&growth) && r == CU_OK)
        return undo(*ret_ptr, pool, stream, ptsz);
    return r;
}

cu_result hook_cuMemAllocAsync(cu_devptr *ret_ptr, size_t bytes, struct cu_stream *stream)
{
    return allocate(ret_ptr, bytes, NULL, stream, false, share_real(SYM_cuMemAllocAsync));
}

cu_result hook_cuMemAllocAsync_ptsz(cu_devptr *ret_ptr, size_t bytes, struct cu_stream *stream)
{
    return allocate(ret_ptr, bytes, NULL, stream, true, share_real(SYM_cuMemAllocAsync_ptsz));
}

cu_result hook_cuMemAllocFromPoolAsync(cu_devptr *ret_ptr, size_t bytes, struct cu_pool *pool,
                                       struct cu_stream *stream)
{
    if (pool == NULL) /* the driver says what is wrong with it */
        return REAL(cuMemAllocFromPoolAsync)(ret_ptr, bytes, pool, stream);
    return allocate(ret_ptr, bytes, pool, stream, false, share_real(SYM_cuMemAllocFromPoolAsync));
}

cu_result hook_cuMemAllocFromPoolAsync_ptsz(cu_devptr *ret_ptr, size_t bytes, struct cu_pool *pool,
                                            struct cu_stream *stream)
{
    void *real = share_real(SYM_cuMemAllocFromPoolAsync_ptsz);

    if (pool == NULL)
        return ((fn_cuMemAllocFromPoolAsync *)real)(ret_ptr, bytes, pool, stream);
    return allocate(ret_ptr, bytes, pool, stream, true, real);
}

/* Any free takes any kind of address: a linear block may be freed in the order of a stream. */
static cu_result release(cu_devptr ptr, struct cu_stream *stream, bool ptsz, void *real)
{
    struct block block;
    bool linear = share_block_take(BLOCK_MEMORY, ptr, &block);
    cu_result r = ((fn_cuMemFreeAsync *)real)(ptr, stream);

    if (!linear)
        share_dirty();
    else if (r == CU_OK)
        share_refund_in_order(block.device, block.bytes, stream, ptsz);
    else
        share_block_put(&block);
    return r;
}

cu_result hook_cuMemFreeAsync(cu_devptr ptr, struct cu_stream *stream)
{
    return release(ptr, stream, false, share_real(SYM_cuMemFreeAsync));
}

cu_result hook_cuMemFreeAsync_ptsz(cu_devptr ptr, struct cu_stream *stream)
{
    return release(ptr, stream, true, share_real(SYM_cuMemFreeAsync_ptsz));
}

cu_result hook_cuMemPoolTrimTo(struct cu_pool *pool, size_t keep)
{
    cu_result r = REAL(cuMemPoolTrimTo)(pool, keep);

    share_settle();
    return r;
}

cu_result hook_cuMemPoolDestroy(struct cu_pool *pool)
{
    share_pool_gone(pool);
    return REAL(cuMemPoolDestroy)(pool);
}
