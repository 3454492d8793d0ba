/* SPDX-License-Identifier: Apache-2.0 */
/* Streaming replies of the HTTP server. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "net/http_server.h"
#include "raw.h"

/* A source that gives a letter for each permit, "end" when told so, or bytes without end. */
struct source {
    struct fixture *fixture;
    _Atomic int permits, ends;
    _Atomic int reads, frees;
    bool flood;
    struct http_stream *stream;
    int64_t tick_ms;
};

struct fixture {
    struct http_server *server;
    uint16_t port;
    struct strbuf head, body, text;
    struct source source;
    _Atomic int begun;
};

static ssize_t source_read(void *user, char *data, size_t size)
{
    struct source *s = user;

    atomic_fetch_add(&s->reads, 1);
    if (s->flood) {
        memset(data, 'z', size);
        return (ssize_t)size;
    }
    if (atomic_load(&s->permits) > 0) {
        atomic_fetch_sub(&s->permits, 1);
        data[0] = 'p';
        return 1;
    }
    if (atomic_load(&s->ends) != 0)
        return atomic_load(&s->ends);
    return HTTP_STREAM_WAIT;
}

static void source_free(void *user)
{
    struct source *s = user;

    atomic_fetch_add(&s->frees, 1);
}

static int64_t on_headers(void *ctx, struct http_request *r)
{
    return 0;
}

static void on_request(void *ctx, struct http_request *r)
{
    struct fixture *f = ctx;
    struct http_stream_source source = {source_read, source_free, &f->source};
    struct strbuf b = STRBUF_INIT;

    if (r->segment_count == 0) {
        strbuf_adds(&b, "root");
        http_reply(r, 200, "text/plain", &b);
        return;
    }
    http_reply_stream(r, "text/plain", &source, f->source.tick_ms, &f->source.stream);
    atomic_store(&f->begun, 1);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct http_server_config config = {.listen = "127.0.0.1:0", .threads = 1, .idle_s = 2};
    struct http_handler handler = {.headers = on_headers, .request = on_request, .ctx = f};

    assert_int_equal(http_server_create(&config, &handler, &f->server, NULL), 0);
    f->port = http_server_port(f->server);
    f->source.tick_ms = 60000;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    http_server_destroy(f->server);
    assert_int_equal(atomic_load(&f->source.frees), atomic_load(&f->begun));
    strbuf_done(&f->head);
    strbuf_done(&f->body);
    strbuf_done(&f->text);
    free(f);
    return 0;
}

static int open_stream(struct fixture *f)
{
    int fd = raw_connect(f->port);

    assert_true(raw_sends(fd, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"));
    return fd;
}

static void wait_for(_Atomic int *value, int at_least)
{
    const struct timespec pause = {.tv_nsec = NS_PER_MS};

    for (int i = 0; i < RAW_PATIENCE_MS && atomic_load(value) < at_least; i++)
        nanosleep(&pause, NULL);
    assert_true(atomic_load(value) >= at_least);
}

static void sends_what_the_source_gives_until_it_ends(void **state)
{
    struct fixture *f = *state;
    int fd;

    f->source.permits = 3;
    f->source.ends = HTTP_STREAM_END;
    fd = open_stream(f);
    assert_int_equal(raw_reply(fd, &f->head, &f->body), 200);
    assert_string_equal(strbuf_str(&f->body), "ppp");
    /* the connection is good for another request */
    assert_true(raw_sends(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    assert_int_equal(raw_reply(fd, &f->head, &f->body), 200);
    close(fd);
}

static void a_wake_lets_a_sleeping_stream_go_on(void **state)
{
    struct fixture *f = *state;
    int fd = open_stream(f);

    wait_for(&f->source.reads, 1);
    for (int i = 0; i < 200; i++) {
        atomic_fetch_add(&f->source.permits, 1);
        http_stream_wake(f->source.stream);
        if (f->text.data)
            strbuf_truncate(&f->text, 0);
        assert_true(raw_read_until(fd, &f->text, "p\r\n", RAW_PATIENCE_MS));
    }
    close(fd);
}

static void a_tick_wakes_without_help(void **state)
{
    struct fixture *f = *state;
    int fd;

    f->source.tick_ms = 50;
    fd = open_stream(f);
    wait_for(&f->source.reads, 4);
    close(fd);
}

static void a_client_that_hangs_up_frees_a_sleeping_stream(void **state)
{
    struct fixture *f = *state;
    int fd = open_stream(f);

    wait_for(&f->source.reads, 1);
    close(fd);
    wait_for(&f->source.frees, 1);
}

static void a_client_that_does_not_read_blocks_nobody_and_is_cut_off(void **state)
{
    struct fixture *f = *state;
    int fd;

    f->source.flood = true;
    fd = open_stream(f);
    wait_for(&f->source.reads, 1);
    assert_int_equal(raw_ask(f->port, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", &f->head, &f->body),
                     200);
    wait_for(&f->source.frees, 1); /* after the idle time without progress */
    close(fd);
}

static void an_aborted_stream_does_not_look_complete(void **state)
{
    struct fixture *f = *state;
    int fd;

    f->source.permits = 1;
    f->source.ends = HTTP_STREAM_ABORT;
    fd = open_stream(f);
    assert_false(raw_read_until(fd, &f->text, "0\r\n\r\n", RAW_PATIENCE_MS));
    assert_non_null(strstr(f->text.data, "p\r\n"));
    close(fd);
}

static void stopping_the_server_ends_streams(void **state)
{
    struct fixture *f = *state;
    int fd = open_stream(f);

    wait_for(&f->source.reads, 1);
    http_server_stop(f->server);
    assert_int_equal(atomic_load(&f->source.frees), 1);
    assert_true(raw_read_until(fd, &f->text, "0\r\n\r\n", RAW_PATIENCE_MS));
    close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(sends_what_the_source_gives_until_it_ends),
        TEST(a_wake_lets_a_sleeping_stream_go_on),
        TEST(a_tick_wakes_without_help),
        TEST(a_client_that_hangs_up_frees_a_sleeping_stream),
        TEST(a_client_that_does_not_read_blocks_nobody_and_is_cut_off),
        TEST(an_aborted_stream_does_not_look_complete),
        TEST(stopping_the_server_ends_streams),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
