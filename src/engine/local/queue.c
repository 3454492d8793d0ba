/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/local/engine.h"

struct request *request_new(enum request_kind kind)
{
    struct request *r = calloc(1, sizeof(*r));

    if (r == NULL)
        abort(); /* as the arena does */
    r->kind = kind;
    return r;
}

void request_free(struct request *r)
{
    arena_done(&r->arena);
    free(r);
}

void queue_push(struct queue *q, struct request *r)
{
    bool was_empty;

    r->next = NULL;
    pthread_mutex_lock(&q->lock);
    was_empty = q->first == NULL;
    *q->last = r;
    q->last = &r->next;
    pthread_mutex_unlock(&q->lock);
    if (was_empty)
        (void)!write(q->wake, &(uint64_t){1}, sizeof(uint64_t));
}

struct request *queue_take(struct queue *q)
{
    struct request *all;
    uint64_t count;

    /* Drained before the list is taken: a push in between wakes us once more, never less. */
    (void)!read(q->wake, &count, sizeof(count));
    pthread_mutex_lock(&q->lock);
    all = q->first;
    q->first = NULL;
    q->last = &q->first;
    pthread_mutex_unlock(&q->lock);
    return all;
}
