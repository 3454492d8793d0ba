/* SPDX-License-Identifier: Apache-2.0 */
/* The recorded history: who may read it, and what it says of edits, drains and ends. */
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/internal.h"
#include "fixture.h"

#define ONE "{\"team\":\"vision\",\"gpus\":1,\"command\":[\"secret-word\"]}"

static const char *body(struct fixture *f)
{
    return strbuf_str(&f->reply.body);
}

static void holds(struct fixture *f, const char *word)
{
    if (strstr(body(f), word) == NULL)
        fail_msg("'%s' is not in %s", word, body(f));
}

static void only_who_sees_all_teams_may_read_it(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask(f, f->nobody, "GET", "/v1/history", NULL), 401);
    assert_int_equal(ask(f, f->ada, "GET", "/v1/history", NULL), 403);
    assert_string_equal(text(f, "code"), "forbidden");
    assert_int_equal(ask(f, f->bob, "GET", "/v1/history", NULL), 403);
    assert_int_equal(ask(f, f->root, "GET", "/v1/history", NULL), 200);
    assert_int_equal(ask(f, f->root, "PUT", "/v1/users/bob", "{\"teams\":[\"lab\",\"other\"]}"),
                     200);
    assert_int_equal(ask(f, f->bob, "GET", "/v1/history", NULL), 200);
    assert_int_equal(ask(f, f->root, "GET", "/v1/history?from=3", NULL), 400);
}

/* As many as are served at once are being read: the next one has to wait, and then need not. */
static void only_some_are_read_at_once(void **state)
{
    struct fixture *f = *state;

    atomic_fetch_add(&f->api->histories, 4);
    assert_int_equal(ask(f, f->root, "GET", "/v1/history", NULL), 503);
    assert_int_equal(atomic_fetch_sub(&f->api->histories, 1), 4);
    assert_int_equal(ask(f, f->root, "GET", "/v1/history", NULL), 200);
    for (int i = 0; i < 1000 && atomic_load(&f->api->histories) > 3; i++)
        usleep(1000); /* it is freed after its last byte */
    assert_int_equal(atomic_fetch_sub(&f->api->histories, 3), 3);
}

static void it_tells_what_ran_and_how_it_ended(void **state)
{
    struct fixture *f = *state;
    uint64_t id = submit(f, f->ada, ONE);

    engine_exit(f, "1.0.0", 0);
    wait_state(f, id, "succeeded");
    assert_int_equal(ask(f, f->root, "GET", "/v1/history", NULL), 200);
    holds(f, "{\"history\":2,");
    holds(f, "{\"workload\":1,\"name\":\"job-1\"");
    holds(f, "\"how\":\"ended\"}");
    holds(f, "{\"end\":{\"workloads\":1,\"runs\":1}}\n");
    assert_null(strstr(body(f), "secret-word"));
    assert_null(strstr(body(f), "ada"));
    assert_int_equal(ask(f, f->root, "GET", "/v1/workloads/1/allocations", NULL), 200);
    assert_string_equal(text(f, "allocations.0.release"), "ended");
}

static void it_tells_of_edits_and_drains(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask(f, f->root, "PUT", "/v1/teams/vision",
                         "{\"parent\":\"lab\",\"guarantee\":{\"gpu\":3}}"),
                     200);
    assert_int_equal(ask(f, f->root, "GET", "/v1/events?team=vision", NULL), 200);
    assert_string_equal(text(f, "events.1.data.before.guarantee.gpu"), "0");
    assert_string_equal(text(f, "events.1.data.after.guarantee.gpu"), "3");
    assert_int_equal(ask(f, f->root, "DELETE", "/v1/teams/speech", NULL), 204);
    assert_int_equal(ask(f, f->root, "POST", "/v1/nodes/n1/drain", NULL), 200);
    assert_int_equal(ask(f, f->root, "GET", "/v1/history", NULL), 200);
    holds(f, "\"name\":\"n1\",\"state\":\"up\",\"drained\":true,"
             "\"maintenance\":null}");
    holds(f, "\"name\":\"speech\",\"parent\":\"lab\"");
    holds(f, "\"after\":null}}\n");
    holds(f, "{\"change\":\"server\"");
    holds(f, "\"hold_ms\":");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_set_up, fixture_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(only_who_sees_all_teams_may_read_it),
        TEST(only_some_are_read_at_once),
        TEST(it_tells_what_ran_and_how_it_ended),
        TEST(it_tells_of_edits_and_drains),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
