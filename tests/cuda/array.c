/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays and mipmapped arrays. A row is padded to 512 bytes and an array to 64 KiB, so that what
 * cuArrayGetMemoryRequirements says is exact and more than width times height.
 */
#include <stdlib.h>

#include "driver.h"

#define MAGIC UINT32_C(0x41727279)
#define ROW UINT64_C(512)
#define PAGE UINT64_C(65536)
#define MOST (UINT64_C(1) << 40)

struct cu_array {
    uint32_t magic;
    struct cu_ctx *ctx;
    struct cu_array3d_desc desc;
    uint64_t bytes;
    struct cu_mipmap *of; /* a level: not destroyed by itself */
    struct cu_array *next;
};

struct cu_mipmap {
    uint32_t magic, levels;
    struct cu_array whole; /* what is charged */
    struct cu_array *level[20];
};

static unsigned format_bytes(int format)
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
        return 0;
    }
}

static uint64_t up(uint64_t n, uint64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* Bytes of an array of DESC without the padding to a page; 0 for a bad description. */
static uint64_t rows_bytes(const struct cu_array3d_desc *desc)
{
    uint64_t element = (uint64_t)format_bytes(desc->format) * desc->channels;
    uint64_t height = desc->height > 0 ? desc->height : 1;
    uint64_t depth = desc->depth > 0 ? desc->depth : 1;
    uint64_t bytes;

    if (element == 0 || desc->width == 0 || desc->width > MOST / 16 ||
        (desc->channels != 1 && desc->channels != 2 && desc->channels != 4))
        return 0;
    if (__builtin_mul_overflow(up(desc->width * element, ROW), height, &bytes) ||
        __builtin_mul_overflow(bytes, depth, &bytes) || bytes > MOST)
        return 0;
    return bytes;
}

static void link_array(struct cu_array *array)
{
    pthread_mutex_lock(&driver.mutex);
    array->next = array->ctx->arrays;
    array->ctx->arrays = array;
    pthread_mutex_unlock(&driver.mutex);
}

static void unlink_array(struct cu_array *array)
{
    struct cu_array **at = &array->ctx->arrays;

    pthread_mutex_lock(&driver.mutex);
    while (*at != NULL && *at != array)
        at = &(*at)->next;
    if (*at != NULL)
        *at = array->next;
    pthread_mutex_unlock(&driver.mutex);
}

static cu_result charge(struct cu_array *array, uint64_t bytes)
{
    int error;

    array->bytes = up(bytes, PAGE);
    pthread_mutex_lock(&driver.mutex);
    error = dbl_charge(driver.sh, driver.slot, array->ctx->real, DBL_ARRAY, array->bytes);
    pthread_mutex_unlock(&driver.mutex);
    return error < 0 ? CU_OUT_OF_MEMORY : CU_OK;
}

static void refund(const struct cu_array *array)
{
    pthread_mutex_lock(&driver.mutex);
    dbl_refund(driver.sh, driver.slot, array->ctx->real, DBL_ARRAY, array->bytes);
    pthread_mutex_unlock(&driver.mutex);
}

static cu_result create(struct cu_array **ret_array, const struct cu_array3d_desc *desc)
{
    struct cu_array *array;
    struct cu_ctx *ctx;
    cu_result result = drv_context(&ctx);

    if (result != CU_OK)
        return result;
    if (rows_bytes(desc) == 0)
        return CU_INVALID_VALUE;
    INJECT(DBL_FAIL_ARRAY);
    array = calloc(1, sizeof(*array));
    if (array == NULL)
        return CU_OUT_OF_MEMORY;
    array->magic = MAGIC;
    array->ctx = ctx;
    array->desc = *desc;
    result = charge(array, rows_bytes(desc));
    if (result != CU_OK) {
        free(array);
        return result;
    }
    link_array(array);
    *ret_array = array;
    return CU_OK;
}

cu_result cuArrayCreate_v2(struct cu_array **ret_array, const struct cu_array_desc *desc)
{
    struct cu_array3d_desc full;

    ENTER();
    if (ret_array == NULL || desc == NULL)
        return CU_INVALID_VALUE;
    full = (struct cu_array3d_desc){.width = desc->width,
                                    .height = desc->height,
                                    .format = desc->format,
                                    .channels = desc->channels};
    return create(ret_array, &full);
}

cu_result cuArray3DCreate_v2(struct cu_array **ret_array, const struct cu_array3d_desc *desc)
{
    ENTER();
    return ret_array != NULL && desc != NULL ? create(ret_array, desc) : CU_INVALID_VALUE;
}

cu_result cuArrayDestroy(struct cu_array *array)
{
    ENTER();
    if (array == NULL || array->magic != MAGIC || array->of != NULL)
        return CU_INVALID_HANDLE;
    INJECT(DBL_FAIL_FREE);
    unlink_array(array);
    refund(array);
    array->magic = 0;
    free(array);
    return CU_OK;
}

cu_result cuArray3DGetDescriptor_v2(struct cu_array3d_desc *ret_desc, struct cu_array *array)
{
    ENTER();
    if (array == NULL || array->magic != MAGIC)
        return CU_INVALID_HANDLE;
    if (ret_desc == NULL)
        return CU_INVALID_VALUE;
    *ret_desc = array->desc;
    return CU_OK;
}

cu_result cuArrayGetDescriptor_v2(struct cu_array_desc *ret_desc, struct cu_array *array)
{
    ENTER();
    if (array == NULL || array->magic != MAGIC)
        return CU_INVALID_HANDLE;
    if (ret_desc == NULL)
        return CU_INVALID_VALUE;
    *ret_desc = (struct cu_array_desc){.width = array->desc.width,
                                       .height = array->desc.height,
                                       .format = array->desc.format,
                                       .channels = array->desc.channels};
    return CU_OK;
}

cu_result cuArrayGetMemoryRequirements(struct cu_array_need *ret_need, struct cu_array *array,
                                       cu_device device)
{
    ENTER();
    if (array == NULL || array->magic != MAGIC)
        return CU_INVALID_HANDLE;
    if (ret_need == NULL || array->of != NULL)
        return CU_INVALID_VALUE;
    if (!drv_device_valid(device))
        return CU_INVALID_DEVICE;
    *ret_need = (struct cu_array_need){.bytes = array->bytes, .alignment = PAGE};
    return CU_OK;
}

/* DESC at LEVEL: each dimension halves, down to 1. */
static struct cu_array3d_desc level_desc(const struct cu_array3d_desc *desc, unsigned level)
{
    struct cu_array3d_desc d = *desc;

    d.width = d.width >> level > 0 ? d.width >> level : 1;
    d.height = d.height == 0 || d.height >> level > 0 ? d.height >> level : 1;
    d.depth = d.depth == 0 || d.depth >> level > 0 ? d.depth >> level : 1;
    return d;
}

static void free_levels(struct cu_mipmap *mipmap)
{
    for (unsigned l = 0; l < mipmap->levels; l++)
        free(mipmap->level[l]);
}

static bool make_levels(struct cu_mipmap *mipmap, const struct cu_array3d_desc *desc)
{
    for (unsigned l = 0; l < mipmap->levels; l++) {
        mipmap->level[l] = calloc(1, sizeof(struct cu_array));
        if (mipmap->level[l] == NULL)
            return false;
        mipmap->level[l]->magic = MAGIC;
        mipmap->level[l]->ctx = mipmap->whole.ctx;
        mipmap->level[l]->desc = level_desc(desc, l);
        mipmap->level[l]->of = mipmap;
    }
    return true;
}

cu_result cuMipmappedArrayCreate(struct cu_mipmap **ret_mipmap, const struct cu_array3d_desc *desc,
                                 unsigned levels)
{
    struct cu_mipmap *mipmap;
    struct cu_ctx *ctx;
    uint64_t bytes = 0;
    cu_result result;

    ENTER();
    result = drv_context(&ctx);
    if (result != CU_OK)
        return result;
    if (ret_mipmap == NULL || desc == NULL || rows_bytes(desc) == 0 || levels == 0 ||
        levels > ARRAY_LEN(mipmap->level))
        return CU_INVALID_VALUE;
    INJECT(DBL_FAIL_ARRAY);
    mipmap = calloc(1, sizeof(*mipmap));
    if (mipmap == NULL)
        return CU_OUT_OF_MEMORY;
    mipmap->magic = MAGIC;
    mipmap->levels = levels;
    mipmap->whole.ctx = ctx;
    mipmap->whole.of = mipmap;
    for (unsigned l = 0; l < levels; l++) {
        struct cu_array3d_desc d = level_desc(desc, l);

        bytes += rows_bytes(&d);
    }
    result = make_levels(mipmap, desc) ? charge(&mipmap->whole, bytes) : CU_OUT_OF_MEMORY;
    if (result != CU_OK) {
        free_levels(mipmap);
        free(mipmap);
        return result;
    }
    link_array(&mipmap->whole);
    *ret_mipmap = mipmap;
    return CU_OK;
}

static void mipmap_free(struct cu_mipmap *mipmap)
{
    free_levels(mipmap);
    mipmap->magic = 0;
    free(mipmap);
}

cu_result cuMipmappedArrayDestroy(struct cu_mipmap *mipmap)
{
    ENTER();
    if (mipmap == NULL || mipmap->magic != MAGIC)
        return CU_INVALID_HANDLE;
    INJECT(DBL_FAIL_FREE);
    unlink_array(&mipmap->whole);
    refund(&mipmap->whole);
    mipmap_free(mipmap);
    return CU_OK;
}

cu_result cuMipmappedArrayGetLevel(struct cu_array **ret_array, struct cu_mipmap *mipmap,
                                   unsigned level)
{
    ENTER();
    if (mipmap == NULL || mipmap->magic != MAGIC)
        return CU_INVALID_HANDLE;
    if (ret_array == NULL || level >= mipmap->levels)
        return CU_INVALID_VALUE;
    *ret_array = mipmap->level[level];
    return CU_OK;
}

cu_result cuMipmappedArrayGetMemoryRequirements(struct cu_array_need *ret_need,
                                                struct cu_mipmap *mipmap, cu_device device)
{
    ENTER();
    if (mipmap == NULL || mipmap->magic != MAGIC)
        return CU_INVALID_HANDLE;
    if (ret_need == NULL)
        return CU_INVALID_VALUE;
    if (!drv_device_valid(device))
        return CU_INVALID_DEVICE;
    *ret_need = (struct cu_array_need){.bytes = mipmap->whole.bytes, .alignment = PAGE};
    return CU_OK;
}

void drv_arrays_drop(struct cu_ctx *ctx)
{
    while (ctx->arrays != NULL) {
        struct cu_array *array = ctx->arrays;

        ctx->arrays = array->next;
        refund(array);
        if (array->of != NULL) {
            mipmap_free(array->of);
            continue;
        }
        array->magic = 0;
        free(array);
    }
}
