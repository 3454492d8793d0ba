/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shim's side of the ledger: bytes of device memory, reserved before the driver is asked.
 *
 * The rules are those of allot/share.h. This is their only implementation; the agent uses it as
 * well, to sum and to empty the slots of the dead.
 *
 *     if (share_ledger_reserve(&ledger, device, bytes) < 0)
 *         return CUDA_ERROR_OUT_OF_MEMORY;
 *     result = real_alloc(&pointer, bytes);
 *     if (result != CUDA_SUCCESS)
 *         share_ledger_release(&ledger, device, bytes);
 *
 * Exact: the sum of what is held never passes the limit, whatever number of processes and threads
 * race, and a reservation that fits by itself is refused only if the room is really taken, or if
 * a process died in the middle of asking and its slot has not been emptied yet.
 *
 * Functions are thread-safe. Nothing here allocates, locks across processes, or sleeps longer
 * than SHARE_PATIENCE yields of the processor. Units: bytes; device: index in the task.
 */
#ifndef ALLOT_SHARE_LEDGER_H
#define ALLOT_SHARE_LEDGER_H

#include <pthread.h>
#include <stdint.h>

#include "allot/share.h"

/* How often a reservation looks again while only the wishes of others stand in its way. */
#define SHARE_PATIENCE 10000

/* One process's view. Mappings belong to the caller and outlive it. */
struct share_ledger {
    const struct share_limits *limits;
    struct share_counters *counters;
    uint32_t slot;
    pthread_mutex_t contended; /* lets one thread of the process at a time wait for room */
};

/* SLOT < SHARE_SLOTS is this process's own. Also right in the child of a fork, with its slot. */
void share_ledger_init(struct share_ledger *ledger, const struct share_limits *limits,
                       struct share_counters *counters, uint32_t slot);

/* -ENOMEM: it would pass the limit of DEVICE; nothing is reserved then. */
int share_ledger_reserve(struct share_ledger *ledger, uint32_t device, uint64_t bytes);

/* Gives back BYTES that were reserved and that the driver does not hold any more. */
void share_ledger_release(struct share_ledger *ledger, uint32_t device, uint64_t bytes);

/* Charges BYTES that the driver has taken already, limit or not. */
void share_ledger_charge(struct share_ledger *ledger, uint32_t device, uint64_t bytes);

/* What the task holds of DEVICE as far as known, wishes not included; may pass the limit after
   a charge. */
uint64_t share_ledger_held(const struct share_limits *limits, const struct share_counters *counters,
                           uint32_t device);

/* Empties SLOT, whose process is gone. For the agent. */
void share_ledger_empty(struct share_counters *counters, uint32_t slot);

#endif
