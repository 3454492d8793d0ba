/* SPDX-License-Identifier: Apache-2.0 */
#include "api/holders.h"

#include <stdlib.h>

static int take_allocation(void *arg, const struct model_allocation *a)
{
    struct api_holders *h = arg;
    struct api_holder *x = vec_add(&h->items);

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
    struct api_holders *h = arg;
    struct api_held *n = arena_new(call_arena(h->call), struct api_held);
    const struct model_shape *shape = row->workload->shape;

    n->name = arena_strdup(call_arena(h->call), row->workload->name);
    n->team = arena_strdup(call_arena(h->call), row->workload->team);
    if (shape) {
        n->preemptible = shape->preemptible;
        n->span_ms = shape->limit_ms > 0 ? shape->limit_ms : shape->expected_ms;
    }
    n->started_ms = row->workload->started_ms;
    map_put(&h->workloads, row->workload->id, n);
    h->last_id = row->workload->id;
    h->rows++;
    return 0;
}

static int by_node(const void *a, const void *b)
{
    const struct api_holder *x = a, *y = b;

    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return x->workload < y->workload ? -1 : x->workload > y->workload;
}

void api_holders_done(struct api_holders *h)
{
    vec_done(&h->items);
    map_done(&h->workloads);
}

/* Names of what runs, of the teams that the caller sees. */
static int read_running(struct api_holders *h, struct err *err)
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

int api_holders_read(struct api_call *call, struct api_holders *h, struct err *err)
{
    const struct api_config *config = &call->api->config;
    int r;

    h->call = call;
    r = config->store->each_open_allocation(config->store_ctx, take_allocation, h, err);
    if (r == 0 && h->items.len > 0)
        r = read_running(h, err);
    for (size_t i = 0; i < h->items.len; i++)
        h->items.items[i].held = map_get(&h->workloads, h->items.items[i].workload);
    if (h->items.len > 0)
        qsort(h->items.items, h->items.len, sizeof(h->items.items[0]), by_node);
    return r;
}

size_t api_holders_first_on(const struct api_holders *h, uint64_t node)
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
