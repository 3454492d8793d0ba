/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a person should know of a quota that has been taken: one of a GPU type that no node has
 * is kept, since nodes come and go, but decides nothing meanwhile.
 */
#include "api/internal.h"

#include "model/gpu_types.h"
#include "model/node.h"
#include "model/team.h"

static int take_node(void *arg, const struct model_node *n)
{
    model_gpu_types_add(arg, n);
    return 0;
}

void call_encode_quota_warnings(struct api_call *call, const struct model_team *t,
                                struct json_writer *w)
{
    const struct api_config *config = &call->api->config;
    struct model_gpu_types known = {.arena = call_arena(call)};
    struct err err = ERR_INIT;
    int r = 0;

    if (t->type_count > 0)
        r = config->store->each_node(config->store_ctx, take_node, &known, &err);
    json_key(w, "warnings");
    json_begin_array(w);
    for (int32_t i = 0; r == 0 && i < t->type_count; i++) {
        const char *type = t->types[i].type;

        if (!model_gpu_types_have(&known, type))
            json_string(w, arena_printf(known.arena, "no node has GPUs of type '%s'; %s", type,
                                        model_gpu_types_remedy(&known, type)));
    }
    json_end_array(w);
}
