/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the HTTP server share. Nothing outside src/net includes this.
 *
 * Parts: http_server.c (daemon, connections), http_exchange.c (the life of a request),
 * http_target.c (path and query), http_reply.c (replies), http_stream.c (streams), http_relay.c
 * (upgrades), http_pump.c (the one extra thread: deadlines, ticks, hang-ups of sleeping streams,
 * relays).
 *
 * State of a request (exchange.state), guarded by server.lock:
 *
 *   RUNNING  on its worker
 *   PARKED   the connection is suspended, someone will call http_resume()
 *   WOKEN    http_resume() was called; the worker goes on with exchange.resume
 *   ABORTED  the server is stopping: answered with 503; the owner has not resumed it yet
 *   ORPHAN   as ABORTED, and the connection is gone: http_resume() frees
 *   RETURNED as ABORTED, and the owner has resumed it: the connection frees
 *
 *   RUNNING -> PARKED (worker)      RUNNING, PARKED -> WOKEN (http_resume)
 *   WOKEN -> RUNNING (worker)       RUNNING, PARKED -> ABORTED (http_server_stop)
 *   ABORTED -> ORPHAN (worker)      ABORTED -> RETURNED (http_resume)
 *
 * A request that is never deferred stays RUNNING and costs no lock.
 *
 * The HTTP library does not look at a suspended connection, so a parked exchange and what it
 * points to stay valid until it is resumed. The library must not be stopped while a connection is
 * suspended, nor while a thread is inside MHD_resume_connection(): http_connection_suspend() and
 * http_connection_resume() count, http_server_stop() waits for the count to be 0, and once
 * server.stopping is set it can only fall.
 *
 * Locks: server.lock guards the watches and the list of parked exchanges, and
 * is taken before the library's own (which it takes in MHD_resume_connection()). It is never
 * held while a handler or a source's free() runs.
 */
#ifndef ALLOT_NET_HTTP_INTERNAL_H
#define ALLOT_NET_HTTP_INTERNAL_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/map.h"
#include "net/http_address.h"
#include "net/http_server.h"

#define REPLY_HEADERS_MAX 8
#define NO_DEADLINE INT64_MAX

/*
 * Something that the pump looks after: a connection, a stream or a relay. First member of its
 * owner. Both functions run with server.lock
 * held and may call http_pump_remove() for their own watch only.
 */
struct watch {
    uint64_t id;
    /* EVENTS of the descriptor registered under TAG, or 0 because the watch was due. */
    void (*poll)(struct http_server *s, struct watch *w, unsigned tag, uint32_t events,
                 int64_t now_ms);
    void (*stop)(struct http_server *s, struct watch *w);
    _Atomic int64_t due_ms; /* boot clock: poll() without an event; NO_DEADLINE = never */
};

/*
 * A connection. Its watch is due when the client has taken too long, and sees hang-ups: the HTTP
 * library misses one that arrives together with data, or while the connection is suspended.
 */
struct connection {
    struct watch watch;
    struct http_server *server;
    struct MHD_Connection *mhd;
    int fd;
    _Atomic bool hung_up;       /* the client sends nothing more */
    _Atomic int64_t waits_ms;   /* boot clock: since when without a request that was let in;
                                   NO_DEADLINE = it has one */
    struct exchange *active;    /* the request under way */
    struct exchange *spare;     /* of the last request, to be used again */
    struct http_stream *stream; /* under server.lock: what sleeps on it */
};

enum exchange_state {
    EXCHANGE_RUNNING,
    EXCHANGE_PARKED,
    EXCHANGE_WOKEN,
    EXCHANGE_ABORTED,
    EXCHANGE_ORPHAN,
    EXCHANGE_RETURNED
};

/* What is done with bytes of the body as they arrive. */
enum exchange_body { BODY_HEAD, BODY_TAKE, BODY_DISCARD };

struct exchange {
    struct http_request request; /* first: handlers see only this */
    struct http_server *server;
    struct connection *connection;
    enum exchange_state state;
    bool entered;  /* the handler's request() was called */
    bool deferred; /* http_defer() since the handler was entered */
    void (*resume)(struct http_request *r);
    struct exchange *prev, *next; /* parked list */

    enum exchange_body body_mode;
    char *body;
    size_t body_len, body_cap;
    int64_t body_max;
    uint64_t discarded;

    struct MHD_Response *reply; /* NULL = none yet */
    unsigned status;
    bool is_stream; /* no deadline while it is sent */
    bool upgraded;  /* the connection is a relay's now */
    int upgrade_fd; /* what the relay will take; -1 = none */
    struct {
        const char *name, *value;
    } headers[REPLY_HEADERS_MAX];
    int header_count;
};

struct http_server {
    struct http_server_config config;
    struct http_handler handler;
    struct MHD_Daemon *daemon;
    struct http_address address;
    char address_text[HTTP_ADDRESS_TEXT_MAX];
    _Atomic bool stopping;
    _Atomic int active;         /* requests under way */
    _Atomic int suspended;      /* connections that the library does not look at */
    _Atomic int open;           /* connections */
    _Atomic int64_t body_bytes; /* buffered now */

    pthread_mutex_t lock;
    struct exchange *parked;
    struct map watches; /* id -> struct watch */
    uint64_t last_watch;

    pthread_t pump;
    bool pump_runs;
    int pump_epoll, pump_event;
};

/* ---- http_exchange.c ------------------------------------------------------------------------ */

/* The pump cuts the connection IN_MS from now, unless that is moved; NO_DEADLINE = never. */
void http_connection_deadline(struct connection *c, int64_t in_ms);
/*
 * Suspends the connection on its worker. False = the server stops, nothing was suspended: what
 * has nothing to say now must end.
 */
bool http_connection_suspend(struct http_server *s, struct MHD_Connection *mhd);
/* Any thread, once for each http_connection_suspend() that returned true. The connection may be
 * gone afterwards. */
void http_connection_resume(struct http_server *s, struct MHD_Connection *mhd);
/* With server.lock held: the client of this stream hung up. */
void http_stream_hang_up(struct http_stream *st);
/* With server.lock held: the connection goes before its stream. */
void http_stream_orphan(struct http_stream *st);
/* A fresh request on C, in the memory of the last one where there is some. */
struct exchange *http_exchange_new(struct connection *c);
/* Ends a request: the handler's part, body, arena. The memory of X itself is kept. */
void http_exchange_finish(struct exchange *x);
/* With server.lock held: where connections run out, makes those due that only keep a place. */
void http_connections_relieve(struct http_server *s, int64_t now_ms);
/* Releases the memory of a finished X; NULL is fine. */
void http_exchange_free(struct exchange *x);
/* The head is here; bytes of the body are here; all of it is here (also after http_resume()).
 * What they return goes back to the library. */
enum MHD_Result http_exchange_head(struct exchange *x);
enum MHD_Result http_exchange_body(struct exchange *x, const char *data, size_t len);
enum MHD_Result http_exchange_turn(struct exchange *x);
/* PARKED -> ABORTED for all: the server stops. */
void http_exchange_abort_parked(struct http_server *s);

/* ---- http_pump.c --------------------------------------------------------------------------- */

int http_pump_start(struct http_server *s);
/* Calls stop() of every watch, then ends the thread. */
void http_pump_stop(struct http_server *s);
/* Lets the pump look at due times again. */
void http_pump_kick(struct http_server *s);
/* Gives W its id and registers it; server.lock held. */
void http_pump_add(struct http_server *s, struct watch *w);
/* server.lock held. */
void http_pump_remove(struct http_server *s, struct watch *w);
/* epoll_ctl() on the pump's set; TAG (0 or 1) comes back in poll(). 0 or negative errno. */
int http_pump_ctl(struct http_server *s, const struct watch *w, int op, int fd, unsigned tag,
                  uint32_t events);

/* ---- http_target.c ------------------------------------------------------------------------- */

/* Fills method-independent parts of R from "/path?query". -EINVAL, -E2BIG with ERR. */
int http_target_parse(struct http_request *r, const char *target, struct err *err);

/* ---- http_reply.c, http_stream.c, http_relay.c ----------------------------------------------- */

/* The request as the server sees it. */
static inline struct exchange *exchange_of(struct http_request *r)
{
    return (struct exchange *)r;
}

/* Common headers and those of the request; then it is the reply of X. */
void http_reply_set(struct exchange *x, unsigned status, const char *content_type,
                    struct MHD_Response *response);

#endif
