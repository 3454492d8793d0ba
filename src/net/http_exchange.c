/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a request: head, body, handler, deferral, reply. States: see http_internal.h. */
#include "net/http_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/qty.h"

#define DRAIN_MAX ((uint64_t)64 * 1024 * 1024)
#define BODY_FIRST ((size_t)4096)

/* ---- the life of a request ------------------------------------------------------------------ */

void http_connection_deadline(struct connection *c, int64_t in_ms)
{
    int64_t at = in_ms == NO_DEADLINE ? NO_DEADLINE : clock_boot_ms() + in_ms;

    atomic_store_explicit(&c->watch.due_ms, at, memory_order_relaxed);
}

static void body_release(struct exchange *x)
{
    if (x->body_cap > 0)
        atomic_fetch_sub(&x->server->body_bytes, (int64_t)x->body_cap);
    free(x->body);
    x->body = NULL;
    x->body_len = x->body_cap = 0;
}

/* Ends a request: the handler's part, body, arena. The memory of X itself is kept. */
void http_exchange_finish(struct exchange *x)
{
    if (x->request.user_free)
        x->request.user_free(&x->request);
    if (x->reply)
        MHD_destroy_response(x->reply);
    if (x->upgrade_fd >= 0)
        close(x->upgrade_fd);
    body_release(x);
    arena_reset(&x->request.arena);
}

void http_exchange_free(struct exchange *x)
{
    if (x == NULL)
        return;
    arena_done(&x->request.arena);
    free(x);
}

struct exchange *http_exchange_new(struct connection *c)
{
    struct exchange *x = steal_ptr(&c->spare);
    struct arena arena = ARENA_INIT;

    if (x)
        arena = x->request.arena;
    else
        x = malloc(sizeof(*x));
    if (x == NULL)
        abort();
    memset(x, 0, sizeof(*x));
    x->request.arena = arena;
    x->request.body = "";
    x->server = c->server;
    x->connection = c;
    x->upgrade_fd = -1;
    return x;
}

bool http_connection_suspend(struct http_server *s, struct MHD_Connection *mhd)
{
    /* Counted first: http_server_stop() sets the flag, then looks at the count. */
    atomic_fetch_add(&s->suspended, 1);
    if (atomic_load(&s->stopping)) {
        atomic_fetch_sub(&s->suspended, 1);
        return false;
    }
    MHD_suspend_connection(mhd);
    return true;
}

void http_connection_resume(struct http_server *s, struct MHD_Connection *mhd)
{
    MHD_resume_connection(mhd);
    atomic_fetch_sub(&s->suspended, 1);
}

static void parked_link(struct http_server *s, struct exchange *x)
{
    x->prev = NULL;
    x->next = s->parked;
    if (s->parked)
        s->parked->prev = x;
    s->parked = x;
}

/* Suspends the connection until http_resume(). False = there is nothing to wait for: X has been
 * resumed already, or the server stops. */
static bool exchange_park(struct exchange *x)
{
    struct http_server *s = x->server;

    pthread_mutex_lock(&s->lock);
    if (x->state == EXCHANGE_RUNNING) {
        if (http_connection_suspend(s, x->connection->mhd)) {
            x->state = EXCHANGE_PARKED;
            parked_link(s, x);
            pthread_mutex_unlock(&s->lock);
            return true;
        }
        x->state = EXCHANGE_ABORTED;
    }
    pthread_mutex_unlock(&s->lock);
    return false;
}

static void parked_unlink(struct http_server *s, struct exchange *x)
{
    if (x->prev)
        x->prev->next = x->next;
    else
        s->parked = x->next;
    if (x->next)
        x->next->prev = x->prev;
    x->prev = x->next = NULL;
}

void http_defer(struct http_request *r)
{
    exchange_of(r)->deferred = true;
}

void http_resume(struct http_request *r, void (*fn)(struct http_request *r))
{
    struct exchange *x = exchange_of(r);
    struct http_server *s = x->server;
    struct MHD_Connection *mhd = NULL;
    bool orphan;

    pthread_mutex_lock(&s->lock);
    x->resume = fn;
    orphan = x->state == EXCHANGE_ORPHAN;
    if (x->state == EXCHANGE_PARKED) {
        parked_unlink(s, x);
        mhd = x->connection->mhd;
    }
    if (x->state == EXCHANGE_ABORTED)
        x->state = EXCHANGE_RETURNED;
    else if (!orphan)
        x->state = EXCHANGE_WOKEN;
    pthread_mutex_unlock(&s->lock);
    if (mhd)
        http_connection_resume(s, mhd);
    if (orphan) {
        http_exchange_finish(x);
        http_exchange_free(x);
    }
}

/* Takes X back from whoever resumed it. NULL: the server stops, and X is not ours to use. */
static void (*exchange_take_back(struct exchange *x))(struct http_request *r)
{
    struct http_server *s = x->server;
    void (*fn)(struct http_request * r) = NULL;

    pthread_mutex_lock(&s->lock);
    if (x->state == EXCHANGE_WOKEN) {
        x->state = EXCHANGE_RUNNING;
        fn = x->resume;
    }
    pthread_mutex_unlock(&s->lock);
    return fn;
}

static void reply_error(struct exchange *x, int status, int errnum, const char *code,
                        const char *remedy, const char *text)
{
    struct err err = ERR_INIT;

    err_set(&err, errnum, code, NULL, remedy, "%s", text);
    http_reply_problem(&x->request, status, &err);
}

static enum MHD_Result exchange_send(struct exchange *x)
{
    struct connection *c = x->connection;
    enum MHD_Result res;

    http_connection_deadline(c, x->is_stream ? NO_DEADLINE : x->server->config.reply_ms);
    res = MHD_queue_response(c->mhd, x->status, x->reply);
    MHD_destroy_response(x->reply);
    x->reply = NULL;
    return res;
}

static void exchange_enter(struct exchange *x)
{
    struct http_handler *h = &x->server->handler;

    http_connection_deadline(x->connection, NO_DEADLINE);
    x->entered = true;
    x->request.body = x->body ? x->body : "";
    x->request.body_len = x->body_len;
    h->request(h->ctx, &x->request);
}

static void exchange_continue(struct exchange *x)
{
    void (*fn)(struct http_request * r) = exchange_take_back(x);

    if (fn) {
        x->deferred = false;
        fn(&x->request);
        return;
    }
    reply_error(x, MHD_HTTP_SERVICE_UNAVAILABLE, -ESHUTDOWN, ERR_UNAVAILABLE,
                "ask again; with the same Idempotency-Key nothing is done twice",
                "the server is stopping");
}

/* The whole request is here: give the handler its turn, then send, park or complain. */
enum MHD_Result http_exchange_turn(struct exchange *x)
{
    if (x->reply == NULL && !x->entered)
        exchange_enter(x);
    else if (x->reply == NULL)
        exchange_continue(x);
    while (x->reply == NULL && x->deferred) {
        if (exchange_park(x))
            return MHD_YES;
        exchange_continue(x);
    }
    if (x->reply == NULL)
        reply_error(x, MHD_HTTP_INTERNAL_SERVER_ERROR, -EPROTO, ERR_INTERNAL, NULL,
                    "the request was not answered");
    return exchange_send(x);
}

void http_exchange_abort_parked(struct http_server *s)
{
    pthread_mutex_lock(&s->lock);
    while (s->parked) {
        struct exchange *x = s->parked;

        parked_unlink(s, x);
        x->state = EXCHANGE_ABORTED;
        http_connection_resume(s, x->connection->mhd);
    }
    pthread_mutex_unlock(&s->lock);
}

/* ---- bodies --------------------------------------------------------------------------------- */

static void reply_too_large(struct exchange *x)
{
    struct err err = ERR_INIT;

    err_set(&err, -E2BIG, ERR_TOO_LARGE, NULL, "send less at once",
            "request body has more than the %lld bytes that are taken here",
            (long long)x->body_max);
    http_reply_problem(&x->request, MHD_HTTP_CONTENT_TOO_LARGE, &err);
}

/* Length that the head announces; 0 when it says nothing. */
static int64_t announced_length(struct exchange *x)
{
    const char *text = http_request_header(&x->request, "Content-Length");
    int64_t n = 0;

    if (text && qty_parse_int(text, &n, NULL) < 0)
        return INT64_MAX;
    return n;
}

static enum MHD_Result count_lengths(void *cls, enum MHD_ValueKind kind, const char *name,
                                     const char *value)
{
    int *count = cls;

    *count += strcasecmp(name, "Content-Length") == 0 || strcasecmp(name, "Transfer-Encoding") == 0;
    return MHD_YES;
}

/* Two answers to where the body ends: what stands between us and the client may take the other
 * one, and part of a body for a request of its own (RFC 9112, section 6.3). */
static bool is_ambiguous(struct exchange *x)
{
    int count = 0;

    MHD_get_connection_values(x->connection->mhd, MHD_HEADER_KIND, count_lengths, &count);
    return count > 1;
}

/* The head is here: authorise, decide about the body. */
enum MHD_Result http_exchange_head(struct exchange *x)
{
    struct http_handler *h = &x->server->handler;
    int64_t length = announced_length(x);

    http_connection_deadline(x->connection, x->server->config.body_ms);
    if (is_ambiguous(x)) {
        reply_error(x, MHD_HTTP_BAD_REQUEST, -EINVAL, ERR_INVALID, "send one Content-Length",
                    "the length of the request body is given more than once");
        return exchange_send(x); /* the connection is closed afterwards */
    }
    if (x->reply == NULL)
        x->body_max = h->headers(h->ctx, &x->request);
    if (x->reply == NULL && x->body_max > 0 && length > x->body_max)
        reply_too_large(x);
    x->body_mode = x->reply || x->body_max == 0 ? BODY_DISCARD : BODY_TAKE;
    if (x->reply == NULL)
        atomic_store(&x->connection->waits_ms, NO_DEADLINE);
    /* Answer before the body where it is not worth reading, or waits for our word. The library
     * closes the connection afterwards. */
    if (x->reply &&
        (length > (int64_t)DRAIN_MAX || (length > 0 && http_request_header(&x->request, "Expect"))))
        return exchange_send(x);
    return MHD_YES;
}

/* Room for N more bytes and a NUL; false when all connections together hold too much. */
static bool body_reserve(struct exchange *x, size_t n)
{
    size_t need = x->body_len + n + 1, cap = x->body_cap ? x->body_cap : BODY_FIRST;
    char *grown;

    if (need <= x->body_cap)
        return true;
    while (cap < need)
        cap *= 2;
    if (atomic_fetch_add(&x->server->body_bytes, (int64_t)(cap - x->body_cap)) +
            (int64_t)(cap - x->body_cap) >
        x->server->config.body_total) {
        atomic_fetch_sub(&x->server->body_bytes, (int64_t)(cap - x->body_cap));
        return false;
    }
    grown = realloc(x->body, cap);
    if (grown == NULL)
        abort();
    x->body = grown;
    x->body_cap = cap;
    return true;
}

enum MHD_Result http_exchange_body(struct exchange *x, const char *data, size_t len)
{
    if (x->body_mode == BODY_TAKE && (int64_t)(x->body_len + len) > x->body_max) {
        reply_too_large(x);
        x->body_mode = BODY_DISCARD;
    } else if (x->body_mode == BODY_TAKE && !body_reserve(x, len)) {
        reply_error(x, MHD_HTTP_SERVICE_UNAVAILABLE, -ENOBUFS, ERR_UNAVAILABLE, "ask again later",
                    "too many large requests at once");
        x->body_mode = BODY_DISCARD;
    }
    if (x->body_mode == BODY_TAKE) {
        memcpy(x->body + x->body_len, data, len);
        x->body_len += len;
        x->body[x->body_len] = '\0';
        return MHD_YES;
    }
    body_release(x);
    x->discarded += len;
    return x->discarded > DRAIN_MAX ? MHD_NO : MHD_YES;
}
