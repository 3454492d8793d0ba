/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and fills: they take bytes / copy_bytes_per_s of a copy engine, in the order of their
 * stream, and move nothing. The calls that are not asynchronous wait for it.
 */
#include "driver.h"

#define BILLION UINT64_C(1000000000)

static uint64_t duration(uint64_t bytes)
{
    uint64_t rate = driver.sh->config.copy_bytes_per_s;

    return rate > 0 ? (uint64_t)((unsigned __int128)bytes * BILLION / rate) : 0;
}

static cu_result submit(struct cu_stream *handle, bool per_thread, uint64_t bytes, bool fill,
                        bool now)
{
    struct cu_stream *stream;
    cu_result result = drv_stream(handle, per_thread, &stream);

    if (result != CU_OK)
        return result;
    INJECT(DBL_FAIL_COPY);
    if (drv_capturing(stream))
        return now ? drv_capture_spoil(stream) : drv_capture_copy(stream, duration(bytes), fill);
    if (driver.bench)
        return CU_OK;
    result = now ? drv_capture_forbids(stream->ctx) : CU_OK;
    if (result == CU_OK)
        result = drv_submit(stream, (struct dbl_op){.kind = DBL_OP_COPY,
                                                    .remaining = duration(bytes) * DBL_FRACTION});
    return result == CU_OK && now ? drv_sync_stream(stream) : result;
}

/* Two entry points of one name: by the legacy stream, and by the one of the thread. */
#define NOW(name, parameters, bytes, fill)             \
    cu_result name parameters                          \
    {                                                  \
        ENTER();                                       \
        return submit(NULL, false, bytes, fill, true); \
    }                                                  \
    cu_result name##_ptds parameters                   \
    {                                                  \
        ENTER();                                       \
        return submit(NULL, true, bytes, fill, true);  \
    }

#define LATER(name, parameters, bytes, fill)              \
    cu_result name parameters                             \
    {                                                     \
        ENTER();                                          \
        return submit(stream, false, bytes, fill, false); \
    }                                                     \
    cu_result name##_ptsz parameters                      \
    {                                                     \
        ENTER();                                          \
        return submit(stream, true, bytes, fill, false);  \
    }

#define AREA(copy) ((copy) == NULL ? 0 : (copy)->width_bytes * (copy)->height)
#define VOLUME(copy) ((copy) == NULL ? 0 : AREA(copy) * (copy)->depth)

NOW(cuMemcpy, (cu_devptr dst, cu_devptr src, size_t bytes), bytes, false)
NOW(cuMemcpyHtoD_v2, (cu_devptr dst, const void *src, size_t bytes), bytes, false)
NOW(cuMemcpyDtoH_v2, (void *dst, cu_devptr src, size_t bytes), bytes, false)
NOW(cuMemcpyDtoD_v2, (cu_devptr dst, cu_devptr src, size_t bytes), bytes, false)
NOW(cuMemcpyPeer,
    (cu_devptr dst, struct cu_ctx *dst_ctx, cu_devptr src, struct cu_ctx *src_ctx, size_t bytes),
    bytes, false)
NOW(cuMemcpy2D_v2, (const struct cu_copy2d *copy), AREA(copy), false)
NOW(cuMemcpy2DUnaligned_v2, (const struct cu_copy2d *copy), AREA(copy), false)
NOW(cuMemcpy3D_v2, (const struct cu_copy3d *copy), VOLUME(copy), false)
NOW(cuMemsetD8_v2, (cu_devptr dst, uint8_t value, size_t count), count, true)
NOW(cuMemsetD16_v2, (cu_devptr dst, uint16_t value, size_t count), count * 2, true)
NOW(cuMemsetD32_v2, (cu_devptr dst, unsigned value, size_t count), count * 4, true)
NOW(cuMemsetD2D8_v2, (cu_devptr dst, size_t pitch, uint8_t value, size_t width, size_t height),
    width *height, true)

LATER(cuMemcpyAsync, (cu_devptr dst, cu_devptr src, size_t bytes, struct cu_stream *stream), bytes,
      false)
LATER(cuMemcpyHtoDAsync_v2,
      (cu_devptr dst, const void *src, size_t bytes, struct cu_stream *stream), bytes, false)
LATER(cuMemcpyDtoHAsync_v2, (void *dst, cu_devptr src, size_t bytes, struct cu_stream *stream),
      bytes, false)
LATER(cuMemcpyDtoDAsync_v2, (cu_devptr dst, cu_devptr src, size_t bytes, struct cu_stream *stream),
      bytes, false)
LATER(cuMemcpyPeerAsync,
      (cu_devptr dst, struct cu_ctx *dst_ctx, cu_devptr src, struct cu_ctx *src_ctx, size_t bytes,
       struct cu_stream *stream),
      bytes, false)
LATER(cuMemcpy2DAsync_v2, (const struct cu_copy2d *copy, struct cu_stream *stream), AREA(copy),
      false)
LATER(cuMemcpy3DAsync_v2, (const struct cu_copy3d *copy, struct cu_stream *stream), VOLUME(copy),
      false)
LATER(cuMemsetD8Async, (cu_devptr dst, uint8_t value, size_t count, struct cu_stream *stream),
      count, true)
LATER(cuMemsetD16Async, (cu_devptr dst, uint16_t value, size_t count, struct cu_stream *stream),
      count * 2, true)
LATER(cuMemsetD32Async, (cu_devptr dst, unsigned value, size_t count, struct cu_stream *stream),
      count * 4, true)
LATER(cuMemsetD2D8Async,
      (cu_devptr dst, size_t pitch, uint8_t value, size_t width, size_t height,
       struct cu_stream *stream),
      width *height, true)
