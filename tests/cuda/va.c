/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device addresses: a region of numbers that nothing is mapped at, in units of 2 MiB.
 *
 * Sizes are rounded up to powers of two. A unit holds addresses of one size below 2 MiB, or is part
 * of a run of units that is one larger address range. So an address leads to its allocation in
 * two steps, from any place inside of it, and taking and giving back are O(1) however many live.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "driver.h"

#define BASE UINT64_C(0x200000000000)
#define UNIT_SHIFT 21
#define UNIT_BYTES (UINT64_C(1) << UNIT_SHIFT)
#define UNITS (UINT64_C(1) << 23) /* 16 TiB of addresses */
#define CLASS_MIN 9
#define CLASS_MAX 42

struct unit {
    struct drv_alloc *allocs; /* of this unit, or the one that it is part of */
    uint8_t class;            /* log2 of the size; 0: not in use */
};

static struct {
    struct unit *units;
    uint64_t next; /* first unit that was never used */
    struct drv_alloc *free[CLASS_MAX + 1];
} va;

static struct unit *units(void)
{
    if (va.units == NULL) {
        void *memory = mmap(NULL, UNITS * sizeof(*va.units), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        va.units = memory != MAP_FAILED ? memory : NULL;
    }
    return va.units;
}

/* New units for CLASS; its allocs go on the free list. */
static bool extend(unsigned class)
{
    bool small = class < UNIT_SHIFT;
    uint64_t count = small ? 1 : UINT64_C(1) << (class - UNIT_SHIFT);
    uint64_t pieces = small ? UINT64_C(1) << (UNIT_SHIFT - class) : 1;
    uint64_t first = (va.next + count - 1) / count * count;
    struct drv_alloc *allocs;

    if (units() == NULL || first + count > UNITS)
        return false;
    allocs = calloc(pieces, sizeof(*allocs));
    if (allocs == NULL)
        return false;
    va.next = first + count;
    for (uint64_t u = first; u < first + count; u++)
        va.units[u] = (struct unit){allocs, (uint8_t) class};
    for (uint64_t i = pieces; i-- > 0;) {
        allocs[i].base = BASE + (first << UNIT_SHIFT) + (i << class);
        allocs[i].next = va.free[class];
        va.free[class] = &allocs[i];
    }
    return true;
}

static unsigned class_of(uint64_t bytes)
{
    unsigned class = bytes <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(bytes - 1);

    return class < CLASS_MIN ? CLASS_MIN : class;
}

struct drv_alloc *drv_va_new(uint64_t bytes)
{
    unsigned class = class_of(bytes);
    struct drv_alloc *alloc;

    if (class > CLASS_MAX || (va.free[class] == NULL && !extend(class)))
        return NULL;
    alloc = va.free[class];
    va.free[class] = alloc->next;
    alloc->bytes = bytes;
    alloc->pool = NULL;
    alloc->ctx = NULL;
    alloc->live = true;
    return alloc;
}

void drv_va_free(struct drv_alloc *alloc)
{
    unsigned class = class_of(alloc->bytes);

    alloc->live = false;
    alloc->next = va.free[class];
    va.free[class] = alloc;
}

struct drv_alloc *drv_va_find(cu_devptr ptr)
{
    uint64_t offset = ptr - BASE;
    struct drv_alloc *alloc;
    struct unit *unit;

    if (ptr < BASE || offset >> UNIT_SHIFT >= va.next)
        return NULL;
    unit = &va.units[offset >> UNIT_SHIFT];
    if (unit->allocs == NULL)
        return NULL;
    alloc = unit->allocs;
    if (unit->class < UNIT_SHIFT)
        alloc += (offset & (UNIT_BYTES - 1)) >> unit->class;
    return alloc->live && ptr - alloc->base < alloc->bytes ? alloc : NULL;
}

void drv_va_link(struct drv_alloc **list, struct drv_alloc *alloc)
{
    alloc->list = list;
    alloc->prev = NULL;
    alloc->next = *list;
    if (*list != NULL)
        (*list)->prev = alloc;
    *list = alloc;
}

void drv_va_unlink(struct drv_alloc *alloc)
{
    if (alloc->prev != NULL)
        alloc->prev->next = alloc->next;
    else
        *alloc->list = alloc->next;
    if (alloc->next != NULL)
        alloc->next->prev = alloc->prev;
}
