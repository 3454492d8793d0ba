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
