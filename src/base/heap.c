/* SPDX-License-Identifier: Apache-2.0 */
#include "base/heap.h"

#include <stdlib.h>

#include "base/vec.h"

/* Positions are 1-based, so that the parent of P is P / 2 and 0 can mean "not in a heap". */
static void place(struct heap *h, size_t pos, struct heap_node *n)
{
    h->items[pos - 1] = n;
    n->pos = pos;
}

static void sift_up(struct heap *h, struct heap_node *n)
{
    size_t pos = n->pos;

    while (pos > 1 && h->before(n, h->items[pos / 2 - 1])) {
        place(h, pos, h->items[pos / 2 - 1]);
        pos /= 2;
    }
    place(h, pos, n);
}

static void sift_down(struct heap *h, struct heap_node *n)
{
    size_t pos = n->pos;

    for (;;) {
        size_t child = pos * 2;

        if (child > h->len)
            break;
        if (child < h->len && h->before(h->items[child], h->items[child - 1]))
            child++;
        if (!h->before(h->items[child - 1], n))
            break;
        place(h, pos, h->items[child - 1]);
        pos = child;
    }
    place(h, pos, n);
}

void heap_push(struct heap *h, struct heap_node *n)
{
    if (n->pos != 0)
        abort();
    vec_reserve(h, h->len + 1);
    place(h, ++h->len, n);
    sift_up(h, n);
}

struct heap_node *heap_peek(const struct heap *h)
{
    return h->len ? h->items[0] : NULL;
}

struct heap_node *heap_pop(struct heap *h)
{
    struct heap_node *first = heap_peek(h);

    if (first)
        heap_remove(h, first);
    return first;
}

void heap_remove(struct heap *h, struct heap_node *n)
{
    size_t pos = n->pos;
    struct heap_node *last;

    if (pos == 0)
        return;
    last = h->items[--h->len];
    n->pos = 0;
    if (last == n)
        return;
    place(h, pos, last);
    heap_update(h, last);
}

void heap_update(struct heap *h, struct heap_node *n)
{
    if (n->pos == 0)
        return;
    sift_up(h, n);
    sift_down(h, n);
}

void heap_done(struct heap *h)
{
    for (size_t i = 0; i < h->len; i++)
        h->items[i]->pos = 0;
    free(h->items);
    h->items = NULL;
    h->len = h->cap = 0;
}
