/* SPDX-License-Identifier: Apache-2.0 */
/* Requests, bodies, bounds and time limits of the HTTP server. */
#include <errno.h>
#include <pthread.h>
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

#define BODY_LIMIT 100000

struct fixture {
    struct http_server *server;
    uint16_t port;
    struct strbuf head, body;
    _Atomic int freed; /* user_free() calls */
    _Atomic int held;  /* requests that wait for the test to resume them */
    struct http_request *held_request;
};

static void on_free(struct http_request *r)
{
    struct fixture *f = r->user;

    atomic_fetch_add(&f->freed, 1);
}

static void reply_text(struct http_request *r, const char *text)
{
    struct strbuf b = STRBUF_INIT;

    strbuf_adds(&b, text);
    http_reply(r, 200, "text/plain", &b);
}

static void resumed(struct http_request *r)
{
    reply_text(r, "resumed");
}

static void *resume_soon(void *arg)
{
    http_resume(arg, resumed);
    return NULL;
}

static int64_t on_headers(void *ctx, struct http_request *r)
{
    const char *auth = http_request_header(r, "Authorization");
    struct err err = ERR_INIT;

    r->user = ctx;
    r->user_free = on_free;
    if (auth && strcmp(auth, "wrong") == 0) {
        err_set(&err, -EACCES, ERR_UNAUTHENTICATED, NULL, NULL, "no");
        http_reply_problem(r, 401, &err);
    }
    return BODY_LIMIT;
}

static void on_request(void *ctx, struct http_request *r)
{
    struct fixture *f = ctx;
    const char *what = r->segment_count > 0 ? r->segments[0] : "";
    struct strbuf b = STRBUF_INIT;
    pthread_t thread;

    if (strcmp(what, "echo") == 0) {
        strbuf_add(&b, r->body, r->body_len);
        http_reply(r, 200, "text/plain", &b);
    } else if (strcmp(what, "target") == 0) {
        for (int i = 1; i < r->segment_count; i++)
            strbuf_addf(&b, "[%s]", r->segments[i]);
        for (int i = 0; i < r->param_count; i++)
            strbuf_addf(&b, "{%s=%s}", r->params[i].name, r->params[i].value);
        http_reply(r, 200, "text/plain", &b);
    } else if (strcmp(what, "later") == 0) {
        http_defer(r);
        assert_int_equal(pthread_create(&thread, NULL, resume_soon, r), 0);
        pthread_detach(thread);
    } else if (strcmp(what, "held") == 0) {
        http_defer(r);
        f->held_request = r;
        atomic_fetch_add(&f->held, 1);
    } else if (strcmp(what, "header") == 0) {
        http_reply_header(r, "X-Given", "a\r\nX-Forged: b");
        reply_text(r, "ok");
    } else if (strcmp(what, "nothing") != 0) {
        reply_text(r, "root");
    }
}

static struct fixture *start(const struct http_server_config *extra)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct http_server_config config = extra ? *extra : (struct http_server_config){0};
    struct http_handler handler = {.headers = on_headers, .request = on_request, .ctx = f};

    config.listen = "127.0.0.1:0";
    assert_int_equal(http_server_create(&config, &handler, &f->server, NULL), 0);
    f->port = http_server_port(f->server);
    return f;
}

static int set_up(void **state)
{
    *state = start(NULL);
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    http_server_destroy(f->server);
    strbuf_done(&f->head);
    strbuf_done(&f->body);
    free(f);
    return 0;
}

static int ask(struct fixture *f, const char *text)
{
    return raw_ask(f->port, text, &f->head, &f->body);
}

static void answers_and_carries_the_safe_headers(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask(f, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
    assert_string_equal(strbuf_str(&f->body), "root");
    assert_non_null(strcasestr(f->head.data, "X-Content-Type-Options: nosniff"));
    assert_non_null(strcasestr(f->head.data, "Cache-Control: no-store"));
}

static void decodes_path_and_query(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask(f, "GET /target/a%20b/%C3%A9+?x=1+2&y=%26&flag HTTP/1.1\r\n"
                            "Host: x\r\n\r\n"),
                     200);
    assert_string_equal(strbuf_str(&f->body), "[a b][\xc3\xa9+]{x=1 2}{y=&}{flag=}");
}

static void refuses_hostile_targets(void **state)
{
    const char *targets[] = {
        "/a%00b", "/a%zz", "/a%2",    "/%ff",
        "//a",    "/a//b", "/?q=%00", "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17"};
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        struct strbuf text = STRBUF_INIT;

        strbuf_addf(&text, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", targets[i]);
        assert_int_equal(ask(f, strbuf_str(&text)), 400);
        assert_non_null(strstr(f->head.data, "application/problem+json"));
        strbuf_done(&text);
    }
}

static void refuses_an_overlong_target(void **state)
{
    struct fixture *f = *state;
    struct strbuf text = STRBUF_INIT;

    strbuf_adds(&text, "GET /");
    for (int i = 0; i < 10000; i++)
        strbuf_addc(&text, 'a');
    strbuf_adds(&text, " HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_int_equal(ask(f, strbuf_str(&text)), 414);
    assert_non_null(strstr(f->body.data, "too_large"));
    strbuf_done(&text);
}

static void survives_a_flood_of_headers(void **state)
{
    struct fixture *f = *state;
    struct strbuf text = STRBUF_INIT;
    int fd = raw_connect(f->port), status;

    strbuf_adds(&text, "GET / HTTP/1.1\r\nHost: x\r\n");
    for (int i = 0; i < 20000; i++)
        strbuf_addf(&text, "X-%d: y\r\n", i);
    strbuf_adds(&text, "\r\n");
    raw_send(fd, text.data, text.len); /* may be cut off */
    status = raw_reply(fd, &f->head, &f->body);
    assert_true(status == 431 || status == 413 || status == 0);
    close(fd);
    assert_int_equal(ask(f, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
    strbuf_done(&text);
}

static void survives_bytes_that_are_not_http(void **state)
{
    const char *junk[] = {"\x16\x03\x01\x02",
                          "GET\r\n\r\n",
                          "\r\n\r\n\r\n",
                          "GET / HTTP/9.9\r\n\r\n",
                          "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
                          "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"};
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(junk); i++) {
        int fd = raw_connect(f->port);

        raw_sends(fd, junk[i]);
        shutdown(fd, SHUT_WR);
        if (!raw_wait_closed(fd, RAW_PATIENCE_MS))
            fail_msg("the connection stays open after junk %zu", i);
        close(fd);
    }
    assert_int_equal(ask(f, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
}

static void two_lengths_of_one_body_are_refused(void **state)
{
    const char *heads[] = {"Content-Length: 3\r\nContent-Length: 5\r\n\r\nabcde",
                           "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"};
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        struct strbuf text = STRBUF_INIT;
        int fd = raw_connect(f->port);

        strbuf_addf(&text, "POST /echo HTTP/1.1\r\nHost: x\r\n%s", heads[i]);
        assert_true(raw_sends(fd, strbuf_str(&text)));
        assert_int_equal(raw_reply(fd, &f->head, &f->body), 400);
        assert_true(raw_wait_closed(fd, RAW_PATIENCE_MS));
        close(fd);
        strbuf_done(&text);
    }
}

static void header_values_cannot_forge_a_header(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask(f, "GET /header HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
    assert_non_null(strstr(f->head.data, "X-Given: a\r\n"));
    assert_null(strstr(f->head.data, "Forged"));
}

static void takes_bodies_with_length_and_in_chunks(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask(f, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"),
                     200);
    assert_string_equal(strbuf_str(&f->body), "hello");
    assert_int_equal(ask(f, "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                            "3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"),
                     200);
    assert_string_equal(strbuf_str(&f->body), "hello");
}

static void post_body(struct fixture *f, int fd, size_t len, const char *header)
{
    struct strbuf text = STRBUF_INIT;

    strbuf_addf(&text, "POST /echo HTTP/1.1\r\nHost: x\r\n%sContent-Length: %zu\r\n\r\n", header,
                len);
    for (size_t i = 0; i < len; i++)
        strbuf_addc(&text, 'b');
    assert_true(raw_send(fd, text.data, text.len));
    strbuf_done(&text);
}

static void a_body_over_the_limit_is_answered_after_it_was_sent(void **state)
{
    struct fixture *f = *state;
    int fd = raw_connect(f->port);

    post_body(f, fd, 10 * 1024 * 1024, "");
    assert_int_equal(raw_reply(fd, &f->head, &f->body), 413);
    assert_non_null(strstr(f->body.data, "100000"));
    /* and the connection is still good */
    assert_true(raw_sends(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    assert_int_equal(raw_reply(fd, &f->head, &f->body), 200);
    close(fd);
}

static void a_body_at_the_limit_is_taken(void **state)
{
    struct fixture *f = *state;
    int fd = raw_connect(f->port);

    post_body(f, fd, BODY_LIMIT, "");
    assert_int_equal(raw_reply(fd, &f->head, &f->body), 200);
    assert_int_equal(f->body.len, BODY_LIMIT);
    close(fd);
}

static void chunks_over_the_limit_are_refused(void **state)
{
    struct fixture *f = *state;
    int fd = raw_connect(f->port);
    char chunk[1024 + 16];

    memset(chunk, 'c', sizeof(chunk));
    assert_true(raw_sends(fd, "POST /echo HTTP/1.1\r\nHost: x\r\n"
                              "Transfer-Encoding: chunked\r\n\r\n"));
    for (int i = 0; i < 200; i++) {
        assert_true(raw_sends(fd, "400\r\n"));
        assert_true(raw_send(fd, chunk, 1024));
        assert_true(raw_sends(fd, "\r\n"));
    }
    assert_true(raw_sends(fd, "0\r\n\r\n"));
    assert_int_equal(raw_reply(fd, &f->head, &f->body), 413);
    close(fd);
}

static void a_client_that_expects_continue_hears_the_refusal_first(void **state)
{
    struct fixture *f = *state;
    int fd = raw_connect(f->port);

    assert_true(raw_sends(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
                              "Content-Length: 1000000\r\n\r\n"));
    assert_int_equal(raw_reply(fd, &f->head, &f->body), 413);
    close(fd);
}

static void a_request_refused_by_its_head_is_answered_after_its_body(void **state)
{
    struct fixture *f = *state;
    int fd = raw_connect(f->port);

    post_body(f, fd, 1000000, "Authorization: wrong\r\n");
    assert_int_equal(raw_reply(fd, &f->head, &f->body), 401);
    close(fd);
}

static void bodies_of_all_connections_are_bounded(void **state)
{
    struct http_server_config config = {.body_total = 50000};
    struct fixture *f = start(&config);
    int fd = raw_connect(f->port);
    void *p = f;

    post_body(f, fd, 60000, "");
    assert_int_equal(raw_reply(fd, &f->head, &f->body), 503);
    close(fd);
    fd = raw_connect(f->port);
    post_body(f, fd, 20000, "");
    assert_int_equal(raw_reply(fd, &f->head, &f->body), 200);
    close(fd);
    tear_down(&p);
}

static void answers_pipelined_requests_in_order(void **state)
{
    struct fixture *f = *state;
    int fd = raw_connect(f->port);

    assert_true(raw_sends(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n1"
                              "GET /later HTTP/1.1\r\nHost: x\r\n\r\n"
                              "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n2"));
    assert_int_equal(raw_reply(fd, &f->head, &f->body), 200);
    assert_string_equal(strbuf_str(&f->body), "1");
    assert_int_equal(raw_reply(fd, &f->head, &f->body), 200);
    assert_string_equal(strbuf_str(&f->body), "resumed");
    assert_int_equal(raw_reply(fd, &f->head, &f->body), 200);
    assert_string_equal(strbuf_str(&f->body), "2");
    close(fd);
}

static void a_deferred_request_is_answered_from_another_thread(void **state)
{
    struct fixture *f = *state;
    int fd = raw_connect(f->port);

    for (int i = 0; i < 500; i++) {
        assert_true(raw_sends(fd, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n"));
        assert_int_equal(raw_reply(fd, &f->head, &f->body), 200);
        assert_string_equal(strbuf_str(&f->body), "resumed");
    }
    close(fd);
}

static void wait_for(_Atomic int *value, int expected)
{
    const struct timespec pause = {.tv_nsec = NS_PER_MS};

    for (int i = 0; i < RAW_PATIENCE_MS && atomic_load(value) < expected; i++)
        nanosleep(&pause, NULL);
    assert_int_equal(atomic_load(value), expected);
}

static void a_client_that_leaves_while_deferred_releases_everything(void **state)
{
    struct fixture *f = *state;
    int fd = raw_connect(f->port);

    assert_true(raw_sends(fd, "GET /held HTTP/1.1\r\nHost: x\r\n\r\n"));
    wait_for(&f->held, 1);
    close(fd);
    http_resume(f->held_request, resumed);
    wait_for(&f->freed, 1);
}

static void a_deferred_request_outlives_the_server_s_stop(void **state)
{
    struct fixture *f = start(NULL);
    int fd = raw_connect(f->port);

    assert_true(raw_sends(fd, "GET /held HTTP/1.1\r\nHost: x\r\n\r\n"));
    wait_for(&f->held, 1);
    http_server_stop(f->server);
    assert_int_equal(raw_reply(fd, &f->head, &f->body), 503);
    assert_int_equal(atomic_load(&f->freed), 0);
    http_resume(f->held_request, resumed);
    assert_int_equal(atomic_load(&f->freed), 1);
    close(fd);
    tear_down((void **)&f);
}

static void an_unanswered_request_is_an_internal_error(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask(f, "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n"), 500);
}

static void a_head_that_drips_is_cut_off(void **state)
{
    struct http_server_config config = {.idle_s = 2, .head_ms = 300};
    struct fixture *f = start(&config);
    const struct timespec pause = {.tv_nsec = 100 * NS_PER_MS};
    int fd = raw_connect(f->port), i;
    void *p = f;

    assert_true(raw_sends(fd, "GET / HTTP/1.1\r\nX: "));
    for (i = 0; i < 600 && raw_sends(fd, "y"); i++)
        nanosleep(&pause, NULL);
    assert_true(i < 600);
    close(fd);
    tear_down(&p);
}

static void a_body_that_stalls_is_cut_off_and_blocks_nobody(void **state)
{
    struct http_server_config config = {.idle_s = 30, .body_ms = 300, .threads = 1};
    struct fixture *f = start(&config);
    int fd = raw_connect(f->port);
    void *p = f;

    assert_true(raw_sends(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhe"));
    assert_int_equal(ask(f, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
    assert_true(raw_wait_closed(fd, RAW_PATIENCE_MS));
    close(fd);
    tear_down(&p);
}

static void an_idle_connection_is_closed(void **state)
{
    struct http_server_config config = {.idle_s = 1};
    struct fixture *f = start(&config);
    int fd = raw_connect(f->port);
    void *p = f;

    assert_true(raw_wait_closed(fd, RAW_PATIENCE_MS));
    close(fd);
    tear_down(&p);
}

static void connections_are_bounded_and_freed(void **state)
{
    struct http_server_config config = {.connections = 4};
    struct fixture *f = start(&config);
    void *p = f;
    int fds[4];

    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < 4; i++)
            fds[i] = raw_connect(f->port);
        for (int i = 0; i < 4; i++)
            close(fds[i]);
        assert_int_equal(ask(f, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
    }
    tear_down(&p);
}

static void those_who_only_keep_a_place_make_room(void **state)
{
    struct http_server_config config = {.connections = 8, .threads = 1};
    struct fixture *f = start(&config);
    int64_t begun_ms = clock_boot_ms();
    void *p = f;
    int fds[8];

    for (int i = 0; i < 8; i++)
        fds[i] = raw_connect(f->port);
    assert_true(raw_sends(fds[0], "GET / HTTP/1.1\r\nHost: "));
    assert_int_equal(ask(f, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
    assert_true(clock_boot_ms() - begun_ms < 30000);
    for (int i = 0; i < 8; i++)
        close(fds[i]);
    tear_down(&p);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(answers_and_carries_the_safe_headers),
        TEST(decodes_path_and_query),
        TEST(refuses_hostile_targets),
        TEST(refuses_an_overlong_target),
        TEST(survives_a_flood_of_headers),
        TEST(survives_bytes_that_are_not_http),
        TEST(two_lengths_of_one_body_are_refused),
        TEST(header_values_cannot_forge_a_header),
        TEST(takes_bodies_with_length_and_in_chunks),
        TEST(a_body_over_the_limit_is_answered_after_it_was_sent),
        TEST(a_body_at_the_limit_is_taken),
        TEST(chunks_over_the_limit_are_refused),
        TEST(a_client_that_expects_continue_hears_the_refusal_first),
        TEST(a_request_refused_by_its_head_is_answered_after_its_body),
        cmocka_unit_test(bodies_of_all_connections_are_bounded),
        TEST(answers_pipelined_requests_in_order),
        TEST(a_deferred_request_is_answered_from_another_thread),
        TEST(a_client_that_leaves_while_deferred_releases_everything),
        cmocka_unit_test(a_deferred_request_outlives_the_server_s_stop),
        TEST(an_unanswered_request_is_an_internal_error),
        cmocka_unit_test(a_head_that_drips_is_cut_off),
        cmocka_unit_test(a_body_that_stalls_is_cut_off_and_blocks_nobody),
        cmocka_unit_test(an_idle_connection_is_closed),
        cmocka_unit_test(connections_are_bounded_and_freed),
        cmocka_unit_test(those_who_only_keep_a_place_make_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
