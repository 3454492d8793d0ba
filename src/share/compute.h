/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compute half of the shim: how long a process keeps a device busy, and when it may submit.
 *
 *     struct piece piece;
 *     if (share_submit_known(kind, share_lane(stream, false)))
 *         return REAL(cuLaunchKernel)(...);
 *     share_submit(&piece, kind, stream, false);
 *     r = REAL(cuLaunchKernel)(...);
 *     return share_submitted(&piece, r);
 *
 * Measuring. A kind of work is a function and the magnitude of its grid, or a graph. What one
 * piece of each kind costs is measured: a pair of events around it, read when both have passed. Of
 * work whose cost is known a piece is measured once for each millisecond or so that its stream is
 * given; what lies between counts by its kind. So a stream that is never idle is measured all the
 * time, and a launch costs two look-ups and one atomic subtraction. A process is never charged
 * more than the time that passed while it had work submitted.
 *
 * Waiting, before a piece that is not let through by share_submit_known(), which lets through only
 * what had been allowed before:
 *   - until the work ahead of it is short. A slice must not find seconds of work in the queue;
 *   - with SHARE_COMPUTE until the task has a slice, and what is ahead ends within it. A piece
 *     that is longer than any slice runs when nothing is ahead of it;
 *   - with SHARE_CAP until the share of the last 100 ms is not used up. Every process of the task
 *     keeps this account by itself, from the busy time of all of them.
 * With neither flag nothing waits, and busy time is measured all the same.
 *
 * Capture. Nothing is measured and nothing waits in a stream that is being captured, and what is
 * asked of the driver meanwhile is asked in a mode that spoils no capture of another thread. A
 * graph is charged when it is launched, as one piece.
 *
 * Streams are never touched but in a call that names them. Thread-safe; no lock is held while
 * waiting. Units: nanoseconds.
 */
#ifndef ALLOT_SHARE_COMPUTE_H
#define ALLOT_SHARE_COMPUTE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "allot/share.h"
#include "share/cuda_abi.h"

#define SHARE_KINDS 1024 /* whose costs are known at a time */
#define SHARE_LANES 64   /* streams that are told apart */

/* What a piece of a kind costs. */
struct share_cost {
    _Atomic uint64_t kind; /* 0: not known */
    _Atomic int64_t ns;
};

/* A stream, and how much work of known cost may still be given to it without a look around. */
struct share_lane {
    _Atomic uint64_t stream;
    _Atomic int64_t left_ns;
};

/* What a launch looks at, of one device. */
struct share_fast {
    struct share_slot *slot;
    uint32_t device;
    struct share_cost costs[SHARE_KINDS];
    struct share_lane lanes[SHARE_LANES];
};

/* Of the only device that this process sees, if it is shared; else NULL. */
extern struct share_fast *_Atomic share_only;

struct meter;

/* A piece of work from share_submit() to share_submitted(). Fields are compute.c's. */
struct piece {
    struct meter *meter; /* NULL: not measured */
    uint64_t kind, lane;
    struct cu_stream *stream;
    bool ptsz;
    struct cu_ctx *ctx;
    struct cu_event *start, *end; /* NULL: not this time */
    int64_t allowed_ns;           /* that may follow in the stream without a look around */
};

/* The kind of a launch of FUNCTION with so many BLOCKS of so many THREADS; never 0. */
static inline uint64_t share_kind(const void *function, uint64_t blocks, uint64_t threads)
{
    return ((uintptr_t)function ^ (uint64_t)__builtin_clzll(blocks | 1) << 57 ^
            (uint64_t)__builtin_clzll(threads | 1) << 51) |
           1;
}

/* What tells STREAM from others; never 0. Default streams of threads are told by their thread. */
static inline uint64_t share_lane(const struct cu_stream *stream, bool ptsz)
{
    if ((stream == NULL && ptsz) || stream == CU_STREAM_PER_THREAD)
        return (uintptr_t)__builtin_thread_pointer() | 2;
    return stream == NULL ? 1 : (uintptr_t)stream;
}

static inline uint32_t share_place_of(uint64_t key, uint32_t places)
{
    return (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 40) % places;
}

/* Work was or will be given to F's device: the agent sees that. */
static inline void share_touch(struct share_fast *f)
{
    struct share_slot *s = f->slot;
    uint64_t submits = atomic_load_explicit(&s->submits, memory_order_relaxed);

    /* Not exact between threads: that it changes is enough. */
    atomic_store_explicit(&s->submits, submits + 1, memory_order_relaxed);
    if (!(atomic_load_explicit(&s->outstanding, memory_order_relaxed) & 1u << f->device))
        atomic_fetch_or(&s->outstanding, 1u << f->device);
}

/* Whether a piece of KIND may go to LANE at once, counted already. */
static inline bool share_submit_known(uint64_t kind, uint64_t lane)
{
    struct share_fast *f = atomic_load_explicit(&share_only, memory_order_acquire);

    if (f == NULL)
        return false;
    struct share_cost *c = &f->costs[share_place_of(kind, SHARE_KINDS)];
    struct share_lane *l = &f->lanes[share_place_of(lane, SHARE_LANES)];
    if (atomic_load_explicit(&c->kind, memory_order_acquire) != kind ||
        atomic_load_explicit(&l->stream, memory_order_acquire) != lane)
        return false;
    int64_t ns = atomic_load_explicit(&c->ns, memory_order_relaxed);
    if (atomic_load_explicit(&l->left_ns, memory_order_relaxed) < ns)
        return false;
    atomic_fetch_sub_explicit(&l->left_ns, ns, memory_order_relaxed);
    share_touch(f);
    return true;
}

/* A piece of KIND is about to be given to STREAM, which is that of the thread if it is NULL and
 * PTSZ: waits until it may. share_submitted() follows with the driver's answer, which it returns.
 */
void share_submit(struct piece *piece, uint64_t kind, struct cu_stream *stream, bool ptsz);
cu_result share_submitted(struct piece *piece, cu_result r);

/* Something was synchronised; ALL: all that the context had been given. SUBMITS is what
 * share_submits() said before. */
uint64_t share_submits(void);
void share_caught_up(bool all, uint64_t submits);

/* A context is about to end: what belongs to it is let go. */
void share_compute_forget(void);
/* In the child of a fork: nothing is left. */
void share_compute_forked(void);

/*
 * Asks the driver about events, or whatever a capture in another thread forbids, without spoiling
 * that capture: mode = share_relax(); ...; share_unrelax(mode).
 */
int share_relax(void);
void share_unrelax(int mode);

#endif
