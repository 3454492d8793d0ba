/* SPDX-License-Identifier: Apache-2.0 */
/* Launching kernels, in every way there is. */
#include <string.h>

#include "driver.h"

#define BLOCK_MOST 1024
#define THREADS_OF_SM 2048
#define BLOCKS_OF_SM 32

struct shape {
    unsigned grid[3], block[3];
};

cu_result drv_launch_cost(struct cu_function *function, uint64_t blocks, void **params,
                          struct drv_launch *ret_launch)
{
    uint64_t sms = driver.bench ? 1 : dbl_info(driver.sh, 0)->sms;
    uint64_t duration = function->duration_ns;

    if (function->by_param) {
        if (params == NULL || params[0] == NULL)
            return CU_INVALID_VALUE;
        memcpy(&duration, params[0], sizeof(duration));
        if (duration > UINT64_C(1) << 45)
            return CU_INVALID_VALUE;
    }
    if (function->by_grid)
        sms = blocks < sms ? blocks : sms;
    else
        sms = function->sms;
    *ret_launch = (struct drv_launch){.duration_ns = duration, .sms = (uint32_t)sms};
    return CU_OK;
}

cu_result drv_launch(struct cu_stream *stream, const struct drv_launch *launch)
{
    uint64_t ns = launch->duration_ns + drv_managed_page_in(stream->ctx);

    atomic_fetch_add(&driver.launches, 1);
    return drv_submit(stream, (struct dbl_op){.kind = DBL_OP_KERNEL,
                                              .depth = 1,
                                              .sms = launch->sms,
                                              .remaining = ns * DBL_FRACTION});
}

static cu_result check_shape(const struct shape *shape, uint64_t *ret_blocks)
{
    uint64_t blocks = 1, threads = 1;

    for (int i = 0; i < 3; i++) {
        if (shape->grid[i] == 0 || shape->block[i] == 0 || shape->block[i] > BLOCK_MOST ||
            __builtin_mul_overflow(blocks, shape->grid[i], &blocks))
            return CU_INVALID_VALUE;
        threads *= shape->block[i];
    }
    *ret_blocks = blocks;
    return threads <= BLOCK_MOST ? CU_OK : CU_INVALID_VALUE;
}

/* All blocks of a cooperative kernel must be on the device together. */
static bool too_large(struct cu_stream *stream, const struct shape *shape, uint64_t blocks)
{
    uint64_t threads = (uint64_t)shape->block[0] * shape->block[1] * shape->block[2];
    uint64_t each = THREADS_OF_SM / threads < BLOCKS_OF_SM ? THREADS_OF_SM / threads : BLOCKS_OF_SM;

    return blocks > each * dbl_info(driver.sh, stream->ctx->real)->sms;
}

static cu_result launch(struct cu_function *function, const struct shape *shape,
                        struct cu_stream *handle, bool per_thread, bool cooperative, void **params)
{
    struct cu_stream *stream;
    struct drv_launch cost;
    uint64_t blocks;
    cu_result result = drv_stream(handle, per_thread, &stream);

    if (__builtin_expect(result != CU_OK, 0))
        return result;
    if (!drv_function_valid(function))
        return CU_INVALID_HANDLE;
    result = check_shape(shape, &blocks);
    if (__builtin_expect(result != CU_OK, 0))
        return result;
    INJECT(DBL_FAIL_LAUNCH);
    if (cooperative && too_large(stream, shape, blocks))
        return CU_COOPERATIVE_LAUNCH_TOO_LARGE;
    result = drv_launch_cost(function, blocks, params, &cost);
    if (result != CU_OK)
        return result;
    return drv_capturing(stream) ? drv_capture_kernel(stream, &cost) : drv_launch(stream, &cost);
}

/*
 * In bench mode a launch must cost next to nothing: what it would do is counted, not exactly
 * between threads. False: not in bench mode, or something about it is not plain.
 */
static inline bool launch_benched(const struct cu_function *function, unsigned blocks,
                                  unsigned threads)
{
    const struct cu_ctx *ctx = drv_current();
    uint64_t count;

    if (!driver.bench || function == NULL || blocks == 0 || threads == 0 || threads > BLOCK_MOST ||
        ctx == NULL || ctx->dead || atomic_load_explicit(&drv_captures, memory_order_relaxed) > 0 ||
        !drv_function_valid(function) ||
        atomic_load_explicit(&driver.sh->armed, memory_order_relaxed) ||
        !atomic_load_explicit(drv_alive(), memory_order_relaxed))
        return false;
    count = atomic_load_explicit(&driver.launches, memory_order_relaxed);
    atomic_store_explicit(&driver.launches, count + 1, memory_order_relaxed);
    return true;
}

#define PLAIN \
    __builtin_expect(launch_benched(function, grid_x *grid_y *grid_z, block_x *block_y *block_z), 1)

#define SHAPE                         \
    &(struct shape)                   \
    {                                 \
        {grid_x, grid_y, grid_z},     \
        {                             \
            block_x, block_y, block_z \
        }                             \
    }

cu_result cuLaunchKernel(struct cu_function *function, unsigned grid_x, unsigned grid_y,
                         unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                         unsigned shared_bytes, struct cu_stream *stream, void **params,
                         void **extra)
{
    if (PLAIN)
        return CU_OK;
    ENTER();
    return launch(function, SHAPE, stream, false, false, params);
}

cu_result cuLaunchKernel_ptsz(struct cu_function *function, unsigned grid_x, unsigned grid_y,
                              unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                              unsigned shared_bytes, struct cu_stream *stream, void **params,
                              void **extra)
{
    if (PLAIN)
        return CU_OK;
    ENTER();
    return launch(function, SHAPE, stream, true, false, params);
}

cu_result cuLaunchCooperativeKernel(struct cu_function *function, unsigned grid_x, unsigned grid_y,
                                    unsigned grid_z, unsigned block_x, unsigned block_y,
                                    unsigned block_z, unsigned shared_bytes,
                                    struct cu_stream *stream, void **params)
{
    ENTER();
    return launch(function, SHAPE, stream, false, true, params);
}

cu_result cuLaunchCooperativeKernel_ptsz(struct cu_function *function, unsigned grid_x,
                                         unsigned grid_y, unsigned grid_z, unsigned block_x,
                                         unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                         struct cu_stream *stream, void **params)
{
    ENTER();
    return launch(function, SHAPE, stream, true, true, params);
}

static cu_result launch_ex(const struct cu_launch_config *config, struct cu_function *function,
                           void **params, bool per_thread)
{
    struct shape shape;
    bool cooperative = false;

    if (config == NULL || (config->attribute_count > 0 && config->attributes == NULL))
        return CU_INVALID_VALUE;
    shape = (struct shape){{config->grid_x, config->grid_y, config->grid_z},
                           {config->block_x, config->block_y, config->block_z}};
    for (unsigned i = 0; i < config->attribute_count; i++)
        if (config->attributes[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
            cooperative = config->attributes[i].value.cooperative != 0;
    return launch(function, &shape, config->stream, per_thread, cooperative, params);
}

cu_result cuLaunchKernelEx(const struct cu_launch_config *config, struct cu_function *function,
                           void **params, void **extra)
{
    ENTER();
    return launch_ex(config, function, params, false);
}

cu_result cuLaunchKernelEx_ptsz(const struct cu_launch_config *config, struct cu_function *function,
                                void **params, void **extra)
{
    ENTER();
    return launch_ex(config, function, params, true);
}

cu_result cuLaunchCooperativeKernelMultiDevice(struct cu_multi_launch *list, unsigned count,
                                               unsigned flags)
{
    ENTER();
    if (list == NULL || count == 0)
        return CU_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        const struct cu_multi_launch *l = &list[i];
        struct shape shape = {{l->grid_x, l->grid_y, l->grid_z},
                              {l->block_x, l->block_y, l->block_z}};
        cu_result result = launch(l->function, &shape, l->stream, false, true, l->params);

        if (result != CU_OK)
            return result;
    }
    return CU_OK;
}

/* The oldest way: the shape of blocks was set before. */
static cu_result launch_grid(struct cu_function *function, int width, int height,
                             struct cu_stream *stream)
{
    struct shape shape;

    if (!drv_function_valid(function))
        return CU_INVALID_HANDLE;
    if (width <= 0 || height <= 0)
        return CU_INVALID_VALUE;
    shape = (struct shape){{(unsigned)width, (unsigned)height, 1},
                           {function->block[0], function->block[1], function->block[2]}};
    return launch(function, &shape, stream, false, false, NULL);
}

cu_result cuLaunch(struct cu_function *function)
{
    ENTER();
    return launch_grid(function, 1, 1, NULL);
}

cu_result cuLaunchGrid(struct cu_function *function, int width, int height)
{
    ENTER();
    return launch_grid(function, width, height, NULL);
}

cu_result cuLaunchGridAsync(struct cu_function *function, int width, int height,
                            struct cu_stream *stream)
{
    ENTER();
    return launch_grid(function, width, height, stream);
}
