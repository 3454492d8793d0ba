/* SPDX-License-Identifier: Apache-2.0 */
#include "base/strbuf.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAP ((size_t)64)

void strbuf_reserve(struct strbuf *b, size_t extra)
{
    size_t need, cap;

    if (__builtin_add_overflow(b->len, extra, &need) || need == SIZE_MAX)
        abort();
    need++; /* the NUL */
    if (need <= b->cap)
        return;
    cap = b->cap ? b->cap : FIRST_CAP;
    while (cap < need) {
        if (__builtin_mul_overflow(cap, 2, &cap))
            cap = need;
    }
    b->data = realloc(b->data, cap);
    if (b->data == NULL)
        abort();
    b->cap = cap;
    b->data[b->len] = '\0';
}

void strbuf_add(struct strbuf *b, const void *data, size_t len)
{
    strbuf_reserve(b, len);
    if (len > 0)
        memcpy(b->data + b->len, data, len);
    b->len += len;
    b->data[b->len] = '\0';
}

void strbuf_adds(struct strbuf *b, const char *s)
{
    strbuf_add(b, s, strlen(s));
}

void strbuf_addc(struct strbuf *b, char c)
{
    strbuf_add(b, &c, 1);
}

void strbuf_addf(struct strbuf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    strbuf_addv(b, fmt, ap);
    va_end(ap);
}

void strbuf_addv(struct strbuf *b, const char *fmt, va_list ap)
{
    va_list again;
    size_t room;
    int n;

    strbuf_reserve(b, 0);
    room = b->cap - b->len;
    va_copy(again, ap);
    n = vsnprintf(b->data + b->len, room, fmt, ap);
    if (n < 0)
        abort();
    if ((size_t)n >= room) {
        strbuf_reserve(b, (size_t)n);
        vsnprintf(b->data + b->len, b->cap - b->len, fmt, again);
    }
    va_end(again);
    b->len += (size_t)n;
}

void strbuf_add_i64(struct strbuf *b, int64_t v)
{
    char text[20];
    size_t at = sizeof(text);
    uint64_t rest = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;

    do {
        text[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (v < 0)
        text[--at] = '-';
    strbuf_add(b, text + at, sizeof(text) - at);
}

void strbuf_truncate(struct strbuf *b, size_t len)
{
    assert(len <= b->len);
    b->len = len;
    if (b->data)
        b->data[len] = '\0';
}

const char *strbuf_str(const struct strbuf *b)
{
    return b->data ? b->data : "";
}

char *strbuf_steal(struct strbuf *b)
{
    char *data;

    strbuf_reserve(b, 0);
    data = b->data;
    *b = (struct strbuf)STRBUF_INIT;
    return data;
}

void strbuf_done(struct strbuf *b)
{
    free(b->data);
    *b = (struct strbuf)STRBUF_INIT;
}
