/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays and mipmapped arrays. How much one takes is known when it is there; before, as much as it
 * could take at most is reserved.
 */
#include <stddef.h>

#include "share/blocks.h"
#include "share/charge.h"
#include "share/hooks.h"
#include "share/shim.h"

#define ROW UINT64_C(512)            /* rows begin at multiples of it */
#define UNIT (UINT64_C(2) << 20)     /* and the whole takes a multiple of this */
#define FORMAT_BYTES_MAX UINT64_C(8) /* of a channel, formats to come included */

static uint64_t format_bytes(int format)
{
    switch (format) {
    case CU_FORMAT_U8:
    case CU_FORMAT_S8:
        return 1;
    case CU_FORMAT_U16:
    case CU_FORMAT_S16:
    case CU_FORMAT_HALF:
        return 2;
    case CU_FORMAT_U32:
    case CU_FORMAT_S32:
    case CU_FORMAT_FLOAT:
        return 4;
    default:
        return FORMAT_BYTES_MAX;
    }
}

/* UINT64_MAX: too large for any device. LEVELS halve each side, so two wholes are enough. */
static uint64_t most_of(const struct cu_array3d_desc *d, bool levels)
{
    uint64_t row, bytes;

    if (__builtin_mul_overflow(d->width, format_bytes(d->format) * d->channels, &row) ||
        __builtin_add_overflow(row, ROW - 1, &row) ||
        __builtin_mul_overflow(row & ~(ROW - 1), d->height ? d->height : 1, &bytes) ||
        __builtin_mul_overflow(bytes, d->depth ? d->depth : 1, &bytes) ||
        __builtin_mul_overflow(bytes, levels ? 2 : 1, &bytes) ||
        __builtin_add_overflow(bytes, UNIT - 1, &bytes))
        return UINT64_MAX;
    return bytes & ~(UNIT - 1);
}

/* What the driver says ARRAY takes, or MOST where it does not say. */
static uint64_t need_of(fn_cuArrayGetMemoryRequirements *ask, void *array, uint64_t most)
{
    struct cu_array_need need;
    cu_device ordinal;

    if (ask && REAL(cuCtxGetDevice)(&ordinal) == CU_OK && ask(&need, array, ordinal) == CU_OK)
        return need.bytes;
    return most;
}

/* ARRAY is there, and MOST is charged for it: corrects that to what it takes, and remembers it.
 * False: no room; ARRAY is to be destroyed, and then *RET_CHARGED to be given back. */
static bool keep(fn_cuArrayGetMemoryRequirements *ask, void *array, int device, uint64_t most,
                 uint64_t *ret_charged)
{
    uint64_t need = need_of(ask, array, most);

    *ret_charged = most;
    if (need > most && !share_charge(device, need - most))
        return false;
    if (need < most)
        share_refund(device, most - need);
    *ret_charged = need;
    return share_keep(BLOCK_ARRAY, (uintptr_t)array, device, need);
}

/* The end of a creation that answered R, and ARRAY if that is CU_OK, for which MOST is charged.
 * ASK and DESTROY are the driver's for what was created. */
static cu_result created(cu_result r, void *array, int device, uint64_t most,
                         fn_cuArrayGetMemoryRequirements *ask, fn_cuArrayDestroy *destroy)
{
    if (device < 0)
        return r;
    if (r == CU_OK && !keep(ask, array, device, most, &most)) {
        destroy(array);
        r = CU_OUT_OF_MEMORY;
    }
    if (r != CU_OK)
        share_refund(device, most);
    return r;
}

static cu_result created_array(cu_result r, struct cu_array **ret_array, int device, uint64_t most)
{
    return created(r, r == CU_OK ? *ret_array : NULL, device, most,
                   REAL(cuArrayGetMemoryRequirements), REAL(cuArrayDestroy));
}

cu_result hook_cuArrayCreate_v2(struct cu_array **ret_array, const struct cu_array_desc *desc)
{
    int device = desc ? share_here() : -1;
    struct cu_array3d_desc whole = {0};
    uint64_t most = 0;

    if (device >= 0) {
        whole = (struct cu_array3d_desc){.width = desc->width,
                                         .height = desc->height,
                                         .format = desc->format,
                                         .channels = desc->channels};
        most = most_of(&whole, false);
    }
    if (!share_charge(device, most))
        return CU_OUT_OF_MEMORY;
    return created_array(REAL(cuArrayCreate_v2)(ret_array, desc), ret_array, device, most);
}

cu_result hook_cuArray3DCreate_v2(struct cu_array **ret_array, const struct cu_array3d_desc *desc)
{
    int device = desc ? share_here() : -1;
    uint64_t most = device >= 0 ? most_of(desc, false) : 0;

    if (!share_charge(device, most))
        return CU_OUT_OF_MEMORY;
    return created_array(REAL(cuArray3DCreate_v2)(ret_array, desc), ret_array, device, most);
}

cu_result hook_cuMipmappedArrayCreate(struct cu_mipmap **ret_mipmap,
                                      const struct cu_array3d_desc *desc, unsigned levels)
{
    int device = desc ? share_here() : -1;
    uint64_t most = device >= 0 ? most_of(desc, true) : 0;
    cu_result r;

    if (!share_charge(device, most))
        return CU_OUT_OF_MEMORY;
    r = REAL(cuMipmappedArrayCreate)(ret_mipmap, desc, levels);
    return created(
        r, r == CU_OK ? *ret_mipmap : NULL, device, most,
        (fn_cuArrayGetMemoryRequirements *)REAL(cuMipmappedArrayGetMemoryRequirements),
        (fn_cuArrayDestroy *)REAL(cuMipmappedArrayDestroy));
}

cu_result hook_cuArrayDestroy(struct cu_array *array)
{
    struct block block;
    bool mine = share_block_take(BLOCK_ARRAY, (uintptr_t)array, &block);

    return share_freed(REAL(cuArrayDestroy)(array), mine, &block);
}

cu_result hook_cuMipmappedArrayDestroy(struct cu_mipmap *mipmap)
{
    struct block block;
    bool mine = share_block_take(BLOCK_ARRAY, (uintptr_t)mipmap, &block);

    return share_freed(REAL(cuMipmappedArrayDestroy)(mipmap), mine, &block);
}
