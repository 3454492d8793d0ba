/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's own functions, and the hooks that stand in front of some. */
#include <stddef.h>

#include "share/library.h"
#include "share/nvml/nvml.h"
#include "share/place.h"

#define HOOK(symbol) [SYM_##symbol] = (void *)hook_##symbol,

static nvml_result missing(void)
{
    return NVML_FUNCTION_NOT_FOUND;
}

static const char *const names[NVML_SYMBOLS] = {NVML_SYMBOL_NAMES};
static void *const hooks[NVML_SYMBOLS] = {NVML_HOOKS(HOOK)};
static _Atomic(void *) reals[NVML_SYMBOLS];
static struct library nvml = {.path = share_place_nvml,
                              .names = names,
                              .hooks = hooks,
                              .entry = nvml_entry,
                              .reals = reals,
                              .missing = (void *)missing};

void *nvml_real(enum nvml_symbol symbol)
{
    return library_real(&nvml, symbol);
}

void nvml_resolve(uint32_t symbol)
{
    library_resolve(&nvml, symbol);
}
