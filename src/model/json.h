/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strict reading of parsed JSON, shared by every decoder.
 *
 * A decoder is a table of fields: name, reader, where to put it. Unknown fields, duplicates in
 * meaning, wrong types and out-of-range numbers are refused with the field's path. Parsing
 * bounds depth (32) and size, refuses trailing text, NUL bytes and invalid UTF-8.
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

/* Parses TEXT; the caller releases with json_object_put(). -EINVAL with the byte offset. */
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

/* Readers. Quantities accept a JSON string or number and are exact: 0.25 is read from its text,
 * never through a double. */
int model_json_read_string(struct json_object *v, struct arena *a, void *out, struct err *err);
int model_json_read_name(struct json_object *v, struct arena *a, void *out, struct err *err);
int model_json_read_bool(struct json_object *v, struct arena *a, void *out, struct err *err);
int model_json_read_i32(struct json_object *v, struct arena *a, void *out, struct err *err);
int model_json_read_i64(struct json_object *v, struct arena *a, void *out, struct err *err);
int model_json_read_milli(struct json_object *v, struct arena *a, void *out, struct err *err);
int model_json_read_bytes(struct json_object *v, struct arena *a, void *out, struct err *err);
int model_json_read_duration(struct json_object *v, struct arena *a, void *out, struct err *err);

#endif
