/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

#define BLOCK_FIRST ((size_t)4096)
#define BLOCK_MAX ((size_t)256 * 1024)
/* A block above this size is not worth keeping between two uses of an arena. */
#define BLOCK_KEEP ((size_t)1024 * 1024)

struct arena_block {
    struct arena_block *next;
    size_t cap, used;
    _Alignas(max_align_t) unsigned char data[];
};

static struct arena_block *block_new(size_t cap)
{
    struct arena_block *b;

    if (cap > SIZE_MAX - sizeof(*b))
        abort();
    b = malloc(sizeof(*b) + cap);
    if (b == NULL)
        abort();
    b->next = NULL;
    b->cap = cap;
    b->used = 0;
    return b;
}

static size_t next_cap(const struct arena *a, size_t need)
{
    size_t cap = BLOCK_FIRST;

    if (a->head && a->head->cap < BLOCK_MAX)
        cap = a->head->cap * 2;
    else if (a->head)
        cap = BLOCK_MAX;
    return need > cap ? need : cap;
}

static void *take(struct arena *a, size_t size)
{
    const size_t align = _Alignof(max_align_t);
    struct arena_block *b = a->head;
    size_t need;
    void *p;

    if (size > SIZE_MAX - align)
        abort();
    need = (size + align - 1) & ~(align - 1);
    if (b == NULL || b->cap - b->used < need) {
        b = block_new(next_cap(a, need));
        b->next = a->head;
        a->head = b;
    }
    p = b->data + b->used;
    b->used += need;
    a->total += size;
    return p;
}

void *arena_alloc(struct arena *a, size_t size)
{
    return memset(take(a, size), 0, size);
}

void *arena_alloc_array(struct arena *a, size_t count, size_t size)
{
    size_t bytes;

    if (__builtin_mul_overflow(count, size, &bytes))
        abort();
    return arena_alloc(a, bytes);
}

char *arena_strdup(struct arena *a, const char *s)
{
    return s ? arena_strndup(a, s, strlen(s)) : NULL;
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
    size_t len = strnlen(s, n);
    char *copy = take(a, len + 1);

    memcpy(copy, s, len);
    copy[len] = '\0';
    return copy;
}

void *arena_memdup(struct arena *a, const void *p, size_t n)
{
    void *copy = take(a, n);

    if (n > 0)
        memcpy(copy, p, n);
    return copy;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    struct strbuf text = STRBUF_INIT;
    va_list ap;
    char *copy;

    va_start(ap, fmt);
    strbuf_addv(&text, fmt, ap);
    va_end(ap);
    copy = arena_strndup(a, text.data, text.len);
    strbuf_done(&text);
    return copy;
}

static void free_chain(struct arena_block *b)
{
    while (b) {
        struct arena_block *next = b->next;

        free(b);
        b = next;
    }
}

void arena_reset(struct arena *a)
{
    struct arena_block *keep = a->head;

    a->total = 0;
    if (keep == NULL)
        return;
    free_chain(keep->next);
    keep->next = NULL;
    keep->used = 0;
    if (keep->cap > BLOCK_KEEP) {
        free(keep);
        a->head = NULL;
    }
}

void arena_done(struct arena *a)
{
    free_chain(a->head);
    a->head = NULL;
    a->total = 0;
}
