/* SPDX-License-Identifier: Apache-2.0 */
/* Events as pages and as streams. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"

#define ONE(team) "{\"team\":\"" team "\",\"gpus\":1,\"command\":[\"true\"]}"

static void a_page_holds_the_newest_in_order(void **state)
{
    struct fixture *f = *state;

    submit(f, f->ada, ONE("vision"));
    assert_int_equal(ask(f, f->root, "GET", "/v1/events?limit=3", NULL), 200);
    assert_int_equal(length(f, "events"), 3);
    assert_true(number(f, "events.0.seq") + 1 == number(f, "events.1.seq"));
    assert_int_equal(number(f, "next"), number(f, "events.2.seq"));
}

static void pages_go_on_where_the_last_ended(void **state)
{
    struct fixture *f = *state;
    int64_t after = 0, seen = 0;

    for (int i = 0; i < 3; i++)
        submit(f, f->ada, ONE("vision"));
    for (;;) {
        struct strbuf path = STRBUF_INIT;

        strbuf_addf(&path, "/v1/events?limit=4&after=%lld", (long long)after);
        assert_int_equal(ask(f, f->root, "GET", strbuf_str(&path), NULL), 200);
        strbuf_done(&path);
        if (length(f, "events") == 0)
            break;
        assert_int_equal(number(f, "events.0.seq"), after + 1);
        seen += length(f, "events");
        after = number(f, "next");
    }
    assert_int_equal(seen, after);
}

static void members_see_events_of_their_teams(void **state)
{
    struct fixture *f = *state;

    submit(f, f->ada, ONE("vision"));
    submit(f, f->bob, ONE("other"));
    assert_int_equal(ask(f, f->bob, "GET", "/v1/events", NULL), 200);
    for (int64_t i = 0; i < length(f, "events"); i++) {
        char path[64];

        snprintf(path, sizeof(path), "events.%d.team", (int)i);
        assert_string_equal(text(f, path), "other");
    }
    assert_int_equal(ask(f, f->bob, "GET", "/v1/events?team=vision", NULL), 404);
    assert_int_equal(ask(f, f->bob, "GET", "/v1/events?workload=1", NULL), 404);
    assert_int_equal(ask(f, f->ada, "GET", "/v1/workloads/1/events", NULL), 200);
    assert_string_equal(text(f, "events.0.type"), "workload.submitted");
    assert_int_equal(ask(f, f->bob, "GET", "/v1/workloads/1/events", NULL), 404);
}

struct watch {
    struct fixture *f;
    struct strbuf got;
    const char *until; /* ends the stream */
    int ticks;
};

static int on_data(void *user, const char *data, size_t len)
{
    struct watch *w = user;

    if (len > 0)
        strbuf_add(&w->got, data, len);
    else
        w->ticks++;
    if (strstr(strbuf_str(&w->got), w->until))
        return 1;
    return w->ticks > 40 ? 2 : 0;
}

static int watch(struct fixture *f, struct http_client *who, const char *path, const char *last,
                 struct watch *w)
{
    w->f = f;
    return http_client_stream(who, path, last, on_data, w, &f->reply, NULL);
}

/* The ids of the frames, which must be dense. */
static void check_dense(const char *text_, int64_t first, int64_t last)
{
    int64_t expected = first;

    for (const char *p = strstr(text_, "\nid: "); p; p = strstr(p + 1, "\nid: "))
        assert_int_equal(strtoll(p + 5, NULL, 10), expected++);
    assert_int_equal(expected, last + 1);
}

static void a_stream_resumes_after_any_event(void **state)
{
    struct fixture *f = *state;
    struct watch w = {.until = "workload.submitted"};

    submit(f, f->ada, ONE("vision"));
    assert_int_equal(watch(f, f->root, "/v1/events", "0", &w), 1);
    assert_non_null(strstr(w.got.data, "\nid: 1\n"));
    assert_non_null(strstr(w.got.data, "event: workload.submitted\ndata: {"));
    strbuf_done(&w.got);
    w = (struct watch){.until = "workload.submitted"};
    assert_int_equal(watch(f, f->root, "/v1/events", "3", &w), 1);
    assert_null(strstr(w.got.data, "\nid: 3\n"));
    assert_non_null(strstr(w.got.data, "\nid: 4\n"));
    strbuf_done(&w.got);
    assert_int_equal(watch(f, f->root, "/v1/events", "x", &w), 0);
    assert_int_equal(f->reply.status, 400);
    strbuf_done(&w.got);
}

static void *submit_many(void *arg)
{
    struct fixture *f = arg;
    struct http_reply reply = HTTP_REPLY_INIT;

    for (int i = 0; i < 200; i++)
        http_client_call(f->ada, "POST", "/v1/workloads", ONE("vision"), strlen(ONE("vision")),
                         &reply, NULL);
    http_client_call(f->ada, "POST", "/v1/workloads", ONE("speech"), strlen(ONE("speech")), &reply,
                     NULL);
    http_reply_done(&reply);
    return NULL;
}

static void a_live_stream_misses_nothing(void **state)
{
    struct fixture *f = *state;
    struct watch w = {.until = "\"workload\":201,"};
    pthread_t thread;
    int64_t last = 0;

    assert_int_equal(pthread_create(&thread, NULL, submit_many, f), 0);
    assert_int_equal(watch(f, f->root, "/v1/events", "0", &w), 1);
    pthread_join(thread, NULL);
    for (char *p = w.got.data, *q; (q = strstr(p, "\nid: ")); p = q + 1)
        last = strtoll(q + 5, NULL, 10);
    check_dense(w.got.data, 1, last);
    strbuf_done(&w.got);
}

static void a_stream_of_one_team_sees_only_it(void **state)
{
    struct fixture *f = *state;
    struct watch w = {.until = "\"workload\":201,"};
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, submit_many, f), 0);
    assert_int_equal(watch(f, f->root, "/v1/events?team=speech", "0", &w), 1);
    pthread_join(thread, NULL);
    assert_null(strstr(w.got.data, "\"team\":\"vision\""));
    strbuf_done(&w.got);
}

/* Revokes the token that the stream was opened with, then waits for its end. */
static int revoke(void *user, const char *data, size_t len)
{
    struct fixture *f = user;
    struct http_reply reply = HTTP_REPLY_INIT;

    http_client_call(f->root, "DELETE", "/v1/users/bob", NULL, 0, &reply, NULL);
    http_reply_done(&reply);
    return 0;
}

static void a_stream_ends_when_its_token_is_revoked(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(http_client_stream(f->bob, "/v1/events", NULL, revoke, f, &f->reply, NULL), 0);
    assert_int_equal(f->reply.status, 200);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_set_up, fixture_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_page_holds_the_newest_in_order),
        TEST(pages_go_on_where_the_last_ended),
        TEST(members_see_events_of_their_teams),
        TEST(a_stream_resumes_after_any_event),
        TEST(a_live_stream_misses_nothing),
        TEST(a_stream_of_one_team_sees_only_it),
        TEST(a_stream_ends_when_its_token_is_revoked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
