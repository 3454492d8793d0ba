/* SPDX-License-Identifier: Apache-2.0 */
/* What programs read of memory: the slice, not the device. Never less than nothing. */
#include <stddef.h>

#include "share/hooks.h"
#include "share/shim.h"

static uint64_t limit_of(const struct share_ledger *ledger, int device)
{
    return ledger && device >= 0 && (ledger->limits->flags & SHARE_MEMORY)
               ? ledger->limits->devices[device].memory_limit
               : SHARE_NO_LIMIT;
}

cu_result hook_cuDeviceTotalMem_v2(size_t *ret_bytes, cu_device device)
{
    uint64_t limit = limit_of(share_link(), share_device(device));
    cu_result r = REAL(cuDeviceTotalMem_v2)(ret_bytes, device);

    if (r == CU_OK && ret_bytes && *ret_bytes > limit)
        *ret_bytes = limit;
    return r;
}

/* Either pointer may be NULL. Free is what both the task and the device have left. */
cu_result hook_cuMemGetInfo_v2(size_t *ret_free, size_t *ret_total)
{
    const struct share_ledger *ledger = share_link();
    int device = share_here();
    uint64_t limit = limit_of(ledger, device);
    size_t left, total;
    cu_result r = REAL(cuMemGetInfo_v2)(&left, &total);

    if (r != CU_OK)
        return r;
    if (limit != SHARE_NO_LIMIT) {
        uint64_t held = share_ledger_held(ledger->limits, ledger->counters, (uint32_t)device);
        uint64_t own = held < limit ? limit - held : 0;
        left = left < own ? left : own;
        total = total < limit ? total : limit;
    }
    if (ret_free)
        *ret_free = left;
    if (ret_total)
        *ret_total = total;
    return r;
}
