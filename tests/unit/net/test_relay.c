/* SPDX-License-Identifier: Apache-2.0 */
/* Upgraded connections: server's relay and client's raw connection, against each other. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "net/http_client.h"
#include "net/http_server.h"
#include "raw.h"

struct fixture {
    struct http_server *server;
    struct http_client *client;
    int far;  /* our end of what the server relays to */
    int near; /* the other end, until the server has it */
    int raw;  /* the client's */
    struct http_reply reply;
    char body[32];
};

static int64_t on_headers(void *ctx, struct http_request *r)
{
    return 1024;
}

static void on_request(void *ctx, struct http_request *r)
{
    struct fixture *f = ctx;
    struct err err = ERR_INIT;

    if (strcmp(r->path, "/refuse") == 0) {
        err_set(&err, -ENOENT, ERR_NOT_FOUND, NULL, NULL, "not running");
        http_reply_problem(r, 404, &err);
        return;
    }
    memcpy(f->body, r->body, r->body_len < 31 ? r->body_len : 31);
    http_reply_upgrade(r, "allot-exec", f->near);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct http_server_config config = {.listen = "127.0.0.1:0", .threads = 1};
    struct http_handler handler = {.headers = on_headers, .request = on_request, .ctx = f};
    struct strbuf url = STRBUF_INIT;
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    f->near = pair[0];
    f->far = pair[1];
    assert_int_equal(http_server_create(&config, &handler, &f->server, NULL), 0);
    strbuf_addf(&url, "http://%s", http_server_address(f->server));
    assert_int_equal(http_client_create(strbuf_str(&url), "tok", &f->client, NULL), 0);
    strbuf_done(&url);
    f->raw = -1;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    http_server_destroy(f->server);
    http_client_destroy(f->client);
    http_reply_done(&f->reply);
    close(f->far);
    if (f->raw >= 0)
        close(f->raw);
    free(f);
    return 0;
}

static void upgrade(struct fixture *f)
{
    assert_int_equal(http_client_upgrade(f->client, "/x", "{\"a\":1}", 7, &f->raw, &f->reply, NULL),
                     0);
    assert_int_equal(f->reply.status, 101);
    assert_string_equal(f->body, "{\"a\":1}");
}

static void expect(int fd, const char *text)
{
    struct strbuf got = STRBUF_INIT;

    assert_true(raw_read_until(fd, &got, text, RAW_PATIENCE_MS));
    assert_string_equal(strbuf_str(&got), text);
    strbuf_done(&got);
}

static void bytes_go_both_ways(void **state)
{
    struct fixture *f = *state;

    upgrade(f);
    for (int i = 0; i < 100; i++) {
        assert_true(raw_sends(f->raw, "to the task"));
        expect(f->far, "to the task");
        assert_true(raw_sends(f->far, "to the client"));
        expect(f->raw, "to the client");
    }
}

static void what_an_ended_task_said_still_arrives(void **state)
{
    struct fixture *f = *state;
    char part[65536];
    size_t total = 0, sent = 0;
    ssize_t n;

    upgrade(f);
    memset(part, 'x', sizeof(part));
    /* nobody reads: fill everything between, then end */
    fcntl(f->far, F_SETFL, O_NONBLOCK);
    for (int quiet = 0; quiet < 20;) {
        n = send(f->far, part, sizeof(part), MSG_NOSIGNAL);
        if (n > 0)
            sent += (size_t)n;
        else {
            quiet++;
            poll(NULL, 0, 5);
        }
    }
    shutdown(f->far, SHUT_RDWR);
    while ((n = recv(f->raw, part, sizeof(part), 0)) > 0)
        total += (size_t)n;
    assert_int_equal(total, sent);
}

static void a_client_that_leaves_ends_the_task_side(void **state)
{
    struct fixture *f = *state;

    upgrade(f);
    assert_true(raw_sends(f->raw, "last words"));
    close(f->raw);
    f->raw = -1;
    expect(f->far, "last words");
    assert_true(raw_wait_closed(f->far, RAW_PATIENCE_MS));
}

static void last_words_survive_input_that_nobody_takes(void **state)
{
    struct fixture *f = *state;

    upgrade(f);
    assert_true(raw_sends(f->far, "exit"));
    close(f->far);
    f->far = -1;
    raw_sends(f->raw, "too late");
    expect(f->raw, "exit");
    assert_true(raw_wait_closed(f->raw, RAW_PATIENCE_MS));
}

static void stopping_the_server_ends_relays(void **state)
{
    struct fixture *f = *state;

    upgrade(f);
    http_server_stop(f->server);
    assert_true(raw_wait_closed(f->raw, RAW_PATIENCE_MS));
    assert_true(raw_wait_closed(f->far, RAW_PATIENCE_MS));
}

static void a_refused_upgrade_is_an_ordinary_reply(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(http_client_upgrade(f->client, "/refuse", "{}", 2, &f->raw, &f->reply, NULL),
                     0);
    assert_int_equal(f->reply.status, 404);
    assert_non_null(strstr(f->reply.body.data, "not running"));
    assert_int_equal(f->raw, -1);
    close(f->near);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(bytes_go_both_ways),
        TEST(what_an_ended_task_said_still_arrives),
        TEST(a_client_that_leaves_ends_the_task_side),
        TEST(last_words_survive_input_that_nobody_takes),
        TEST(stopping_the_server_ends_relays),
        TEST(a_refused_upgrade_is_an_ordinary_reply),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
