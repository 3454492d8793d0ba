/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http_internal.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/qty.h"

#define HEAD_BYTES ((size_t)32 * 1024)
#define DRAIN_MAX ((uint64_t)64 * 1024 * 1024)
#define BODY_FIRST ((size_t)4096)
#define STOP_WAIT_MS 2000 /* for replies under way when the server stops */

DEFINE_CLEANUP(struct http_server *, http_server_destroy, http_server_destroyp)

/* ---- the life of a request ------------------------------------------------------------------ */

static void connection_deadline(struct connection *c, int64_t in_ms)
{
    int64_t at = in_ms == NO_DEADLINE ? NO_DEADLINE : clock_boot_ms() + in_ms;

    atomic_store_explicit(&c->deadline_ms, at, memory_order_relaxed);
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
static void exchange_finish(struct exchange *x)
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

static void exchange_free(struct exchange *x)
{
    if (x == NULL)
        return;
    arena_done(&x->request.arena);
    free(x);
}

static struct exchange *exchange_new(struct connection *c)
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

/* Suspends the connection until http_resume(). */
static void exchange_park(struct exchange *x)
{
    struct http_server *s = x->server;

    MHD_suspend_connection(x->connection->mhd);
    pthread_mutex_lock(&s->lock);
    if (x->state == EXCHANGE_RUNNING && atomic_load(&s->stopping))
        x->state = EXCHANGE_ABORTED;
    if (x->state != EXCHANGE_RUNNING) { /* woken already, or the server stops */
        pthread_mutex_unlock(&s->lock);
        MHD_resume_connection(x->connection->mhd);
        return;
    }
    x->state = EXCHANGE_PARKED;
    x->prev = NULL;
    x->next = s->parked;
    if (s->parked)
        s->parked->prev = x;
    s->parked = x;
    pthread_mutex_unlock(&s->lock);
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
        MHD_resume_connection(mhd);
    if (orphan) {
        exchange_finish(x);
        exchange_free(x);
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

    connection_deadline(c, x->is_stream ? NO_DEADLINE : x->server->config.reply_ms);
    res = MHD_queue_response(c->mhd, x->status, x->reply);
    MHD_destroy_response(x->reply);
    x->reply = NULL;
    return res;
}

/* The whole request is here: give the handler its turn, then send, park or complain. */
static enum MHD_Result exchange_turn(struct exchange *x)
{
    struct http_handler *h = &x->server->handler;
    void (*fn)(struct http_request * r);

    if (x->reply == NULL && !x->entered) {
        connection_deadline(x->connection, NO_DEADLINE);
        x->entered = true;
        x->request.body = x->body ? x->body : "";
        x->request.body_len = x->body_len;
        h->request(h->ctx, &x->request);
    } else if (x->reply == NULL) {
        fn = exchange_take_back(x);
        if (fn) {
            x->deferred = false;
            fn(&x->request);
        } else {
            reply_error(x, MHD_HTTP_SERVICE_UNAVAILABLE, -ESHUTDOWN, ERR_UNAVAILABLE,
                        "ask again; with the same Idempotency-Key nothing is done twice",
                        "the server is stopping");
        }
    }
    if (x->reply == NULL && x->deferred) {
        exchange_park(x);
        return MHD_YES;
    }
    if (x->reply == NULL)
        reply_error(x, MHD_HTTP_INTERNAL_SERVER_ERROR, -EPROTO, ERR_INTERNAL, NULL,
                    "the request was not answered");
    return exchange_send(x);
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

/* The head is here: authorise, decide about the body. */
static enum MHD_Result exchange_head(struct exchange *x)
{
    struct http_handler *h = &x->server->handler;
    int64_t length = announced_length(x);

    connection_deadline(x->connection, x->server->config.body_ms);
    if (x->reply == NULL)
        x->body_max = h->headers(h->ctx, &x->request);
    if (x->reply == NULL && x->body_max > 0 && length > x->body_max)
        reply_too_large(x);
    x->body_mode = x->reply || x->body_max == 0 ? BODY_DISCARD : BODY_TAKE;
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

static enum MHD_Result exchange_body(struct exchange *x, const char *data, size_t len)
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

/* ---- what the library calls ----------------------------------------------------------------- */

static void *on_target(void *cls, const char *uri, struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct connection *c = info->socket_context;
    struct exchange *x = exchange_new(c);
    struct err err = ERR_INIT;
    int r;

    c->active = x;
    atomic_fetch_add(&c->server->active, 1);
    connection_deadline(c, c->server->config.head_ms);
    r = http_target_parse(&x->request, uri, &err);
    if (r < 0)
        http_reply_problem(&x->request, r == -E2BIG ? MHD_HTTP_URI_TOO_LONG : MHD_HTTP_BAD_REQUEST,
                           &err);
    return x;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *mhd, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *data_len, void **con_cls)
{
    struct exchange *x = *con_cls;
    enum MHD_Result res;

    if (x->body_mode == BODY_HEAD) {
        x->request.method = method;
        return exchange_head(x);
    }
    if (*data_len == 0)
        return exchange_turn(x);
    res = exchange_body(x, data, *data_len);
    *data_len = 0;
    return res;
}

static void on_completed(void *cls, struct MHD_Connection *mhd, void **con_cls,
                         enum MHD_RequestTerminationCode why)
{
    struct exchange *x = *con_cls;
    struct http_server *s = cls;
    bool orphan = false;

    /* For a relay this is called under the library's lock: on_connection() cleans up. */
    if (x == NULL || x->upgraded)
        return;
    *con_cls = NULL;
    x->connection->active = NULL;
    connection_deadline(x->connection, (int64_t)s->config.idle_s * MS_PER_S);
    if (x->deferred) {
        pthread_mutex_lock(&s->lock);
        orphan = x->state == EXCHANGE_ABORTED;
        if (orphan)
            x->state = EXCHANGE_ORPHAN;
        pthread_mutex_unlock(&s->lock);
    }
    if (!orphan) {
        exchange_finish(x);
        x->connection->spare = x;
    }
    atomic_fetch_sub(&s->active, 1);
}

static void connection_opened(struct http_server *s, struct MHD_Connection *mhd, void **context)
{
    struct connection *c = calloc(1, sizeof(*c));

    if (c == NULL)
        abort();
    c->server = s;
    c->mhd = mhd;
    c->fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    connection_deadline(c, (int64_t)s->config.idle_s * MS_PER_S);
    pthread_mutex_lock(&s->lock);
    c->next = s->connections;
    if (c->next)
        c->next->prev = c;
    s->connections = c;
    pthread_mutex_unlock(&s->lock);
    *context = c;
}

static void connection_closed(struct http_server *s, struct connection *c)
{
    pthread_mutex_lock(&s->lock);
    if (c->prev)
        c->prev->next = c->next;
    else
        s->connections = c->next;
    if (c->next)
        c->next->prev = c->prev;
    pthread_mutex_unlock(&s->lock);
    if (c->active) { /* it became a relay */
        exchange_finish(c->active);
        exchange_free(c->active);
        atomic_fetch_sub(&s->active, 1);
    }
    exchange_free(c->spare);
    free(c);
}

static void on_connection(void *cls, struct MHD_Connection *mhd, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    if (what == MHD_CONNECTION_NOTIFY_STARTED)
        connection_opened(cls, mhd, context);
    else
        connection_closed(cls, *context);
}

/* Keeps the library from decoding: http_target.c does it, with checks. */
static size_t on_unescape(void *cls, struct MHD_Connection *mhd, char *text)
{
    return strlen(text);
}

/* ---- the server ------------------------------------------------------------------------------ */

static void set_defaults(struct http_server_config *c)
{
    c->threads = c->threads ? c->threads : 2;
    c->connections = c->connections ? c->connections : 2048;
    c->idle_s = c->idle_s ? c->idle_s : 60;
    c->head_ms = c->head_ms ? c->head_ms : 15000;
    c->body_ms = c->body_ms ? c->body_ms : 300000;
    c->reply_ms = c->reply_ms ? c->reply_ms : 300000;
    c->body_total = c->body_total ? c->body_total : (int64_t)256 * 1024 * 1024;
}

static int start_daemon(struct http_server *s, int fd, struct err *err)
{
    const unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME |
                           MHD_ALLOW_UPGRADE | MHD_USE_TURBO;
    /* clang-format off */
    s->daemon = MHD_start_daemon(flags, 0, NULL, NULL, on_request, s,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
        MHD_OPTION_URI_LOG_CALLBACK, on_target, s,
        MHD_OPTION_UNESCAPE_CALLBACK, on_unescape, s,
        MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, s->config.connections,
        MHD_OPTION_CONNECTION_TIMEOUT, s->config.idle_s,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, HEAD_BYTES,
        MHD_OPTION_STRICT_FOR_CLIENT, 1,
        s->config.threads > 1 ? MHD_OPTION_THREAD_POOL_SIZE : MHD_OPTION_END, s->config.threads,
        MHD_OPTION_END);
    /* clang-format on */
    if (s->daemon)
        return 0;
    close(fd);
    return err_set(err, -ENOMEM, ERR_UNAVAILABLE, NULL,
                   "look at the limits of processes and open files (ulimit -u, ulimit -n)",
                   "starting the HTTP server on '%s' failed", s->address_text);
}

int http_server_create(const struct http_server_config *config, const struct http_handler *handler,
                       struct http_server **ret_server, struct err *err)
{
    _cleanup_(http_server_destroyp) struct http_server *s = calloc(1, sizeof(*s));
    _cleanup_close_ int fd = -1;
    int r;

    if (s == NULL)
        abort();
    s->config = *config;
    set_defaults(&s->config);
    s->config.listen = NULL; /* the caller's */
    s->handler = *handler;
    s->pump_epoll = s->pump_event = -1;
    pthread_mutex_init(&s->lock, NULL);
    r = http_address_parse(config->listen, &s->address, err);
    if (r == 0)
        r = http_address_listen(&s->address, &fd, err);
    if (r < 0)
        return r;
    http_address_format(&s->address, s->address_text);
    r = http_pump_start(s);
    if (r < 0)
        return err_set(err, r, ERR_UNAVAILABLE, NULL, "look at the limits (ulimit -u, ulimit -n)",
                       "starting a thread of the HTTP server failed: %s", strerror(-r));
    r = start_daemon(s, steal_fd(&fd), err);
    if (r < 0)
        return r;
    *ret_server = steal_ptr(&s);
    return 0;
}

const char *http_server_address(const struct http_server *s)
{
    return s->address_text;
}

uint16_t http_server_port(const struct http_server *s)
{
    return http_address_port(&s->address);
}

static void abort_parked(struct http_server *s)
{
    pthread_mutex_lock(&s->lock);
    while (s->parked) {
        struct exchange *x = s->parked;

        parked_unlink(s, x);
        x->state = EXCHANGE_ABORTED;
        MHD_resume_connection(x->connection->mhd);
    }
    pthread_mutex_unlock(&s->lock);
}

void http_server_stop(struct http_server *s)
{
    const struct timespec pause = {.tv_nsec = 2 * NS_PER_MS};
    int64_t give_up_ms = clock_boot_ms() + STOP_WAIT_MS;
    int fd;

    if (atomic_exchange(&s->stopping, true))
        return;
    if (s->daemon) {
        fd = MHD_quiesce_daemon(s->daemon);
        if (fd >= 0)
            close(fd);
        abort_parked(s);
    }
    http_pump_stop(s);
    if (s->daemon == NULL)
        return;
    while (atomic_load(&s->active) > 0 && clock_boot_ms() < give_up_ms)
        nanosleep(&pause, NULL);
    MHD_stop_daemon(s->daemon);
    s->daemon = NULL;
}

void http_server_destroy(struct http_server *s)
{
    if (s == NULL)
        return;
    http_server_stop(s);
    if (s->pump_epoll >= 0)
        close(s->pump_epoll);
    if (s->pump_event >= 0)
        close(s->pump_event);
    map_done(&s->watches);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
