/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML to JSON text.
 *
 * Manifests arrive as YAML or JSON in one or several documents. This converts them to one JSON
 * array with one element a document, which the decoders of the model then read like any other
 * request; nothing here knows what a manifest means.
 *
 * What is understood is the core schema of YAML 1.2: a plain null, ~, true or false is itself, a
 * plain number is copied digit by digit if it is a JSON number (nothing is rounded: 0.25 stays
 * 0.25, 9223372036854775808 stays itself), everything else, above all what stands in quotes, is
 * a string. Numbers that JSON does not know (007, +1, .5, 0x10, .inf) become strings of the same
 * text, so that the reader of the field decides. Empty documents are left out.
 *
 * What could surprise or exhaust is refused, with line and column: anchors and aliases, tags,
 * duplicate keys, keys that are not plain text, and more than the limits below. A JSON text is
 * YAML with one exception: escaped surrogate pairs ("\ud83d\ude00") are refused; write the
 * character itself.
 *
 *     _cleanup_strbuf_ struct strbuf json = STRBUF_INIT;
 *     r = yaml_to_json(text, len, &json, err);
 */
#ifndef ALLOT_BASE_YAML_H
#define ALLOT_BASE_YAML_H

#include <stddef.h>

#include "base/err.h"
#include "base/strbuf.h"

#define YAML_SIZE_MAX ((size_t)10 * 1024 * 1024) /* bytes of input */
#define YAML_DEPTH_MAX 32                        /* mappings and sequences inside each other */
#define YAML_DOCUMENTS_MAX 1000                  /* empty ones included */
#define YAML_KEYS_MAX 1000                       /* of one mapping */

/*
 * Appends the JSON array for TEXT of LEN bytes to RET_JSON_ARRAY. Returns 0; -EINVAL where the
 * text is malformed or uses what is refused; -EFBIG beyond a limit; -ENOMEM. On failure
 * RET_JSON_ARRAY is as before.
 */
int yaml_to_json(const char *text, size_t len, struct strbuf *ret_json_array, struct err *err);

#endif
