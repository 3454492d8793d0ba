/* SPDX-License-Identifier: Apache-2.0 */
#include "model/gpu_types.h"

#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/strbuf.h"
#include "model/node.h"

#define SHOWN_MAX 8 /* in one sentence */

bool model_gpu_types_have(const struct model_gpu_types *t, const char *type)
{
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->items[i], type) == 0)
            return true;
    return false;
}

/* Keeps the order of names. */
static void add(struct model_gpu_types *t, const char *type)
{
    size_t at = t->count++;

    if (at == t->room) {
        const char **former = t->items;

        t->room = t->room ? t->room * 2 : SHOWN_MAX;
        t->items = arena_new_array(t->arena, const char *, t->room);
        if (former)
            memcpy(t->items, former, at * sizeof(*former));
    }
    for (; at > 0 && strcmp(t->items[at - 1], type) > 0; at--)
        t->items[at] = t->items[at - 1];
    t->items[at] = arena_strdup(t->arena, type);
}

void model_gpu_types_add(struct model_gpu_types *t, const struct model_node *n)
{
    for (int32_t i = 0; i < n->device_count; i++)
        if (!model_gpu_types_have(t, n->devices[i].type))
            add(t, n->devices[i].type);
}

const char *model_gpu_types_remedy(const struct model_gpu_types *t, const char *type)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

    if (t->count == 0)
        return "no node has GPUs";
    for (size_t i = 0; i < t->count; i++)
        if (strcasecmp(t->items[i], type) == 0)
            strbuf_addf(&b, "did you mean '%s'? ", t->items[i]);
    strbuf_adds(&b, "there are: ");
    for (size_t i = 0; i < t->count && i < SHOWN_MAX; i++)
        strbuf_addf(&b, "%s%s", i > 0 ? ", " : "", t->items[i]);
    if (t->count > SHOWN_MAX)
        strbuf_addf(&b, " and %zu more", t->count - SHOWN_MAX);
    return arena_strdup(t->arena, strbuf_str(&b));
}
