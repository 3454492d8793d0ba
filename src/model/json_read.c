/* SPDX-License-Identifier: Apache-2.0 */
#include "model/json.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Names longer than this are no typo of ours. */
#define TYPO_NAME_MAX 24
#define TYPO_DISTANCE_MAX 2

void model_json_in(struct err *err, const char *fmt, ...)
{
    char part[sizeof(err->field)], former[sizeof(err->text)];
    size_t field_len;
    bool begins;
    va_list ap;

    if (err == NULL)
        return;
    va_start(ap, fmt);
    vsnprintf(part, sizeof(part), fmt, ap);
    va_end(ap);
    if (part[0] == '\0') /* an empty key */
        return;
    field_len = strlen(err->field);
    begins = strncmp(err->text, err->field, field_len) == 0;
    memcpy(former, err->text, sizeof(former));
    err_prefix_field(err, "%s", part);
    if (begins)
        snprintf(err->text, sizeof(err->text), "%s%s%s", err->field, field_len ? "" : " ",
                 former + field_len);
}

const char *model_json_type_name(struct json_object *v)
{
    switch (json_object_get_type(v)) {
    case json_type_null:
        return "null";
    case json_type_boolean:
        return "a boolean";
    case json_type_double:
    case json_type_int:
        return "a number";
    case json_type_object:
        return "an object";
    case json_type_array:
        return "an array";
    case json_type_string:
        return "a string";
    }
    return "something else";
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Levenshtein distance, row by row (Wagner and Fischer, 1974). */
static size_t distance(const char *a, const char *b)
{
    size_t row[TYPO_NAME_MAX + 1], len_a = strlen(a), len_b = strlen(b);

    if (len_a > TYPO_NAME_MAX || len_b > TYPO_NAME_MAX)
        return TYPO_NAME_MAX;
    for (size_t j = 0; j <= len_b; j++)
        row[j] = j;
    for (size_t i = 1; i <= len_a; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= len_b; j++) {
            size_t above = row[j];
            size_t change = diagonal + (a[i - 1] != b[j - 1]);

            row[j] = min_size(change, min_size(above, row[j - 1]) + 1);
            diagonal = above;
        }
    }
    return row[len_b];
}

static const char *nearest(const char *key, const struct model_json_field *fields, size_t count)
{
    size_t best = TYPO_DISTANCE_MAX + 1;
    const char *name = NULL;

    for (size_t i = 0; i < count; i++) {
        size_t d = distance(key, fields[i].name);

        if (d < best && d < strlen(key)) {
            best = d;
            name = fields[i].name;
        }
    }
    return name;
}

static int refuse_unknown(const char *key, const struct model_json_field *fields, size_t count,
                          struct err *err)
{
    const char *name = nearest(key, fields, count);
    char remedy[sizeof(err->remedy)];
    size_t n = 0;

    if (name)
        n = (size_t)snprintf(remedy, sizeof(remedy), "did you mean '%s'? ", name);
    n += (size_t)snprintf(remedy + n, sizeof(remedy) - n, "known:");
    for (size_t i = 0; i < count; i++) {
        /* Whole names only; room for the dots. */
        if (n + strlen(fields[i].name) + 7 > sizeof(remedy)) {
            snprintf(remedy + n, sizeof(remedy) - n, ", ...");
            break;
        }
        n +=
            (size_t)snprintf(remedy + n, sizeof(remedy) - n, "%s %s", i ? "," : "", fields[i].name);
    }
    return err_set(err, -EINVAL, ERR_UNKNOWN_FIELD, key, remedy, "%.60s is not a known field",
                   *key ? key : "''");
}

static const struct model_json_field *
find_field(const char *key, const struct model_json_field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(fields[i].name, key) == 0)
            return &fields[i];
    }
    return NULL;
}

static int check_required(struct json_object *object, const struct model_json_field *fields,
                          size_t count, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        struct json_object *v = NULL;

        if (!fields[i].required)
            continue;
        json_object_object_get_ex(object, fields[i].name, &v);
        if (v == NULL)
            return err_set(err, -EINVAL, ERR_MISSING, fields[i].name, "add it", "%s is missing",
                           fields[i].name);
    }
    return 0;
}

int model_json_read(struct json_object *object, const struct model_json_field *fields, size_t count,
                    struct arena *arena, void *base, struct err *err)
{
    if (!json_object_is_type(object, json_type_object))
        return err_set(err, -EINVAL, ERR_INVALID, NULL, "use an object: {\"field\": value, ...}",
                       "must be an object, not %s", model_json_type_name(object));
    json_object_object_foreach(object, key, value)
    {
        const struct model_json_field *field = find_field(key, fields, count);
        int r;

        if (field == NULL)
            return refuse_unknown(key, fields, count, err);
        if (value == NULL && field->required)
            continue;
        r = field->read(value, arena, (char *)base + field->offset, err);
        if (r < 0) {
            model_json_in(err, "%s", field->name);
            return r;
        }
    }
    return check_required(object, fields, count, err);
}
