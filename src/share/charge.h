/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Charging memory around a call of the driver: reserve, call, and give back what did not come.
 *
 *     int device = share_here();
 *     if (!share_charge(device, bytes))
 *         return CU_OUT_OF_MEMORY;
 *     r = REAL(cuMemAlloc_v2)(ret_ptr, bytes);
 *     if (r != CU_OK)
 *         share_refund(device, bytes);
 */
#ifndef ALLOT_SHARE_CHARGE_H
#define ALLOT_SHARE_CHARGE_H

#include <stdbool.h>
#include <stdint.h>

/* Reserves BYTES of DEVICE (of the task; -1: not shared, nothing happens). False: no room. Where
 * memory is not enforced there is always room, and it is counted all the same. */
bool share_charge(int device, uint64_t bytes);
/* Charges BYTES that the driver has taken already, whatever the limit says. */
void share_charge_anyway(int device, uint64_t bytes);
/* Gives BYTES back. */
void share_refund(int device, uint64_t bytes);

#endif
