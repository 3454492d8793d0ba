/* SPDX-License-Identifier: Apache-2.0 */
#include "api/maintenance.h"

#include <errno.h>
#include <json-c/json.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/qty.h"
#include "model/json.h"
#include "model/node.h"

/* When X will have ended, as it says; 0 = it does not. */
static int64_t end_of(const struct api_held *x)
{
    return x->started_ms > 0 && x->span_ms > 0 ? qty_add_sat(x->started_ms, x->span_ms) : 0;
}

static const char *outcome_of(const struct api_held *x, const struct model_node *n)
{
    int64_t end = end_of(x);

    if (end > 0 && end <= n->window_from_ms)
        return "ends";
    return x->preemptible ? "evicted" : "stays";
}

void api_encode_maintenance_work(const struct api_holders *h, const struct model_node *n,
                                 struct json_writer *w)
{
    bool to_come = n->window_until_ms > core_now_ms(h->call->api->config.core);
    uint64_t last = 0;

    json_key(w, "maintenance_work");
    json_begin_array(w);
    for (size_t i = api_holders_first_on(h, n->id); to_come && i < h->items.len; i++) {
        const struct api_holder *x = &h->items.items[i];

        if (x->node != n->id)
            break;
        if (x->held == NULL || x->workload == last)
            continue;
        last = x->workload;
        json_begin_object(w);
        json_key_i64(w, "workload", (int64_t)x->workload);
        json_key_string(w, "name", x->held->name);
        json_key_string(w, "team", x->held->team);
        json_key_string(w, "outcome", outcome_of(x->held, n));
        json_key_time(w, "ends_at", end_of(x->held));
        json_end_object(w);
    }
    json_end_array(w);
}

/* ---- routes --------------------------------------------------------------------------------- */

static int decode_window(struct json_object *json, struct arena *arena, struct core_command *c,
                         struct err *err)
{
    static const struct model_json_field fields[] = {
        {"from", model_node_read_time, offsetof(struct core_command, window_from_ms)},
        {"until", model_node_read_time, offsetof(struct core_command, window_until_ms), true},
    };
    int r = model_json_read(json, fields, ARRAY_LEN(fields), arena, c, err);

    if (r == 0 && c->window_until_ms == 0)
        r = err_set(err, -EINVAL, ERR_MISSING, "until", "say when the node is back",
                    "until is missing");
    return r;
}

/* Without "from" it begins at once. */
void handle_node_maintenance(struct api_call *call)
{
    struct core_command *c = &call->command;
    struct json_object *json = call_body(call, false);
    struct err err = ERR_INIT;
    int r;

    if (json == NULL)
        return;
    c->window_from_ms = core_now_ms(call->api->config.core);
    r = decode_window(json, call_arena(call), c, &err);
    json_object_put(json);
    if (r < 0) {
        call_fail(call, r, &err);
        return;
    }
    c->name = call->args[0];
    call_submit(call, CORE_NODE_MAINTENANCE, handle_node_get);
}

void handle_node_maintenance_end(struct api_call *call)
{
    call->command.name = call->args[0];
    call_submit(call, CORE_NODE_MAINTENANCE, handle_node_get);
}
