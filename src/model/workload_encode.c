/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workload as the API shows it. This is what long lists are made of: straight into the
 * buffer, no tree in between. The fields that a person wrote come back as written (what is at
 * its default and says nothing is left out), so that they can be sent again.
 */
#include <string.h>

#include "base/qty.h"
#include "model/amount.h"
#include "model/launch.h"
#include "model/workload.h"

static void encode_duration(struct json_writer *w, const char *key, int64_t ms)
{
    char text[QTY_TEXT_MAX];

    if (ms > 0)
        json_key_string(w, key, qty_format_duration_ms(ms, text));
}

static void encode_devices(const struct model_request *q, struct json_writer *w)
{
    char text[QTY_TEXT_MAX];

    if (q->mig_count > 0) {
        json_key(w, "mig");
        json_begin_object(w);
        for (int32_t i = 0; i < q->mig_count; i++)
            json_key_i64(w, q->mig[i].profile, q->mig[i].count);
        json_end_object(w);
    } else if (q->device_count == 0 || q->device_milli == 1000) {
        json_key_i64(w, "gpus", q->device_count);
    } else {
        if (q->device_milli > 0)
            model_milli_encode(w, "gpu", q->device_milli);
        else
            json_key_string(w, "gpu_memory", qty_format_bytes(q->device_memory_bytes, text));
        if (q->device_count > 1)
            json_key_i64(w, "gpu_count", q->device_count);
    }
}

static void encode_request(const struct model_request *q, struct json_writer *w)
{
    char text[QTY_TEXT_MAX];

    encode_devices(q, w);
    if (q->gpu_type_count > 0) {
        json_key(w, "gpu_type");
        json_begin_array(w);
        for (int32_t i = 0; i < q->gpu_type_count; i++)
            json_string(w, q->gpu_types[i]);
        json_end_array(w);
    }
    model_milli_encode(w, "cpu", q->cpu_milli);
    if (q->memory_bytes > 0)
        json_key_string(w, "memory", qty_format_bytes(q->memory_bytes, text));
    if (q->label_count > 0) {
        json_key(w, "node_labels");
        json_begin_object(w);
        for (int32_t i = 0; i < q->label_count; i++)
            json_key_string(w, q->labels[i].key, q->labels[i].value);
        json_end_object(w);
    }
}

static void encode_topology(const char *required, const char *preferred, struct json_writer *w)
{
    if (required == NULL && preferred == NULL)
        return;
    json_key(w, "topology");
    json_begin_object(w);
    if (required)
        json_key_string(w, "required", required);
    if (preferred)
        json_key_string(w, "preferred", preferred);
    json_end_object(w);
}

/* One group that was never named stands at the top. */
static bool is_single(const struct model_shape *s)
{
    const struct model_group *g = &s->groups[0];

    return s->group_count == 1 && g->topology_required == NULL && g->min_tasks == s->min_tasks &&
           strcmp(g->name, "main") == 0;
}

static void encode_groups(const struct model_shape *s, const struct model_launch *l,
                          struct json_writer *w)
{
    json_key(w, "groups");
    json_begin_array(w);
    for (int32_t i = 0; i < s->group_count; i++) {
        const struct model_group *g = &s->groups[i];

        json_begin_object(w);
        json_key_string(w, "name", g->name);
        json_key_i64(w, "tasks", g->tasks);
        json_key_i64(w, "min_tasks", g->min_tasks);
        encode_request(&g->request, w);
        encode_topology(g->topology_required, NULL, w);
        if (l && i < l->group_count)
            model_launch_encode_group(&l->groups[i], w);
        json_end_object(w);
    }
    json_end_array(w);
}

/* For a cell of a table: "1 GPU", or "2 x (1 GPU) + 4 x (cpu only)" with several groups. */
static void encode_description(const struct model_shape *s, struct json_writer *w)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

    for (int32_t i = 0; i < s->group_count; i++) {
        if (s->group_count > 1)
            strbuf_addf(&b, "%s%d x (", i ? " + " : "", s->groups[i].tasks);
        model_request_describe_into(&s->groups[i].request, &b);
        if (s->group_count > 1)
            strbuf_addc(&b, ')');
    }
    json_key(w, "request");
    json_string_n(w, b.data, b.len);
}

static void encode_shape(const struct model_shape *s, const struct model_launch *l,
                         struct json_writer *w)
{
    char text[QTY_TEXT_MAX];

    json_key_string(w, "kind", model_kind_name(s->kind));
    json_key_string(w, "class", model_class_name(s->class_));
    json_key_i64(w, "priority", s->priority);
    json_key_bool(w, "preemptible", s->preemptible);
    json_key_bool(w, "burst", s->burst);
    json_key_i64(w, "tasks", s->task_count);
    json_key_i64(w, "min_tasks", s->min_tasks);
    encode_description(s, w);
    if (is_single(s)) {
        encode_request(&s->groups[0].request, w);
        if (l && l->group_count > 0)
            model_launch_encode_group(&l->groups[0], w);
    } else {
        encode_groups(s, l, w);
    }
    encode_topology(s->topology_required, s->topology_preferred, w);
    encode_duration(w, "max_run_time", s->limit_ms);
    encode_duration(w, "expected_run_time", s->expected_ms);
    encode_duration(w, "min_run_time", s->min_run_ms);
    if (s->max_unavailable > 0)
        json_key_i64(w, "max_unavailable", s->max_unavailable);
    json_key(w, "preemption");
    json_begin_object(w);
    json_key_string(w, "handling", model_handling_name(s->handling));
    json_key_string(w, "grace", qty_format_duration_ms(s->grace_ms, text));
    json_end_object(w);
    json_key_i64(w, "max_retries", s->max_retries);
}

static void encode_state(const struct model_workload *w, struct json_writer *out)
{
    json_key_string(out, "state", model_workload_state_name(w->state));
    json_key_time(out, "submitted_at", w->submitted_ms);
    json_key_time(out, "started_at", w->started_ms);
    json_key_time(out, "ended_at", w->ended_ms);
    json_key_time(out, "evicted_at", w->evicted_ms);
    json_key_i64(out, "running_tasks", w->running_tasks);
    json_key_i64(out, "ended_tasks", w->ended_tasks);
    json_key_i64(out, "restarts", w->restarts);
    json_key_i64(out, "failures", w->failures);
    json_key_i64(out, "exit_code", w->exit_code);
    json_key_string(out, "message", w->message);
}

void model_workload_encode_fields(const struct model_workload *w, struct json_writer *out)
{
    json_key_i64(out, "id", (int64_t)w->id);
    json_key_string(out, "name", w->name);
    json_key_string(out, "team", w->team);
    json_key_string(out, "owner", w->owner);
    encode_state(w, out);
    if (w->shape)
        encode_shape(w->shape, w->launch, out);
    if (w->launch)
        model_launch_encode_paths(w->launch, out);
}

void model_workload_encode(const struct model_workload *w, struct json_writer *out)
{
    json_begin_object(out);
    model_workload_encode_fields(w, out);
    json_end_object(out);
}
