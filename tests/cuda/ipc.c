/* SPDX-License-Identifier: Apache-2.0 */
/* Linear memory that another process opens: charged to its owner alone. */
#include <string.h>

#include "driver.h"

#define MAGIC UINT64_C(0x64626c6970636d65)

struct token {
    uint64_t magic, image;
    cu_devptr base;
    uint64_t bytes;
    uint32_t slot, real;
};

cu_result cuIpcGetMemHandle(struct cu_ipc_mem *ret_handle, cu_devptr ptr)
{
    struct token token = {.magic = MAGIC, .slot = driver.slot};
    struct drv_alloc *alloc;
    bool found;

    ENTER();
    if (ret_handle == NULL)
        return CU_INVALID_VALUE;
    pthread_mutex_lock(&driver.mutex);
    alloc = drv_va_find(ptr);
    found = alloc != NULL && alloc->kind == DBL_LINEAR;
    if (found) {
        token.image = driver.proc->image;
        token.base = alloc->base;
        token.bytes = alloc->bytes;
        token.real = alloc->real;
    }
    pthread_mutex_unlock(&driver.mutex);
    if (!found)
        return CU_INVALID_VALUE;
    atomic_fetch_add(&driver.proc->ipc, 1);
    memset(ret_handle, 0, sizeof(*ret_handle));
    memcpy(ret_handle, &token, sizeof(token));
    return CU_OK;
}

static cu_result open_handle(cu_devptr *ret_ptr, const struct cu_ipc_mem *handle)
{
    struct token token;
    struct drv_alloc *alloc;
    struct cu_ctx *ctx;
    cu_result result = drv_context(&ctx);
    bool lives;

    if (result != CU_OK)
        return result;
    memcpy(&token, handle, sizeof(token));
    if (ret_ptr == NULL || token.magic != MAGIC || token.slot >= DBL_PROCS)
        return CU_INVALID_VALUE;
    if (token.slot == driver.slot)
        return CU_INVALID_CONTEXT; /* not for the process that owns it */
    dbl_lock(driver.sh);
    lives =
        dbl_alive(driver.sh, token.slot, NULL) && driver.sh->procs[token.slot].image == token.image;
    dbl_unlock(driver.sh);
    if (!lives)
        return CU_INVALID_VALUE;
    pthread_mutex_lock(&driver.mutex);
    alloc = drv_va_new(token.bytes);
    if (alloc != NULL) {
        alloc->kind = DBL_KINDS;
        alloc->charged = 0;
        alloc->real = (uint16_t)token.real;
        alloc->ctx = ctx;
        drv_va_link(&ctx->allocs, alloc);
        *ret_ptr = alloc->base;
    }
    pthread_mutex_unlock(&driver.mutex);
    if (alloc != NULL)
        atomic_fetch_add(&driver.proc->ipc, 1);
    return alloc != NULL ? CU_OK : CU_OUT_OF_MEMORY;
}

cu_result cuIpcOpenMemHandle(cu_devptr *ret_ptr, struct cu_ipc_mem handle, unsigned flags)
{
    ENTER();
    return open_handle(ret_ptr, &handle);
}

cu_result cuIpcOpenMemHandle_v2(cu_devptr *ret_ptr, struct cu_ipc_mem handle, unsigned flags)
{
    ENTER();
    return open_handle(ret_ptr, &handle);
}

cu_result cuIpcCloseMemHandle(cu_devptr ptr)
{
    struct drv_alloc *alloc;
    bool found;

    ENTER();
    pthread_mutex_lock(&driver.mutex);
    alloc = drv_va_find(ptr);
    found = alloc != NULL && alloc->kind == DBL_KINDS && alloc->base == ptr;
    if (found) {
        drv_va_unlink(alloc);
        drv_va_free(alloc);
    }
    pthread_mutex_unlock(&driver.mutex);
    if (found)
        atomic_fetch_sub(&driver.proc->ipc, 1);
    return found ? CU_OK : CU_INVALID_VALUE;
}
