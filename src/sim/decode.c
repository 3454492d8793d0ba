/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/decode.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/qty.h"
#include "base/text.h"

int sim_decode_wrong(struct sim_decoder *d, struct json_object *value, const char *want)
{
    return err_set(d->err, -EINVAL, ERR_INVALID, NULL, NULL, "expected %s, found %s", want,
                   json_type_to_name(json_object_get_type(value)));
}

static const struct sim_field *field_find(const struct sim_field *fields, size_t count,
                                          const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(fields[i].name, name) == 0)
            return &fields[i];
    }
    return NULL;
}

int sim_decode_object(struct sim_decoder *d, struct json_object *value,
                      const struct sim_field *fields, size_t count, void *dst)
{
    if (!json_object_is_type(value, json_type_object))
        return sim_decode_wrong(d, value, "an object");
    json_object_object_foreach(value, key, child)
    {
        const struct sim_field *f = field_find(fields, count, key);
        if (f == NULL)
            return err_set(d->err, -EINVAL, ERR_UNKNOWN_FIELD, NULL, "check its spelling",
                           "unknown field '%.80s'", key);
        int r = f->decode(d, child, (char *)dst + f->offset);
        if (r < 0) {
            err_prefix_field(d->err, "%s", key);
            return r;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if ((fields[i].flags & SIM_REQUIRED) != 0 &&
            !json_object_object_get_ex(value, fields[i].name, NULL))
            return err_set(d->err, -EINVAL, ERR_MISSING, NULL, NULL, "field '%s' is missing",
                           fields[i].name);
    }
    return 0;
}

static int count_check(struct sim_decoder *d, size_t n)
{
    if (n > SIM_ITEMS_MAX)
        return err_set(d->err, -ERANGE, ERR_TOO_LARGE, NULL, NULL, "more than %d elements",
                       SIM_ITEMS_MAX);
    return 0;
}

static void element_preset(char *item, const void *preset, size_t size)
{
    if (preset != NULL)
        memcpy(item, preset, size);
}

int sim_decode_array(struct sim_decoder *d, struct json_object *value, size_t size,
                     const void *preset, sim_decode_fn *one, void **ret_items, uint32_t *ret_count)
{
    if (!json_object_is_type(value, json_type_array))
        return sim_decode_wrong(d, value, "an array");
    size_t n = json_object_array_length(value);
    int r = count_check(d, n);
    if (r < 0)
        return r;
    char *items = arena_alloc_array(d->arena, n + 1, size);
    for (size_t i = 0; i < n; i++) {
        element_preset(items + i * size, preset, size);
        r = one(d, json_object_array_get_idx(value, i), items + i * size);
        if (r < 0) {
            err_prefix_field(d->err, "[%zu]", i);
            return r;
        }
    }
    *ret_items = items;
    *ret_count = (uint32_t)n;
    return 0;
}

int sim_decode_map(struct sim_decoder *d, struct json_object *value, size_t size,
                   const void *preset, sim_decode_fn *one, void **ret_items, uint32_t *ret_count)
{
    if (!json_object_is_type(value, json_type_object))
        return sim_decode_wrong(d, value, "an object");
    size_t n = (size_t)json_object_object_length(value);
    int r = count_check(d, n);
    if (r < 0)
        return r;
    char *items = arena_alloc_array(d->arena, n + 1, size);
    char *item = items;
    json_object_object_foreach(value, key, child)
    {
        element_preset(item, preset, size);
        *(const char **)(void *)item = arena_strdup(d->arena, key);
        r = one(d, child, item);
        if (r < 0) {
            err_prefix_field(d->err, "%.60s", key);
            return r;
        }
        item += size;
    }
    *ret_items = items;
    *ret_count = (uint32_t)n;
    return 0;
}

static bool has_control(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
            return true;
    }
    return false;
}

int sim_decode_name(struct sim_decoder *d, struct json_object *value, void *dst)
{
    if (!json_object_is_type(value, json_type_string))
        return sim_decode_wrong(d, value, "a text");
    const char *s = json_object_get_string(value);
    size_t n = (size_t)json_object_get_string_len(value);
    if (n == 0 || n > SIM_TEXT_MAX || has_control(s, n) || !text_is_utf8(s, n))
        return err_set(d->err, -EINVAL, ERR_INVALID, NULL, NULL,
                       "expected a text of 1 to %d bytes without control characters", SIM_TEXT_MAX);
    *(const char **)dst = arena_strndup(d->arena, s, n);
    return 0;
}

int sim_decode_name_or_null(struct sim_decoder *d, struct json_object *value, void *dst)
{
    if (value == NULL) {
        *(const char **)dst = NULL;
        return 0;
    }
    return sim_decode_name(d, value, dst);
}

static int integer_between(struct sim_decoder *d, struct json_object *value, int64_t min,
                           int64_t max, int64_t *ret_value)
{
    if (!json_object_is_type(value, json_type_int))
        return sim_decode_wrong(d, value, "an integer");
    int64_t n = json_object_get_int64(value);
    if (n < min || n > max)
        return err_set(d->err, -ERANGE, ERR_OUT_OF_RANGE, NULL, NULL,
                       "%s is not between %lld and %lld", json_object_to_json_string(value),
                       (long long)min, (long long)max);
    *ret_value = n;
    return 0;
}

int sim_decode_amount(struct sim_decoder *d, struct json_object *value, void *dst)
{
    return integer_between(d, value, 0, SIM_AMOUNT_MAX, dst);
}

int sim_decode_mib(struct sim_decoder *d, struct json_object *value, void *dst)
{
    int64_t mib = 0;
    int r = integer_between(d, value, 0, SIM_MIB_MAX, &mib);
    if (r == 0)
        *(int64_t *)dst = mib << 20;
    return r;
}

int sim_decode_seconds(struct sim_decoder *d, struct json_object *value, void *dst)
{
    if (json_object_is_type(value, json_type_double)) {
        int64_t ms;
        /* json-c keeps the source text of a number, so that 0.1 stays exact */
        int r = qty_parse_milli(json_object_to_json_string(value), &ms, d->err);
        if (r == 0)
            *(int64_t *)dst = ms;
        return r;
    }
    int64_t s = 0;
    int r = integer_between(d, value, 0, SIM_AMOUNT_MAX / 1000, &s);
    if (r == 0)
        *(int64_t *)dst = s * 1000;
    return r;
}

int sim_decode_count(struct sim_decoder *d, struct json_object *value, void *dst)
{
    int64_t n = 0;
    int r = integer_between(d, value, 0, SIM_ITEMS_MAX, &n);
    if (r == 0)
        *(uint32_t *)dst = (uint32_t)n;
    return r;
}

int sim_decode_priority(struct sim_decoder *d, struct json_object *value, void *dst)
{
    int64_t n = 0;
    int r = integer_between(d, value, INT32_MIN, INT32_MAX, &n);
    if (r == 0)
        *(int32_t *)dst = (int32_t)n;
    return r;
}

int sim_decode_bool(struct sim_decoder *d, struct json_object *value, void *dst)
{
    if (!json_object_is_type(value, json_type_boolean))
        return sim_decode_wrong(d, value, "true or false");
    *(bool *)dst = json_object_get_boolean(value);
    return 0;
}
