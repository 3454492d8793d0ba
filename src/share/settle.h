/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Charges that are known only afterwards.
 *
 * Pools, and the memory of graphs, grow and shrink as the driver sees fit. What they take of the
 * device is read from the driver (RESERVED_CURRENT), and the charge follows it:
 *
 *     share_grow_begin(&growth, holder, device, bytes)   reserves the most that it may grow by
 *     ... the driver's call ...
 *     share_grow_end(&growth)                            charges what it has grown by
 *
 * Between the two the process does nothing else of the kind, so that the growth is that of this
 * call. They shrink when a stream is synchronised, and nobody says so: whoever may have made one
 * shrink says share_dirty(), and the next synchronisation settles.
 *
 * A linear block that is freed in the order of a stream goes when the stream gets there; its charge
 * goes after that.
 *
 * Thread-safe. Bytes; devices are indices of the task.
 */
#ifndef ALLOT_SHARE_SETTLE_H
#define ALLOT_SHARE_SETTLE_H

#include <stdbool.h>
#include <stdint.h>

#include "share/cuda_fns.h"

struct growth {
    struct holder *holder; /* NULL: nothing is counted */
    uint64_t reserved;
};

/*
 * POOL on DEVICE (of the task; ORDINAL is the driver's) is about to give BYTES. POOL NULL: the
 * memory of graphs of that device. False: the task has no room, and nothing is under way. Else
 * share_grow_end() must follow, in the same thread.
 */
bool share_grow_begin(struct growth *growth, struct cu_pool *pool, cu_device ordinal, int device,
                      uint64_t bytes);
/* The call is over. False: it took more than the limit allows; the caller undoes it. */
bool share_grow_end(struct growth *growth);

/* POOL is about to be destroyed: its charge goes, if nothing of it is in use any more. */
void share_pool_gone(struct cu_pool *pool);

/* Something may shrink from now on. One store. */
void share_dirty(void);
/* Something was synchronised: settles if anything may have shrunk. One load else. */
void share_synchronised(void);
/* Settles all. */
void share_settle(void);

/* BYTES of DEVICE go when STREAM has done what it has been given so far. PTSZ: the default stream
 * is that of the thread. */
void share_refund_in_order(int device, uint64_t bytes, struct cu_stream *stream, bool ptsz);

#endif
