/* SPDX-License-Identifier: Apache-2.0 */
#include "model/json.h"

#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "base/qty.h"
#include "model/check.h"

#define STRING_BYTES_MAX 4095

static int refuse_type(struct json_object *v, const char *wanted, struct err *err)
{
    return err_set(err, -EINVAL, ERR_INVALID, NULL, NULL, "must be %s, not %s", wanted,
                   model_json_type_name(v));
}

static int read_text(struct json_object *v, size_t max, const char **ret_text, size_t *ret_len,
                     struct err *err)
{
    size_t len;

    if (!json_object_is_type(v, json_type_string))
        return refuse_type(v, "a string", err);
    len = (size_t)json_object_get_string_len(v);
    if (len > max)
        return err_set(err, -ERANGE, ERR_OUT_OF_RANGE, NULL, NULL,
                       "is %zu bytes long; %zu are allowed", len, max);
    *ret_text = json_object_get_string(v);
    *ret_len = len;
    return 0;
}

int model_json_read_string(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    const char *text = NULL;
    size_t len = 0;
    int r;

    if (v == NULL)
        return 0;
    r = read_text(v, STRING_BYTES_MAX, &text, &len, err);
    if (r < 0)
        return r;
    *(const char **)out = arena_strndup(a, text, len);
    return 0;
}

int model_json_read_name(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    const char *text = NULL;
    int r = model_json_read_string(v, a, &text, err);

    if (r < 0 || text == NULL)
        return r;
    r = model_check_name(text, strlen(text), err);
    if (r == 0)
        *(const char **)out = text;
    return r;
}

int model_json_read_bool(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    if (v == NULL)
        return 0;
    if (!json_object_is_type(v, json_type_boolean))
        return refuse_type(v, "true or false", err);
    *(bool *)out = json_object_get_boolean(v);
    return 0;
}

int model_json_read_range(struct json_object *v, int64_t min, int64_t max, int64_t *ret_value,
                          struct err *err)
{
    const char *text;
    char form[80];
    int64_t value;

    snprintf(form, sizeof(form), "use a whole number from %" PRId64 " to %" PRId64, min, max);
    if (!json_object_is_type(v, json_type_int)) {
        if (json_object_is_type(v, json_type_double) || json_object_is_type(v, json_type_string))
            return err_set(err, -EINVAL, ERR_INVALID, NULL, form, "'%.40s' is not a whole number",
                           json_object_get_string(v));
        return err_set(err, -EINVAL, ERR_INVALID, NULL, form, "must be a whole number, not %s",
                       model_json_type_name(v));
    }
    /* json-c saturates: above 2^63 only the unsigned view and the text tell. */
    text = json_object_get_string(v);
    value = json_object_get_int64(v);
    if (value < min || value > max || json_object_get_uint64(v) > INT64_MAX)
        return err_set(err, -ERANGE, ERR_OUT_OF_RANGE, NULL, form, "'%.40s' is out of range", text);
    *ret_value = value;
    return 0;
}

int model_json_read_i32(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    int64_t value = 0;
    int r;

    if (v == NULL)
        return 0;
    r = model_json_read_range(v, -INT32_MAX, INT32_MAX, &value, err);
    if (r == 0)
        *(int32_t *)out = (int32_t)value;
    return r;
}

int model_json_read_i64(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    int64_t value = 0;
    int r;

    if (v == NULL)
        return 0;
    r = model_json_read_range(v, -INT64_MAX, INT64_MAX, &value, err);
    if (r == 0)
        *(int64_t *)out = value;
    return r;
}

int model_json_quantity_text(struct json_object *v, const char **ret_text, struct err *err)
{
    if (!json_object_is_type(v, json_type_int) && !json_object_is_type(v, json_type_double) &&
        !json_object_is_type(v, json_type_string))
        return refuse_type(v, "a quantity", err);
    /* json-c keeps the source text of a double, so 0.25 stays exact. */
    *ret_text = json_object_get_string(v);
    return 0;
}

static int read_quantity(struct json_object *v, void *out,
                         int (*parse)(const char *text, int64_t *ret_value, struct err *err),
                         struct err *err)
{
    const char *text = NULL;
    int r;

    if (v == NULL)
        return 0;
    r = model_json_quantity_text(v, &text, err);
    return r < 0 ? r : parse(text, out, err);
}

int model_json_read_milli(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    return read_quantity(v, out, qty_parse_milli, err);
}

int model_json_read_bytes(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    return read_quantity(v, out, qty_parse_bytes, err);
}

int model_json_read_duration(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    return read_quantity(v, out, qty_parse_duration_ms, err);
}

int model_json_read_strings(struct json_object *v, size_t max,
                            int (*check)(const char *s, size_t len, struct err *err),
                            struct arena *arena, const char *const **ret_items, int32_t *ret_count,
                            struct err *err)
{
    const char **items;
    size_t count;

    if (!json_object_is_type(v, json_type_array))
        return refuse_type(v, "an array of strings", err);
    count = json_object_array_length(v);
    if (count > max)
        return err_set(err, -E2BIG, ERR_TOO_LARGE, NULL, NULL, "has %zu items; %zu are allowed",
                       count, max);
    items = arena_new_array(arena, const char *, count + 1);
    for (size_t i = 0; i < count; i++) {
        const char *text = NULL;
        size_t len = 0;
        int r;

        r = read_text(json_object_array_get_idx(v, i), SIZE_MAX, &text, &len, err);
        if (r == 0 && check)
            r = check(text, len, err);
        if (r < 0) {
            model_json_in(err, "[%zu]", i);
            return r;
        }
        items[i] = arena_strndup(arena, text, len);
    }
    *ret_items = items;
    *ret_count = (int32_t)count;
    return 0;
}
