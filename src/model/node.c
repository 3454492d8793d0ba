/* SPDX-License-Identifier: Apache-2.0 */
#include "model/node.h"

#include <errno.h>
#include <json-c/json.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/qty.h"
#include "model/amount.h"
#include "model/json.h"
#include "model/request_read.h"

#define BACKENDS_MAX 16

DEFINE_CLEANUP(struct json_object *, json_object_put, json_object_putp)

static const char *const state_names[] = {
    [MODEL_NODE_UP] = "up",
    [MODEL_NODE_DOWN] = "down",
    [MODEL_NODE_UNKNOWN] = "unknown",
};

const char *model_node_state_name(enum model_node_state v)
{
    return (unsigned)v < ARRAY_LEN(state_names) ? state_names[v] : "invalid";
}

static const char *const backend_state_names[] = {
    [MODEL_BACKEND_ABSENT] = "absent",
    [MODEL_BACKEND_FOUND] = "found",
    [MODEL_BACKEND_USED] = "used",
};

const char *model_backend_state_name(enum model_backend_state v)
{
    return (unsigned)v < ARRAY_LEN(backend_state_names) ? backend_state_names[v] : "invalid";
}

/* ---- writing ---------------------------------------------------------------------------- */

void model_device_encode_fields(const struct model_device *d, struct json_writer *w)
{
    json_key_string(w, "uuid", d->uuid);
    json_key_string(w, "type", d->type);
    model_amount_encode(w, "memory", MODEL_MEMORY_BYTES, d->memory_bytes);
    if (d->mig_profile) {
        json_key_string(w, "mig_profile", d->mig_profile);
        json_key_i64(w, "mig_milli", d->mig_milli);
    }
    json_key_bool(w, "simulated", d->simulated);
    if (d->path)
        json_key_string(w, "path", d->path);
}

void model_node_encode_state(const struct model_node *n, struct json_writer *w)
{
    json_key_i64(w, "id", (int64_t)n->id);
    json_key_string(w, "name", n->name);
    json_key_string(w, "state", model_node_state_name(n->state));
    json_key_bool(w, "drained", n->drained);
    json_key(w, "maintenance");
    if (n->window_until_ms == 0) {
        json_null(w);
    } else {
        json_begin_object(w);
        json_key_time(w, "from", n->window_from_ms);
        json_key_time(w, "until", n->window_until_ms);
        json_end_object(w);
    }
}

static void encode_backends(const struct model_node *n, struct json_writer *w)
{
    json_key(w, "sharing_backends");
    json_begin_array(w);
    for (int32_t i = 0; i < n->backend_count; i++) {
        json_begin_object(w);
        json_key_string(w, "name", n->backends[i].name);
        json_key_string(w, "state", model_backend_state_name(n->backends[i].state));
        json_key_string(w, "reason", n->backends[i].reason);
        json_end_object(w);
    }
    json_end_array(w);
}

void model_node_encode_fields(const struct model_node *n, struct json_writer *w)
{
    model_node_encode_state(n, w);
    json_key_string(w, "cluster", n->cluster);
    json_key_string(w, "gpu_type", n->gpu_type);
    json_key_string(w, "sharing", n->sharing);
    encode_backends(n, w);
    json_key_string(w, "limits", n->limits);
    json_key_string(w, "isolation", n->isolation);
    model_amount_encode(w, "cpu", MODEL_CPU_MILLI, n->cpu_milli);
    model_amount_encode(w, "memory", MODEL_MEMORY_BYTES, n->memory_bytes);
    json_key(w, "devices");
    json_begin_array(w);
    for (int32_t i = 0; i < n->device_count; i++) {
        json_begin_object(w);
        model_device_encode_fields(&n->devices[i], w);
        json_end_object(w);
    }
    json_end_array(w);
    json_key(w, "labels");
    json_begin_object(w);
    for (int32_t i = 0; i < n->label_count; i++)
        json_key_string(w, n->labels[i].key, n->labels[i].value);
    json_end_object(w);
}

void model_node_encode(const struct model_node *n, struct json_writer *w)
{
    json_begin_object(w);
    model_node_encode_fields(n, w);
    json_end_object(w);
}

/* ---- reading ---------------------------------------------------------------------------- */

struct node_row {
    struct model_node node;
    int64_t id;
    struct model_pairs labels;
};

static int read_id(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    return v ? model_json_read_range(v, 0, INT64_MAX, out, err) : 0;
}

/* The place of V in NAMES; RET_AT stays as it is where V is missing. */
static int read_word(struct json_object *v, const char *const *names, size_t count,
                     const char *remedy, struct arena *a, size_t *ret_at, struct err *err)
{
    const char *text = NULL;
    int r;

    r = model_json_read_string(v, a, &text, err);
    if (r < 0 || text == NULL)
        return r;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(text, names[i]) == 0) {
            *ret_at = i;
            return 0;
        }
    }
    return err_set(err, -EINVAL, ERR_INVALID, NULL, remedy, "'%.40s' is not known", text);
}

static int read_state(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    size_t at = *(enum model_node_state *)out;
    int r =
        read_word(v, state_names, ARRAY_LEN(state_names), "use up, down or unknown", a, &at, err);

    *(enum model_node_state *)out = (enum model_node_state)at;
    return r;
}

static int read_backend_state(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    size_t at = *(enum model_backend_state *)out;
    int r = read_word(v, backend_state_names, ARRAY_LEN(backend_state_names),
                      "use absent, found or used", a, &at, err);

    *(enum model_backend_state *)out = (enum model_backend_state)at;
    return r;
}

int model_node_read_time(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    const char *text = NULL;
    int r = v ? model_json_quantity_text(v, &text, err) : 0;

    if (r < 0 || text == NULL)
        return r;
    r = clock_parse_utc(text, out);
    if (r < 0)
        return err_set(err, r, ERR_INVALID, NULL,
                       "write 2026-11-30T21:29:59Z or milliseconds since 1970",
                       "'%.60s' is not a time", text);
    return 0;
}

/* OUT is the whole node. */
static int read_window(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    static const struct model_json_field fields[] = {
        {"from", model_node_read_time, offsetof(struct model_node, window_from_ms), true},
        {"until", model_node_read_time, offsetof(struct model_node, window_until_ms), true},
    };
    struct model_node *n = out;

    n->window_from_ms = n->window_until_ms = 0;
    return v ? model_json_read(v, fields, ARRAY_LEN(fields), a, out, err) : 0;
}

/* null is what the encoder writes for a capacity that never binds. */
static int read_cpu(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    *(int64_t *)out = MODEL_UNLIMITED;
    return model_json_read_milli(v, a, out, err);
}

static int read_memory(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    *(int64_t *)out = MODEL_UNLIMITED;
    return model_json_read_bytes(v, a, out, err);
}

static int read_mig_milli(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    int64_t milli = 0;
    int r;

    r = v ? model_json_read_range(v, 0, 1000, &milli, err) : 0;
    if (r == 0)
        *(int32_t *)out = (int32_t)milli;
    return r;
}

static int list_length(struct json_object *v, int most, const char *what, size_t *ret_count,
                       struct err *err)
{
    if (!json_object_is_type(v, json_type_array) || json_object_array_length(v) > (size_t)most)
        return err_set(err, -EINVAL, ERR_INVALID, NULL, NULL, "must be an array of at most %d %s",
                       most, what);
    *ret_count = json_object_array_length(v);
    return 0;
}

static int read_entry(struct json_object *list, size_t i, const struct model_json_field *fields,
                      size_t field_count, struct arena *a, void *out, struct err *err)
{
    int r = model_json_read(json_object_array_get_idx(list, i), fields, field_count, a, out, err);

    if (r < 0)
        model_json_in(err, "[%zu]", i);
    return r;
}

/* OUT is the whole node. */
static int read_devices(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    static const struct model_json_field fields[] = {
        {"uuid", model_json_read_string, offsetof(struct model_device, uuid)},
        {"type", model_json_read_string, offsetof(struct model_device, type)},
        {"memory", read_memory, offsetof(struct model_device, memory_bytes), true},
        {"mig_profile", model_json_read_string, offsetof(struct model_device, mig_profile)},
        {"mig_milli", read_mig_milli, offsetof(struct model_device, mig_milli)},
        {"simulated", model_json_read_bool, offsetof(struct model_device, simulated)},
        {"path", model_json_read_string, offsetof(struct model_device, path)},
    };
    struct model_node *n = out;
    struct model_device *devices;
    size_t count = 0;
    int r = list_length(v, MODEL_DEVICES_MAX, "devices", &count, err);

    devices = arena_new_array(a, struct model_device, count + 1);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = read_entry(v, i, fields, ARRAY_LEN(fields), a, &devices[i], err);
    if (r < 0)
        return r;
    n->devices = devices;
    n->device_count = (int32_t)count;
    return 0;
}

/* OUT is the whole node. */
static int read_backends(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    static const struct model_json_field fields[] = {
        {"name", model_json_read_name, offsetof(struct model_backend, name), true},
        {"state", read_backend_state, offsetof(struct model_backend, state), true},
        {"reason", model_json_read_string, offsetof(struct model_backend, reason)},
    };
    struct model_node *n = out;
    struct model_backend *backends;
    size_t count = 0;
    int r = v ? list_length(v, BACKENDS_MAX, "backends", &count, err) : 0;

    backends = arena_new_array(a, struct model_backend, count + 1);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = read_entry(v, i, fields, ARRAY_LEN(fields), a, &backends[i], err);
    if (r < 0)
        return r;
    n->backends = backends;
    n->backend_count = (int32_t)count;
    return 0;
}

int model_node_decode(const char *text, size_t len, struct arena *arena, struct model_node *n,
                      struct err *err)
{
#define FIELD(member) offsetof(struct node_row, member)
    static const struct model_json_field fields[] = {
        {"id", read_id, FIELD(id)},
        {"name", model_json_read_name, FIELD(node.name), true},
        {"cluster", model_json_read_string, FIELD(node.cluster)},
        {"state", read_state, FIELD(node.state)},
        {"drained", model_json_read_bool, FIELD(node.drained)},
        {"maintenance", read_window, FIELD(node)},
        {"gpu_type", model_json_read_string, FIELD(node.gpu_type)},
        {"sharing", model_json_read_string, FIELD(node.sharing)},
        {"sharing_backends", read_backends, FIELD(node)},
        {"limits", model_json_read_string, FIELD(node.limits)},
        {"isolation", model_json_read_string, FIELD(node.isolation)},
        {"cpu", read_cpu, FIELD(node.cpu_milli)},
        {"memory", read_memory, FIELD(node.memory_bytes)},
        {"devices", read_devices, FIELD(node), true},
        {"labels", model_read_node_labels, FIELD(labels)},
    };
#undef FIELD
    _cleanup_(json_object_putp) struct json_object *json = NULL;
    struct node_row row = {.node = *n, .id = (int64_t)n->id};
    int r;

    row.labels = (struct model_pairs){n->labels, n->label_count};
    r = model_json_parse(text, len, &json, err);
    if (r == 0)
        r = model_json_read(json, fields, ARRAY_LEN(fields), arena, &row, err);
    if (r < 0)
        return r;
    row.node.id = (uint64_t)row.id;
    row.node.labels = row.labels.items;
    row.node.label_count = row.labels.count;
    *n = row.node;
    return 0;
}
