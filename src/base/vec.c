/* SPDX-License-Identifier: Apache-2.0 */
#include "base/vec.h"

#include <stdint.h>

#define FIRST_CAP ((size_t)8)

void *vec_grow(void *items, size_t *cap, size_t need, size_t size)
{
    size_t new_cap = *cap ? *cap : FIRST_CAP;
    size_t bytes;

    while (new_cap < need) {
        if (__builtin_mul_overflow(new_cap, 2, &new_cap))
            new_cap = need;
    }
    if (__builtin_mul_overflow(new_cap, size, &bytes))
        abort();
    items = realloc(items, bytes);
    if (items == NULL)
        abort();
    *cap = new_cap;
    return items;
}
