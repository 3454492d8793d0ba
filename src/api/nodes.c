/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes and devices, with who holds what. */
#include <errno.h>
#include <string.h>

#include "api/holders.h"
#include "api/maintenance.h"
#include "base/cleanup.h"
#include "model/amount.h"
#include "model/node.h"

static bool holds(const struct api_holder *x, int32_t device)
{
    for (int32_t i = 0; i < x->device_count; i++)
        if (x->devices[i] == device)
            return true;
    return false;
}

/* The charge is spread evenly over the devices of an allocation. */
static int64_t share_of(const struct api_holder *x)
{
    return x->device_count > 0 ? x->gpu_milli / x->device_count : 0;
}

/* "gpu_used" and "holders" of one device. */
static void encode_use(const struct api_holders *h, uint64_t node, int32_t device,
                       struct json_writer *w)
{
    size_t first = api_holders_first_on(h, node);
    int64_t used = 0;

    json_key(w, "holders");
    json_begin_array(w);
    for (size_t i = first; i < h->items.len && h->items.items[i].node == node; i++) {
        const struct api_holder *x = &h->items.items[i];

        if (!holds(x, device))
            continue;
        used += share_of(x);
        json_begin_object(w);
        if (x->held) {
            json_key_i64(w, "workload", (int64_t)x->workload);
            json_key_string(w, "name", x->held->name);
            json_key_string(w, "team", x->held->team);
            json_key_i64(w, "task", x->task);
        }
        model_milli_encode(w, "gpu", share_of(x));
        json_end_object(w);
    }
    json_end_array(w);
    model_milli_encode(w, "gpu_used", used);
}

static void encode_device(const struct api_holders *h, const struct model_node *n, int32_t index,
                          struct json_writer *w)
{
    json_begin_object(w);
    json_key_string(w, "node", n->name);
    json_key_i64(w, "index", index);
    model_device_encode_fields(&n->devices[index], w);
    encode_use(h, n->id, index, w);
    json_end_object(w);
}

static void encode_node(const struct api_holders *h, const struct model_node *n,
                        struct json_writer *w)
{
    int64_t used = 0;

    for (size_t i = api_holders_first_on(h, n->id);
         i < h->items.len && h->items.items[i].node == n->id; i++)
        used += h->items.items[i].gpu_milli;
    json_begin_object(w);
    model_node_encode_fields(n, w);
    model_milli_encode(w, "gpu_used", used);
    json_key(w, "use");
    json_begin_array(w);
    for (int32_t i = 0; i < n->device_count; i++) {
        json_begin_object(w);
        json_key_i64(w, "index", i);
        encode_use(h, n->id, i, w);
        json_end_object(w);
    }
    json_end_array(w);
    api_encode_maintenance_work(h, n, w);
    json_end_object(w);
}

/* ---- routes --------------------------------------------------------------------------------- */

struct node_walk {
    struct api_holders holders;
    struct json_writer *w;
    const char *only; /* name, or NULL = all */
    bool devices;     /* write devices instead of nodes */
    int found;
};

static int take_node(void *arg, const struct model_node *n)
{
    struct node_walk *walk = arg;

    if (walk->only && strcmp(walk->only, n->name) != 0)
        return 0;
    walk->found++;
    if (!walk->devices) {
        encode_node(&walk->holders, n, walk->w);
        return 0;
    }
    for (int32_t i = 0; i < n->device_count; i++)
        encode_device(&walk->holders, n, i, walk->w);
    return 0;
}

static int walk_nodes(struct api_call *call, struct node_walk *walk, struct err *err)
{
    const struct api_config *config = &call->api->config;
    int r = api_holders_read(call, &walk->holders, err);

    if (r == 0)
        r = config->store->each_node(config->store_ctx, take_node, walk, err);
    api_holders_done(&walk->holders);
    return r;
}

static int write_list(struct api_call *call, struct json_writer *w, void *arg, struct err *err)
{
    struct node_walk *walk = arg;

    walk->w = w;
    return walk_nodes(call, walk, err);
}

void handle_node_list(struct api_call *call)
{
    struct node_walk walk = {0};

    call_reply_list(call, "nodes", write_list, &walk);
}

void handle_device_list(struct api_call *call)
{
    struct node_walk walk = {.devices = true, .only = call_param(call, "node")};

    call_reply_list(call, "devices", write_list, &walk);
}

void handle_node_get(struct api_call *call)
{
    _cleanup_strbuf_ struct strbuf body = STRBUF_INIT;
    struct json_writer w;
    struct node_walk walk = {.w = &w, .only = call->args[0]};
    struct err err = ERR_INIT;
    int r;

    json_writer_init(&w, &body);
    r = walk_nodes(call, &walk, &err);
    if (r == 0 && walk.found == 0)
        r = err_set(&err, -ENOENT, ERR_NOT_FOUND, "name", "see 'allot node list'",
                    "there is no node '%.100s'", call->args[0]);
    if (r < 0)
        call_fail(call, r, &err);
    else
        call_reply(call, 200, &body);
}

static void submit_drain(struct api_call *call, bool drain)
{
    call->command.name = call->args[0];
    call->command.flag = drain;
    call_submit(call, CORE_NODE_DRAIN, handle_node_get);
}

void handle_node_drain(struct api_call *call)
{
    submit_drain(call, true);
}

void handle_node_undrain(struct api_call *call)
{
    submit_drain(call, false);
}
