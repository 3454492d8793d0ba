/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strict decoding of JSON objects into plain structures by tables.
 *
 * Purpose. A scenario file is written by people, so a misspelt field must be an error that names
 * it and not a case that silently tests something else. Each structure has one constant table of
 * its fields; sim_decode_object() refuses fields that are not in it, wrong types, numbers that
 * are out of range and missing required fields, and puts the path of the offence into the error
 * ("workloads[3].tasks[0].request.gpu_milli").
 *
 * Ownership. Everything that is decoded lives in the decoder's arena; the json-c tree may be
 * released afterwards. One decoder belongs to one thread.
 *
 * Units. Times are seconds in the text, exact to a millisecond, and milliseconds in memory.
 *
 *     static const struct sim_field fields[] = {
 *         {"name", sim_decode_name, offsetof(struct x, name), SIM_REQUIRED},
 *         {"at_s", sim_decode_seconds, offsetof(struct x, at_ms), 0},
 *     };
 *     r = sim_decode_object(d, value, fields, ARRAY_LEN(fields), &x);
 */
#ifndef ALLOT_SIM_DECODE_H
#define ALLOT_SIM_DECODE_H

#include <json-c/json.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

/* No amount of a scenario is above this: far from overflow in every sum the library makes. */
#define SIM_AMOUNT_MAX 1000000000000LL
#define SIM_MIB_MAX (1LL << 32)
/* Elements of one array, or fields of one object that is a map. */
#define SIM_ITEMS_MAX 100000
#define SIM_TEXT_MAX 400

struct sim_decoder {
    struct arena *arena;
    struct err *err; /* may be NULL */
};

/* Decodes VALUE (NULL for JSON null) into DST; 0 or a negative errno with the error set. */
typedef int sim_decode_fn(struct sim_decoder *d, struct json_object *value, void *dst);

#define SIM_REQUIRED 1u

struct sim_field {
    const char *name;
    sim_decode_fn *decode;
    size_t offset; /* of the destination in the structure */
    unsigned flags;
};

/* VALUE must be an object with no other fields than FIELDS; what is absent leaves DST alone. */
int sim_decode_object(struct sim_decoder *d, struct json_object *value,
                      const struct sim_field *fields, size_t count, void *dst);

/*
 * An array: allocates SIZE bytes per element and decodes each with ONE. PRESET (may be NULL) is
 * copied into each element first. RET_COUNT is written on success only.
 */
int sim_decode_array(struct sim_decoder *d, struct json_object *value, size_t size,
                     const void *preset, sim_decode_fn *one, void **ret_items, uint32_t *ret_count);

/*
 * An object used as a map. Each element begins with its key as `const char *`, the value is
 * decoded into the same element with ONE.
 */
int sim_decode_map(struct sim_decoder *d, struct json_object *value, size_t size,
                   const void *preset, sim_decode_fn *one, void **ret_items, uint32_t *ret_count);

/* Into const char *: 1..SIM_TEXT_MAX bytes without control characters. */
int sim_decode_name(struct sim_decoder *d, struct json_object *value, void *dst);
/* Like sim_decode_name, but null is NULL. */
int sim_decode_name_or_null(struct sim_decoder *d, struct json_object *value, void *dst);
/* Into int64_t: 0..SIM_AMOUNT_MAX. */
int sim_decode_amount(struct sim_decoder *d, struct json_object *value, void *dst);
/* Into int64_t, from mebibytes to bytes. */
int sim_decode_mib(struct sim_decoder *d, struct json_object *value, void *dst);
/* Into int64_t, from seconds to milliseconds: 0 or more, exact. */
int sim_decode_seconds(struct sim_decoder *d, struct json_object *value, void *dst);
/* Into uint32_t: 0..SIM_ITEMS_MAX. */
int sim_decode_count(struct sim_decoder *d, struct json_object *value, void *dst);
/* Into int32_t, negative allowed. */
int sim_decode_priority(struct sim_decoder *d, struct json_object *value, void *dst);
/* Into bool. */
int sim_decode_bool(struct sim_decoder *d, struct json_object *value, void *dst);

/* Sets the error "expected WANT" for a value of the wrong type and returns -EINVAL. */
int sim_decode_wrong(struct sim_decoder *d, struct json_object *value, const char *want);

#endif
