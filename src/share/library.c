/* SPDX-License-Identifier: Apache-2.0 */
#include "share/library.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

#include "share/old_glibc.h"

/* Two threads that load it at one time get the same handle. */
static void *load(struct library *l)
{
    void *handle = atomic_load_explicit(&l->handle, memory_order_acquire);

    if (handle == NULL) {
        handle = dlopen(l->path(), RTLD_NOW | RTLD_LOCAL);
        atomic_store_explicit(&l->handle, handle, memory_order_release);
    }
    return handle;
}

void *library_real(struct library *l, uint32_t symbol)
{
    void *real = atomic_load_explicit(&l->reals[symbol], memory_order_acquire);
    void *handle;

    if (real)
        return real;
    handle = load(l);
    if (handle == NULL)
        return NULL;
    real = dlsym(handle, l->names[symbol]);
    atomic_store_explicit(&l->reals[symbol], real, memory_order_release);
    return real;
}

void library_resolve(struct library *l, uint32_t symbol)
{
    void *to = library_real(l, symbol);

    if (to == NULL)
        to = l->missing;
    else if (l->hooks[symbol])
        to = l->hooks[symbol];
    __atomic_store_n(&l->entry[symbol], to, __ATOMIC_RELEASE);
}
