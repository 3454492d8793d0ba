/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams: replies whose bytes are produced as the client takes them.
 *
 * State: RUNNING while read() may be running, PARKED while the connection is suspended, WOKEN
 * when somebody wants read() to be called. A wake between read() saying "nothing" and the
 * suspension finds RUNNING, leaves WOKEN, and the worker undoes its suspension: none is lost.
 */
#include "net/http_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"

#define BLOCK_SIZE 16384

enum stream_state { STREAM_RUNNING, STREAM_PARKED, STREAM_WOKEN };

struct http_stream {
    struct watch watch;
    struct http_server *server;
    struct MHD_Connection *mhd;
    struct connection *connection; /* NULL when that is gone; under server.lock */
    _Atomic enum stream_state state;
    _Atomic bool gone; /* the client hung up */
    int64_t tick_ms;
    struct http_stream_source source;
};

void http_stream_wake(struct http_stream *st)
{
    if (atomic_exchange(&st->state, STREAM_WOKEN) == STREAM_PARKED)
        http_connection_resume(st->server, st->mhd);
}

void http_stream_hang_up(struct http_stream *st)
{
    atomic_store(&st->gone, true);
    http_stream_wake(st);
}

void http_stream_orphan(struct http_stream *st)
{
    st->connection = NULL;
}

static void stream_poll(struct http_server *s, struct watch *w, unsigned tag, uint32_t events,
                        int64_t now_ms)
{
    struct http_stream *st = (struct http_stream *)w;

    atomic_store(&w->due_ms, now_ms + st->tick_ms);
    http_stream_wake(st);
}

static void stream_stop(struct http_server *s, struct watch *w)
{
    http_stream_wake((struct http_stream *)w);
}

/* False = the server stops. */
static bool park(struct http_stream *st)
{
    enum stream_state expected = STREAM_RUNNING;

    atomic_store(&st->watch.due_ms, clock_boot_ms() + st->tick_ms);
    if (!http_connection_suspend(st->server, st->mhd))
        return false;
    /* http_server_stop() wakes after it has set its flag: where that comes first, it is seen
     * here. */
    if (!atomic_compare_exchange_strong(&st->state, &expected, STREAM_PARKED))
        http_connection_resume(st->server, st->mhd);
    return true;
}

static ssize_t stream_read(void *cls, uint64_t pos, char *data, size_t size)
{
    struct http_stream *st = cls;
    ssize_t n;

    /* Not a store: the worker also takes over what whoever woke it has done before. */
    (void)atomic_exchange(&st->state, STREAM_RUNNING);
    if (atomic_load(&st->gone))
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (atomic_load(&st->server->stopping))
        return MHD_CONTENT_READER_END_OF_STREAM;
    n = st->source.read(st->source.user, data, size);
    if (n == HTTP_STREAM_WAIT)
        return park(st) ? 0 : MHD_CONTENT_READER_END_OF_STREAM;
    if (n == HTTP_STREAM_END)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (n < 0)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    return n;
}

static void stream_free(void *cls)
{
    struct http_stream *st = cls;
    struct http_server *s = st->server;

    pthread_mutex_lock(&s->lock);
    if (st->connection)
        st->connection->stream = NULL;
    http_pump_remove(s, &st->watch);
    pthread_mutex_unlock(&s->lock);
    if (st->source.free)
        st->source.free(st->source.user);
    (void)atomic_load(&st->state); /* the last wake comes before the end */
    free(st);
}

void http_reply_stream(struct http_request *r, const char *content_type,
                       const struct http_stream_source *source, int64_t tick_ms,
                       struct http_stream **ret_stream)
{
    struct exchange *x = exchange_of(r);
    struct http_server *s = x->server;
    struct http_stream *st = calloc(1, sizeof(*st));
    struct MHD_Response *response;

    if (st == NULL)
        abort();
    st->watch.poll = stream_poll;
    st->watch.stop = stream_stop;
    st->server = s;
    st->mhd = x->connection->mhd;
    st->connection = x->connection;
    st->tick_ms = tick_ms;
    st->source = *source;
    atomic_store(&st->watch.due_ms, clock_boot_ms() + tick_ms);
    response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_SIZE, stream_read, st,
                                                 stream_free);
    if (response == NULL)
        abort();
    pthread_mutex_lock(&s->lock);
    http_pump_add(s, &st->watch);
    x->connection->stream = st;
    atomic_store(&st->gone, atomic_load(&x->connection->hung_up));
    pthread_mutex_unlock(&s->lock);
    http_pump_kick(s); /* it may sleep longer than a tick */
    x->is_stream = true;
    http_reply_set(x, 200, content_type, response);
    if (ret_stream)
        *ret_stream = st;
}
