/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fit: may this request run on that node, on which of its devices, and what does it cost?
 *
 * Fit is exact: bytes for memory, milli for compute. A whole device or a MIG slice takes a
 * device without tenants. A fraction takes its share of compute and of memory of a device that
 * is not taken as a whole; a memory request takes its bytes and no compute. The charge (milli-
 * GPU that quota counts) of a memory request is the ceiling of its share of the device.
 *
 * A request that names its devices fits on these alone.
 *
 * A question names the views in which the answer must hold (see world.h). Functions here change
 * only what they say; nodes that are down or drained are the caller's business.
 */
#ifndef ALLOT_SCHED_FIT_H
#define ALLOT_SCHED_FIT_H

#include "sched/world.h"

/* How well it fits; smaller is better. */
struct fit {
    uint32_t count;  /* devices */
    uint32_t opened; /* devices without tenants that a shared request would begin to use */
    uint32_t idle;   /* whole devices without tenants that remain on the node */
    int64_t slack;   /* what remains on the devices that it shares, in milli */
};

/* The node is of an acceptable type, carries the labels, and is the one that is asked for. */
bool fit_accepts(const struct node *n, const struct shape *shape);
/* Place of an interned type in the order of preference; type_count: it is not acceptable, where
 * the shape names any. */
uint32_t fit_type_rank(const char *type, const struct shape *shape);

/* Does SHAPE fit on N in all views of MASK? The devices, the best ones, go to DEVICES
 * (DEVICES_MAX elements). */
bool fit_node(const struct node *n, const struct shape *shape, unsigned mask, uint16_t *devices,
              struct fit *ret_fit);
/* So many tasks of SHAPE at most have room on N in all views of MASK; for whole devices it is
 * exact. At least 1 where fit_node() says that it fits. */
uint32_t fit_most(const struct node *n, const struct shape *shape, unsigned mask);
/* Is there room on exactly these devices? */
bool fit_devices(const struct node *n, const struct shape *shape, unsigned mask,
                 const uint16_t *devices, uint32_t count);
/* Takes (SIGN 1) or gives back (SIGN -1) in one view. */
void fit_take(struct node *n, const struct shape *shape, const uint16_t *devices, uint32_t count,
              enum view view, int sign);

/* Milli-GPU that quota counts for SHAPE on these devices. */
int32_t fit_charge(const struct node *n, const struct shape *shape, const uint16_t *devices,
                   uint32_t count);
/* While it waits: on the smallest device of the inventory that fits it. */
int32_t fit_pending_charge(const struct sched *s, const struct shape *shape);

#endif
