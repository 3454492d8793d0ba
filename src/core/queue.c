/* SPDX-License-Identifier: Apache-2.0 */
#include "core/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"

int core_queue_init(struct core_queue *q)
{
    pthread_condattr_t attr;

    q->first = q->last = NULL;
    if (pthread_mutex_init(&q->lock, NULL) != 0)
        return -ENOMEM;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&q->wake, &attr);
    pthread_condattr_destroy(&attr);
    return 0;
}

void core_queue_done(struct core_queue *q)
{
    core_message_abandon(q->first);
    pthread_cond_destroy(&q->wake);
    pthread_mutex_destroy(&q->lock);
}

void core_queue_push(struct core_queue *q, struct core_message *m)
{
    m->next = NULL;
    pthread_mutex_lock(&q->lock);
    if (q->last)
        q->last->next = m;
    else
        q->first = m;
    q->last = m;
    pthread_cond_signal(&q->wake);
    pthread_mutex_unlock(&q->lock);
}

static struct timespec deadline_in(int64_t ms)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += ms / 1000;
    at.tv_nsec += (ms % 1000) * NS_PER_MS;
    if (at.tv_nsec >= NS_PER_S) {
        at.tv_sec++;
        at.tv_nsec -= NS_PER_S;
    }
    return at;
}

struct core_message *core_queue_take(struct core_queue *q, int64_t timeout_ms)
{
    struct core_message *taken;

    pthread_mutex_lock(&q->lock);
    if (q->first == NULL && timeout_ms > 0) {
        struct timespec at = deadline_in(timeout_ms);
        while (q->first == NULL && pthread_cond_timedwait(&q->wake, &q->lock, &at) == 0)
            ;
    }
    taken = q->first;
    q->first = q->last = NULL;
    pthread_mutex_unlock(&q->lock);
    return taken;
}

struct core_message *core_message_new(enum core_message_kind kind)
{
    struct core_message *m = calloc(1, sizeof(*m));

    if (m == NULL)
        abort();
    m->kind = kind;
    return m;
}

void core_message_abandon(struct core_message *list)
{
    while (list) {
        struct core_message *m = list;

        list = m->next;
        if (m->kind == MESSAGE_COMMAND)
            core_command_finish(m->command, -ECANCELED);
        core_message_free(m);
    }
}

void core_message_free(struct core_message *m)
{
    if (m == NULL)
        return;
    arena_done(&m->arena);
    free(m);
}
