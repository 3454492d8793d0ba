/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The canonical text of a shape: every field, in one order, integers in base units, labels and
 * MIG profiles sorted. Equal shapes give equal text, which is what interns them.
 */
#include <errno.h>
#include <json-c/json.h>

#include "base/cleanup.h"
#include "model/check.h"
#include "model/request_read.h"

DEFINE_CLEANUP(struct json_object *, json_object_put, json_object_putp)

/* ---- writing ---------------------------------------------------------------------------- */

static void encode_request(const struct model_request *q, struct json_writer *w)
{
    json_key_i64(w, "device_count", q->device_count);
    json_key_i64(w, "device_milli", q->device_milli);
    json_key_i64(w, "device_memory_bytes", q->device_memory_bytes);
    if (q->mig_count > 0) {
        json_key(w, "mig");
        json_begin_object(w);
        for (int32_t i = 0; i < q->mig_count; i++)
            json_key_i64(w, q->mig[i].profile, q->mig[i].count);
        json_end_object(w);
    }
    json_key_i64(w, "cpu_milli", q->cpu_milli);
    json_key_i64(w, "memory_bytes", q->memory_bytes);
    json_key(w, "gpu_types");
    json_begin_array(w);
    for (int32_t i = 0; i < q->gpu_type_count; i++)
        json_string(w, q->gpu_types[i]);
    json_end_array(w);
    json_key(w, "labels");
    json_begin_object(w);
    for (int32_t i = 0; i < q->label_count; i++)
        json_key_string(w, q->labels[i].key, q->labels[i].value);
    json_end_object(w);
}

static void encode_group(const struct model_group *g, struct json_writer *w)
{
    json_begin_object(w);
    json_key_string(w, "name", g->name);
    json_key_i64(w, "tasks", g->tasks);
    json_key_i64(w, "min_tasks", g->min_tasks);
    json_key_string(w, "topology_required", g->topology_required);
    encode_request(&g->request, w);
    json_end_object(w);
}

void model_shape_encode(const struct model_shape *s, struct json_writer *w)
{
    json_begin_object(w);
    json_key_string(w, "kind", model_kind_name(s->kind));
    json_key_string(w, "class", model_class_name(s->class_));
    json_key_i64(w, "priority", s->priority);
    json_key_bool(w, "preemptible", s->preemptible);
    json_key_bool(w, "burst", s->burst);
    json_key_string(w, "handling", model_handling_name(s->handling));
    json_key_i64(w, "max_retries", s->max_retries);
    json_key_i64(w, "min_tasks", s->min_tasks);
    json_key_i64(w, "grace_ms", s->grace_ms);
    json_key_i64(w, "limit_ms", s->limit_ms);
    json_key_i64(w, "expected_ms", s->expected_ms);
    json_key_i64(w, "min_run_ms", s->min_run_ms);
    if (s->max_unavailable > 0)
        json_key_i64(w, "max_unavailable", s->max_unavailable);
    json_key_string(w, "topology_required", s->topology_required);
    json_key_string(w, "topology_preferred", s->topology_preferred);
    json_key(w, "groups");
    json_begin_array(w);
    for (int32_t i = 0; i < s->group_count; i++)
        encode_group(&s->groups[i], w);
    json_end_array(w);
    json_end_object(w);
}

/* ---- reading ---------------------------------------------------------------------------- */

struct group_row {
    struct model_group group;
    struct model_migs mig;
    struct model_strings gpu_types;
    struct model_pairs labels;
};

static int read_group(struct json_object *v, struct arena *a, struct model_group *ret_group,
                      struct err *err)
{
#define FIELD(member) offsetof(struct group_row, member)
    static const struct model_json_field fields[] = {
        {"name", model_json_read_name, FIELD(group.name), true},
        {"tasks", model_json_read_i32, FIELD(group.tasks), true},
        {"min_tasks", model_json_read_i32, FIELD(group.min_tasks), true},
        {"topology_required", model_read_label, FIELD(group.topology_required)},
        {"device_count", model_json_read_i32, FIELD(group.request.device_count), true},
        {"device_milli", model_json_read_i32, FIELD(group.request.device_milli), true},
        {"device_memory_bytes", model_json_read_i64, FIELD(group.request.device_memory_bytes),
         true},
        {"mig", model_read_migs, FIELD(mig)},
        {"cpu_milli", model_json_read_i64, FIELD(group.request.cpu_milli), true},
        {"memory_bytes", model_json_read_i64, FIELD(group.request.memory_bytes), true},
        {"gpu_types", model_read_gpu_types, FIELD(gpu_types), true},
        {"labels", model_read_labels, FIELD(labels), true},
    };
#undef FIELD
    struct group_row row = {0};
    int r;

    r = model_json_read(v, fields, ARRAY_LEN(fields), a, &row, err);
    if (r < 0)
        return r;
    row.group.request.mig = row.mig.items;
    row.group.request.mig_count = row.mig.count;
    row.group.request.gpu_types = row.gpu_types.items;
    row.group.request.gpu_type_count = row.gpu_types.count;
    row.group.request.labels = row.labels.items;
    row.group.request.label_count = row.labels.count;
    *ret_group = row.group;
    return 0;
}

/* OUT is the whole shape. */
static int read_groups(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    struct model_shape *s = out;
    struct model_group *groups;
    int64_t tasks = 0;
    size_t count;

    count = json_object_is_type(v, json_type_array) ? json_object_array_length(v) : 0;
    if (count < 1 || count > MODEL_GROUPS_MAX)
        return err_set(err, -EINVAL, ERR_INVALID, NULL, NULL, "must be an array of 1 to %d groups",
                       MODEL_GROUPS_MAX);
    groups = arena_new_array(a, struct model_group, count);
    for (size_t i = 0; i < count; i++) {
        int r;

        r = read_group(json_object_array_get_idx(v, i), a, &groups[i], err);
        if (r < 0) {
            model_json_in(err, "[%zu]", i);
            return r;
        }
        tasks += groups[i].tasks;
    }
    if (tasks < 1 || tasks > MODEL_TASKS_MAX)
        return err_set(err, -ERANGE, ERR_OUT_OF_RANGE, NULL, NULL, "have an invalid sum of tasks");
    s->groups = groups;
    s->group_count = (int32_t)count;
    s->task_count = (int32_t)tasks;
    return 0;
}

static const struct model_json_field shape_fields[] = {
    {"kind", model_read_kind, offsetof(struct model_shape, kind), true},
    {"class", model_read_class, offsetof(struct model_shape, class_), true},
    {"priority", model_json_read_i32, offsetof(struct model_shape, priority), true},
    {"preemptible", model_json_read_bool, offsetof(struct model_shape, preemptible), true},
    {"burst", model_json_read_bool, offsetof(struct model_shape, burst), true},
    {"handling", model_read_handling, offsetof(struct model_shape, handling), true},
    {"max_retries", model_json_read_i32, offsetof(struct model_shape, max_retries), true},
    {"min_tasks", model_json_read_i32, offsetof(struct model_shape, min_tasks), true},
    {"grace_ms", model_json_read_i64, offsetof(struct model_shape, grace_ms), true},
    {"limit_ms", model_json_read_i64, offsetof(struct model_shape, limit_ms), true},
    {"expected_ms", model_json_read_i64, offsetof(struct model_shape, expected_ms), true},
    {"min_run_ms", model_json_read_i64, offsetof(struct model_shape, min_run_ms), true},
    {"max_unavailable", model_json_read_i32, offsetof(struct model_shape, max_unavailable)},
    {"topology_required", model_read_label, offsetof(struct model_shape, topology_required)},
    {"topology_preferred", model_read_label, offsetof(struct model_shape, topology_preferred)},
    {"groups", read_groups, 0, true},
};

int model_shape_decode(const char *text, size_t len, struct arena *arena,
                       const struct model_shape **ret_shape, struct err *err)
{
    _cleanup_(json_object_putp) struct json_object *json = NULL;
    struct model_shape *s = arena_new(arena, struct model_shape);
    int r;

    r = model_json_parse(text, len, &json, err);
    if (r == 0)
        r = model_json_read(json, shape_fields, ARRAY_LEN(shape_fields), arena, s, err);
    if (r == 0)
        r = model_shape_check(s, err);
    if (r < 0)
        return r;
    *ret_shape = s;
    return 0;
}
