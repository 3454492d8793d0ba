/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arena: memory with one lifetime.
 *
 * One arena serves one request, one scheduling turn or one step; everything allocated from it
 * is released together by arena_done() or made reusable by arena_reset(). Memory is zeroed and
 * aligned for any type. An arena belongs to one thread at a time.
 *
 * Allocation never returns NULL: when the process is out of memory the arena calls abort(),
 * because no caller could answer sensibly (the store keeps what was acknowledged). The size of
 * anything that a client controls is bounded before it comes here.
 *
 *     struct arena a = ARENA_INIT;
 *     char *name = arena_strdup(&a, input);
 *     arena_done(&a);
 */
#ifndef ALLOT_BASE_ARENA_H
#define ALLOT_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *head; /* newest block, the one that is being filled */
    size_t total;             /* bytes handed out since the last reset */
};

#define ARENA_INIT                                                                              \
    {                                                                                           \
        0                                                                                       \
    }

/* Zeroed memory of SIZE bytes. */
void *arena_alloc(struct arena *a, size_t size);

/* Zeroed array of COUNT elements; aborts if the product overflows. */
void *arena_alloc_array(struct arena *a, size_t count, size_t size);

/* Copies, NUL-terminated. arena_strdup(a, NULL) is NULL. */
char *arena_strdup(struct arena *a, const char *s);
char *arena_strndup(struct arena *a, const char *s, size_t n);
void *arena_memdup(struct arena *a, const void *p, size_t n);

/* printf into the arena. */
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Forget everything but keep one block for reuse. */
void arena_reset(struct arena *a);

/* Release everything. The arena is as after ARENA_INIT. */
void arena_done(struct arena *a);

#define arena_new(a, type) ((type *)arena_alloc((a), sizeof(type)))
#define arena_new_array(a, type, n) ((type *)arena_alloc_array((a), (n), sizeof(type)))

#endif
