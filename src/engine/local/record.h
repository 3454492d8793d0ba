/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records: the little format that engine and supervisor share, in files and on their socket.
 *
 * A record is a sequence of `key=value` strings, each ended by NUL; a key may repeat (arguments,
 * environment). Values hold any byte but NUL, which no argument, path or variable can hold
 * either, so nothing is ever escaped. The supervisor needs no JSON parser for it, and a person
 * reads one with `tr '\0' '\n' < launch`.
 *
 * A reader must tolerate keys that it does not know: a server that was upgraded talks to
 * supervisors of the release before.
 *
 *     struct strbuf b = STRBUF_INIT;
 *     record_add(&b, "op", "stop");
 *     record_add_i64(&b, "grace_ms", 30000);
 *     ...
 *     const char *op = record_get(data, len, "op");
 */
#ifndef ALLOT_ENGINE_LOCAL_RECORD_H
#define ALLOT_ENGINE_LOCAL_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

/* Largest record that is read from a file: launch carries command (128 KiB) and environment. */
#define RECORD_FILE_MAX ((size_t)16 * 1024 * 1024)

/* Append one field. VALUE NULL appends nothing. */
void record_add(struct strbuf *b, const char *key, const char *value);
void record_add_i64(struct strbuf *b, const char *key, int64_t value);

/* First value of KEY, or NULL. DATA must end with NUL (or LEN be 0); points into DATA. */
const char *record_get(const char *data, size_t len, const char *key);

/* As a number; FALLBACK where the key is absent or its value is not a whole number. */
int64_t record_get_i64(const char *data, size_t len, const char *key, int64_t fallback);

/* Visits the values of KEY in order: `size_t it = 0; while ((v = record_next(..., &it)))`. */
const char *record_next(const char *data, size_t len, const char *key, size_t *it);

/*
 * All values of KEY as a NULL-terminated array to free(); the strings stay in DATA. Never NULL.
 * RET_COUNT may be NULL.
 */
char **record_list(const char *data, size_t len, const char *key, size_t *ret_count);

#endif
