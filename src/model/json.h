/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strict reading of parsed JSON, shared by every decoder.
 *
 * A decoder is a table of fields: name, reader, where to put it. Unknown fields, duplicate keys,
 * wrong types and out-of-range numbers are refused with the field's path. Parsing bounds depth
 * (32) and size (64 MiB), refuses trailing text, comments, NUL bytes (escaped ones too) and
 * invalid UTF-8. A document is an object or an array.
 *
 * JSON null means "not given": a field that is required refuses it, the readers here leave the
 * destination alone.
 *
 * Messages. A reader's text begins with what is wrong ("'0.5' is not a whole number") and its
 * err.field is empty; model_json_read() puts the name of the field before both, and callers of
 * nested decoders add their part with model_json_in(): "groups[1].gpus '0.5' is not ...".
 *
 *     static const struct model_json_field fields[] = {
 *         {"name", model_json_read_name, offsetof(struct thing, name), true},
 *         {"size", model_json_read_bytes, offsetof(struct thing, size)},
 *     };
 *     r = model_json_read(json, fields, ARRAY_LEN(fields), arena, &thing, err);
 */
#ifndef ALLOT_MODEL_JSON_H
#define ALLOT_MODEL_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

struct json_object;

#define MODEL_JSON_DEPTH_MAX 32
#define MODEL_JSON_BYTES_MAX (64 << 20)

/* Parses TEXT; the caller releases with json_object_put(). -EINVAL with the byte offset, -E2BIG
 * above MODEL_JSON_BYTES_MAX. */
int model_json_parse(const char *text, size_t len, struct json_object **ret_json,
                     struct err *err);

struct model_json_field {
    const char *name;
    /* Reads VALUE (may be a JSON null) into OUT; fills ERR. */
    int (*read)(struct json_object *value, struct arena *arena, void *out, struct err *err);
    size_t offset; /* of the destination in the struct */
    bool required;
};

/* Walks OBJECT by the table; -EINVAL on a field that is not in it. */
int model_json_read(struct json_object *object, const struct model_json_field *fields,
                    size_t count, struct arena *arena, void *base, struct err *err);

/* Puts a part of the path ("groups[1]") before err.field, and before the text where the text
 * begins with that field. ERR may be NULL. */
void model_json_in(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "a string", "an object", "null": for messages. */
const char *model_json_type_name(struct json_object *v);

/* A whole number MIN..MAX, from a JSON integer. For readers with bounds of their own. */
int model_json_read_range(struct json_object *v, int64_t min, int64_t max, int64_t *ret_value,
                          struct err *err);

/* The text of a quantity (a JSON string or number, as it was written). */
int model_json_quantity_text(struct json_object *v, const char **ret_text, struct err *err);

/* An array of at most MAX strings, in ARENA and NULL-terminated; each is refused by CHECK (may be
 * NULL) with a message that model_json_in() can extend. */
int model_json_read_strings(struct json_object *v, size_t max,
                            int (*check)(const char *s, size_t len, struct err *err),
                            struct arena *arena, const char *const **ret_items,
                            int32_t *ret_count, struct err *err);

/*
 * Readers. Quantities accept a JSON string or number and are exact: 0.25 is read from its text,
 * never through a double.
 */
/* const char *, 4095 bytes at most. */
int model_json_read_string(struct json_object *v, struct arena *a, void *out, struct err *err);
/* const char *, by text_check_name(). */
int model_json_read_name(struct json_object *v, struct arena *a, void *out, struct err *err);
/* bool. */
int model_json_read_bool(struct json_object *v, struct arena *a, void *out, struct err *err);
/* int32_t, any value but the smallest (left to callers as "not given"). */
int model_json_read_i32(struct json_object *v, struct arena *a, void *out, struct err *err);
/* int64_t, likewise. */
int model_json_read_i64(struct json_object *v, struct arena *a, void *out, struct err *err);
/* int64_t, thousandths. */
int model_json_read_milli(struct json_object *v, struct arena *a, void *out, struct err *err);
/* int64_t. */
int model_json_read_bytes(struct json_object *v, struct arena *a, void *out, struct err *err);
/* int64_t, milliseconds. */
int model_json_read_duration(struct json_object *v, struct arena *a, void *out, struct err *err);

#endif
