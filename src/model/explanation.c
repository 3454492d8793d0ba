/* SPDX-License-Identifier: Apache-2.0 */
#include "model/explanation.h"

#include "model/amount.h"

static void encode_holder(const char *key, const struct model_explanation_holder *h,
                          struct json_writer *w)
{
    if (key)
        json_key(w, key);
    if (h->id == 0) {
        json_null(w);
        return;
    }
    json_begin_object(w);
    json_key_i64(w, "id", (int64_t)h->id);
    json_key_string(w, "name", h->name);
    json_key_string(w, "team", h->team);
    if (h->gpu_milli > 0)
        model_milli_encode(w, "gpu", h->gpu_milli);
    json_end_object(w);
}

static void encode_numbers(const struct model_explanation *x, struct json_writer *w)
{
    json_key_string(w, "resource", model_resource_name(x->resource));
    model_amount_encode(w, "asked", x->resource, x->asked);
    model_amount_encode(w, "free", x->resource, x->free);
    model_amount_encode(w, "missing", x->resource, x->missing);
    json_key(w, "quota");
    json_begin_object(w);
    json_key_string(w, "team", x->team);
    if (x->gpu_type)
        json_key_string(w, "gpu_type", x->gpu_type);
    model_amount_encode(w, "used", x->resource, x->used);
    model_amount_encode(w, "guarantee", x->resource, x->guarantee);
    model_amount_encode(w, "limit", x->resource, x->limit);
    model_amount_encode(w, "share", x->resource, x->share);
    json_end_object(w);
    json_key_i64(w, "position", x->position);
    json_key_i64(w, "pending", x->pending);
    json_key_time(w, "start_at", x->start_ms);
    json_key_i64(w, "start_in_ms", x->start_ms > x->now_ms ? x->start_ms - x->now_ms : 0);
    json_key_string(w, "start_basis", x->basis);
    encode_holder("waits_for", &x->waits_for, w);
    if (x->run_ms > 0)
        json_key_i64(w, "run_ms", x->run_ms);
    if (x->node) {
        json_key(w, "maintenance");
        json_begin_object(w);
        json_key_string(w, "node", x->node);
        json_key_time(w, "from", x->window_from_ms);
        json_key_time(w, "until", x->window_until_ms);
        json_end_object(w);
    }
    json_key(w, "holders");
    json_begin_array(w);
    for (int32_t i = 0; i < x->holder_count; i++)
        encode_holder(NULL, &x->holders[i], w);
    json_end_array(w);
}

void model_explanation_encode(const struct model_explanation *x, struct json_writer *w)
{
    json_begin_object(w);
    json_key_i64(w, "id", (int64_t)x->id);
    json_key_string(w, "name", x->name);
    json_key_string(w, "team", x->own_team);
    json_key_string(w, "state", model_workload_state_name(x->state));
    json_key_string(w, "reason", x->reason);
    json_key_string(w, "sentence", x->sentence);
    json_key_string(w, "remedy", x->remedy);
    json_key_string(w, "request", x->request);
    json_key_i64(w, "tasks", x->tasks);
    json_key_time(w, "at", x->now_ms);
    if (x->reason)
        encode_numbers(x, w);
    json_key_string(w, "last_eviction", x->last_eviction);
    json_key_time(w, "last_eviction_at", x->last_eviction_ms);
    json_end_object(w);
}
