/* SPDX-License-Identifier: Apache-2.0 */
#include "model/explanation.h"

#include <string.h>

#include "model/amount.h"

/* ---- who may see what -------------------------------------------------------------------- */

/* H becomes work of its team, added to what is known of that team already. */
static void hide(struct model_explanation *x, int32_t *count, struct model_explanation_holder h)
{
    h.id = 0;
    h.name = NULL;
    h.count = 1;
    for (int32_t i = 0; i < *count; i++) {
        struct model_explanation_holder *same = &x->holders[i];

        if (same->id != 0 || strcmp(same->team, h.team) != 0)
            continue;
        same->amount += h.amount;
        same->count++;
        return;
    }
    x->holders[(*count)++] = h;
}

void model_explanation_redact(struct model_explanation *x,
                              bool (*sees)(const void *ctx, const char *team), const void *ctx)
{
    int32_t count = 0;

    for (int32_t i = 0; i < x->holder_count; i++) {
        struct model_explanation_holder h = x->holders[i];

        if (sees(ctx, h.team))
            x->holders[count++] = h;
        else
            hide(x, &count, h);
    }
    x->holder_count = count;
    if (x->waits_for.id && !sees(ctx, x->waits_for.team)) {
        x->waits_for.id = 0;
        x->waits_for.name = NULL;
        x->waits_for.count = 1;
    }
}

/* ---- JSON --------------------------------------------------------------------------------- */

static void encode_holder(const struct model_explanation *x, const char *key,
                          const struct model_explanation_holder *h, struct json_writer *w)
{
    if (key)
        json_key(w, key);
    if (h->team == NULL) {
        json_null(w);
        return;
    }
    json_begin_object(w);
    if (h->id) {
        json_key_i64(w, "id", (int64_t)h->id);
    } else {
        json_key(w, "id");
        json_null(w);
    }
    json_key_string(w, "name", h->name);
    json_key_string(w, "team", h->team);
    if (h->count > 0)
        json_key_i64(w, "workloads", h->count);
    if (h->amount > 0)
        model_amount_encode(w, model_resource_name(x->resource), x->resource, h->amount);
    json_end_object(w);
}

static void encode_types(const struct model_explanation *x, struct json_writer *w)
{
    if (x->type_count == 0)
        return;
    json_key(w, "quota_types");
    json_begin_array(w);
    for (int32_t i = 0; i < x->type_count; i++) {
        const struct model_explanation_type *t = &x->types[i];

        json_begin_object(w);
        json_key_string(w, "team", t->team);
        json_key_string(w, "gpu_type", t->type);
        model_amount_encode(w, "used", MODEL_GPU_MILLI, t->used);
        model_amount_encode(w, "guarantee", MODEL_GPU_MILLI, t->guarantee);
        model_amount_encode(w, "limit", MODEL_GPU_MILLI, t->limit);
        json_end_object(w);
    }
    json_end_array(w);
}

static void encode_quota(const struct model_explanation *x, struct json_writer *w)
{
    json_key(w, "quota");
    json_begin_object(w);
    json_key_string(w, "team", x->team);
    if (x->gpu_type)
        json_key_string(w, "gpu_type", x->gpu_type);
    json_key_bool(w, "hard", x->hard_quota);
    model_amount_encode(w, "used", x->resource, x->used);
    model_amount_encode(w, "guarantee", x->resource, x->guarantee);
    model_amount_encode(w, "limit", x->resource, x->limit);
    model_amount_encode(w, "share", x->resource, x->share);
    json_end_object(w);
    encode_types(x, w);
    if (x->guarantees == 0)
        return;
    json_key(w, "overcommitted");
    json_begin_object(w);
    json_key_string(w, "team", x->over_team);
    model_amount_encode(w, "guarantees", x->resource, x->guarantees);
    model_amount_encode(w, "capacity", x->resource, x->capacity);
    json_end_object(w);
}

static void encode_nodes(const struct model_explanation *x, struct json_writer *w)
{
    if (x->node_count == 0)
        return;
    json_key(w, "nodes");
    json_begin_array(w);
    for (int32_t i = 0; i < x->node_count; i++) {
        json_begin_object(w);
        json_key_string(w, "name", x->nodes[i].name);
        json_key_string(w, "state", x->nodes[i].state);
        json_end_object(w);
    }
    json_end_array(w);
    if (x->window_until_ms == 0)
        return;
    json_key(w, "maintenance");
    json_begin_object(w);
    json_key_string(w, "node", x->nodes[0].name);
    json_key_time(w, "from", x->window_from_ms);
    json_key_time(w, "until", x->window_until_ms);
    json_end_object(w);
}

static void encode_amounts(const struct model_explanation *x, struct json_writer *w)
{
    json_key_string(w, "resource", model_resource_name(x->resource));
    model_amount_encode(w, "asked", x->resource, x->asked);
    model_amount_encode(w, "each", x->resource, x->each);
    model_amount_encode(w, "free", x->resource, x->free);
    model_amount_encode(w, "most", x->resource, x->most);
    model_amount_encode(w, "missing", x->resource, x->missing);
    model_amount_encode(w, "less", x->resource, x->less);
    if (x->less_tasks > 0)
        json_key_i64(w, "less_tasks", x->less_tasks);
    if (x->takes > 0)
        model_milli_encode(w, "takes_gpu", x->takes);
    if (x->gang > 1) {
        json_key_i64(w, "gang_tasks", x->gang);
        json_key_i64(w, "fitting_tasks", x->fitting);
    }
    if (x->level) {
        json_key(w, "topology");
        json_begin_object(w);
        json_key_string(w, "level", x->level);
        json_key_string(w, "domain", x->domain);
        json_end_object(w);
    }
}

static void encode_numbers(const struct model_explanation *x, struct json_writer *w)
{
    encode_amounts(x, w);
    encode_quota(x, w);
    json_key_i64(w, "position", x->position);
    json_key_i64(w, "pending", x->pending);
    json_key_time(w, "start_at", x->start_ms);
    json_key_i64(w, "start_in_ms", x->start_ms > x->now_ms ? x->start_ms - x->now_ms : 0);
    json_key_string(w, "start_basis", x->basis);
    encode_holder(x, "waits_for", &x->waits_for, w);
    if (x->run_ms > 0)
        json_key_i64(w, "run_ms", x->run_ms);
    encode_nodes(x, w);
    json_key(w, "holders");
    json_begin_array(w);
    for (int32_t i = 0; i < x->holder_count; i++)
        encode_holder(x, NULL, &x->holders[i], w);
    json_end_array(w);
}

void model_explanation_encode(const struct model_explanation *x, struct json_writer *w)
{
    json_begin_object(w);
    if (x->id)
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
