/* SPDX-License-Identifier: Apache-2.0 */
/* Logs and exec. */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "fixture.h"

#define LOGS "/v1/workloads/1/logs"

static void run_one(struct fixture *f)
{
    const struct timespec pause = {.tv_nsec = 5 * NS_PER_MS};
    int turns = 0;

    wait_state(f, submit(f, f->ada, "{\"team\":\"vision\",\"gpus\":1,\"command\":[\"x\"]}"),
               "running");
    /* The workload runs from the placement on, its task once the engine has started it. */
    while (ask(f, f->ada, "GET", "/v1/workloads/1", NULL) != 200 || !*text(f, "started_at")) {
        assert_true(turns++ < 12000);
        nanosleep(&pause, NULL);
    }
}

/* The log as a client gets it. */
static const char *logs(struct fixture *f, const char *query)
{
    struct strbuf path = STRBUF_INIT;

    strbuf_addf(&path, LOGS "%s", query);
    if (ask(f, f->ada, "GET", strbuf_str(&path), NULL) != 200)
        fail_msg("%s: %s", query, strbuf_str(&f->reply.body));
    strbuf_done(&path);
    return strbuf_str(&f->reply.body);
}

static void a_log_is_read_from_any_offset(void **state)
{
    struct fixture *f = *state;

    run_one(f);
    assert_string_equal(logs(f, ""), "");
    engine_log(f, "1.0.0", "one\ntwo\nthree\n");
    assert_string_equal(logs(f, ""), "one\ntwo\nthree\n");
    assert_string_equal(logs(f, "?offset=4"), "two\nthree\n");
    assert_string_equal(logs(f, "?offset=400"), "");
}

static void a_log_can_begin_with_its_last_lines(void **state)
{
    struct fixture *f = *state;

    run_one(f);
    engine_log(f, "1.0.0", "one\ntwo\nthree");
    assert_string_equal(logs(f, "?tail=0"), "");
    assert_string_equal(logs(f, "?tail=1"), "three");
    assert_string_equal(logs(f, "?tail=2"), "two\nthree");
    assert_string_equal(logs(f, "?tail=100"), "one\ntwo\nthree");
}

static void a_rotated_log_begins_where_it_can(void **state)
{
    struct fixture *f = *state;

    run_one(f);
    engine_log(f, "1.0.0", "one\ntwo\nthree\n");
    engine_rotate(f, "1.0.0", 4);
    assert_string_equal(logs(f, ""), "two\nthree\n");
    assert_string_equal(logs(f, "?tail=5"), "two\nthree\n");
}

static void large_logs_arrive_whole(void **state)
{
    struct fixture *f = *state;
    struct strbuf big = STRBUF_INIT;

    run_one(f);
    for (int i = 0; i < 200000; i++)
        strbuf_addf(&big, "line %d\n", i);
    engine_log(f, "1.0.0", strbuf_str(&big));
    assert_string_equal(logs(f, ""), strbuf_str(&big));
    assert_string_equal(logs(f, "?tail=1"), "line 199999\n");
    strbuf_done(&big);
}

struct follow {
    struct fixture *f;
    struct strbuf got;
    int step;
};

/* Writes more as it sees what was written before. */
static int on_data(void *user, const char *data, size_t len)
{
    struct follow *w = user;

    if (len > 0)
        strbuf_add(&w->got, data, len);
    if (w->step == 0 && strstr(strbuf_str(&w->got), "first\n")) {
        engine_log(w->f, "1.0.0", "second\n");
        w->step++;
    } else if (w->step == 1 && strstr(strbuf_str(&w->got), "second\n")) {
        engine_log(w->f, "1.0.0", "last words");
        engine_exit(w->f, "1.0.0", 0);
        w->step++;
    }
    return 0;
}

static void a_followed_log_ends_with_its_task(void **state)
{
    struct fixture *f = *state;
    struct follow w = {.f = f};

    run_one(f);
    engine_log(f, "1.0.0", "first\n");
    assert_int_equal(
        http_client_stream(f->ada, LOGS "?follow=true", NULL, on_data, &w, &f->reply, NULL), 0);
    assert_string_equal(strbuf_str(&w.got), "first\nsecond\nlast words");
    strbuf_done(&w.got);
}

static int stop_it(void *user, const char *data, size_t len)
{
    struct fixture *f = user;
    struct http_reply reply = HTTP_REPLY_INIT;

    http_client_call(f->root, "POST", "/v1/workloads/2/stop", NULL, 0, &reply, NULL);
    http_reply_done(&reply);
    return 0;
}

static void following_what_never_runs_ends_when_it_is_cancelled(void **state)
{
    struct fixture *f = *state;

    wait_state(f, submit(f, f->ada, "{\"team\":\"vision\",\"gpus\":8,\"command\":[\"x\"]}"),
               "running");
    submit(f, f->ada, "{\"team\":\"vision\",\"gpus\":8,\"command\":[\"x\"]}");
    assert_int_equal(http_client_stream(f->ada, "/v1/workloads/2/logs?follow=1", NULL, stop_it, f,
                                        &f->reply, NULL),
                     0);
    assert_int_equal(f->reply.status, 200);
}

static void bad_log_requests_are_refused(void **state)
{
    static const struct {
        const char *query;
        int status;
        const char *field;
    } cases[] = {
        {"?task=7", 400, "task"},   {"?task=-1", 400, "task"},     {"?offset=x", 400, "offset"},
        {"?tail=1e9", 400, "tail"}, {"?follow=si", 400, "follow"}, {"?attempt=3", 404, ""},
        {"?lines=3", 400, "lines"},
    };
    struct fixture *f = *state;

    run_one(f);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct strbuf path = STRBUF_INIT;

        strbuf_addf(&path, LOGS "%s", cases[i].query);
        assert_int_equal(ask(f, f->ada, "GET", strbuf_str(&path), NULL), cases[i].status);
        assert_string_equal(text(f, "field"), cases[i].field);
        strbuf_done(&path);
    }
    assert_int_equal(ask(f, f->bob, "GET", LOGS, NULL), 404);
}

/* ---- exec ----------------------------------------------------------------------------------- */

#define EXEC "/v1/workloads/1/tasks/0/exec"

static int upgrade(struct fixture *f, struct http_client *who, const char *path, const char *body,
                   int *ret_fd)
{
    assert_int_equal(http_client_upgrade(who, path, body, strlen(body), ret_fd, &f->reply, NULL),
                     0);
    return f->reply.status;
}

static void expect(int fd, const char *wanted)
{
    char got[256] = "";
    size_t n = 0;

    while (n < strlen(wanted)) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        ssize_t r;

        assert_int_equal(poll(&p, 1, 60000), 1);
        r = recv(fd, got + n, strlen(wanted) - n, 0);
        assert_true(r > 0);
        n += (size_t)r;
    }
    assert_string_equal(got, wanted);
}

static void exec_joins_client_and_task(void **state)
{
    struct fixture *f = *state;
    int fd = -1;

    run_one(f);
    assert_int_equal(upgrade(f, f->ada, EXEC, "{\"command\":[\"sh\"],\"tty\":true}", &fd), 101);
    expect(fd, "1.0.0 sh 1\n");
    assert_int_equal(send(fd, "echo me", 7, MSG_NOSIGNAL), 7);
    expect(fd, "echo me");
    close(fd);
}

static void exec_is_refused_like_anything_else(void **state)
{
    struct fixture *f = *state;
    int fd = -1;

    run_one(f);
    assert_int_equal(ask(f, f->ada, "POST", EXEC, "{\"command\":[\"sh\"]}"), 426);
    assert_int_equal(upgrade(f, f->nobody, EXEC, "{\"command\":[\"sh\"]}", &fd), 401);
    assert_int_equal(upgrade(f, f->bob, EXEC, "{\"command\":[\"sh\"]}", &fd), 404);
    assert_int_equal(upgrade(f, f->ada, EXEC, "{\"command\":[]}", &fd), 400);
    assert_int_equal(upgrade(f, f->ada, EXEC, "{}", &fd), 400);
    assert_int_equal(upgrade(f, f->ada, EXEC, "{\"command\":[\"late\"]}", &fd), 409);
    assert_int_equal(
        upgrade(f, f->ada, "/v1/workloads/1/tasks/9/exec", "{\"command\":[\"sh\"]}", &fd), 404);
    engine_exit(f, "1.0.0", 0);
    wait_state(f, 1, "succeeded");
    assert_int_equal(upgrade(f, f->ada, EXEC, "{\"command\":[\"sh\"]}", &fd), 409);
    assert_int_equal(fd, -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_set_up, fixture_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_log_is_read_from_any_offset),
        TEST(a_log_can_begin_with_its_last_lines),
        TEST(a_rotated_log_begins_where_it_can),
        TEST(large_logs_arrive_whole),
        TEST(a_followed_log_ends_with_its_task),
        TEST(following_what_never_runs_ends_when_it_is_cancelled),
        TEST(bad_log_requests_are_refused),
        TEST(exec_joins_client_and_task),
        TEST(exec_is_refused_like_anything_else),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
