/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes and devices, with who holds what: open allocations joined with the workloads that run.
 * Work of teams that the caller does not see is counted, but not named.
 */
#include "api/internal.h"

#include <errno.h>
#include <json-c/json.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "model/amount.h"
#include "model/json.h"
#include "model/node.h"

struct holder {
    uint64_t node, workload, team;
    int32_t task, gpu_milli;
    const uint16_t *devices;
    int32_t device_count;
    const char *name, *team_name; /* NULL: not for the caller's eyes */
};

struct holders {
    struct api_call *call;
    VEC(struct holder) items; /* by node */
    struct map workloads;     /* id -> struct named */
    uint64_t last_id;         /* of the page */
    int32_t rows;
};

struct named {
    const char *name, *team;
};

static int take_allocation(void *arg, const struct model_allocation *a)
{
    struct holders *h = arg;
    struct holder *x = vec_add(&h->items);

    x->node = a->node;
    x->workload = a->workload;
    x->team = a->team;
    x->task = a->task;
    x->gpu_milli = a->gpu_milli;
    x->device_count = a->device_count;
    x->devices = arena_memdup(call_arena(h->call), a->devices,
                              (size_t)a->device_count * sizeof(*a->devices));
    return 0;
}

static int take_running(void *arg, const struct store_workload_row *row)
{
    struct holders *h = arg;
    struct named *n = arena_new(call_arena(h->call), struct named);

    n->name = arena_strdup(call_arena(h->call), row->workload->name);
    n->team = arena_strdup(call_arena(h->call), row->workload->team);
    map_put(&h->workloads, row->workload->id, n);
    h->last_id = row->workload->id;
    h->rows++;
    return 0;
}

static int by_node(const void *a, const void *b)
{
    const struct holder *x = a, *y = b;

    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return x->workload < y->workload ? -1 : x->workload > y->workload;
}

static void holders_done(struct holders *h)
{
    vec_done(&h->items);
    map_done(&h->workloads);
}

/* Names of what runs, of the teams that the caller sees. */
static int read_running(struct holders *h, struct err *err)
{
    const struct api_config *config = &h->call->api->config;
    struct store_workload_filter f = {
        .states = 1u << MODEL_WORKLOAD_RUNNING | 1u << MODEL_WORKLOAD_STOPPING,
        .limit = API_LIST_MAX,
    };
    int r = call_visible_teams(h->call, &f.teams, &f.team_count, err);

    do {
        h->rows = 0;
        if (r == 0)
            r = config->store->list_workloads(config->store_ctx, &f, take_running, h, err);
        f.before_id = h->last_id;
    } while (r == 0 && h->rows == API_LIST_MAX);
    return r;
}

static int holders_read(struct api_call *call, struct holders *h, struct err *err)
{
    const struct api_config *config = &call->api->config;
    int r;

    h->call = call;
    r = config->store->each_open_allocation(config->store_ctx, take_allocation, h, err);
    if (r == 0 && h->items.len > 0)
        r = read_running(h, err);
    for (size_t i = 0; i < h->items.len; i++) {
        const struct named *n = map_get(&h->workloads, h->items.items[i].workload);

        h->items.items[i].name = n ? n->name : NULL;
        h->items.items[i].team_name = n ? n->team : NULL;
    }
    if (h->items.len > 0)
        qsort(h->items.items, h->items.len, sizeof(h->items.items[0]), by_node);
    return r;
}

/* Index of the first holder on NODE. */
static size_t first_on(const struct holders *h, uint64_t node)
{
    size_t low = 0, high = h->items.len;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (h->items.items[mid].node < node)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static bool holds(const struct holder *x, int32_t device)
{
    for (int32_t i = 0; i < x->device_count; i++)
        if (x->devices[i] == device)
            return true;
    return false;
}

/* The charge is spread evenly over the devices of an allocation. */
static int64_t share_of(const struct holder *x)
{
    return x->device_count > 0 ? x->gpu_milli / x->device_count : 0;
}

/* "gpu_used" and "holders" of one device. */
static void encode_use(const struct holders *h, uint64_t node, int32_t device,
                       struct json_writer *w)
{
    size_t first = first_on(h, node);
    int64_t used = 0;

    json_key(w, "holders");
    json_begin_array(w);
    for (size_t i = first; i < h->items.len && h->items.items[i].node == node; i++) {
        const struct holder *x = &h->items.items[i];

        if (!holds(x, device))
            continue;
        used += share_of(x);
        json_begin_object(w);
        if (x->name) {
            json_key_i64(w, "workload", (int64_t)x->workload);
            json_key_string(w, "name", x->name);
            json_key_string(w, "team", x->team_name);
            json_key_i64(w, "task", x->task);
        }
        model_milli_encode(w, "gpu", share_of(x));
        json_end_object(w);
    }
    json_end_array(w);
    model_milli_encode(w, "gpu_used", used);
}

static void encode_device(const struct holders *h, const struct model_node *n, int32_t index,
                          struct json_writer *w)
{
    json_begin_object(w);
    json_key_string(w, "node", n->name);
    json_key_i64(w, "index", index);
    model_device_encode_fields(&n->devices[index], w);
    encode_use(h, n->id, index, w);
    json_end_object(w);
}

static void encode_node(const struct holders *h, const struct model_node *n, struct json_writer *w)
{
    int64_t used = 0;

    for (size_t i = first_on(h, n->id); i < h->items.len && h->items.items[i].node == n->id; i++)
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
    json_end_object(w);
}

/* ---- routes --------------------------------------------------------------------------------- */

struct node_walk {
    struct holders holders;
    struct json_writer w;
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
        encode_node(&walk->holders, n, &walk->w);
        return 0;
    }
    for (int32_t i = 0; i < n->device_count; i++)
        encode_device(&walk->holders, n, i, &walk->w);
    return 0;
}

static int walk_nodes(struct api_call *call, struct node_walk *walk, struct err *err)
{
    const struct api_config *config = &call->api->config;
    int r = holders_read(call, &walk->holders, err);

    if (r == 0)
        r = config->store->each_node(config->store_ctx, take_node, walk, err);
    holders_done(&walk->holders);
    return r;
}

static void reply_list(struct api_call *call, struct node_walk *walk, const char *key)
{
    _cleanup_strbuf_ struct strbuf body = STRBUF_INIT;
    struct err err = ERR_INIT;
    int r;

    json_writer_init(&walk->w, &body);
    json_begin_object(&walk->w);
    json_key(&walk->w, key);
    json_begin_array(&walk->w);
    r = walk_nodes(call, walk, &err);
    json_end_array(&walk->w);
    json_end_object(&walk->w);
    if (r < 0)
        call_fail(call, r, &err);
    else
        call_reply(call, 200, &body);
}

void handle_node_list(struct api_call *call)
{
    struct node_walk walk = {0};

    reply_list(call, &walk, "nodes");
}

void handle_device_list(struct api_call *call)
{
    struct node_walk walk = {.devices = true, .only = call_param(call, "node")};

    reply_list(call, &walk, "devices");
}

void handle_node_get(struct api_call *call)
{
    _cleanup_strbuf_ struct strbuf body = STRBUF_INIT;
    struct node_walk walk = {.only = call->args[0]};
    struct err err = ERR_INIT;
    int r;

    json_writer_init(&walk.w, &body);
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

/* ---- maintenance ---------------------------------------------------------------------------- */

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
