/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A typed growing array.
 *
 *     VEC(int) v = {0};
 *     vec_push(&v, 3);
 *     for (size_t i = 0; i < v.len; i++)
 *         use(v.items[i]);
 *     vec_done(&v);
 *
 * Name the type once if it is passed around: `struct int_vec VEC_BODY(int);`. Out of memory
 * aborts, as in arena.h.
 */
#ifndef ALLOT_BASE_VEC_H
#define ALLOT_BASE_VEC_H

#include <stddef.h>
#include <stdlib.h>

#define VEC_BODY(type)                                                                          \
    {                                                                                           \
        type *items;                                                                            \
        size_t len, cap;                                                                        \
    }
#define VEC(type) struct VEC_BODY(type)

/* Makes room for NEED elements of SIZE bytes in all; returns the (possibly moved) array. */
void *vec_grow(void *items, size_t *cap, size_t need, size_t size);

#define vec_reserve(v, n)                                                                       \
    ((v)->cap >= (n) ? (void)0                                                                  \
                     : (void)((v)->items = vec_grow((v)->items, &(v)->cap, (n),                 \
                                                    sizeof(*(v)->items))))
#define vec_push(v, x) (vec_reserve((v), (v)->len + 1), (void)((v)->items[(v)->len++] = (x)))
/* Appends a zeroed element and yields a pointer to it, valid until the next growth. */
#define vec_add(v)                                                                              \
    (vec_reserve((v), (v)->len + 1),                                                            \
     __builtin_memset(&(v)->items[(v)->len], 0, sizeof(*(v)->items)), &(v)->items[(v)->len++])
#define vec_pop(v) ((v)->items[--(v)->len])
/* Order is not kept. */
#define vec_remove_swap(v, i) ((void)((v)->items[(i)] = (v)->items[--(v)->len]))
#define vec_clear(v) ((void)((v)->len = 0))
#define vec_done(v)                                                                             \
    (free((v)->items), (void)((v)->items = NULL), (void)((v)->len = 0), (void)((v)->cap = 0))

#endif
