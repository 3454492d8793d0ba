/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streaming JSON writer into a strbuf.
 *
 * Commas and nesting are kept by the writer; strings are escaped and invalid UTF-8 is replaced
 * by U+FFFD, so that the output is always valid JSON. No DOM is built. Depth is at most
 * JSON_DEPTH_MAX, checked by assert: documents are shaped by our code, not by input.
 *
 *     struct json_writer w;
 *     json_writer_init(&w, &buf);
 *     json_begin_object(&w);
 *     json_key_i64(&w, "gpu_milli", 250);
 *     json_end_object(&w);
 */
#ifndef ALLOT_BASE_JSON_WRITER_H
#define ALLOT_BASE_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"

#define JSON_DEPTH_MAX 64

struct json_writer {
    struct strbuf *out;
    int depth;
    bool after_key;                /* the next value belongs to a key just written */
    bool has_item[JSON_DEPTH_MAX]; /* a comma is due before the next item of this level */
};

/* Starts a document at the end of OUT, which the caller owns. */
void json_writer_init(struct json_writer *w, struct strbuf *out);

/* Containers; each begin needs its end. */
void json_begin_object(struct json_writer *w);
void json_end_object(struct json_writer *w);
void json_begin_array(struct json_writer *w);
void json_end_array(struct json_writer *w);
/* The key of the next value; only inside an object. */
void json_key(struct json_writer *w, const char *key);

/* Values: the next item of an array, the value of a key, or the whole document. */
void json_string(struct json_writer *w, const char *s); /* NULL becomes null */
void json_string_n(struct json_writer *w, const char *s, size_t n);
void json_i64(struct json_writer *w, int64_t v);
void json_boolean(struct json_writer *w, bool v);
void json_null(struct json_writer *w);
/* TEXT is complete, valid JSON already (for example a stored document). */
void json_raw(struct json_writer *w, const char *text, size_t n);

/* Key and value in one call. */
void json_key_string(struct json_writer *w, const char *key, const char *s);
void json_key_i64(struct json_writer *w, const char *key, int64_t v);
void json_key_bool(struct json_writer *w, const char *key, bool v);
/* Milliseconds since 1970 as ISO 8601 text; 0 becomes null. */
void json_key_time(struct json_writer *w, const char *key, int64_t wall_ms);

#endif
