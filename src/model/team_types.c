/* SPDX-License-Identifier: Apache-2.0 */
#include "model/team_types.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/qty.h"
#include "model/amount.h"
#include "model/check.h"
#include "model/json.h"

DEFINE_CLEANUP(struct json_object *, json_object_put, json_object_putp)

/* A copy of the list with room for MORE. */
static struct model_type_quota *grown(const struct model_team *t, int32_t more, struct arena *a)
{
    struct model_type_quota *types =
        arena_new_array(a, struct model_type_quota, (size_t)t->type_count + (size_t)more + 1);

    for (int32_t i = 0; i < t->type_count; i++)
        types[i] = t->types[i];
    return types;
}

/* Drops what states nothing any more. */
static void set_types(struct model_team *t, struct model_type_quota *types, int32_t count)
{
    int32_t kept = 0;

    for (int32_t i = 0; i < count; i++)
        if (types[i].guarantee != MODEL_UNLIMITED || types[i].limit != MODEL_UNLIMITED)
            types[kept++] = types[i];
    t->types = kept > 0 ? types : NULL;
    t->type_count = kept;
}

/* The record of TYPE in the sorted list, made where there is none. */
static struct model_type_quota *record(struct model_type_quota *types, int32_t *count,
                                       const char *type, struct arena *a)
{
    int32_t at = 0;

    while (at < *count && strcmp(types[at].type, type) < 0)
        at++;
    if (at < *count && strcmp(types[at].type, type) == 0)
        return &types[at];
    for (int32_t i = *count; i > at; i--)
        types[i] = types[i - 1];
    ++*count;
    types[at] = (struct model_type_quota){arena_strdup(a, type), MODEL_UNLIMITED, MODEL_UNLIMITED};
    return &types[at];
}

void model_team_clear_types(struct model_team *t, bool limits, struct arena *a)
{
    struct model_type_quota *types = grown(t, 0, a);

    for (int32_t i = 0; i < t->type_count; i++)
        *(limits ? &types[i].limit : &types[i].guarantee) = MODEL_UNLIMITED;
    set_types(t, types, t->type_count);
}

/* ---- reading ---------------------------------------------------------------------------- */

static int read_one(struct json_object *v, const char *type, bool limits,
                    struct model_type_quota *types, int32_t *count, struct arena *a,
                    struct err *err)
{
    struct model_type_quota *q;
    int64_t milli = MODEL_UNLIMITED;
    int r = model_check_gpu_type(type, strlen(type), err);

    if (r == 0)
        r = model_json_read_milli(v, a, &milli, err);
    if (r == 0 && v && milli > MODEL_AMOUNT_MILLI_MAX)
        r = err_set(err, -ERANGE, ERR_OUT_OF_RANGE, NULL, NULL,
                    "is above the largest amount, 1000000000");
    if (r < 0) {
        model_json_in(err, "%.60s", type);
        return r;
    }
    q = record(types, count, type, a);
    *(limits ? &q->limit : &q->guarantee) = milli;
    if (*count > MODEL_TYPES_MAX)
        return err_set(err, -E2BIG, ERR_TOO_LARGE, NULL, "name fewer types",
                       "a team may state quotas of %d types", MODEL_TYPES_MAX);
    return 0;
}

static int read_types(struct json_object *v, struct arena *a, struct model_team *t, bool limits,
                      struct err *err)
{
    struct model_type_quota *types;
    int32_t count = t->type_count;
    int r = 0;

    if (v == NULL) {
        model_team_clear_types(t, limits, a);
        return 0;
    }
    if (!json_object_is_type(v, json_type_object))
        return err_set(err, -EINVAL, ERR_INVALID, NULL, "write {\"H100\": 4}",
                       "must be an object, not %s", model_json_type_name(v));
    if (json_object_object_length(v) > MODEL_TYPES_MAX)
        return err_set(err, -E2BIG, ERR_TOO_LARGE, NULL, "name fewer types",
                       "a team may state quotas of %d types", MODEL_TYPES_MAX);
    types = grown(t, MODEL_TYPES_MAX, a);
    json_object_object_foreach(v, type, amount)
    {
        r = read_one(amount, type, limits, types, &count, a, err);
        if (r < 0)
            return r;
    }
    set_types(t, types, count);
    return 0;
}

int model_team_read_type_guarantees(struct json_object *v, struct arena *a, void *out,
                                    struct err *err)
{
    return read_types(v, a, out, false, err);
}

int model_team_read_type_limits(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    return read_types(v, a, out, true, err);
}

/* ---- rules ------------------------------------------------------------------------------ */

int model_team_harden_types(struct model_team *t, struct arena *a, struct err *err)
{
    struct model_type_quota *types = grown(t, 0, a);

    for (int32_t i = 0; i < t->type_count; i++) {
        struct model_type_quota *q = &types[i];

        if (q->guarantee == MODEL_UNLIMITED)
            continue;
        if (q->limit != MODEL_UNLIMITED && q->limit != q->guarantee)
            return err_set(err, -EINVAL, ERR_INVALID, "limit.gpu_types",
                           "leave the limit out, or choose quota fair",
                           "limit.gpu_types.%s differs from the guarantee, which is the limit of a "
                           "hard quota",
                           q->type);
        q->limit = q->guarantee;
    }
    set_types(t, types, t->type_count);
    return 0;
}

int model_team_check_types(const struct model_team *t, struct err *err)
{
    char text[QTY_TEXT_MAX], other[QTY_TEXT_MAX];
    int64_t sum = 0;

    for (int32_t i = 0; i < t->type_count; i++) {
        const struct model_type_quota *q = &t->types[i];

        if (q->guarantee == MODEL_UNLIMITED)
            continue;
        sum += q->guarantee;
        if (q->limit < q->guarantee)
            return err_set(err, -EINVAL, ERR_INVALID, "limit.gpu_types",
                           "raise the limit or lower the guarantee",
                           "limit.gpu_types.%s %s is below the guarantee of %s", q->type,
                           model_amount_format(MODEL_GPU_MILLI, q->limit, text),
                           model_amount_format(MODEL_GPU_MILLI, q->guarantee, other));
    }
    if (sum > t->guarantee[MODEL_GPU_MILLI])
        return err_set(err, -EINVAL, ERR_INVALID, "guarantee.gpu_types",
                       "raise guarantee.gpu to at least their sum",
                       "guarantee.gpu_types add up to %s, above guarantee.gpu %s",
                       model_amount_format(MODEL_GPU_MILLI, sum, text),
                       model_amount_format(MODEL_GPU_MILLI, t->guarantee[MODEL_GPU_MILLI], other));
    return 0;
}

/* ---- writing ---------------------------------------------------------------------------- */

static int64_t stated(const struct model_type_quota *q, bool limits)
{
    return limits ? q->limit : q->guarantee;
}

void model_team_encode_types(const struct model_team *t, bool limits, struct json_writer *w)
{
    bool any = false;

    for (int32_t i = 0; i < t->type_count; i++)
        any = any || stated(&t->types[i], limits) != MODEL_UNLIMITED;
    if (!any)
        return;
    json_key(w, "gpu_types");
    json_begin_object(w);
    for (int32_t i = 0; i < t->type_count; i++)
        if (stated(&t->types[i], limits) != MODEL_UNLIMITED)
            model_milli_encode(w, t->types[i].type, stated(&t->types[i], limits));
    json_end_object(w);
}

void model_team_types_text(const struct model_team *t, struct strbuf *out)
{
    struct json_writer w;

    json_writer_init(&w, out);
    json_begin_object(&w);
    json_key(&w, "guarantee");
    json_begin_object(&w);
    model_team_encode_types(t, false, &w);
    json_end_object(&w);
    json_key(&w, "limit");
    json_begin_object(&w);
    model_team_encode_types(t, true, &w);
    json_end_object(&w);
    json_end_object(&w);
}

static int read_guarantee(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    static const struct model_json_field fields[] = {
        {"gpu_types", model_team_read_type_guarantees, 0}};

    return model_json_read(v, fields, ARRAY_LEN(fields), a, out, err);
}

static int read_limit(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    static const struct model_json_field fields[] = {{"gpu_types", model_team_read_type_limits, 0}};

    return model_json_read(v, fields, ARRAY_LEN(fields), a, out, err);
}

int model_team_types_parse(const char *text, struct arena *arena, struct model_team *t,
                           struct err *err)
{
    static const struct model_json_field fields[] = {
        {"guarantee", read_guarantee, 0, true},
        {"limit", read_limit, 0, true},
    };
    _cleanup_(json_object_putp) struct json_object *json = NULL;
    int r;

    if (*text == '\0')
        return 0;
    r = model_json_parse(text, strlen(text), &json, err);
    return r < 0 ? r : model_json_read(json, fields, ARRAY_LEN(fields), arena, t, err);
}

void model_team_copy_types(struct model_team *t, struct arena *arena)
{
    struct model_type_quota *types = grown(t, 0, arena);

    for (int32_t i = 0; i < t->type_count; i++)
        types[i].type = arena_strdup(arena, types[i].type);
    set_types(t, types, t->type_count);
}
