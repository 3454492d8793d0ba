/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP client, against our own server. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "net/http_client.h"
#include "net/http_server.h"

struct fixture {
    struct http_server *server;
    struct http_client *client;
    struct http_reply reply;
    int quiet, chunks;
};

static int64_t on_headers(void *ctx, struct http_request *r)
{
    return HTTP_BODY_DEFAULT;
}

static void show(struct strbuf *b, struct http_request *r, const char *name)
{
    const char *v = http_request_header(r, name);

    strbuf_addf(b, "%s=%s;", name, v ? v : "-");
}

static ssize_t never(void *user, char *data, size_t size)
{
    return HTTP_STREAM_WAIT;
}

static ssize_t twice(void *user, char *data, size_t size)
{
    int *n = user;

    if (++*n > 2)
        return HTTP_STREAM_END;
    data[0] = (char)('0' + *n);
    return 1;
}

static void on_request(void *ctx, struct http_request *r)
{
    struct http_stream_source quiet = {.read = never};
    struct http_stream_source short_one = {.read = twice, .free = free};
    struct strbuf b = STRBUF_INIT;

    if (strcmp(r->path, "/quiet") == 0) {
        http_reply_stream(r, "text/plain", &quiet, 60000, NULL);
        return;
    }
    if (strcmp(r->path, "/short") == 0) {
        short_one.user = calloc(1, sizeof(int));
        http_reply_stream(r, "text/plain", &short_one, 60000, NULL);
        return;
    }
    strbuf_addf(&b, "%s %s %zu:", r->method, r->path, r->body_len);
    show(&b, r, "Authorization");
    show(&b, r, "Accept");
    show(&b, r, "Idempotency-Key");
    http_reply_header(r, "ETag", "\"7\"");
    http_reply(r, strcmp(r->path, "/absent") == 0 ? 404 : 200, "text/plain", &b);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct http_server_config config = {.listen = "127.0.0.1:0", .threads = 1};
    struct http_handler handler = {.headers = on_headers, .request = on_request, .ctx = f};
    struct strbuf url = STRBUF_INIT;

    assert_int_equal(http_server_create(&config, &handler, &f->server, NULL), 0);
    strbuf_addf(&url, "http://%s/", http_server_address(f->server));
    assert_int_equal(http_client_create(strbuf_str(&url), "secret", &f->client, NULL), 0);
    strbuf_done(&url);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    http_client_destroy(f->client);
    http_server_destroy(f->server);
    http_reply_done(&f->reply);
    free(f);
    return 0;
}

static void sends_token_and_reads_reply(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(http_client_call(f->client, "GET", "/v1/x", NULL, 0, &f->reply, NULL), 0);
    assert_int_equal(f->reply.status, 200);
    assert_string_equal(f->reply.etag, "\"7\"");
    assert_string_equal(strbuf_str(&f->reply.body),
                        "GET /v1/x 0:Authorization=Bearer secret;Accept=application/json;"
                        "Idempotency-Key=-;");
}

static void an_added_header_is_for_one_call(void **state)
{
    struct fixture *f = *state;

    http_client_header(f->client, "Idempotency-Key", "k\r\nX: y");
    assert_int_equal(http_client_call(f->client, "POST", "/p", "{}", 2, &f->reply, NULL), 0);
    assert_non_null(strstr(f->reply.body.data, "Idempotency-Key=k  X: y;"));
    assert_int_equal(http_client_call(f->client, "POST", "/p", "{}", 2, &f->reply, NULL), 0);
    assert_non_null(strstr(f->reply.body.data, "POST /p 2:"));
    assert_non_null(strstr(f->reply.body.data, "Idempotency-Key=-;"));
}

static void methods_and_bodies_arrive(void **state)
{
    struct fixture *f = *state;
    char *big = calloc(1, 3000000);

    memset(big, 'b', 3000000);
    assert_int_equal(http_client_call(f->client, "PUT", "/p", big, 3000000, &f->reply, NULL), 0);
    assert_non_null(strstr(f->reply.body.data, "PUT /p 3000000:"));
    assert_int_equal(http_client_call(f->client, "DELETE", "/p", NULL, 0, &f->reply, NULL), 0);
    assert_non_null(strstr(f->reply.body.data, "DELETE /p 0:"));
    assert_int_equal(http_client_call(f->client, "POST", "/p", NULL, 0, &f->reply, NULL), 0);
    assert_non_null(strstr(f->reply.body.data, "POST /p 0:"));
    free(big);
}

static void no_server_is_an_error_that_names_it(void **state)
{
    struct fixture *f = *state;
    struct http_client *c;
    struct err err = ERR_INIT;

    assert_int_equal(http_client_create("http://127.0.0.1:1", NULL, &c, NULL), 0);
    assert_int_equal(http_client_call(c, "GET", "/", NULL, 0, &f->reply, &err), -ECONNREFUSED);
    assert_non_null(strstr(err.text, "http://127.0.0.1:1"));
    assert_non_null(strstr(err.remedy, "allot server"));
    http_client_destroy(c);
}

static void bad_urls_are_refused(void **state)
{
    const char *urls[] = {"",           "127.0.0.1:80", "ftp://x",   "http://",
                          "http://a b", "unix:x",       "http://x?y"};
    struct http_client *c;

    for (size_t i = 0; i < ARRAY_LEN(urls); i++)
        assert_int_equal(http_client_create(urls[i], NULL, &c, NULL), -EINVAL);
    assert_int_equal(http_client_create("http://x", "a\r\nb", &c, NULL), -EINVAL);
}

static int collect(void *user, const char *data, size_t len)
{
    struct fixture *f = user;

    if (len == 0)
        return ++f->quiet >= 2 ? 77 : 0;
    f->chunks += (int)len;
    return 0;
}

static void a_stream_is_handed_over_to_its_end(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(http_client_stream(f->client, "/short", NULL, collect, f, &f->reply, NULL), 0);
    assert_int_equal(f->chunks, 2);
    assert_int_equal(f->reply.status, 200);
}

static void a_quiet_stream_lets_the_caller_look_around_and_leave(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(http_client_stream(f->client, "/quiet", "5", collect, f, &f->reply, NULL), 77);
    assert_int_equal(f->quiet, 2);
}

static void a_refused_stream_is_an_ordinary_reply(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(http_client_stream(f->client, "/absent", NULL, collect, f, &f->reply, NULL),
                     0);
    assert_int_equal(f->reply.status, 404);
    assert_int_equal(f->chunks, 0);
    assert_non_null(strstr(f->reply.body.data, "Accept=text/event-stream"));
}

static void escapes_names(void **state)
{
    struct strbuf b = STRBUF_INIT;

    http_escape("a b/\xc3\xa9~._-Z9%", &b);
    assert_string_equal(strbuf_str(&b), "a%20b%2F%C3%A9~._-Z9%25");
    strbuf_done(&b);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(sends_token_and_reads_reply),
        TEST(an_added_header_is_for_one_call),
        TEST(methods_and_bodies_arrive),
        TEST(no_server_is_an_error_that_names_it),
        TEST(bad_urls_are_refused),
        TEST(a_stream_is_handed_over_to_its_end),
        TEST(a_quiet_stream_lets_the_caller_look_around_and_leave),
        TEST(a_refused_stream_is_an_ordinary_reply),
        cmocka_unit_test(escapes_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
