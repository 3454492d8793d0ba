/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may use a device next: slices of time for the tenants that share one.
 *
 * Pure: no clock, no lock, no memory of its own. Whoever keeps the sharing regions tells what it
 * sees, asks for a turn, and writes gpu_slices_end() of each tenant into its region.
 *
 *     gpu_slices_init(&s, true);
 *     gpu_slices_join(&s, 250, now, &tenant);
 *     ... every few milliseconds, or at `next` if that is earlier ...
 *     gpu_slices_report(&s, tenant, now, wants, busy_ns);                  for each
 *     next = gpu_slices_turn(&s, now);
 *     limits->slice_end_ns = gpu_slices_end(&s, tenant);                   for each
 *
 * Order. Each tenant has a virtual time that runs by the time it had over its share: that of its
 * slices, which nobody else could use, and busy time beyond them. The next slice goes to the one
 * that wants the device and is furthest behind (start-time fair queueing: Goyal, Vin, Cheng,
 * SIGCOMM 1996). So shares hold whatever a piece of work lasts: who overruns its slice by a long
 * kernel waits for longer. Who wants nothing saves up one slice at most.
 *
 * Unused share. Where it is usable the device never waits while somebody wants it, and as long as
 * only one does there are no slices. Where it is not, a tenant has besides a budget that its
 * share of each period fills and its busy time empties, and gets no slice without.
 *
 * Truth. A tenant is charged for the slices that it had and by its own counters, so one that counts
 * too little is held by the slices alone. The driver's busy time of processes is no help: it is an
 * estimate from windows (gpu/telemetry.h), whose errors would be charged to whoever works in
 * bursts, and it names no clients of an MPS server. Nobody is charged for more than the time that
 * passed; a counter that goes back is as one that stands still.
 *
 * Invariants: at most one tenant has a slice at a time; sums never overflow, whatever is reported.
 * One thread. Units: nanoseconds of one monotonic clock, milli-GPU.
 */
#ifndef ALLOT_GPU_SLICES_H
#define ALLOT_GPU_SLICES_H

#include <stdbool.h>
#include <stdint.h>

#define GPU_SLICES_TENANTS 64
#define GPU_SLICE_NS UINT64_C(20000000)         /* the longest slice */
#define GPU_SLICE_PERIOD_NS UINT64_C(100000000) /* a budget holds what a period brings */
#define GPU_SLICE_NEVER UINT64_MAX

struct gpu_slices_tenant {
    uint32_t milli; /* 1..1000; 0: not a tenant */
    bool wants;
    uint64_t joined_ns, charged_ns;
    uint64_t ahead_ns; /* of its slices: charged already, and not seen as busy time yet */
    int64_t lag_ns;    /* virtual time, from that of the tenant furthest behind */
    int64_t budget;    /* thousandths of a nanosecond of busy time */
};

/* Fields are this module's. */
struct gpu_slices {
    struct gpu_slices_tenant tenants[GPU_SLICES_TENANTS];
    bool unused_usable;
    bool open;        /* nobody contends: no slices */
    uint32_t holder;  /* GPU_SLICES_TENANTS: nobody */
    uint64_t end_ns;  /* of the holder's slice */
    uint64_t turn_ns; /* of the last turn */
};

/* UNUSED_USABLE: whether a tenant may use more than its share while others do not want theirs. */
void gpu_slices_init(struct gpu_slices *s, bool unused_usable);

/* A new tenant with MILLI of the device. -EINVAL: not 1..1000; -ENOSPC: too many. */
int gpu_slices_join(struct gpu_slices *s, uint32_t milli, uint64_t now, uint32_t *ret_tenant);
/* TENANT goes, and with it its slice. */
void gpu_slices_leave(struct gpu_slices *s, uint32_t tenant);

/*
 * What is seen of TENANT at NOW: whether it WANTS the device (waits for a slice, or has submitted
 * since the last report), and its busy time since it joined, processes that have ended included.
 */
void gpu_slices_report(struct gpu_slices *s, uint32_t tenant, uint64_t now, bool wants,
                       uint64_t busy_ns);

/* Decides at NOW. Returns when to do so again at the latest; GPU_SLICE_NEVER: when somebody wants
 * the device. A clock that goes back is as one that stands still. */
uint64_t gpu_slices_turn(struct gpu_slices *s, uint64_t now);

/* Until when TENANT may submit, for share_device.slice_end_ns: SHARE_NO_SLICE while nobody
 * contends, 0 while it has no slice. */
uint64_t gpu_slices_end(const struct gpu_slices *s, uint32_t tenant);

#endif
