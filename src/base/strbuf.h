/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing byte buffer, always NUL-terminated once written to.
 *
 * Used for every text that is built piece by piece, above all JSON (json_writer.h writes into
 * one). Growth doubles; out of memory aborts, as in arena.h. The owner calls strbuf_done(), or
 * takes the memory with strbuf_steal() and frees it with free().
 */
#ifndef ALLOT_BASE_STRBUF_H
#define ALLOT_BASE_STRBUF_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct strbuf {
    char *data; /* NULL until the first write */
    size_t len; /* bytes in use, without the NUL */
    size_t cap;
};

#define STRBUF_INIT                                                                             \
    {                                                                                           \
        0                                                                                       \
    }
#define _cleanup_strbuf_ __attribute__((cleanup(strbuf_done)))

/* Makes room for EXTRA bytes more, and the NUL. */
void strbuf_reserve(struct strbuf *b, size_t extra);
/* Append: bytes, a string, one character, printf. */
void strbuf_add(struct strbuf *b, const void *data, size_t len);
void strbuf_adds(struct strbuf *b, const char *s);
void strbuf_addc(struct strbuf *b, char c);
void strbuf_addf(struct strbuf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void strbuf_addv(struct strbuf *b, const char *fmt, va_list ap);
/* Decimal, without the cost of printf. */
void strbuf_add_i64(struct strbuf *b, int64_t v);
/* Shorten to LEN bytes (LEN <= b->len). */
void strbuf_truncate(struct strbuf *b, size_t len);
/* The text, "" when nothing was written. Owned by B. */
const char *strbuf_str(const struct strbuf *b);
/* Hands the memory to the caller (free()); B is empty afterwards. Never NULL. */
char *strbuf_steal(struct strbuf *b);
/* Frees the memory; B is as after STRBUF_INIT. */
void strbuf_done(struct strbuf *b);

#endif
