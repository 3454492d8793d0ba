/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stopping the HTTP server, at once and in the middle of everything: a worker may be anywhere in
 * its loop, a request or a stream may be resumed at that moment, and clients keep coming. What
 * would go wrong goes wrong rarely, so each test does the same many times.
 */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "net/http_server.h"
#include "raw.h"

#define STARTS 2000
#define TURNS 250
#define CLIENTS 6

struct fixture {
    struct http_server *server;
    uint16_t port;
    pthread_mutex_t lock;
    struct http_stream *streams[CLIENTS]; /* under the lock, for as long as they live */
    struct http_request *held[CLIENTS];   /* likewise: deferred, not resumed */
    _Atomic int begun;                    /* streams and deferred requests so far */
    _Atomic int living;                   /* streams and requests that are not freed yet */
    _Atomic bool over;
};

static ssize_t never(void *user, char *data, size_t size)
{
    return HTTP_STREAM_WAIT;
}

struct source {
    struct fixture *fixture;
    int slot;
};

static void source_free(void *user)
{
    struct source *s = user;

    pthread_mutex_lock(&s->fixture->lock);
    s->fixture->streams[s->slot] = NULL;
    pthread_mutex_unlock(&s->fixture->lock);
    atomic_fetch_sub(&s->fixture->living, 1);
    free(s);
}

static void on_free(struct http_request *r)
{
    struct fixture *f = r->user;

    atomic_fetch_sub(&f->living, 1);
}

static int64_t on_headers(void *ctx, struct http_request *r)
{
    struct fixture *f = ctx;

    atomic_fetch_add(&f->living, 1);
    r->user = f;
    r->user_free = on_free;
    return 0;
}

static void begin_stream(struct fixture *f, struct http_request *r, int slot)
{
    struct source *s = calloc(1, sizeof(*s));
    struct http_stream_source source = {never, source_free, s};

    assert_non_null(s);
    s->fixture = f;
    s->slot = slot;
    atomic_fetch_add(&f->living, 1);
    pthread_mutex_lock(&f->lock);
    http_reply_stream(r, "text/plain", &source, 60000, &f->streams[slot]);
    pthread_mutex_unlock(&f->lock);
}

/* /stream/N sleeps for ever, /held/N waits to be resumed. */
static void on_request(void *ctx, struct http_request *r)
{
    struct fixture *f = ctx;
    int slot = r->segment_count == 2 ? r->segments[1][0] - '0' : 0;

    if (r->segment_count == 2 && strcmp(r->segments[0], "stream") == 0) {
        begin_stream(f, r, slot);
    } else if (r->segment_count == 2) {
        http_defer(r);
        pthread_mutex_lock(&f->lock);
        f->held[slot] = r;
        pthread_mutex_unlock(&f->lock);
    } else {
        http_reply(r, 200, NULL, NULL);
        return;
    }
    atomic_fetch_add(&f->begun, 1);
}

static void start(struct fixture *f, unsigned threads)
{
    struct http_server_config config = {.listen = "127.0.0.1:0", .threads = threads};
    struct http_handler handler = {.headers = on_headers, .request = on_request, .ctx = f};

    atomic_store(&f->begun, 0);
    assert_int_equal(http_server_create(&config, &handler, &f->server, NULL), 0);
    f->port = http_server_port(f->server);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    pthread_mutex_init(&f->lock, NULL);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    pthread_mutex_destroy(&f->lock);
    free(f);
    return 0;
}

static void a_stop_right_after_the_start(void **state)
{
    struct fixture *f = *state;

    for (unsigned i = 0; i < STARTS; i++) {
        start(f, 1 + i % 3);
        http_server_destroy(f->server);
    }
}

/* Waits until the first request of all clients is where it will stay. */
static void wait_for_begun(struct fixture *f, int expected)
{
    const struct timespec pause = {.tv_nsec = NS_PER_MS / 10};

    while (atomic_load(&f->begun) < expected)
        nanosleep(&pause, NULL);
}

static void send_to(struct fixture *f, const char *kind, int *fds)
{
    for (int i = 0; i < CLIENTS; i++) {
        struct strbuf text = STRBUF_INIT;

        strbuf_addf(&text, "GET /%s/%d HTTP/1.1\r\nHost: x\r\n\r\n", kind, i);
        fds[i] = raw_connect(f->port);
        assert_true(raw_sends(fds[i], strbuf_str(&text)));
        strbuf_done(&text);
    }
}

static void hang_up(int *fds)
{
    for (int i = 0; i < CLIENTS; i++)
        close(fds[i]);
}

static void a_stop_with_connections_that_say_nothing(void **state)
{
    struct fixture *f = *state;
    int fds[CLIENTS];

    for (unsigned i = 0; i < TURNS; i++) {
        start(f, 1 + i % 3);
        for (int k = 0; k < CLIENTS; k++)
            fds[k] = raw_connect(f->port);
        http_server_destroy(f->server);
        hang_up(fds);
    }
}

/* Wakes every stream again and again, as the core does for each event. */
static void *wake_on_and_on(void *arg)
{
    struct fixture *f = arg;

    while (!atomic_load(&f->over)) {
        pthread_mutex_lock(&f->lock);
        for (int i = 0; i < CLIENTS; i++)
            if (f->streams[i])
                http_stream_wake(f->streams[i]);
        pthread_mutex_unlock(&f->lock);
        sched_yield();
    }
    return NULL;
}

static void a_stop_while_streams_are_woken(void **state)
{
    struct fixture *f = *state;
    pthread_t thread;
    int fds[CLIENTS];

    assert_int_equal(pthread_create(&thread, NULL, wake_on_and_on, f), 0);
    for (unsigned i = 0; i < TURNS; i++) {
        start(f, 1 + i % 3);
        send_to(f, "stream", fds);
        wait_for_begun(f, CLIENTS);
        http_server_stop(f->server);
        assert_int_equal(atomic_load(&f->living), 0);
        http_server_destroy(f->server);
        hang_up(fds);
    }
    atomic_store(&f->over, true);
    pthread_join(thread, NULL);
}

static void resumed(struct http_request *r)
{
    http_reply(r, 200, NULL, NULL);
}

static void *resume_all(void *arg)
{
    struct fixture *f = arg;

    for (int i = 0; i < CLIENTS; i++)
        http_resume(f->held[i], resumed);
    return NULL;
}

static void a_stop_while_deferred_requests_are_resumed(void **state)
{
    struct fixture *f = *state;
    pthread_t thread;
    int fds[CLIENTS];

    for (unsigned i = 0; i < TURNS; i++) {
        start(f, 1 + i % 3);
        send_to(f, "held", fds);
        wait_for_begun(f, CLIENTS);
        assert_int_equal(pthread_create(&thread, NULL, resume_all, f), 0);
        http_server_stop(f->server);
        pthread_join(thread, NULL);
        assert_int_equal(atomic_load(&f->living), 0);
        http_server_destroy(f->server);
        hang_up(fds);
    }
}

/* Connects without end; whether it is let in is not the question. */
static void *come_on_and_on(void *arg)
{
    struct fixture *f = arg;
    const char ask[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    struct sockaddr_in sa = {.sin_family = AF_INET};

    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    while (!atomic_load(&f->over)) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        pthread_mutex_lock(&f->lock);
        sa.sin_port = htons(f->port);
        pthread_mutex_unlock(&f->lock);
        if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0)
            (void)send(fd, ask, sizeof(ask) - 1, MSG_NOSIGNAL);
        close(fd);
    }
    return NULL;
}

static void a_stop_while_clients_keep_coming(void **state)
{
    struct fixture *f = *state;
    pthread_t thread;

    start(f, 1);
    assert_int_equal(pthread_create(&thread, NULL, come_on_and_on, f), 0);
    for (unsigned i = 0; i < TURNS; i++) {
        http_server_destroy(f->server);
        assert_int_equal(atomic_load(&f->living), 0);
        pthread_mutex_lock(&f->lock);
        start(f, 1 + i % 3);
        pthread_mutex_unlock(&f->lock);
    }
    atomic_store(&f->over, true);
    pthread_join(thread, NULL);
    http_server_destroy(f->server);
}

static void after_a_stop_nobody_is_let_in(void **state)
{
    struct fixture *f = *state;
    struct sockaddr_in sa = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    start(f, 2);
    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    sa.sin_port = htons(f->port);
    http_server_stop(f->server);
    assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), -1);
    assert_int_equal(errno, ECONNREFUSED);
    close(fd);
    http_server_destroy(f->server);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_stop_right_after_the_start),
        TEST(a_stop_with_connections_that_say_nothing),
        TEST(a_stop_while_streams_are_woken),
        TEST(a_stop_while_deferred_requests_are_resumed),
        TEST(a_stop_while_clients_keep_coming),
        TEST(after_a_stop_nobody_is_let_in),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
