/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's own functions, and which trampoline stands before each. */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "share/library.h"
#include "share/old_glibc.h"
#include "share/place.h"
#include "share/shim.h"

#define SLOTS 2048 /* of the table of addresses; a power of two above twice the symbols */
static_assert(SLOTS > 2 * SHARE_SYMBOLS, "table of addresses is too small");

/* What a symbol that this driver lacks does when it is called all the same. */
static int missing(void)
{
    return CU_NOT_FOUND;
}

static const char *const names[SHARE_SYMBOLS] = {SHARE_SYMBOL_NAMES};
static _Atomic(void *) reals[SHARE_SYMBOLS];
static struct library driver = {.path = share_place_driver,
                                .names = names,
                                .hooks = share_hook,
                                .entry = share_entry,
                                .reals = reals,
                                .missing = (void *)missing};

static pthread_once_t mapped = PTHREAD_ONCE_INIT;
static struct {
    void *address;
    enum share_symbol symbol;
} by_address[SLOTS];

void *share_real(enum share_symbol symbol)
{
    void *real = atomic_load_explicit(&reals[symbol], memory_order_acquire);

    return real ? real : library_real(&driver, symbol);
}

void share_resolve(uint32_t symbol)
{
    library_resolve(&driver, symbol);
}

static size_t place_of(const void *address)
{
    return ((uintptr_t)address >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 53;
}

/* Where two names are one function, the one with a hook stands for both. */
static void map_addresses(void)
{
    for (uint32_t i = 0; i < SHARE_SYMBOLS; i++) {
        void *real = share_real((enum share_symbol)i);
        if (!real)
            continue;
        size_t at = place_of(real);
        while (by_address[at].address && by_address[at].address != real)
            at = (at + 1) % SLOTS;
        if (by_address[at].address && !share_hook[i])
            continue;
        by_address[at].address = real;
        by_address[at].symbol = (enum share_symbol)i;
    }
}

void *share_before(void *address)
{
    pthread_once(&mapped, map_addresses);
    for (size_t at = place_of(address); by_address[at].address; at = (at + 1) % SLOTS) {
        if (by_address[at].address == address)
            return share_trampoline[by_address[at].symbol];
    }
    return address;
}
