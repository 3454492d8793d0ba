/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP client over libcurl: one connection reused, JSON in and out.
 *
 *     struct http_client *c;
 *     http_client_create("http://127.0.0.1:8080", token, &c, &err);
 *     struct http_reply reply = HTTP_REPLY_INIT;
 *     int r = http_client_call(c, "GET", "/v1/workloads?limit=10", NULL, 0, &reply, &err);
 *     if (r == 0 && reply.status == 200) ...
 *     http_reply_done(&reply);
 *
 * A client belongs to one thread. The URL is http:// or https://, or unix:/path. Connect time-out
 * 5 s; the body of a reply is bounded (64 MiB) unless streamed.
 */
#ifndef ALLOT_NET_HTTP_CLIENT_H
#define ALLOT_NET_HTTP_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"

struct http_client;

struct http_reply {
    int status; /* HTTP status */
    struct strbuf body;
    char etag[64];
    int64_t offset; /* X-Log-Offset: the byte at which a log begins; known while it streams */
};

#define HTTP_REPLY_INIT \
    {                   \
        0               \
    }

/* TOKEN may be NULL. -EINVAL for a bad URL. */
int http_client_create(const char *url, const char *token, struct http_client **ret_client,
                       struct err *err);
void http_client_destroy(struct http_client *c);

/* Adds a header to the next call only ("Idempotency-Key", value). */
void http_client_header(struct http_client *c, const char *name, const char *value);

/*
 * One call. 0 when an answer came, whatever its status; -ECONNREFUSED, -ETIMEDOUT, -EIO, ...
 * with an ERR that names the server and says what to do when none came.
 */
int http_client_call(struct http_client *c, const char *method, const char *path, const void *body,
                     size_t len, struct http_reply *ret_reply, struct err *err);

/*
 * GET whose body is handed over as it arrives. FN returns 0 to go on, nonzero to end the stream
 * (returned as is). FN is also called with len 0 about four times a second while nothing
 * arrives, so that it can look at signals. A status other than 200 is delivered in RET_REPLY
 * with its body and FN is not called.
 */
typedef int http_stream_fn(void *user, const char *data, size_t len);
int http_client_stream(struct http_client *c, const char *path, const char *last_event_id,
                       http_stream_fn *fn, void *user, struct http_reply *ret_reply,
                       struct err *err);

/*
 * POST with "Upgrade: allot-exec": on 101 RET_FD is the raw connection (plain HTTP only), owned
 * by the caller. Any other status is delivered in RET_REPLY.
 */
int http_client_upgrade(struct http_client *c, const char *path, const void *body, size_t len,
                        int *ret_fd, struct http_reply *ret_reply, struct err *err);

/* Releases the body; R can be used again. */
void http_reply_done(struct http_reply *r);

/* Percent-encodes one path segment or query value into OUT. */
void http_escape(const char *text, struct strbuf *out);

#endif
