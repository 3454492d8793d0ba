/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define HEAD_BYTES ((size_t)32 * 1024)
#define HANG_UP_MS 500       /* to take in what a client sent before it hung up */
#define CROWDED_WAIT_MS 1000 /* for a request, when connections run out */
#define STOP_WAIT_MS 2000    /* for replies under way when the server stops */

DEFINE_CLEANUP(struct http_server *, http_server_destroy, http_server_destroyp)

/* ---- what the library calls ----------------------------------------------------------------- */

/* Whether a client that has just come is let in. */
static enum MHD_Result on_arrival(void *cls, const struct sockaddr *address, socklen_t len)
{
    const struct http_server *s = cls;

    return atomic_load(&s->stopping) ? MHD_NO : MHD_YES;
}

static void *on_target(void *cls, const char *uri, struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct connection *c = info->socket_context;
    struct exchange *x = http_exchange_new(c);
    struct err err = ERR_INIT;
    int r;

    c->active = x;
    atomic_fetch_add(&c->server->active, 1);
    http_connection_deadline(c, c->server->config.head_ms);
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
        return http_exchange_head(x);
    }
    if (*data_len == 0)
        return http_exchange_turn(x);
    res = http_exchange_body(x, data, *data_len);
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
    http_connection_deadline(x->connection, atomic_load(&x->connection->hung_up)
                                                ? HANG_UP_MS
                                                : (int64_t)s->config.idle_s * MS_PER_S);
    atomic_store(&x->connection->waits_ms, clock_boot_ms());
    if (x->deferred) {
        pthread_mutex_lock(&s->lock);
        orphan = x->state == EXCHANGE_ABORTED;
        if (orphan)
            x->state = EXCHANGE_ORPHAN;
        pthread_mutex_unlock(&s->lock);
    }
    if (!orphan) {
        http_exchange_finish(x);
        x->connection->spare = x;
    }
    atomic_fetch_sub(&s->active, 1);
}

/* The client hung up, or took too long. */
static void connection_poll(struct http_server *s, struct watch *w, unsigned tag, uint32_t events,
                            int64_t now_ms)
{
    struct connection *c = (struct connection *)w;
    int64_t due_ms = atomic_load(&w->due_ms);

    if (events == 0) {
        /* The worker sees the end of the connection and cleans up. */
        shutdown(c->fd, SHUT_RDWR);
        atomic_store(&w->due_ms, NO_DEADLINE);
        return;
    }
    atomic_store(&c->hung_up, true);
    if (c->stream)
        http_stream_hang_up(c->stream);
    else if (due_ms != NO_DEADLINE && due_ms > now_ms + HANG_UP_MS)
        atomic_store(&w->due_ms, now_ms + HANG_UP_MS); /* what it has sent may still count */
}

/* Three quarters of the places are taken. */
static int crowded_from(const struct http_server *s)
{
    return (int)(s->config.connections - s->config.connections / 4);
}

void http_connections_relieve(struct http_server *s, int64_t now_ms)
{
    struct watch *w;
    size_t it = 0;

    if (atomic_load(&s->open) < crowded_from(s))
        return;
    while ((w = map_next(&s->watches, &it))) {
        struct connection *c = (struct connection *)w;

        if (w->poll != connection_poll || atomic_load(&w->due_ms) == NO_DEADLINE)
            continue;
        if (atomic_load(&c->waits_ms) <= now_ms - CROWDED_WAIT_MS)
            atomic_store(&w->due_ms, now_ms);
    }
}

static void connection_stop(struct http_server *s, struct watch *w)
{
    /* The library closes what is left. */
}

static void connection_opened(struct http_server *s, struct MHD_Connection *mhd, void **context)
{
    struct connection *c = calloc(1, sizeof(*c));

    if (c == NULL)
        abort();
    c->watch.poll = connection_poll;
    c->watch.stop = connection_stop;
    c->server = s;
    c->mhd = mhd;
    c->fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    http_connection_deadline(c, (int64_t)s->config.idle_s * MS_PER_S);
    atomic_store(&c->waits_ms, clock_boot_ms());
    if (atomic_fetch_add(&s->open, 1) + 1 == crowded_from(s))
        http_pump_kick(s);
    pthread_mutex_lock(&s->lock);
    http_pump_add(s, &c->watch);
    /* If it fails, the deadlines still hold. */
    http_pump_ctl(s, &c->watch, EPOLL_CTL_ADD, c->fd, 0, EPOLLRDHUP | EPOLLONESHOT);
    pthread_mutex_unlock(&s->lock);
    *context = c;
}

static void connection_closed(struct http_server *s, struct connection *c)
{
    pthread_mutex_lock(&s->lock);
    if (c->stream)
        http_stream_orphan(c->stream);
    http_pump_ctl(s, &c->watch, EPOLL_CTL_DEL, c->fd, 0, 0);
    http_pump_remove(s, &c->watch);
    pthread_mutex_unlock(&s->lock);
    if (c->active) { /* it became a relay */
        http_exchange_finish(c->active);
        http_exchange_free(c->active);
        atomic_fetch_sub(&s->active, 1);
    }
    http_exchange_free(c->spare);
    atomic_fetch_sub(&s->open, 1);
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
    s->daemon = MHD_start_daemon(flags, 0, on_arrival, s, on_request, s,
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

void http_server_stop(struct http_server *s)
{
    const struct timespec pause = {.tv_nsec = 2 * NS_PER_MS};
    int64_t give_up_ms = clock_boot_ms() + STOP_WAIT_MS;

    /* From here on nobody is let in and nothing is suspended. MHD_quiesce_daemon() would take the
     * listening socket from the workers, but without a lock: where a worker takes it out of its
     * own set at the same moment, the library ends the process. */
    if (atomic_exchange(&s->stopping, true))
        return;
    http_exchange_abort_parked(s);
    http_pump_stop(s);
    if (s->daemon == NULL)
        return;
    /* Replies have a while. What is suspended has all the time: it has been resumed, by us or by
     * a thread that is in the middle of it, and the library ends the process if it finds any. */
    while (atomic_load(&s->suspended) > 0 ||
           (atomic_load(&s->active) > 0 && clock_boot_ms() < give_up_ms))
        nanosleep(&pause, NULL);
    MHD_stop_daemon(s->daemon); /* and closes the listening socket */
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
