/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP server: the only user of libmicrohttpd.
 *
 * Life of a request, all of it on one worker thread unless it is deferred:
 *
 *   headers()  when the head has arrived: authorise, and say how much body to take. A reply given
 *              here is sent once the body has been read and thrown away, so that a client that
 *              is still sending hears the answer instead of a reset.
 *   request()  when the body is complete: reply, or http_defer() and go.
 *   resume     http_resume(r, fn) from any thread brings a deferred request back: fn(r) runs on
 *              the worker and replies (or defers again).
 *
 * Every request gets exactly one reply: http_reply(), http_reply_problem(), http_reply_stream()
 * or http_reply_upgrade(). A handler that neither replies nor defers is answered with 500.
 * Replies are given on the worker thread only; http_resume() and http_stream_wake() are the two
 * calls for other threads. Handlers run on few threads and must not block.
 *
 * Ownership. The request, its arena and its body belong to the server and live until user_free()
 * returns. A deferred request lives until its http_resume(), even if the server is stopped or
 * the client goes away meanwhile; then fn is not called, user_free() is. While deferred, the
 * request belongs to whoever will resume it.
 *
 * Streams. http_stream_source.read() is called on the worker whenever the client can take more:
 * bytes, HTTP_STREAM_WAIT (the connection sleeps until http_stream_wake() or tick_ms have
 * passed), HTTP_STREAM_END or HTTP_STREAM_ABORT. A source outlives its request, so it owns its
 * memory. free() is called once, from any of the server's
 * threads, whatever happens; a handle is valid until then, so a registry of handles takes its own
 * lock around both http_stream_wake() and what free() does. A client that hangs up ends a
 * sleeping stream at once.
 *
 * Upgrades. http_reply_upgrade() relays bytes both ways between the client and a descriptor,
 * with 64 KiB of buffer each way, until either side ends; what the side that ended has sent is
 * still delivered.
 *
 * Bounds. Head 32 KiB (8 KiB of it target), body as headers() says, connections, idle time, time
 * for head, body and reply (a slow client only ever holds its own connection), buffered body
 * bytes of all connections together. Errors of these kinds are problem documents, but for those
 * that the HTTP parser itself finds (malformed head), which are its own short pages.
 *
 *     static void request(void *ctx, struct http_request *r)
 *     {
 *         struct strbuf body = STRBUF_INIT;
 *         strbuf_adds(&body, "{}");
 *         http_reply(r, 200, "application/json", &body);
 *     }
 *     struct http_handler h = {.headers = headers, .request = request};
 *     struct http_server_config config = {.listen = "127.0.0.1:0"};
 *     r = http_server_create(&config, &h, &server, &err);
 *     printf("%s\n", http_server_address(server));
 */
#ifndef ALLOT_NET_HTTP_SERVER_H
#define ALLOT_NET_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/strbuf.h"

#define HTTP_SEGMENTS_MAX 16
#define HTTP_PARAMS_MAX 32
#define HTTP_TARGET_MAX 8192                         /* path and query, bytes */
#define HTTP_BODY_DEFAULT ((int64_t)8 * 1024 * 1024) /* what most routes admit */

struct http_server;
struct http_stream;

/* A query parameter, decoded. */
struct http_param {
    const char *name, *value;
};

struct http_request {
    const char *method;
    const char *path;            /* as sent, without the query; for messages */
    const char *const *segments; /* of the path, decoded: valid UTF-8, no NUL, never empty */
    int segment_count;
    const struct http_param *params;
    int param_count;
    const char *body; /* NUL-terminated; "" when there is none */
    size_t body_len;
    struct arena arena;
    void *user;                                /* the handler's */
    void (*user_free)(struct http_request *r); /* called before the request goes, if set */
};

struct http_handler {
    /* Bytes of body to admit (0 = read and throw away); more is answered with 413. */
    int64_t (*headers)(void *ctx, struct http_request *r);
    void (*request)(void *ctx, struct http_request *r);
    void *ctx;
};

/* Zero means the default. */
struct http_server_config {
    const char *listen;   /* see http_address.h; required */
    unsigned threads;     /* 2 */
    unsigned connections; /* 2048 */
    unsigned idle_s;      /* 60: without a byte, or between requests */
    int64_t head_ms;      /* 15000: request line to end of head */
    int64_t body_ms;      /* 300000 */
    int64_t reply_ms;     /* 300000: for a reply that is not a stream */
    int64_t body_total;   /* 268435456: bytes of body buffered for all connections */
};

/* Listens and serves until http_server_stop(). Negative errno with ERR naming the address. */
int http_server_create(const struct http_server_config *config, const struct http_handler *handler,
                       struct http_server **ret_server, struct err *err);

/* "127.0.0.1:43210", with the port that was given. Valid until destroyed. */
const char *http_server_address(const struct http_server *s);
uint16_t http_server_port(const struct http_server *s);

/*
 * Takes no more connections, answers what is deferred with 503, ends streams and relays, and
 * returns when no worker runs. Requests still deferred may be resumed afterwards.
 */
void http_server_stop(struct http_server *s);

/* After http_server_stop() and after every deferred request was resumed. NULL is fine. */
void http_server_destroy(struct http_server *s);

/* ---- in a handler -------------------------------------------------------------------------- */

/* Value of a request header, or NULL. Worker thread only; lives until the reply is given. */
const char *http_request_header(struct http_request *r, const char *name);

/* Before a handler hands R to another thread, which will call http_resume(). */
void http_defer(struct http_request *r);

/* From any thread, exactly once a http_defer(). R must not be touched afterwards. */
void http_resume(struct http_request *r, void (*fn)(struct http_request *r));

/* ---- replies: worker thread only ----------------------------------------------------------- */

/* Adds a header to the reply that follows; NAME is a literal, VALUE is copied (at most 8; control
 * characters in VALUE end it). */
void http_reply_header(struct http_request *r, const char *name, const char *value);

/* Takes the memory of BODY, which is empty afterwards. BODY NULL = no body. */
void http_reply(struct http_request *r, int status, const char *content_type, struct strbuf *body);

/* application/problem+json (RFC 9457) from ERR: its text, code, field and remedy. */
void http_reply_problem(struct http_request *r, int status, const struct err *err);

#define HTTP_STREAM_WAIT 0
#define HTTP_STREAM_END (-1)
#define HTTP_STREAM_ABORT (-2) /* end so that the client can tell it is not complete */

struct http_stream_source {
    ssize_t (*read)(void *user, char *data, size_t size);
    void (*free)(void *user); /* may be NULL */
    void *user;
};

/* Status 200. RET_STREAM may be NULL. */
void http_reply_stream(struct http_request *r, const char *content_type,
                       const struct http_stream_source *source, int64_t tick_ms,
                       struct http_stream **ret_stream);

/* Any thread: let read() be called soon. Cheap, and harmless when nothing sleeps. */
void http_stream_wake(struct http_stream *stream);

/* 101 with "Upgrade: PROTOCOL"; takes FD, a connected stream socket. */
void http_reply_upgrade(struct http_request *r, const char *protocol, int fd);

/* Standard phrase of a status, "Not Found". */
const char *http_status_phrase(int status);

#endif
