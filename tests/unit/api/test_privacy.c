/* SPDX-License-Identifier: Apache-2.0 */
/* Who is named to whom: in explanations, in events as pages and streams, in messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"

/* Work of team vision that gave way to work of team other, and waits for it. */
struct story {
    struct http_client *vera; /* of vision alone; ada sees all of lab, above it */
    uint64_t evicted, winner;
    char path[64];
};

static struct http_client *person(struct fixture *f, const char *name, const char *team)
{
    struct strbuf url = STRBUF_INIT, path = STRBUF_INIT, body = STRBUF_INIT;
    struct http_client *c;

    strbuf_addf(&path, "/v1/users/%s", name);
    strbuf_addf(&body, "{\"role\":\"member\",\"teams\":[\"%s\"]}", team);
    assert_true(ask(f, f->root, "PUT", strbuf_str(&path), strbuf_str(&body)) < 300);
    strbuf_truncate(&body, 0);
    strbuf_addf(&body, "{\"user\":\"%s\"}", name);
    assert_int_equal(ask(f, f->root, "POST", "/v1/tokens", strbuf_str(&body)), 201);
    strbuf_addf(&url, "http://%s", api_address(f->api));
    assert_int_equal(http_client_create(strbuf_str(&url), text(f, "token"), &c, NULL), 0);
    strbuf_done(&url);
    strbuf_done(&path);
    strbuf_done(&body);
    return c;
}

static struct story story(struct fixture *f)
{
    struct story s = {.vera = person(f, "vera", "vision")};

    ask(f, f->root, "PUT", "/v1/teams/vision", "{\"guarantee\":{\"gpu\":4},\"parent\":\"lab\"}");
    ask(f, f->root, "PUT", "/v1/teams/other", "{\"guarantee\":{\"gpu\":4}}");
    s.evicted = submit(f, f->ada,
                       "{\"team\":\"vision\",\"name\":\"eight\",\"tasks\":4,\"gpus\":2,"
                       "\"command\":[\"true\"]}");
    wait_state(f, s.evicted, "running");
    s.winner = submit(f, f->bob,
                      "{\"team\":\"other\",\"name\":\"secret\",\"gpus\":4,\"class\":\"production\","
                      "\"command\":[\"true\"]}");
    wait_state(f, s.winner, "running");
    wait_state(f, s.evicted, "pending");
    snprintf(s.path, sizeof(s.path), "/v1/workloads/%llu", (unsigned long long)s.evicted);
    return s;
}

static const char *below(const struct story *s, const char *rest)
{
    static char path[128];

    snprintf(path, sizeof(path), "%s%s", s->path, rest);
    return path;
}

static void an_explanation_names_what_its_reader_may_see(void **state)
{
    struct fixture *f = *state;
    struct story s = story(f);
    struct http_client *readers[] = {f->ada, s.vera};

    assert_int_equal(ask(f, f->root, "GET", below(&s, "/explain"), NULL), 200);
    assert_int_equal(number(f, "holders.0.id"), s.winner);
    assert_string_equal(text(f, "holders.0.name"), "secret");
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(ask(f, readers[i], "GET", below(&s, "/explain"), NULL), 200);
        assert_null(strstr(f->reply.body.data, "secret"));
        assert_null(value(f, "holders.0.id"));
        assert_string_equal(text(f, "holders.0.team"), "other");
        assert_int_equal(number(f, "holders.0.workloads"), 1);
        assert_int_equal(number(f, "holders.0.gpu"), 4);
        assert_int_equal(number(f, "fitting_tasks"), 2); /* of four */
        assert_int_equal(number(f, "less"), 4);
        assert_non_null(strstr(text(f, "sentence"), "2 of the 4 tasks"));
        assert_string_equal(text(f, "last_eviction"),
                            "reclaimed: team other takes back 4 GPUs it is entitled to");
    }
    assert_int_equal(ask(f, f->bob, "GET", below(&s, "/explain"), NULL), 404);
    http_client_destroy(s.vera);
}

static void a_message_names_no_work_of_another_team(void **state)
{
    struct fixture *f = *state;
    struct story s = story(f);

    assert_int_equal(ask(f, f->root, "GET", s.path, NULL), 200);
    assert_string_equal(text(f, "message"),
                        "reclaimed: team other takes back 4 GPUs it is entitled to");
    assert_int_equal(ask(f, s.vera, "GET", s.path, NULL), 200);
    assert_null(strstr(f->reply.body.data, "secret"));
    assert_int_equal(ask(f, s.vera, "GET", "/v1/workloads", NULL), 200);
    assert_null(strstr(f->reply.body.data, "secret"));
    http_client_destroy(s.vera);
}

/* The eviction among the events of the last answer. */
static struct json_object *eviction(struct fixture *f)
{
    for (int64_t i = 0; i < length(f, "events"); i++) {
        char path[64];

        snprintf(path, sizeof(path), "events.%d.type", (int)i);
        if (strcmp(text(f, path), "workload.evicted") == 0) {
            snprintf(path, sizeof(path), "events.%d", (int)i);
            return value(f, path);
        }
    }
    fail_msg("nothing was evicted");
    return NULL;
}

static const char *member(struct json_object *o, const char *key)
{
    return json_object_get_string(json_object_object_get(o, key));
}

static void pages_of_events_name_what_their_reader_may_see(void **state)
{
    struct fixture *f = *state;
    struct story s = story(f);
    struct json_object *e, *data;

    assert_int_equal(ask(f, f->root, "GET", below(&s, "/events"), NULL), 200);
    e = eviction(f);
    assert_non_null(strstr(member(e, "message"), "entitled to, for 'secret' ("));
    data = json_object_object_get(e, "data");
    assert_int_equal(json_object_get_int64(json_object_object_get(data, "on_behalf_of")), s.winner);
    for (int way = 0; way < 2; way++) {
        assert_int_equal(
            ask(f, s.vera, "GET", way ? "/v1/events?limit=1000" : below(&s, "/events"), NULL), 200);
        assert_null(strstr(f->reply.body.data, "secret"));
        e = eviction(f);
        assert_string_equal(member(e, "message"),
                            "reclaimed: team other takes back 4 GPUs it is entitled to");
        data = json_object_object_get(e, "data");
        assert_null(json_object_object_get(data, "on_behalf_of"));
        assert_string_equal(member(data, "for_team"), "other");
        assert_string_equal(member(data, "cause"), "reclaim");
    }
    http_client_destroy(s.vera);
}

struct listener {
    struct strbuf got;
    int ticks;
};

static int on_data(void *user, const char *data, size_t len)
{
    struct listener *l = user;

    strbuf_add(&l->got, data, len);
    l->ticks += len == 0;
    if (strstr(strbuf_str(&l->got), "workload.requeued"))
        return 1;
    return l->ticks > 40 ? 2 : 0;
}

static void streams_of_events_do_so_too(void **state)
{
    struct fixture *f = *state;
    struct story s = story(f);
    struct http_client *readers[] = {f->root, f->ada, s.vera};

    for (size_t i = 0; i < 3; i++) {
        struct listener l = {0};

        assert_int_equal(
            http_client_stream(readers[i], "/v1/events", "0", on_data, &l, &f->reply, NULL), 1);
        assert_non_null(strstr(l.got.data, "workload.evicted"));
        assert_int_equal(strstr(l.got.data, "secret") != NULL, i == 0);
        assert_int_equal(strstr(l.got.data, "on_behalf_of") != NULL, i == 0);
        strbuf_done(&l.got);
    }
    http_client_destroy(s.vera);
}

static void work_of_the_same_team_is_named(void **state)
{
    struct fixture *f = *state;
    struct http_client *vera = person(f, "vera", "vision");
    uint64_t low, high;
    char path[64];

    low = submit(f, f->ada,
                 "{\"team\":\"vision\",\"name\":\"low\",\"gpus\":8,\"command\":[\"true\"]}");
    wait_state(f, low, "running");
    high = submit(f, f->ada,
                  "{\"team\":\"vision\",\"name\":\"high\",\"gpus\":8,\"priority\":1,"
                  "\"command\":[\"true\"]}");
    wait_state(f, high, "running");
    snprintf(path, sizeof(path), "/v1/workloads/%llu/explain", (unsigned long long)low);
    assert_int_equal(ask(f, vera, "GET", path, NULL), 200);
    assert_string_equal(text(f, "holders.0.name"), "high");
    assert_non_null(strstr(text(f, "last_eviction"), "preempted: 'high' ("));
    http_client_destroy(vera);
}

/* Another team below the same one: its lead sees it, its neighbour does not. */
static void neighbours_are_not_named_to_each_other(void **state)
{
    struct fixture *f = *state;
    struct http_client *vera = person(f, "vera", "vision");
    uint64_t holder, waiter;
    char path[64];

    holder = submit(f, f->ada,
                    "{\"team\":\"speech\",\"name\":\"secret\",\"gpus\":8,\"max_run_time\":\"1h\","
                    "\"command\":[\"true\"]}");
    wait_state(f, holder, "running");
    waiter = submit(f, f->ada,
                    "{\"team\":\"vision\",\"name\":\"eight\",\"gpus\":8,\"command\":[\"true\"]}");
    snprintf(path, sizeof(path), "/v1/workloads/%llu/explain", (unsigned long long)waiter);
    assert_int_equal(ask(f, f->ada, "GET", path, NULL), 200);
    assert_non_null(strstr(text(f, "remedy"), "when 'secret' ("));
    assert_int_equal(ask(f, vera, "GET", path, NULL), 200);
    assert_null(strstr(f->reply.body.data, "secret"));
    assert_non_null(strstr(text(f, "remedy"), "it starts when work of team speech ends"));
    assert_null(value(f, "waits_for.id"));
    assert_string_equal(text(f, "waits_for.team"), "speech");
    http_client_destroy(vera);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_set_up, fixture_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_explanation_names_what_its_reader_may_see),
        TEST(a_message_names_no_work_of_another_team),
        TEST(pages_of_events_name_what_their_reader_may_see),
        TEST(streams_of_events_do_so_too),
        TEST(work_of_the_same_team_is_named),
        TEST(neighbours_are_not_named_to_each_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
