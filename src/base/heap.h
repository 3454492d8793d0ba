/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intrusive binary min-heap: each element holds its own position, so that it can be moved or
 * removed in O(log n) without a search. Used for timers and queues. Ties are the caller's: make
 * the order total (add the id) where determinism matters.
 *
 *     struct timer { struct heap_node node; int64_t at_ms; };
 *     static bool before(const struct heap_node *a, const struct heap_node *b) { ... }
 *     struct heap h = HEAP_INIT(before);
 */
#ifndef ALLOT_BASE_HEAP_H
#define ALLOT_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>

struct heap_node {
    size_t pos; /* 1-based position; 0 = not in a heap */
};

struct heap {
    struct heap_node **items;
    size_t len, cap;
    bool (*before)(const struct heap_node *a, const struct heap_node *b);
};

#define HEAP_INIT(before_)                                                                      \
    {                                                                                           \
        .before = (before_)                                                                     \
    }
#define heap_entry(node_, type, member) ((type *)((char *)(node_) - offsetof(type, member)))

/* Adds N, which must not be in a heap (abort). The heap does not own its elements. */
void heap_push(struct heap *h, struct heap_node *n);
/* The first element, left in place or taken out; NULL when the heap is empty. */
struct heap_node *heap_peek(const struct heap *h);
struct heap_node *heap_pop(struct heap *h);
/* Takes N out, or restores the order after its key changed; no-ops if N is not in a heap. */
void heap_remove(struct heap *h, struct heap_node *n);
void heap_update(struct heap *h, struct heap_node *n);
/* Frees the array, not the elements; those left in it are marked as in no heap. */
void heap_done(struct heap *h);

#endif
