/* SPDX-License-Identifier: Apache-2.0 */
#include "model/team.h"

#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/qty.h"
#include "model/amount.h"
#include "model/json.h"
#include "model/team_types.h"

#define WEIGHT_MAX 1000000
#define PRIORITY_MAX 1000000
#define VOLUMES_MAX 1000000000

static const char *const quota_names[] = {
    [MODEL_QUOTA_FAIR] = "fair",
    [MODEL_QUOTA_HARD] = "hard",
};

const char *model_quota_name(enum model_quota q)
{
    return quota_names[q];
}

int model_quota_parse(const char *text, enum model_quota *ret_quota)
{
    for (size_t i = 0; i < ARRAY_LEN(quota_names); i++) {
        if (strcmp(text, quota_names[i]) == 0) {
            *ret_quota = (enum model_quota)i;
            return 0;
        }
    }
    return -EINVAL;
}

void model_team_init(struct model_team *t)
{
    *t = (struct model_team){.weight = 1, .priority = 100, .volume_limit = MODEL_UNLIMITED};
    for (int i = 0; i < MODEL_RESOURCE_COUNT; i++)
        t->limit[i] = MODEL_UNLIMITED;
}

/* ---- reading ---------------------------------------------------------------------------- */

/* One amount; null is NONE (no guarantee, no limit). */
static int read_amount(struct json_object *v, int64_t none, int64_t max,
                       int (*read)(struct json_object *v, struct arena *a, void *out,
                                   struct err *err),
                       const char *largest, void *out, struct err *err)
{
    int64_t value = none;
    int r;

    r = read(v, NULL, &value, err);
    if (r < 0)
        return r;
    if (v && value > max)
        return err_set(err, -ERANGE, ERR_OUT_OF_RANGE, NULL, NULL,
                       "is above the largest amount, %s", largest);
    *(int64_t *)out = value;
    return 0;
}

static int read_guaranteed_milli(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    return read_amount(v, 0, MODEL_AMOUNT_MILLI_MAX, model_json_read_milli, "1000000000", out, err);
}

static int read_guaranteed_bytes(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    return read_amount(v, 0, MODEL_AMOUNT_BYTES_MAX, model_json_read_bytes, "8PiB", out, err);
}

static int read_limit_milli(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    return read_amount(v, MODEL_UNLIMITED, MODEL_AMOUNT_MILLI_MAX, model_json_read_milli,
                       "1000000000", out, err);
}

static int read_limit_bytes(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    return read_amount(v, MODEL_UNLIMITED, MODEL_AMOUNT_BYTES_MAX, model_json_read_bytes, "8PiB",
                       out, err);
}

static int read_volumes(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    if (v == NULL) {
        *(int64_t *)out = MODEL_UNLIMITED;
        return 0;
    }
    return model_json_read_range(v, 0, VOLUMES_MAX, out, err);
}

static int read_guarantee(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    static const struct model_json_field fields[] = {
        {"gpu", read_guaranteed_milli, offsetof(struct model_team, guarantee[MODEL_GPU_MILLI])},
        {"cpu", read_guaranteed_milli, offsetof(struct model_team, guarantee[MODEL_CPU_MILLI])},
        {"memory", read_guaranteed_bytes,
         offsetof(struct model_team, guarantee[MODEL_MEMORY_BYTES])},
        {"gpu_types", model_team_read_type_guarantees, 0},
    };

    if (v)
        return model_json_read(v, fields, ARRAY_LEN(fields), a, out, err);
    model_team_clear_types(out, false, a);
    memset(((struct model_team *)out)->guarantee, 0, sizeof(int64_t) * MODEL_RESOURCE_COUNT);
    return 0;
}

static int read_limit(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    static const struct model_json_field fields[] = {
        {"gpu", read_limit_milli, offsetof(struct model_team, limit[MODEL_GPU_MILLI])},
        {"cpu", read_limit_milli, offsetof(struct model_team, limit[MODEL_CPU_MILLI])},
        {"memory", read_limit_bytes, offsetof(struct model_team, limit[MODEL_MEMORY_BYTES])},
        {"volumes", read_volumes, offsetof(struct model_team, volume_limit)},
        {"gpu_types", model_team_read_type_limits, 0},
    };
    struct model_team *t = out;

    if (v)
        return model_json_read(v, fields, ARRAY_LEN(fields), a, out, err);
    for (int i = 0; i < MODEL_RESOURCE_COUNT; i++)
        t->limit[i] = MODEL_UNLIMITED;
    t->volume_limit = MODEL_UNLIMITED;
    model_team_clear_types(t, true, a);
    return 0;
}

static int read_parent(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    *(const char **)out = NULL;
    return model_json_read_name(v, a, out, err);
}

static int read_weight(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    return v ? model_json_read_range(v, 0, WEIGHT_MAX, out, err) : 0;
}

static int read_priority(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    int64_t value = *(int32_t *)out;
    int r;

    r = v ? model_json_read_range(v, -PRIORITY_MAX, PRIORITY_MAX, &value, err) : 0;
    if (r == 0)
        *(int32_t *)out = (int32_t)value;
    return r;
}

static int read_quota(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    const char *text = NULL;
    int r;

    r = model_json_read_string(v, a, &text, err);
    if (r < 0 || text == NULL)
        return r;
    r = model_quota_parse(text, out);
    if (r < 0)
        return err_set(err, r, ERR_INVALID, NULL, "use fair or hard", "'%.40s' is not a quota",
                       text);
    return 0;
}

/* The limit of a hard quota is the guarantee; what JSON says beside it must agree. */
static int harden(struct json_object *json, struct model_team *t, struct err *err)
{
    struct json_object *limit = NULL;

    json_object_object_get_ex(json, "limit", &limit);
    for (int i = 0; i < MODEL_RESOURCE_COUNT; i++) {
        const char *resource = model_resource_name((enum model_resource)i);
        bool bound = i == MODEL_GPU_MILLI || t->guarantee[i] > 0;
        int64_t hard = bound ? t->guarantee[i] : MODEL_UNLIMITED;
        struct json_object *said = NULL;
        char field[32];

        json_object_object_get_ex(limit, resource, &said);
        snprintf(field, sizeof(field), "limit.%s", resource);
        if (said && t->limit[i] != hard)
            return err_set(
                err, -EINVAL, ERR_INVALID, field, "leave the limit out, or choose quota fair",
                "limit.%s differs from the guarantee, which is the limit of a hard quota",
                resource);
        t->limit[i] = hard;
    }
    return 0;
}

static int check_limits(const struct model_team *t, struct err *err)
{
    for (int i = 0; i < MODEL_RESOURCE_COUNT; i++) {
        const char *resource = model_resource_name((enum model_resource)i);
        char limit[QTY_TEXT_MAX], guarantee[QTY_TEXT_MAX], field[32];

        if (t->limit[i] >= t->guarantee[i])
            continue;
        snprintf(field, sizeof(field), "limit.%s", resource);
        return err_set(err, -EINVAL, ERR_INVALID, field, "raise the limit or lower the guarantee",
                       "limit.%s %s is below the guarantee of %s", resource,
                       model_amount_format((enum model_resource)i, t->limit[i], limit),
                       model_amount_format((enum model_resource)i, t->guarantee[i], guarantee));
    }
    return 0;
}

int model_team_decode(struct json_object *json, struct arena *arena, struct model_team *t,
                      struct err *err)
{
    static const struct model_json_field fields[] = {
        {"name", model_json_read_name, offsetof(struct model_team, name)},
        {"parent", read_parent, offsetof(struct model_team, parent)},
        {"weight", read_weight, offsetof(struct model_team, weight)},
        {"priority", read_priority, offsetof(struct model_team, priority)},
        {"guarantee", read_guarantee, 0},
        {"limit", read_limit, 0},
        {"quota", read_quota, offsetof(struct model_team, quota)},
        {"idle", model_idle_read, offsetof(struct model_team, idle)},
    };
    struct model_team team = *t;
    int r;

    r = model_json_read(json, fields, ARRAY_LEN(fields), arena, &team, err);
    if (r < 0)
        return r;
    if (team.name == NULL)
        return err_set(err, -EINVAL, ERR_MISSING, "name", "add it", "name is missing");
    if (team.parent && strcmp(team.parent, team.name) == 0)
        return err_set(err, -EINVAL, ERR_INVALID, "parent", "name another team, or none",
                       "parent '%.60s' is the team itself", team.parent);
    r = team.quota == MODEL_QUOTA_HARD ? harden(json, &team, err) : check_limits(&team, err);
    if (r == 0 && team.quota == MODEL_QUOTA_HARD)
        r = model_team_harden_types(&team, arena, err);
    if (r == 0)
        r = model_team_check_types(&team, err);
    if (r < 0)
        return r;
    *t = team;
    return 0;
}

/* ---- writing ---------------------------------------------------------------------------- */

void model_team_encode_fields(const struct model_team *t, struct json_writer *w)
{
    json_key_i64(w, "id", (int64_t)t->id);
    json_key_i64(w, "version", (int64_t)t->version);
    json_key_string(w, "name", t->name);
    json_key_string(w, "parent", t->parent);
    json_key_string(w, "quota", model_quota_name(t->quota));
    json_key_i64(w, "weight", t->weight);
    json_key_i64(w, "priority", t->priority);
    json_key(w, "idle");
    model_idle_encode(t->idle, w);
    json_key(w, "guarantee");
    json_begin_object(w);
    for (int i = 0; i < MODEL_RESOURCE_COUNT; i++)
        model_amount_encode(w, model_resource_name((enum model_resource)i), (enum model_resource)i,
                            t->guarantee[i]);
    model_team_encode_types(t, false, w);
    json_end_object(w);
    json_key(w, "limit");
    json_begin_object(w);
    for (int i = 0; i < MODEL_RESOURCE_COUNT; i++)
        model_amount_encode(w, model_resource_name((enum model_resource)i), (enum model_resource)i,
                            t->limit[i]);
    json_key(w, "volumes");
    if (t->volume_limit == MODEL_UNLIMITED)
        json_null(w);
    else
        json_i64(w, t->volume_limit);
    model_team_encode_types(t, true, w);
    json_end_object(w);
}

void model_team_encode(const struct model_team *t, struct json_writer *w)
{
    json_begin_object(w);
    model_team_encode_fields(t, w);
    json_end_object(w);
}
