/* SPDX-License-Identifier: Apache-2.0 */
#include "model/amount.h"

#include <stdio.h>
#include <string.h>

#include "base/qty.h"

const char *model_resource_name(enum model_resource r)
{
    static const char *const names[MODEL_RESOURCE_COUNT] = {
        [MODEL_GPU_MILLI] = "gpu",
        [MODEL_CPU_MILLI] = "cpu",
        [MODEL_MEMORY_BYTES] = "memory",
    };

    return (unsigned)r < MODEL_RESOURCE_COUNT ? names[r] : "invalid";
}

const char *model_amount_format(enum model_resource r, int64_t amount, char *text)
{
    if (amount == MODEL_UNLIMITED) {
        snprintf(text, QTY_TEXT_MAX, "unlimited");
        return text;
    }
    return r == MODEL_MEMORY_BYTES ? qty_format_bytes(amount, text)
                                   : qty_format_milli(amount, text);
}

const char *model_amount_describe(enum model_resource r, int64_t amount, struct arena *arena)
{
    char text[QTY_TEXT_MAX];

    model_amount_format(r, amount, text);
    if (r == MODEL_MEMORY_BYTES)
        return arena_printf(arena, "%s of memory", text);
    return arena_printf(arena, "%s %s%s", text, r == MODEL_GPU_MILLI ? "GPU" : "core",
                        amount > 0 && amount <= 1000 ? "" : "s");
}

void model_milli_encode(struct json_writer *w, const char *key, int64_t milli)
{
    char text[QTY_TEXT_MAX];

    json_key(w, key);
    if (milli % 1000 == 0) {
        json_i64(w, milli / 1000);
        return;
    }
    qty_format_milli(milli, text);
    json_raw(w, text, strlen(text));
}

void model_amount_encode(struct json_writer *w, const char *key, enum model_resource r,
                         int64_t amount)
{
    char text[QTY_TEXT_MAX];

    if (amount == MODEL_UNLIMITED) {
        json_key(w, key);
        json_null(w);
    } else if (r == MODEL_MEMORY_BYTES) {
        json_key_string(w, key, qty_format_bytes(amount, text));
    } else {
        model_milli_encode(w, key, amount);
    }
}
