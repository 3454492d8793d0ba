/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory: address ranges, physical memory, and mappings of one into the other.
 *
 * Physical memory lives while a handle or a mapping refers to it, in this process or, once it was
 * exported, in another. It is charged to who created it; when that one lets go and others hold on,
 * to the first of those. All under driver.mutex.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "vmm.h"

#define BASE UINT64_C(0x300000000000)
#define UNIT_SHIFT 21
#define UNITS (UINT64_C(1) << 23)

struct mapping {
    cu_devptr base;
    uint64_t bytes;
    struct phys *phys;
    int access[DBL_DEVICES];
};

struct reservation {
    cu_devptr base;
    uint64_t bytes;
    struct reservation *next; /* of those that are free again */
};

struct unit {
    struct reservation *reservation;
    struct mapping *mapping;
};

static struct {
    struct unit *units;
    uint64_t next;
    struct reservation *free;
    struct phys **table; /* by the low half of a handle, less 1 */
    uint32_t count, room;
    uint32_t generation;
} vmm;

static bool aligned(uint64_t n)
{
    return n != 0 && n % DRV_GRANULARITY == 0;
}

static struct unit *unit_of(cu_devptr ptr)
{
    if (vmm.units == NULL || ptr < BASE || (ptr - BASE) >> UNIT_SHIFT >= vmm.next)
        return NULL;
    return &vmm.units[(ptr - BASE) >> UNIT_SHIFT];
}

/* --- physical memory --- */

struct phys *vmm_phys_of(cu_vmm handle)
{
    uint32_t index = (uint32_t)handle - 1;
    struct phys *phys = index < vmm.count ? vmm.table[index] : NULL;

    return phys != NULL && phys->id == handle && phys->handles > 0 ? phys : NULL;
}

struct phys *vmm_phys_new(void)
{
    struct phys *phys = calloc(1, sizeof(*phys));
    uint32_t at = 0;

    while (at < vmm.count && vmm.table[at] != NULL)
        at++;
    if (at == vmm.room) {
        uint32_t room = vmm.room * 2 + 64;
        struct phys **table = realloc(vmm.table, room * sizeof(struct phys *));

        if (table == NULL) {
            free(phys);
            return NULL;
        }
        vmm.table = table;
        vmm.room = room;
    }
    if (phys == NULL)
        return NULL;
    phys->id = (uint64_t)++vmm.generation << 32 | (at + 1);
    phys->handles = 1;
    phys->export = -1;
    vmm.table[at] = phys;
    if (at == vmm.count)
        vmm.count++;
    return phys;
}

void vmm_phys_end_if_unused(struct phys *phys)
{
    if (phys->handles > 0 || phys->maps > 0)
        return;
    if (phys->export >= 0)
        vmm_export_let_go(phys);
    if (phys->charged)
        dbl_refund(driver.sh, driver.slot, phys->real, DBL_VMM, phys->bytes);
    vmm.table[(uint32_t)phys->id - 1] = NULL;
    free(phys);
}

static cu_result check_prop(const struct cu_alloc_prop *prop)
{
    if (prop == NULL || prop->type != CU_ALLOCATION_PINNED)
        return CU_INVALID_VALUE;
    if (prop->location.type != CU_LOCATION_DEVICE ||
        (prop->handle_types & ~(CU_HANDLE_POSIX_FD | CU_HANDLE_FABRIC)))
        return CU_NOT_SUPPORTED;
    return drv_device_valid(prop->location.id) ? CU_OK : CU_INVALID_DEVICE;
}

cu_result cuMemGetAllocationGranularity(size_t *ret_bytes, const struct cu_alloc_prop *prop,
                                        int option)
{
    cu_result result;

    ENTER_QUERY();
    result = check_prop(prop);
    if (ret_bytes == NULL ||
        (option != CU_GRANULARITY_MINIMUM && option != CU_GRANULARITY_RECOMMENDED))
        return CU_INVALID_VALUE;
    if (result == CU_OK)
        *ret_bytes = DRV_GRANULARITY;
    return result;
}

cu_result cuMemCreate(cu_vmm *ret_handle, size_t bytes, const struct cu_alloc_prop *prop,
                      uint64_t flags)
{
    struct phys *phys;
    cu_result result;
    uint32_t real;

    ENTER();
    result = check_prop(prop);
    if (result != CU_OK)
        return result;
    if (ret_handle == NULL || !aligned(bytes) || flags != 0)
        return CU_INVALID_VALUE;
    INJECT(DBL_FAIL_VMM);
    real = driver.visible[prop->location.id];
    pthread_mutex_lock(&driver.mutex);
    phys = vmm_phys_new();
    if (phys != NULL && dbl_charge(driver.sh, driver.slot, real, DBL_VMM, bytes) < 0) {
        phys->handles = 0;
        vmm_phys_end_if_unused(phys);
        phys = NULL;
    }
    if (phys != NULL) {
        phys->bytes = bytes;
        phys->real = real;
        phys->charged = true;
        phys->prop = *prop;
        *ret_handle = phys->id;
    }
    pthread_mutex_unlock(&driver.mutex);
    return phys != NULL ? CU_OK : CU_OUT_OF_MEMORY;
}

cu_result cuMemRelease(cu_vmm handle)
{
    struct phys *phys;

    ENTER();
    INJECT(DBL_FAIL_FREE);
    pthread_mutex_lock(&driver.mutex);
    phys = vmm_phys_of(handle);
    if (phys != NULL) {
        phys->handles--;
        vmm_phys_end_if_unused(phys);
    }
    pthread_mutex_unlock(&driver.mutex);
    return phys != NULL ? CU_OK : CU_INVALID_VALUE;
}

/* One more reference by the handle it has: also when all handles were released. */
cu_result cuMemRetainAllocationHandle(cu_vmm *ret_handle, void *ptr)
{
    struct unit *unit;
    cu_result result = CU_INVALID_VALUE;

    ENTER();
    if (ret_handle == NULL)
        return CU_INVALID_VALUE;
    pthread_mutex_lock(&driver.mutex);
    unit = unit_of((cu_devptr)(uintptr_t)ptr);
    if (unit != NULL && unit->mapping != NULL) {
        unit->mapping->phys->handles++;
        *ret_handle = unit->mapping->phys->id;
        result = CU_OK;
    }
    pthread_mutex_unlock(&driver.mutex);
    return result;
}

cu_result cuMemGetAllocationPropertiesFromHandle(struct cu_alloc_prop *ret_prop, cu_vmm handle)
{
    struct phys *phys;

    ENTER();
    if (ret_prop == NULL)
        return CU_INVALID_VALUE;
    pthread_mutex_lock(&driver.mutex);
    phys = vmm_phys_of(handle);
    if (phys != NULL)
        *ret_prop = phys->prop;
    pthread_mutex_unlock(&driver.mutex);
    return phys != NULL ? CU_OK : CU_INVALID_VALUE;
}

/* --- addresses --- */

static bool units_ready(void)
{
    if (vmm.units == NULL) {
        void *memory = mmap(NULL, UNITS * sizeof(*vmm.units), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        vmm.units = memory != MAP_FAILED ? memory : NULL;
    }
    return vmm.units != NULL;
}

/* A reservation of BYTES that is free again, or a new one, aligned to ALIGNMENT. */
static struct reservation *reservation_new(uint64_t bytes, uint64_t alignment)
{
    uint64_t align = alignment > DRV_GRANULARITY ? alignment >> UNIT_SHIFT : 1;
    uint64_t first = (vmm.next + align - 1) / align * align;
    struct reservation *r;

    for (struct reservation **at = &vmm.free; *at != NULL; at = &(*at)->next) {
        r = *at;
        if (r->bytes != bytes || (r->base - BASE) >> UNIT_SHIFT & (align - 1))
            continue;
        *at = r->next;
        return r;
    }
    if (first + (bytes >> UNIT_SHIFT) > UNITS)
        return NULL;
    r = drv_object_new(sizeof(*r));
    if (r == NULL)
        return NULL;
    r->base = BASE + (first << UNIT_SHIFT);
    r->bytes = bytes;
    vmm.next = first + (bytes >> UNIT_SHIFT);
    return r;
}

cu_result cuMemAddressReserve(cu_devptr *ret_ptr, size_t bytes, size_t alignment, cu_devptr wish,
                              uint64_t flags)
{
    struct reservation *r = NULL;

    ENTER();
    (void)wish; /* a wish, which the driver need not grant */
    if (ret_ptr == NULL || !aligned(bytes) || flags != 0 || (alignment & (alignment - 1)))
        return CU_INVALID_VALUE;
    pthread_mutex_lock(&driver.mutex);
    if (units_ready())
        r = reservation_new(bytes, alignment);
    for (uint64_t at = 0; r != NULL && at < bytes; at += DRV_GRANULARITY)
        unit_of(r->base + at)->reservation = r;
    pthread_mutex_unlock(&driver.mutex);
    if (r == NULL)
        return CU_OUT_OF_MEMORY;
    *ret_ptr = r->base;
    return CU_OK;
}

static bool any_mapped(cu_devptr ptr, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes; at += DRV_GRANULARITY)
        if (unit_of(ptr + at)->mapping != NULL)
            return true;
    return false;
}

cu_result cuMemAddressFree(cu_devptr ptr, size_t bytes)
{
    struct unit *unit;
    struct reservation *r;
    cu_result result = CU_INVALID_VALUE;

    ENTER();
    pthread_mutex_lock(&driver.mutex);
    unit = unit_of(ptr);
    r = unit != NULL ? unit->reservation : NULL;
    if (r != NULL && r->base == ptr && r->bytes == bytes && !any_mapped(ptr, bytes)) {
        for (uint64_t at = 0; at < bytes; at += DRV_GRANULARITY)
            unit_of(ptr + at)->reservation = NULL;
        r->next = vmm.free;
        vmm.free = r;
        result = CU_OK;
    }
    pthread_mutex_unlock(&driver.mutex);
    return result;
}

/* --- mappings --- */

static cu_result map(cu_devptr ptr, uint64_t bytes, struct phys *phys)
{
    struct unit *unit = unit_of(ptr);
    struct reservation *r = unit != NULL ? unit->reservation : NULL;
    struct mapping *mapping;

    if (r == NULL || ptr + bytes < ptr || ptr + bytes > r->base + r->bytes || bytes > phys->bytes ||
        any_mapped(ptr, bytes))
        return CU_INVALID_VALUE;
    mapping = drv_object_new(sizeof(*mapping));
    if (mapping == NULL)
        return CU_OUT_OF_MEMORY;
    mapping->base = ptr;
    mapping->bytes = bytes;
    mapping->phys = phys;
    phys->maps++;
    for (uint64_t at = 0; at < bytes; at += DRV_GRANULARITY)
        unit_of(ptr + at)->mapping = mapping;
    return CU_OK;
}

cu_result cuMemMap(cu_devptr ptr, size_t bytes, size_t offset, cu_vmm handle, uint64_t flags)
{
    struct phys *phys;
    cu_result result = CU_INVALID_VALUE;

    ENTER();
    if (ptr % DRV_GRANULARITY != 0 || !aligned(bytes) || offset != 0 || flags != 0)
        return CU_INVALID_VALUE;
    INJECT(DBL_FAIL_MAP);
    pthread_mutex_lock(&driver.mutex);
    phys = vmm_phys_of(handle);
    if (phys != NULL)
        result = map(ptr, bytes, phys);
    pthread_mutex_unlock(&driver.mutex);
    return result;
}

/* Whether [PTR, PTR + BYTES) is made of whole mappings. */
static bool whole_mappings(cu_devptr ptr, uint64_t bytes)
{
    cu_devptr at = ptr;

    while (at < ptr + bytes) {
        struct unit *unit = unit_of(at);

        if (unit == NULL || unit->mapping == NULL || unit->mapping->base != at)
            return false;
        at += unit->mapping->bytes;
    }
    return at == ptr + bytes;
}

static void unmap(struct mapping *mapping)
{
    for (uint64_t at = 0; at < mapping->bytes; at += DRV_GRANULARITY)
        unit_of(mapping->base + at)->mapping = NULL;
    mapping->phys->maps--;
    vmm_phys_end_if_unused(mapping->phys);
    drv_object_free(mapping);
}

cu_result cuMemUnmap(cu_devptr ptr, size_t bytes)
{
    bool fits;

    ENTER();
    pthread_mutex_lock(&driver.mutex);
    fits = aligned(bytes) && whole_mappings(ptr, bytes);
    for (cu_devptr at = ptr; fits && at < ptr + bytes;) {
        struct mapping *mapping = unit_of(at)->mapping;

        at += mapping->bytes;
        unmap(mapping);
    }
    pthread_mutex_unlock(&driver.mutex);
    return fits ? CU_OK : CU_INVALID_VALUE;
}

cu_result cuMemSetAccess(cu_devptr ptr, size_t bytes, const struct cu_access *list, size_t count)
{
    bool fits;

    ENTER();
    if (list == NULL || count == 0)
        return CU_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (list[i].location.type != CU_LOCATION_DEVICE || !drv_device_valid(list[i].location.id))
            return CU_INVALID_DEVICE;
    pthread_mutex_lock(&driver.mutex);
    fits = aligned(bytes) && whole_mappings(ptr, bytes);
    for (cu_devptr at = ptr; fits && at < ptr + bytes;) {
        struct mapping *mapping = unit_of(at)->mapping;

        for (size_t i = 0; i < count; i++)
            mapping->access[list[i].location.id] = list[i].flags;
        at += mapping->bytes;
    }
    pthread_mutex_unlock(&driver.mutex);
    return fits ? CU_OK : CU_INVALID_VALUE;
}

cu_result cuMemGetAccess(uint64_t *ret_flags, const struct cu_location *location, cu_devptr ptr)
{
    struct unit *unit;
    cu_result result = CU_INVALID_VALUE;

    ENTER();
    if (ret_flags == NULL || location == NULL)
        return CU_INVALID_VALUE;
    if (location->type != CU_LOCATION_DEVICE || !drv_device_valid(location->id))
        return CU_INVALID_DEVICE;
    pthread_mutex_lock(&driver.mutex);
    unit = unit_of(ptr);
    if (unit != NULL && unit->mapping != NULL) {
        *ret_flags = (uint64_t)unit->mapping->access[location->id];
        result = CU_OK;
    }
    pthread_mutex_unlock(&driver.mutex);
    return result;
}

struct phys *vmm_phys_by_export(int export)
{
    for (uint32_t i = 0; i < vmm.count; i++)
        if (vmm.table[i] != NULL && vmm.table[i]->export == export)
            return vmm.table[i];
    return NULL;
}

bool drv_vmm_find(cu_devptr ptr, cu_devptr *ret_base, uint64_t *ret_bytes, uint32_t *ret_real)
{
    struct unit *unit;
    bool found;

    pthread_mutex_lock(&driver.mutex);
    unit = unit_of(ptr);
    found = unit != NULL && unit->mapping != NULL;
    if (found) {
        *ret_base = unit->mapping->base;
        *ret_bytes = unit->mapping->bytes;
        *ret_real = unit->mapping->phys->real;
    }
    pthread_mutex_unlock(&driver.mutex);
    return found;
}
