/* SPDX-License-Identifier: Apache-2.0 */
#include "share/hooks.h"

#include "share/shim.h"

#define HOOK(symbol, type) [SYM_##symbol] = (void *)hook_##symbol,

void *const share_hook[SHARE_SYMBOLS] = {SHARE_HOOKS(HOOK)};
