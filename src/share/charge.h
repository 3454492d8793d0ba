/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Charging memory around a call of the driver: reserve, call, and give back what did not come.
 *
 *     int device = share_here();
 *     if (!share_charge(device, bytes))
 *         return CU_OUT_OF_MEMORY;
 *     r = REAL(cuMemAlloc_v2)(ret_ptr, bytes);
 *     if (r == CU_OK && !share_keep(BLOCK_MEMORY, *ret_ptr, device, bytes)) {
 *         REAL(cuMemFree_v2)(*ret_ptr);
 *         r = CU_OUT_OF_MEMORY;
 *     }
 *     if (r != CU_OK)
 *         share_refund(device, bytes);
 *
 * What was kept is taken out of the table before the driver frees it, for as soon as it has,
 * another thread may be given the same key:
 *
 *     bool mine = share_block_take(BLOCK_MEMORY, ptr, &block);
 *     return share_freed(REAL(cuMemFree_v2)(ptr), mine, &block);
 */
#ifndef ALLOT_SHARE_CHARGE_H
#define ALLOT_SHARE_CHARGE_H

#include <stdbool.h>
#include <stdint.h>

#include "share/blocks.h"
#include "share/cuda_abi.h"

/* Reserves BYTES of DEVICE (of the task; -1: not shared, nothing happens). False: no room. Where
 * memory is not enforced there is always room, and it is counted all the same. */
bool share_charge(int device, uint64_t bytes);
/* Charges BYTES that the driver has taken already, whatever the limit says. */
void share_charge_anyway(int device, uint64_t bytes);
/* Gives BYTES back. */
void share_refund(int device, uint64_t bytes);

/* Remembers that KEY holds BYTES of DEVICE (-1: nothing to remember), so that share_freed() gives
 * them back. False: no room for that; the caller frees KEY, and then refunds. */
bool share_keep(enum block_kind kind, uint64_t key, int device, uint64_t bytes);
/* The driver answered R to a free of BLOCK, which was taken out of the table (MINE) or not known:
 * refunds what is gone, puts back what is not. Returns R. */
cu_result share_freed(cu_result r, bool mine, const struct block *block);

#endif
