/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Kubernetes ResourceQuota as a team. What `requests` reserves is the guarantee, what `limits`
 * allows is the limit; without a limit the quota is hard, as it is in Kubernetes.
 */
#include "model/manifest_quota.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strbuf.h"
#include "model/amount.h"
#include "model/json.h"
#include "model/team.h"

#define QUANTITY_FORM "use a Kubernetes quantity such as 8, 500m, 1k or 16Gi"

typedef __int128 wide;

/* Multipliers of the suffixes, in thousandths. */
static const struct {
    const char *suffix;
    int64_t milli;
} suffixes[] = {
    {"m", 1},
    {"", 1000},
    {"k", 1000000},
    {"M", 1000000000},
    {"G", 1000000000000},
    {"T", 1000000000000000},
    {"P", 1000000000000000000},
    {"Ki", 1000LL << 10},
    {"Mi", 1000LL << 20},
    {"Gi", 1000LL << 30},
    {"Ti", 1000LL << 40},
    {"Pi", 1000LL << 50},
};

static int refuse_quantity(const char *text, int errnum, const char *why, struct err *err)
{
    return err_set(err, errnum, errnum == -ERANGE ? ERR_OUT_OF_RANGE : ERR_INVALID, NULL,
                   QUANTITY_FORM, "'%.40s' %s", text, why);
}

#define PLACES_MAX 18

/* `digits[.digits]` as NUMBER / 10^PLACES, NUMBER -1 where it does not fit; returns what follows,
 * NULL if there is no number. */
static const char *parse_digits(const char *p, int64_t *ret_number, int *ret_places)
{
    int64_t number = 0;
    bool fits = true;
    int places = -1; /* -1 = before the point */

    if (*p < '0' || *p > '9')
        return NULL;
    for (;; p++) {
        if (*p == '.' && places < 0 && p[1] >= '0' && p[1] <= '9') {
            places = 0;
            continue;
        }
        if (*p < '0' || *p > '9')
            break;
        fits = fits && !__builtin_mul_overflow(number, 10, &number) &&
               !__builtin_add_overflow(number, *p - '0', &number);
        places += places >= 0 && places <= PLACES_MAX;
    }
    *ret_number = fits ? number : -1;
    *ret_places = places > 0 ? places : 0;
    return p;
}

/*
 * A quantity in units of UNIT thousandths: 1 gives milli, 1000 gives whole ones (bytes, counts).
 * Exact: what is not a whole number of units is refused.
 */
static int parse_quantity(const char *text, int64_t unit, int64_t max, int64_t *ret_value,
                          struct err *err)
{
    int64_t number = 0, milli = 0;
    const char *rest;
    int places = 0;
    wide value, divisor = unit;

    if (text[0] == '-')
        return refuse_quantity(text, -ERANGE, "is negative", err);
    rest = parse_digits(text, &number, &places);
    for (size_t i = 0; rest && i < ARRAY_LEN(suffixes); i++) {
        if (strcmp(rest, suffixes[i].suffix) == 0)
            milli = suffixes[i].milli;
    }
    if (milli == 0)
        return refuse_quantity(text, -EINVAL, "is not a quantity", err);
    if (places > PLACES_MAX)
        return refuse_quantity(text, -ERANGE, "is too precise", err);
    if (number < 0)
        return refuse_quantity(text, -ERANGE, "is too large", err);
    for (int i = 0; i < places; i++)
        divisor *= 10;
    value = (wide)number * milli;
    if (value % divisor != 0)
        return refuse_quantity(text, -ERANGE, "is too precise", err);
    if (value / divisor > max)
        return refuse_quantity(text, -ERANGE, "is too large", err);
    *ret_value = (int64_t)(value / divisor);
    return 0;
}

/* ---- keys of spec.hard ------------------------------------------------------------------ */

#define VOLUMES MODEL_RESOURCE_COUNT
#define ABSENT (-1)

struct quota {
    int64_t requests[MODEL_RESOURCE_COUNT], limits[MODEL_RESOURCE_COUNT];
    int64_t volumes;
};

static const struct {
    const char *key;
    int resource; /* enum model_resource, or VOLUMES */
    bool limit;
} keys[] = {
    {"requests.nvidia.com/gpu", MODEL_GPU_MILLI, false},
    {"limits.nvidia.com/gpu", MODEL_GPU_MILLI, true},
    {"requests.cpu", MODEL_CPU_MILLI, false},
    {"cpu", MODEL_CPU_MILLI, false},
    {"limits.cpu", MODEL_CPU_MILLI, true},
    {"requests.memory", MODEL_MEMORY_BYTES, false},
    {"memory", MODEL_MEMORY_BYTES, false},
    {"limits.memory", MODEL_MEMORY_BYTES, true},
    {"persistentvolumeclaims", VOLUMES, true},
};

static int64_t *slot_of(struct quota *q, size_t i)
{
    if (keys[i].resource == VOLUMES)
        return &q->volumes;
    return keys[i].limit ? &q->limits[keys[i].resource] : &q->requests[keys[i].resource];
}

static int read_hard_entry(struct quota *q, const char *key, struct json_object *v,
                           struct strbuf *ignored, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const char *text = NULL;
        int64_t *slot = slot_of(q, i), value = 0;
        int r;

        if (strcmp(keys[i].key, key) != 0)
            continue;
        r = model_json_quantity_text(v, &text, err);
        if (r == 0)
            r = parse_quantity(
                text,
                keys[i].resource == MODEL_MEMORY_BYTES || keys[i].resource == VOLUMES ? 1000 : 1,
                keys[i].resource == MODEL_MEMORY_BYTES ? MODEL_AMOUNT_BYTES_MAX
                : keys[i].resource == VOLUMES          ? 1000000000
                                                       : MODEL_AMOUNT_MILLI_MAX,
                &value, err);
        if (r < 0)
            return r;
        /* "cpu" and "requests.cpu" are two names of one thing. */
        if (*slot != ABSENT && *slot != value)
            return err_set(err, -EINVAL, ERR_INVALID, NULL, "keep one of the two",
                           "'%s' contradicts another entry for the same resource", text);
        *slot = value;
        return 0;
    }
    strbuf_addf(ignored, "%sspec.hard.%s", ignored->len ? ", " : "", key);
    return 0;
}

static void encode_amounts(struct json_writer *w, const char *name, const int64_t *amounts,
                           int64_t volumes)
{
    json_key(w, name);
    json_begin_object(w);
    for (int i = 0; i < MODEL_RESOURCE_COUNT; i++) {
        if (amounts[i] != ABSENT)
            model_amount_encode(w, model_resource_name((enum model_resource)i),
                                (enum model_resource)i, amounts[i]);
    }
    if (volumes != ABSENT)
        json_key_i64(w, "volumes", volumes);
    json_end_object(w);
}

/* A resource that is named at all is set as a whole, so that applying twice is applying once. */
static void complete(struct quota *q)
{
    for (int i = 0; i < MODEL_RESOURCE_COUNT; i++) {
        if (q->requests[i] == ABSENT && q->limits[i] != ABSENT)
            q->requests[i] = 0;
        else if (q->limits[i] == ABSENT)
            q->limits[i] = q->requests[i];
    }
}

int model_manifest_quota(struct json_object *spec, const char *team, struct strbuf *ret_body,
                         struct strbuf *ignored, struct err *err)
{
    struct quota q = {.volumes = ABSENT};
    struct json_object *hard = NULL;
    struct json_writer w;

    if (!json_object_object_get_ex(spec, "hard", &hard) ||
        !json_object_is_type(hard, json_type_object))
        return err_set(err, -EINVAL, ERR_MISSING, "spec.hard",
                       "add it: {\"requests.nvidia.com/gpu\": \"8\"}",
                       "spec.hard is missing or not an object");
    for (int i = 0; i < MODEL_RESOURCE_COUNT; i++)
        q.requests[i] = q.limits[i] = ABSENT;
    json_object_object_foreach(hard, key, value)
    {
        int r;

        r = read_hard_entry(&q, key, value, ignored, err);
        if (r < 0) {
            model_json_in(err, "spec.hard.%.60s", key);
            return r;
        }
    }
    complete(&q);
    json_writer_init(&w, ret_body);
    json_begin_object(&w);
    json_key_string(&w, "name", team);
    encode_amounts(&w, "guarantee", q.requests, ABSENT);
    encode_amounts(&w, "limit", q.limits, q.volumes);
    json_end_object(&w);
    return 0;
}
