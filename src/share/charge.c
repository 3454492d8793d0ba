/* SPDX-License-Identifier: Apache-2.0 */
#include "share/charge.h"

#include <stddef.h>

#include "share/shim.h"

bool share_charge(int device, uint64_t bytes)
{
    struct share_ledger *ledger = share_link();

    if (ledger == NULL || device < 0)
        return true;
    if (ledger->limits->flags & SHARE_MEMORY)
        return share_ledger_reserve(ledger, (uint32_t)device, bytes) == 0;
    share_ledger_charge(ledger, (uint32_t)device, bytes);
    return true;
}

void share_charge_anyway(int device, uint64_t bytes)
{
    struct share_ledger *ledger = share_link();

    if (ledger && device >= 0)
        share_ledger_charge(ledger, (uint32_t)device, bytes);
}

void share_refund(int device, uint64_t bytes)
{
    struct share_ledger *ledger = share_link();

    if (ledger && device >= 0)
        share_ledger_release(ledger, (uint32_t)device, bytes);
}

bool share_keep(enum block_kind kind, uint64_t key, int device, uint64_t bytes)
{
    const struct block block = {
        .key = key, .bytes = bytes, .count = 1, .device = (uint16_t)device, .kind = (uint16_t)kind};

    return device < 0 || share_block_put(&block) == 0;
}

cu_result share_freed(cu_result r, bool mine, const struct block *block)
{
    if (mine && r == CU_OK)
        share_refund(block->device, block->bytes);
    else if (mine)
        share_block_put(block); /* there is room where it was */
    return r;
}
