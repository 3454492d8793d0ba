/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shim from inside: what its files share.
 *
 * A call takes this way:
 *
 *     program -> cuMemAlloc_v2 (trampoline) -> hook_mem_alloc() -> the driver's cuMemAlloc_v2
 *     program -> cuMemcpyHtoD_v2 (trampoline) ------------------> the driver's cuMemcpyHtoD_v2
 *
 * A trampoline looks at the gate, one relaxed load, and jumps through share_entry[], which the
 * first call fills with the hook or, where there is none, with the driver's own function. Hooks
 * call the driver with REAL(), never a trampoline: they have passed the gate already.
 *
 * The driver's library is loaded by its absolute path with the first call. It is the only thing
 * that the shim loads, and it is never unloaded.
 *
 * Nothing happens before the program calls the driver: there are no constructors that talk to
 * anybody, no threads, no signal handlers, and no memory of the program's allocator is used.
 */
#ifndef ALLOT_SHARE_SHIM_H
#define ALLOT_SHARE_SHIM_H

#include <stdbool.h>
#include <stdint.h>

#include "share/cuda_fns.h"
#include "share/ledger.h"
#include "share/symbols.h" /* made by trampolines.py */

/* The driver's own SYMBOL, of the type that cuda_fns.h declares. Whoever calls it knows that this
 * driver has it: it is the one that was called, or as old as drivers that we know. */
#define REAL(symbol) REAL_AS(symbol, symbol)
/* The same of a SYMBOL that has the type of another, TYPE. */
#define REAL_AS(symbol, type) ((fn_##type *)share_real(SYM_##symbol))

/* What the trampolines read: the gate of this process, and where each symbol goes. */
extern const _Atomic uint32_t *share_gate;
extern void *share_entry[SHARE_SYMBOLS];
extern void *const share_trampoline[SHARE_SYMBOLS];

/* The hook of each symbol or NULL: hooks.c. */
extern void *const share_hook[SHARE_SYMBOLS];

/* The driver's function, or NULL when this driver has none. Thread-safe. See library.h. */
void *share_real(enum share_symbol symbol);
/* The trampoline that stands before the driver's function at ADDRESS, or ADDRESS itself. */
void *share_before(void *address);

/* Called by the trampolines: fills share_entry[SYMBOL]; waits until the gate is open. */
void share_resolve(uint32_t symbol);
void share_wait_open(uint32_t symbol);

/*
 * Which of the task's devices is DEVICE, an ordinal of this process? -1: none that is shared, so
 * that nothing is counted. share_here() asks for the device of the thread's context.
 */
int share_device(cu_device device);
int share_here(void);

/*
 * The link to the agent, made by the first call that needs it and kept for the life of the
 * process; the child of a fork makes its own. NULL: nothing is enforced, or the driver must not
 * be used at all. The second look costs one load.
 */
struct share_ledger *share_link(void);
/* 0: the driver may be used. Else why there is no link, a negative errno: -ENOENT, -ECONNREFUSED
 * no agent; -ETIMEDOUT it does not answer; others as it, or the system, refused. Tries again. */
int share_forbidden(void);
/* Notes SHARE_HAS_... of this process: why it could not be suspended. */
void share_obstacle(uint32_t obstacle);
/* Asks the agent to wake this task. */
void share_ask_wake(void);

#endif
