/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that the host can touch: pinned, registered, managed. Real memory, since programs write
 * to it. Managed memory counts on a device as far as it is resident there.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "driver.h"

#define BILLION UINT64_C(1000000000)

enum range_kind { PINNED, REGISTERED, MANAGED };

struct range {
    char *base;
    size_t bytes;
    enum range_kind kind;
    unsigned flags;
    struct cu_ctx *ctx;
    uint64_t resident; /* MANAGED: bytes on the device `real` */
    uint32_t real;
};

static struct {
    pthread_mutex_t mutex;
    struct range *list;
    size_t count, room;
} ranges = {PTHREAD_MUTEX_INITIALIZER, NULL, 0, 0};

/* With the mutex. The range that holds PTR, or NULL. */
static struct range *find(const void *ptr)
{
    const char *at = ptr;

    for (size_t i = 0; i < ranges.count; i++)
        if (at >= ranges.list[i].base && at < ranges.list[i].base + ranges.list[i].bytes)
            return &ranges.list[i];
    return NULL;
}

static cu_result add(const struct range *range)
{
    cu_result result = CU_OK;

    pthread_mutex_lock(&ranges.mutex);
    if (ranges.count == ranges.room) {
        size_t room = ranges.room * 2 + 16;
        struct range *list = realloc(ranges.list, room * sizeof(*list));

        if (list != NULL) {
            ranges.list = list;
            ranges.room = room;
        } else {
            result = CU_OUT_OF_MEMORY;
        }
    }
    if (result == CU_OK)
        ranges.list[ranges.count++] = *range;
    pthread_mutex_unlock(&ranges.mutex);
    return result;
}

/* Takes the range that begins at PTR and is of KIND off the list. */
static bool take(const void *ptr, enum range_kind kind, struct range *ret_range)
{
    struct range *range;
    bool found;

    pthread_mutex_lock(&ranges.mutex);
    range = find(ptr);
    found = range != NULL && range->base == ptr && range->kind == kind;
    if (found) {
        if (kind == MANAGED)
            dbl_refund(driver.sh, driver.slot, range->real, DBL_MANAGED, range->resident);
        *ret_range = *range;
        *range = ranges.list[--ranges.count];
    }
    pthread_mutex_unlock(&ranges.mutex);
    return found;
}

static void *map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return memory != MAP_FAILED ? memory : NULL;
}

static cu_result host_alloc(void **ret_ptr, size_t bytes, unsigned flags)
{
    struct range range = {.bytes = bytes, .kind = PINNED, .flags = flags};
    cu_result result = drv_context(&range.ctx);

    if (result != CU_OK)
        return result;
    if (ret_ptr == NULL || bytes == 0 || (flags & ~(unsigned)CU_HOST_FLAGS_MASK))
        return CU_INVALID_VALUE;
    INJECT(DBL_FAIL_HOST);
    range.base = map(bytes);
    if (range.base == NULL)
        return CU_OUT_OF_MEMORY;
    result = add(&range);
    if (result == CU_OK)
        *ret_ptr = range.base;
    else
        munmap(range.base, bytes);
    return result;
}

cu_result cuMemHostAlloc(void **ret_ptr, size_t bytes, unsigned flags)
{
    ENTER();
    return host_alloc(ret_ptr, bytes, flags);
}

cu_result cuMemAllocHost_v2(void **ret_ptr, size_t bytes)
{
    ENTER();
    return host_alloc(ret_ptr, bytes, 0);
}

cu_result cuMemFreeHost(void *ptr)
{
    struct range range;

    ENTER();
    if (!take(ptr, PINNED, &range))
        return CU_INVALID_VALUE;
    munmap(range.base, range.bytes);
    return CU_OK;
}

static cu_result host_register(void *ptr, size_t bytes, unsigned flags)
{
    struct range range = {.base = ptr, .bytes = bytes, .kind = REGISTERED, .flags = flags};
    cu_result result = drv_context(&range.ctx);
    bool known;

    if (result != CU_OK)
        return result;
    if (ptr == NULL || bytes == 0 || (flags & ~(unsigned)CU_HOST_REGISTER_MASK))
        return CU_INVALID_VALUE;
    INJECT(DBL_FAIL_HOST);
    pthread_mutex_lock(&ranges.mutex);
    known = find(ptr) != NULL || find((char *)ptr + bytes - 1) != NULL;
    pthread_mutex_unlock(&ranges.mutex);
    return known ? CU_HOST_ALREADY_REGISTERED : add(&range);
}

cu_result cuMemHostRegister(void *ptr, size_t bytes, unsigned flags)
{
    ENTER();
    return host_register(ptr, bytes, flags);
}

cu_result cuMemHostRegister_v2(void *ptr, size_t bytes, unsigned flags)
{
    ENTER();
    return host_register(ptr, bytes, flags);
}

cu_result cuMemHostUnregister(void *ptr)
{
    struct range range;

    ENTER();
    return take(ptr, REGISTERED, &range) ? CU_OK : CU_HOST_NOT_REGISTERED;
}

bool drv_host_find(const void *ptr, const void **ret_base, size_t *ret_bytes, unsigned *ret_flags)
{
    struct range *range;
    bool found;

    pthread_mutex_lock(&ranges.mutex);
    range = find(ptr);
    found = range != NULL && range->kind != MANAGED;
    if (found) {
        *ret_base = range->base;
        *ret_bytes = range->bytes;
        *ret_flags = range->flags;
    }
    pthread_mutex_unlock(&ranges.mutex);
    return found;
}

cu_result cuMemHostGetDevicePointer_v2(cu_devptr *ret_ptr, void *host, unsigned flags)
{
    const void *base;
    size_t bytes;
    unsigned known;

    ENTER();
    if (ret_ptr == NULL || flags != 0 || !drv_host_find(host, &base, &bytes, &known))
        return CU_INVALID_VALUE;
    *ret_ptr = (cu_devptr)(uintptr_t)host;
    return CU_OK;
}

cu_result cuMemHostGetFlags(unsigned *ret_flags, void *host)
{
    const void *base;
    size_t bytes;

    ENTER();
    return ret_flags != NULL && drv_host_find(host, &base, &bytes, ret_flags) ? CU_OK
                                                                              : CU_INVALID_VALUE;
}

/* --- managed --- */

cu_result cuMemAllocManaged(cu_devptr *ret_ptr, size_t bytes, unsigned flags)
{
    struct range range = {.bytes = bytes, .kind = MANAGED, .flags = flags};
    cu_result result;

    ENTER();
    result = drv_context(&range.ctx);
    if (result != CU_OK)
        return result;
    if (ret_ptr == NULL || bytes == 0 || (flags != CU_ATTACH_GLOBAL && flags != CU_ATTACH_HOST))
        return CU_INVALID_VALUE;
    INJECT(DBL_FAIL_ALLOC);
    range.base = map(bytes);
    if (range.base == NULL)
        return CU_OUT_OF_MEMORY;
    range.real = range.ctx->real;
    result = add(&range);
    if (result != CU_OK) {
        munmap(range.base, bytes);
        return result;
    }
    atomic_fetch_add(&driver.proc->managed, 1);
    *ret_ptr = (cu_devptr)(uintptr_t)range.base;
    return CU_OK;
}

bool drv_managed_free(cu_devptr ptr)
{
    struct range range;

    if (atomic_load_explicit(&driver.proc->managed, memory_order_relaxed) == 0 ||
        !take((const void *)(uintptr_t)ptr, MANAGED, &range))
        return false;
    atomic_fetch_sub(&driver.proc->managed, 1);
    munmap(range.base, range.bytes);
    return true;
}

bool drv_managed_find(cu_devptr ptr, cu_devptr *ret_base, uint64_t *ret_bytes)
{
    struct range *range;
    bool found;

    pthread_mutex_lock(&ranges.mutex);
    range = find((const void *)(uintptr_t)ptr);
    found = range != NULL && range->kind == MANAGED;
    if (found) {
        *ret_base = (cu_devptr)(uintptr_t)range->base;
        *ret_bytes = range->bytes;
    }
    pthread_mutex_unlock(&ranges.mutex);
    return found;
}

/* Makes RANGE resident on REAL (-1: nowhere), as far as it fits. Bytes that had to move in. */
static uint64_t reside(struct range *range, int real)
{
    uint64_t before = real == (int)range->real ? range->resident : 0;
    uint64_t lack;

    if (real != (int)range->real) {
        dbl_refund(driver.sh, driver.slot, range->real, DBL_MANAGED, range->resident);
        range->resident = 0;
    }
    if (real < 0)
        return 0;
    range->real = (uint32_t)real;
    lack = range->bytes - before;
    /* What does not fit stays outside: halves until it does, down to a granule. */
    while (lack > 0 && dbl_charge(driver.sh, driver.slot, range->real, DBL_MANAGED, lack) < 0)
        lack = lack > DRV_GRANULARITY ? lack / 2 : 0;
    range->resident = before + lack;
    return lack;
}

uint64_t drv_managed_page_in(struct cu_ctx *ctx)
{
    uint64_t moved = 0, rate = driver.sh->config.pagein_bytes_per_s;

    if (atomic_load_explicit(&driver.proc->managed, memory_order_relaxed) == 0)
        return 0;
    pthread_mutex_lock(&ranges.mutex);
    for (size_t i = 0; i < ranges.count; i++) {
        struct range *range = &ranges.list[i];

        if (range->kind == MANAGED && range->ctx == ctx && range->resident < range->bytes)
            moved += reside(range, (int)ctx->real);
    }
    pthread_mutex_unlock(&ranges.mutex);
    return rate > 0 ? (uint64_t)((unsigned __int128)moved * BILLION / rate) : 0;
}

/* The whole range moves, however much of it is asked for. */
static cu_result prefetch(cu_devptr ptr, uint64_t bytes, int real)
{
    struct range *range;
    bool found;

    pthread_mutex_lock(&ranges.mutex);
    range = find((const void *)(uintptr_t)ptr);
    found = range != NULL && range->kind == MANAGED &&
            bytes <= range->bytes - (size_t)((char *)(uintptr_t)ptr - range->base);
    if (found)
        reside(range, real);
    pthread_mutex_unlock(&ranges.mutex);
    return found ? CU_OK : CU_INVALID_VALUE;
}

static cu_result prefetch_to(cu_devptr ptr, uint64_t bytes, int type, int id)
{
    if (type == CU_LOCATION_DEVICE && !drv_device_valid(id))
        return CU_INVALID_DEVICE;
    return prefetch(ptr, bytes, type == CU_LOCATION_DEVICE ? (int)driver.visible[id] : -1);
}

cu_result cuMemPrefetchAsync(cu_devptr ptr, size_t bytes, cu_device device,
                             struct cu_stream *stream)
{
    ENTER();
    return prefetch_to(ptr, bytes, device < 0 ? CU_LOCATION_HOST : CU_LOCATION_DEVICE, device);
}

cu_result cuMemPrefetchAsync_ptsz(cu_devptr ptr, size_t bytes, cu_device device,
                                  struct cu_stream *stream)
{
    ENTER();
    return prefetch_to(ptr, bytes, device < 0 ? CU_LOCATION_HOST : CU_LOCATION_DEVICE, device);
}

cu_result cuMemPrefetchAsync_v2(cu_devptr ptr, size_t bytes, struct cu_location location,
                                unsigned flags, struct cu_stream *stream)
{
    ENTER();
    return prefetch_to(ptr, bytes, location.type, location.id);
}

cu_result cuMemPrefetchAsync_v2_ptsz(cu_devptr ptr, size_t bytes, struct cu_location location,
                                     unsigned flags, struct cu_stream *stream)
{
    ENTER();
    return prefetch_to(ptr, bytes, location.type, location.id);
}

static cu_result advise(cu_devptr ptr)
{
    cu_devptr base;
    uint64_t bytes;

    return drv_managed_find(ptr, &base, &bytes) ? CU_OK : CU_INVALID_VALUE;
}

cu_result cuMemAdvise(cu_devptr ptr, size_t bytes, int advice, cu_device device)
{
    ENTER();
    return advise(ptr);
}

cu_result cuMemAdvise_v2(cu_devptr ptr, size_t bytes, int advice, struct cu_location location)
{
    ENTER();
    return advise(ptr);
}
