/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file that the simulated devices live in, as all processes that use them see it.
 *
 * One file is one machine: its devices, the processes that use them, their memory, their work and
 * the clock. Each process that calls cuInit takes a slot (struct dbl_proc) and holds a POSIX record
 * lock on one byte of the file for as long as it lives; the kernel drops that lock when the
 * process dies, however it dies, and when it calls exec. Whoever looks next sees a slot without
 * its lock and takes it back. F_GETLK also translates the pid, so that each observer sees pids of
 * its own namespace.
 *
 * Invariants:
 *  1. What a device holds is never stored: it is the sum of what the slots hold. A dead slot is
 *     left out of the sum, so nothing can leak and nothing needs to be given back in order.
 *  2. All else that is shared changes under one robust mutex. When its owner was killed the next
 *     one repairs the lists (dbl_repair), which is possible because each is either whole or can
 *     be walked from its head.
 *  3. Nobody waits for a peer without a time-out: who sleeps looks again after 20 ms at most.
 *  4. Descriptors of the file are never closed before the process ends: closing one would drop
 *     the record locks of the whole process.
 *
 * Memory is charged without the mutex: `claimed` first, then the sum is checked, then `held`
 * follows (dbl_charge). A charge that does not fit beside the claims of others is refused only
 * if it does not fit beside what they hold either; otherwise it waits for the claim to settle.
 *
 * Units: bytes, nanoseconds of the simulated clock, SMs. Everything is plain integers, indices
 * instead of pointers. All functions may be called from any thread.
 */
#ifndef ALLOT_TESTS_CUDA_SHARED_H
#define ALLOT_TESTS_CUDA_SHARED_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "double.h"

#define DBL_MAGIC UINT64_C(0x616c6c6f74647663)
#define DBL_LAYOUT 1
#define DBL_PROCS 128
#define DBL_STREAMS 256 /* of a process */
#define DBL_EVENTS 8192
#define DBL_OPS 8192
#define DBL_QUEUE 1024 /* launches that a stream takes before the next one blocks */
#define DBL_WINDOWS 64 /* of utilisation that are remembered */
#define DBL_EXPORTS 256
#define DBL_WAITERS 512
#define DBL_NEVER UINT64_MAX
#define DBL_FRACTION 4096 /* `remaining` counts 1/4096 ns, so that shares leave no residue */

/* What one process holds of one device. */
struct dbl_usage {
    _Alignas(64) _Atomic uint64_t claimed[DBL_KINDS]; /* held, and what is about to be */
    _Alignas(64) _Atomic uint64_t held[DBL_KINDS];
    _Atomic uint64_t adopted; /* exported by a process that is gone; changes under the mutex */
};

struct dbl_window {
    uint64_t index; /* time / window length */
    uint64_t busy_ns;
    uint64_t sm_ns; /* SMs in use, summed over the time */
};

struct dbl_meter {
    uint64_t busy_ns; /* at least one kernel was on the device */
    uint64_t sm_ns;
    struct dbl_window windows[DBL_WINDOWS];
};

enum dbl_op_kind { DBL_OP_KERNEL, DBL_OP_COPY, DBL_OP_RECORD, DBL_OP_WAIT, DBL_OP_HOST };

/* One piece of work in a stream. */
struct dbl_op {
    uint32_t next; /* index + 1 in the same process; 0 is none */
    uint8_t kind;
    uint8_t depth;  /* counts against DBL_QUEUE */
    uint8_t called; /* HOST: the process has been told; 2: it is done */
    uint32_t sms;
    uint32_t event; /* RECORD, WAIT: index of the event */
    uint64_t order; /* of all ops of the process */
    uint64_t remaining;
    uint64_t arg; /* WAIT: number of the record to wait for. HOST: token of the function */
};

struct dbl_stream {
    uint32_t head, tail; /* index + 1 */
    uint32_t ops, depth;
    uint32_t context; /* id; 0: the stream is free */
    uint16_t device;
    bool legacy, nonblocking, closing;
};

struct dbl_event {
    bool used;
    uint64_t first;  /* records before its present owner */
    uint64_t posted; /* records that were asked for */
    uint64_t done;   /* the last one that was reached */
    uint64_t time_ns;
};

struct dbl_proc {
    _Atomic uint32_t live;    /* the slot is taken */
    _Atomic uint32_t swapped; /* its memory is in host memory: not counted */
    _Atomic uint32_t check;   /* CU_PROCESS_... */
    _Atomic uint32_t inside;  /* threads inside of calls */
    _Atomic uint32_t command; /* for its service thread; a futex */
    _Atomic uint32_t served;  /* the last command that it has seen through */
    _Atomic uint32_t managed; /* live managed allocations */
    _Atomic uint32_t ipc;     /* memory shared with other processes */
    _Atomic uint32_t contexts;
    int32_t pid;                     /* as it sees itself */
    uint64_t namespace;              /* inode of its pid namespace */
    uint64_t image;                  /* random number of this exec */
    uint32_t host_calls;             /* functions of the host that run or are to run */
    uint32_t percent;                /* of the SMs it may use under MPS */
    _Atomic uint32_t service_tid;    /* thread of the driver in it; 0: none yet */
    uint64_t order;                  /* of the last op */
    uint64_t busy[DBL_STREAMS / 64]; /* streams that are not empty */
    uint32_t streams_high, ops_high, ops_free, ops_count;
    _Atomic uint64_t saved_bytes; /* in its host memory since the checkpoint */
    uint8_t moved[DBL_DEVICES];   /* where its device i is since the last restore */
    struct dbl_usage usage[DBL_DEVICES];
    struct dbl_meter meter[DBL_DEVICES];
    struct dbl_stream streams[DBL_STREAMS];
    struct dbl_event events[DBL_EVENTS];
    struct dbl_op ops[DBL_OPS];
};

/* Who may run in time slices. */
struct dbl_turn {
    uint32_t current;                /* slot + 1 */
    uint64_t slice_end, stall_until; /* until then nobody runs: a switch takes its time */
};

struct dbl_device {
    struct dbl_device_info info;
    struct dbl_turn turn;
    struct dbl_meter meter;
};

/* Physical memory that other processes may hold too. */
struct dbl_export {
    bool used;
    uint8_t ipc;
    uint32_t owner; /* slot that is charged */
    uint32_t device;
    uint64_t bytes, id;
    uint64_t holders[DBL_PROCS / 64];
};

struct dbl_waiter {
    uint32_t proc; /* slot + 1; 0 is free */
    uint64_t wake_ns, ticket;
};

struct dbl_shared {
    _Atomic uint64_t magic;
    uint32_t layout;
    struct dbl_config config;
    pthread_mutex_t mutex;
    _Atomic uint64_t virtual_ns;
    _Atomic uint32_t actors;     /* threads that the virtual clock waits for; 0: advanced by hand */
    _Atomic uint32_t generation; /* futex: something happened */
    _Atomic uint32_t procs_high;
    _Atomic uint32_t armed;                /* a failure is */
    _Atomic int64_t fail_after[DBL_FAILS]; /* calls; 0 is none */
    _Atomic int32_t fail_code[DBL_FAILS];
    _Atomic uint64_t calls[DBL_FAILS];
    _Atomic uint64_t unsimulated[1024]; /* by index in symbols.list */
    uint64_t sim_ns;                    /* the work has been played up to here */
    uint64_t next_export, next_ticket;
    uint32_t waiters_high;
    _Atomic uint32_t sleepers; /* that `generation` may have; dead ones too */
    uint64_t reaped_ns;        /* real time of the last look for dead processes */
    struct dbl_waiter waiters[DBL_WAITERS];
    struct dbl_export exports[DBL_EXPORTS];
    struct dbl_device devices[DBL_DEVICES];
    struct dbl_proc procs[DBL_PROCS];
};

/* A slot as ret_slot; it is this process's until it dies. -ENOSPC: none is free. */
int dbl_claim(struct dbl_shared *sh, uint32_t *ret_slot);

/* Whether the process of SLOT lives; ret_pid (may be NULL) is its pid as seen from here, 0 if it
 * cannot be seen. */
bool dbl_alive(struct dbl_shared *sh, uint32_t slot, int *ret_pid);

/* Takes slots of dead processes back. With the mutex. */
void dbl_reap(struct dbl_shared *sh);

/* The mutex, repaired and with dead slots taken back if its owner was killed. */
void dbl_lock(struct dbl_shared *sh);
void dbl_unlock(struct dbl_shared *sh);

/*
 * Sleeps until the clock shows WAKE_NS or dbl_notify is called, or a while has passed. SLOT is the
 * process that waits. With the mutex, which is free meanwhile. Under a virtual clock in lockstep
 * the last actor to wait moves the clock to the earliest time that anybody waits for.
 */
void dbl_wait(struct dbl_shared *sh, uint32_t slot, uint64_t wake_ns);

/* Moves the virtual clock to TIME_NS and wakes those whose time has come. With the mutex. */
void dbl_clock_to(struct dbl_shared *sh, uint64_t time_ns);

/* Functions of the host are running or about to: the virtual clock waits for them. */
bool dbl_host_calls(const struct dbl_shared *sh);

/* Wakes all who wait: what they wait for may have come. With the mutex. */
void dbl_notify(struct dbl_shared *sh);

/* Sleeps on WORD while it is VALUE, for at most TIMEOUT_NS of real time. Wakes all that do. */
void dbl_futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns);
void dbl_futex_wake(_Atomic uint32_t *word);

/*
 * Charges BYTES of KIND to SLOT on its device OWN (the index it began with: see `moved`). 0, or
 * -ENOMEM when the device does not have them. dbl_refund gives them back and cannot fail. The
 * process that has the slot serialises its calls for one kind; others need not know of them.
 */
int dbl_charge(struct dbl_shared *sh, uint32_t slot, uint32_t own, enum dbl_kind kind,
               uint64_t bytes);
void dbl_refund(struct dbl_shared *sh, uint32_t slot, uint32_t own, enum dbl_kind kind,
                uint64_t bytes);

/* What SLOT holds of DEVICE, settled; what all live processes do, and what they claim. */
uint64_t dbl_held(struct dbl_shared *sh, uint32_t slot, uint32_t device);
uint64_t dbl_used(struct dbl_shared *sh, uint32_t device);
uint64_t dbl_claimed(struct dbl_shared *sh, uint32_t device);

/* Room for one more op of SLOT, or 0. Index + 1; the op is zero. With the mutex. */
uint32_t dbl_op_new(struct dbl_proc *proc);

/* Appends OP (index + 1) to STREAM of PROC. With the mutex. */
void dbl_op_push(struct dbl_proc *proc, uint32_t stream, uint32_t op);

/* Gives an op back that was not pushed. With the mutex. */
void dbl_op_drop(struct dbl_proc *proc, uint32_t op);

/* EVENT is free again; who waits for it waits no longer. With the mutex. */
void dbl_event_drop(struct dbl_proc *proc, uint32_t event);

/* Plays all work up to the clock's present time. With the mutex. */
void dbl_sim_run(struct dbl_shared *sh);

/* When the next thing will happen by itself, DBL_NEVER if nothing. With the mutex, after a run. */
uint64_t dbl_sim_next(struct dbl_shared *sh);

/* Nothing is left to do in any stream of PROC. With the mutex. */
bool dbl_proc_idle(const struct dbl_proc *proc);

/* Rebuilds the lists of PROC from their heads, after a death in the middle. */
void dbl_repair(struct dbl_proc *proc);

/* Whether the call of KIND that is being made is one that shall fail: its code, else 0. */
int dbl_injected(struct dbl_shared *sh, enum dbl_fail kind);

#endif
