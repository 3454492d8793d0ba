/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Physical memory that several processes hold. The shared file says who does; it is charged to who
 * created it, and when that one lets go, to the first of the others.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vmm.h"

#define EXPORT_MAGIC UINT64_C(0x64626c6578706f72)

struct token { /* what an exported descriptor holds */
    uint64_t magic, id, machine;
    uint32_t index, real;
    uint64_t bytes;
};

void vmm_export_let_go(struct phys *phys)
{
    struct dbl_export *e = &driver.sh->exports[phys->export];
    uint32_t heir = 0;

    dbl_lock(driver.sh);
    dbl_reap(driver.sh);
    atomic_fetch_sub(&driver.proc->ipc, 1);
    e->holders[driver.slot / 64] &= ~(UINT64_C(1) << driver.slot % 64);
    while (heir < DBL_PROCS && !(e->holders[heir / 64] >> heir % 64 & 1))
        heir++;
    if (e->owner == driver.slot) {
        if (heir < DBL_PROCS) {
            e->owner = heir;
            driver.sh->procs[heir].usage[e->device].adopted += e->bytes;
        }
        if (!phys->charged)
            driver.proc->usage[e->device].adopted -= e->bytes;
    }
    e->used = heir < DBL_PROCS;
    dbl_unlock(driver.sh);
}

/* An entry of PHYS in the shared file, if it has none yet. */
static bool share(struct phys *phys)
{
    if (phys->export >= 0)
        return true;
    dbl_lock(driver.sh);
    for (int i = 0; i < DBL_EXPORTS && phys->export < 0; i++) {
        struct dbl_export *e = &driver.sh->exports[i];

        if (e->used)
            continue;
        *e = (struct dbl_export){.used = true,
                                 .owner = driver.slot,
                                 .device = phys->real,
                                 .bytes = phys->bytes,
                                 .id = driver.sh->next_export++};
        e->holders[driver.slot / 64] |= UINT64_C(1) << driver.slot % 64;
        atomic_fetch_add(&driver.proc->ipc, 1);
        phys->export = i;
    }
    dbl_unlock(driver.sh);
    return phys->export >= 0;
}

static uint64_t machine(void)
{
    uint64_t id;

    memcpy(&id, driver.sh->devices[0].info.uuid, sizeof(id));
    return id;
}

cu_result cuMemExportToShareableHandle(void *ret_handle, cu_vmm handle, int type, uint64_t flags)
{
    struct token token = {.magic = EXPORT_MAGIC};
    cu_result result = CU_INVALID_VALUE;
    struct phys *phys;
    int fd;

    ENTER();
    if (ret_handle == NULL || flags != 0)
        return CU_INVALID_VALUE;
    if (type != CU_HANDLE_POSIX_FD)
        return CU_NOT_SUPPORTED;
    pthread_mutex_lock(&driver.mutex);
    phys = vmm_phys_of(handle);
    if (phys != NULL && (phys->prop.handle_types & CU_HANDLE_POSIX_FD) && share(phys)) {
        token.index = (uint32_t)phys->export;
        token.id = driver.sh->exports[phys->export].id;
        token.machine = machine();
        token.real = phys->real;
        token.bytes = phys->bytes;
        result = CU_OK;
    }
    pthread_mutex_unlock(&driver.mutex);
    if (result != CU_OK)
        return result;
    fd = memfd_create("cuda-export", MFD_CLOEXEC);
    if (fd < 0 || write(fd, &token, sizeof(token)) != (ssize_t)sizeof(token)) {
        if (fd >= 0)
            close(fd);
        return CU_OPERATING_SYSTEM;
    }
    *(int *)ret_handle = fd;
    return CU_OK;
}

/* What TOKEN names as a piece of this process; with driver.mutex. */
static struct phys *adopt(const struct token *token)
{
    struct dbl_export *e = &driver.sh->exports[token->index];
    struct phys *phys = vmm_phys_by_export((int)token->index);

    if (phys != NULL) {
        phys->handles++;
        return phys;
    }
    phys = vmm_phys_new();
    if (phys == NULL)
        return NULL;
    dbl_lock(driver.sh);
    dbl_reap(driver.sh);
    if (e->used && e->id == token->id) {
        e->holders[driver.slot / 64] |= UINT64_C(1) << driver.slot % 64;
        atomic_fetch_add(&driver.proc->ipc, 1);
        phys->export = (int)token->index;
    }
    dbl_unlock(driver.sh);
    phys->bytes = token->bytes;
    phys->real = token->real;
    phys->prop = (struct cu_alloc_prop){.type = CU_ALLOCATION_PINNED,
                                        .handle_types = CU_HANDLE_POSIX_FD,
                                        .location = {CU_LOCATION_DEVICE, 0}};
    for (int d = 0; d < driver.count; d++)
        if (driver.visible[d] == token->real)
            phys->prop.location.id = d;
    if (phys->export >= 0)
        return phys;
    phys->handles = 0;
    vmm_phys_end_if_unused(phys);
    return NULL;
}

cu_result cuMemImportFromShareableHandle(cu_vmm *ret_handle, void *handle, int type)
{
    struct token token = {0};
    struct phys *phys;

    ENTER();
    if (ret_handle == NULL)
        return CU_INVALID_VALUE;
    if (type != CU_HANDLE_POSIX_FD)
        return CU_NOT_SUPPORTED;
    if (pread((int)(intptr_t)handle, &token, sizeof(token), 0) != (ssize_t)sizeof(token) ||
        token.magic != EXPORT_MAGIC || token.machine != machine() || token.index >= DBL_EXPORTS)
        return CU_INVALID_VALUE;
    pthread_mutex_lock(&driver.mutex);
    phys = adopt(&token);
    if (phys != NULL)
        *ret_handle = phys->id;
    pthread_mutex_unlock(&driver.mutex);
    return phys != NULL ? CU_OK : CU_INVALID_VALUE;
}
