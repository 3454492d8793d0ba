/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library of the driver that a library of ours stands in front of.
 *
 * Ours exports a trampoline for each symbol (trampolines.py), which jumps through `entry`. At first
 * all of these lead to library_resolve(), which fills in the hook of the symbol or, where there is
 * none, the driver's own function. The driver's library is loaded by its absolute path when the
 * first of its symbols is asked for, and never unloaded.
 *
 *     static _Atomic(void *) reals[NVML_SYMBOLS];
 *     static struct library nvml = {.path = share_place_nvml, .names = names, ...};
 *     void nvml_resolve(uint32_t symbol) { library_resolve(&nvml, symbol); }
 *
 * Thread-safe. Nothing is allocated.
 */
#ifndef ALLOT_SHARE_LIBRARY_H
#define ALLOT_SHARE_LIBRARY_H

#include <stdint.h>

struct library {
    const char *(*path)(void);
    const char *const *names; /* of its symbols, by number, as are those below */
    void *const *hooks;       /* NULL: none */
    void **entry;
    _Atomic(void *) *reals; /* the driver's own functions, as far as known */
    void *missing;          /* what is called where this driver lacks the function */
    _Atomic(void *) handle;
};

/* The driver's own function, or NULL when this driver has none. Looks `reals` up first. */
void *library_real(struct library *library, uint32_t symbol);
/* For the trampolines: fills in where SYMBOL leads. */
void library_resolve(struct library *library, uint32_t symbol);

#endif
