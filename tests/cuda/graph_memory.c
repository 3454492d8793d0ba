/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of graphs. An allocation node has an address as long as its graph lives, and memory while
 * it is allocated: from a launch on until a free. The memory comes out of what its device has
 * reserved for graphs, which grows with the need and shrinks only when it is trimmed.
 */
#include "graph.h"

static struct {
    uint64_t used, used_high, reserved, reserved_high;
} memory[DBL_DEVICES]; /* under driver.mutex */

static uint64_t up(uint64_t bytes)
{
    return (bytes + DRV_GRANULARITY - 1) / DRV_GRANULARITY * DRV_GRANULARITY;
}

struct drv_alloc *drv_graph_address(struct cu_ctx *ctx, uint64_t bytes)
{
    struct drv_alloc *alloc = NULL;

    pthread_mutex_lock(&driver.mutex);
    if (bytes <= UINT64_C(1) << 42)
        alloc = drv_va_new(bytes);
    if (alloc != NULL) {
        alloc->kind = DBL_GRAPH;
        alloc->charged = 0;
        alloc->refs = 1;
        alloc->real = (uint16_t)ctx->real;
        alloc->ctx = ctx;
        drv_va_link(&ctx->allocs, alloc);
    }
    pthread_mutex_unlock(&driver.mutex);
    return alloc;
}

void drv_graph_address_ref(struct drv_alloc *alloc)
{
    pthread_mutex_lock(&driver.mutex);
    alloc->refs++;
    pthread_mutex_unlock(&driver.mutex);
}

void drv_graph_address_free(struct drv_alloc *alloc)
{
    pthread_mutex_lock(&driver.mutex);
    if (--alloc->refs == 0) {
        memory[alloc->real].used -= alloc->charged;
        alloc->charged = 0;
        if (alloc->list != NULL) /* it is not, when its context went first */
            drv_va_unlink(alloc);
        drv_va_free(alloc);
    }
    pthread_mutex_unlock(&driver.mutex);
}

cu_result drv_graph_use(struct cu_ctx *ctx, uint64_t peak, uint64_t kept)
{
    uint32_t real = ctx->real;
    cu_result result = CU_OK;
    uint64_t need;

    pthread_mutex_lock(&driver.mutex);
    need = up(memory[real].used + peak);
    if (need > memory[real].reserved) {
        if (dbl_charge(driver.sh, driver.slot, real, DBL_GRAPH, need - memory[real].reserved) < 0)
            result = CU_OUT_OF_MEMORY;
        else
            memory[real].reserved = need;
    }
    if (result == CU_OK) {
        if (memory[real].used + peak > memory[real].used_high)
            memory[real].used_high = memory[real].used + peak;
        if (memory[real].reserved > memory[real].reserved_high)
            memory[real].reserved_high = memory[real].reserved;
        memory[real].used += kept;
    }
    pthread_mutex_unlock(&driver.mutex);
    return result;
}

cu_result drv_graph_free(struct drv_alloc *alloc)
{
    if (alloc->charged == 0)
        return CU_INVALID_VALUE;
    memory[alloc->real].used -= alloc->charged;
    alloc->charged = 0;
    return CU_OK;
}

static void trim(uint32_t real)
{
    uint64_t keep = up(memory[real].used);

    if (memory[real].reserved <= keep)
        return;
    dbl_refund(driver.sh, driver.slot, real, DBL_GRAPH, memory[real].reserved - keep);
    memory[real].reserved = keep;
}

void drv_graph_memory_drop(uint32_t real)
{
    trim(real);
}

cu_result cuDeviceGraphMemTrim(cu_device device)
{
    ENTER();
    if (!drv_device_valid(device))
        return CU_INVALID_DEVICE;
    pthread_mutex_lock(&driver.mutex);
    trim(driver.visible[device]);
    pthread_mutex_unlock(&driver.mutex);
    return CU_OK;
}

cu_result cuDeviceGetGraphMemAttribute(cu_device device, int attribute, void *ret_value)
{
    uint64_t values[4];

    ENTER();
    if (!drv_device_valid(device))
        return CU_INVALID_DEVICE;
    if (ret_value == NULL || attribute < 0 || attribute > 3)
        return CU_INVALID_VALUE;
    pthread_mutex_lock(&driver.mutex);
    values[CU_GRAPH_MEM_USED_CURRENT] = memory[driver.visible[device]].used;
    values[CU_GRAPH_MEM_USED_HIGH] = memory[driver.visible[device]].used_high;
    values[CU_GRAPH_MEM_RESERVED_CURRENT] = memory[driver.visible[device]].reserved;
    values[CU_GRAPH_MEM_RESERVED_HIGH] = memory[driver.visible[device]].reserved_high;
    pthread_mutex_unlock(&driver.mutex);
    *(uint64_t *)ret_value = values[attribute];
    return CU_OK;
}

/* Only the high-water marks can be set, and only to zero: they begin anew. */
cu_result cuDeviceSetGraphMemAttribute(cu_device device, int attribute, void *value)
{
    uint32_t real;

    ENTER();
    if (!drv_device_valid(device))
        return CU_INVALID_DEVICE;
    if (value == NULL || *(uint64_t *)value != 0 ||
        (attribute != CU_GRAPH_MEM_USED_HIGH && attribute != CU_GRAPH_MEM_RESERVED_HIGH))
        return CU_INVALID_VALUE;
    real = driver.visible[device];
    pthread_mutex_lock(&driver.mutex);
    if (attribute == CU_GRAPH_MEM_USED_HIGH)
        memory[real].used_high = memory[real].used;
    else
        memory[real].reserved_high = memory[real].reserved;
    pthread_mutex_unlock(&driver.mutex);
    return CU_OK;
}
