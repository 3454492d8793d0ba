/* SPDX-License-Identifier: Apache-2.0 */
/* Teams, users and tokens. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"

static void a_team_is_created_changed_and_deleted(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(
        ask(f, f->root, "PUT", "/v1/teams/nlp",
            "{\"parent\":\"lab\",\"guarantee\":{\"gpu\":4},\"limit\":{\"gpu\":\"6.5\"}}"),
        201);
    assert_string_equal(f->reply.etag, "\"1\"");
    assert_string_equal(text(f, "limit.gpu"), "6.5");
    assert_int_equal(ask(f, f->root, "PUT", "/v1/teams/nlp", "{\"parent\":\"lab\"}"), 200);
    assert_string_equal(f->reply.etag, "\"2\"");
    assert_int_equal(number(f, "guarantee.gpu"), 0); /* what is left out takes its default */
    assert_int_equal(ask(f, f->root, "PUT", "/v1/teams/nlp",
                         "{\"parent\":\"lab\",\"guarantee\":{\"gpu\":3},\"quota\":\"hard\"}"),
                     200);
    assert_int_equal(ask(f, f->root, "GET", "/v1/teams/nlp", NULL), 200);
    assert_string_equal(text(f, "quota"), "hard");
    assert_string_equal(text(f, "limit.gpu"), "3");
    assert_int_equal(ask(f, f->root, "PUT", "/v1/teams/nlp",
                         "{\"parent\":\"lab\",\"guarantee\":{\"gpu\":3,\"gpu_types\":{\"H100\":2}},"
                         "\"limit\":{\"gpu_types\":{\"H100\":2.5}}}"),
                     200);
    assert_int_equal(ask(f, f->root, "GET", "/v1/teams/nlp", NULL), 200);
    assert_string_equal(text(f, "guarantee.gpu_types.H100"), "2");
    assert_string_equal(text(f, "limit.gpu_types.H100"), "2.5");
    assert_string_equal(text(f, "used_gpu_types.H100"), "0");
    assert_int_equal(ask(f, f->root, "PUT", "/v1/teams/nlp",
                         "{\"guarantee\":{\"gpu\":1,\"gpu_types\":{\"H100\":2}}}"),
                     400);
    assert_string_equal(text(f, "field"), "guarantee.gpu_types");
    assert_int_equal(ask(f, f->root, "DELETE", "/v1/teams/nlp", NULL), 204);
    assert_int_equal(ask(f, f->root, "GET", "/v1/teams/nlp", NULL), 404);
}

static void quotas_of_types_that_are_not_there_are_remarked_on(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask(f, f->root, "PUT", "/v1/teams/nlp",
                         "{\"guarantee\":{\"gpu\":4,\"gpu_types\":{\"H100\":2}},"
                         "\"limit\":{\"gpu_types\":{\"h100\":3,\"TPU v5\":1}}}"),
                     201);
    assert_int_equal(length(f, "warnings"), 2);
    assert_string_equal(text(f, "warnings.0"),
                        "no node has GPUs of type 'TPU v5'; there are: H100");
    assert_string_equal(text(f, "warnings.1"), "no node has GPUs of type 'h100'; did you mean "
                                               "'H100'? there are: H100");
    assert_int_equal(ask(f, f->root, "PUT", "/v1/teams/nlp", "{}"), 200);
    assert_int_equal(length(f, "warnings"), 0);
    assert_int_equal(ask(f, f->root, "DELETE", "/v1/teams/nlp", NULL), 204);
}

static void a_stale_etag_changes_nothing(void **state)
{
    struct fixture *f = *state;

    http_client_header(f->root, "If-Match", "\"7\"");
    assert_int_equal(ask(f, f->root, "PUT", "/v1/teams/vision", "{\"weight\":5}"), 412);
    assert_string_equal(text(f, "code"), "conflict");
    assert_int_equal(ask(f, f->root, "GET", "/v1/teams/vision", NULL), 200);
    assert_int_equal(number(f, "weight"), 1);
    http_client_header(f->root, "If-Match", f->reply.etag);
    assert_int_equal(
        ask(f, f->root, "PUT", "/v1/teams/vision", "{\"parent\":\"lab\",\"weight\":5}"), 200);
    http_client_header(f->root, "If-Match", "soon");
    assert_int_equal(ask(f, f->root, "PUT", "/v1/teams/vision", "{}"), 400);
    assert_string_equal(text(f, "field"), "If-Match");
}

static void a_team_shows_live_figures(void **state)
{
    struct fixture *f = *state;
    uint64_t id = submit(f, f->ada, "{\"team\":\"vision\",\"gpus\":2,\"command\":[\"x\"]}");

    wait_state(f, id, "running");
    assert_int_equal(ask(f, f->ada, "GET", "/v1/teams/vision", NULL), 200);
    assert_int_equal(number(f, "used.gpu"), 2);
    assert_int_equal(number(f, "running"), 1);
    assert_int_equal(ask(f, f->root, "GET", "/v1/teams", NULL), 200);
    assert_int_equal(length(f, "teams"), 4);
}

static void members_see_their_subtree_only(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask(f, f->ada, "GET", "/v1/teams", NULL), 200);
    assert_int_equal(length(f, "teams"), 3);
    assert_int_equal(ask(f, f->ada, "GET", "/v1/teams/speech", NULL), 200);
    assert_int_equal(ask(f, f->ada, "GET", "/v1/teams/other", NULL), 404);
    assert_int_equal(ask(f, f->bob, "GET", "/v1/teams", NULL), 200);
    assert_int_equal(length(f, "teams"), 1);
}

struct bad {
    const char *path, *body;
    int status;
    const char *field;
};

static void bad_teams_are_refused_with_the_field(void **state)
{
    static const struct bad cases[] = {
        {"/v1/teams/x", "{\"color\":1}", 400, "color"},
        {"/v1/teams/x", "{\"name\":\"y\"}", 400, "name"},
        {"/v1/teams/x", "{\"parent\":\"nobody\"}", 422, "parent"},
        {"/v1/teams/lab", "{\"parent\":\"vision\"}", 400, "parent"},
        {"/v1/teams/x", "{\"guarantee\":{\"gpu\":-1}}", 400, "guarantee.gpu"},
        {"/v1/teams/x", "{\"guarantee\":{\"gpu\":1e30}}", 400, "guarantee.gpu"},
        {"/v1/teams/x", "{\"guarantee\":{\"gpu\":0.0001}}", 400, "guarantee.gpu"},
        {"/v1/teams/x", "{\"weight\":9223372036854775808}", 400, "weight"},
        {"/v1/teams/x", "{\"limit\":{\"gpu_types\":{\"\":1}}}", 400, "limit.gpu_types"},
        {"/v1/teams/x", "{\"limit\":{\"gpu_types\":{\"a/b\":1}}}", 400, "limit.gpu_types.a/b"},
        {"/v1/teams/x", "[]", 400, ""},
        {"/v1/teams/..%2F..%2Fetc", "{}", 400, ""},
        {"/v1/teams/a%0Ab", "{}", 400, ""},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int status = ask(f, f->root, "PUT", cases[i].path, cases[i].body);

        if (status != cases[i].status || strcmp(text(f, "field"), cases[i].field) != 0)
            fail_msg("%s: %d, field '%s': %s", cases[i].body, status, text(f, "field"),
                     f->reply.body.data);
    }
}

static void a_user_is_created_changed_and_deleted(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(
        ask(f, f->root, "PUT", "/v1/users/eve", "{\"role\":\"member\",\"teams\":[\"vision\"]}"),
        200);
    assert_int_equal(ask(f, f->root, "GET", "/v1/users/eve", NULL), 200);
    assert_string_equal(text(f, "teams.0"), "vision");
    assert_int_equal(ask(f, f->root, "PUT", "/v1/users/eve", "{\"teams\":[\"gone\"]}"), 422);
    assert_int_equal(ask(f, f->root, "DELETE", "/v1/users/eve", NULL), 204);
    assert_int_equal(ask(f, f->root, "DELETE", "/v1/users/eve", NULL), 404);
    assert_int_equal(ask(f, f->root, "PUT", "/v1/users/eve", "{\"role\":\"king\"}"), 400);
    assert_string_equal(text(f, "field"), "role");
}

static void a_deleted_user_s_tokens_are_refused(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask(f, f->bob, "GET", "/v1/version", NULL), 200);
    assert_int_equal(ask(f, f->root, "DELETE", "/v1/users/bob", NULL), 204);
    assert_int_equal(ask(f, f->bob, "GET", "/v1/version", NULL), 401);
}

static void members_see_themselves_only(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask(f, f->ada, "GET", "/v1/users", NULL), 200);
    assert_int_equal(length(f, "users"), 1);
    assert_string_equal(text(f, "users.0.name"), "ada");
    assert_int_equal(ask(f, f->ada, "GET", "/v1/users/bob", NULL), 404);
    assert_int_equal(ask(f, f->root, "GET", "/v1/users", NULL), 200);
    assert_int_equal(length(f, "users"), 3);
}

static void a_secret_is_shown_once(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask(f, f->ada, "POST", "/v1/tokens", "{\"label\":\"ci\"}"), 201);
    assert_int_equal(strlen(text(f, "token")), 47);
    assert_memory_equal(text(f, "token"), "alt_", 4);
    assert_int_equal(ask(f, f->ada, "GET", "/v1/tokens", NULL), 200);
    assert_int_equal(length(f, "tokens"), 2);
    assert_null(strstr(f->reply.body.data, "alt_"));
    assert_null(strstr(f->reply.body.data, "hash"));
}

static void tokens_of_others_are_out_of_reach(void **state)
{
    struct fixture *f = *state;
    struct strbuf path = STRBUF_INIT;

    assert_int_equal(ask(f, f->ada, "POST", "/v1/tokens", "{\"user\":\"root\"}"), 403);
    assert_int_equal(ask(f, f->root, "POST", "/v1/tokens", "{\"user\":\"bob\"}"), 201);
    strbuf_addf(&path, "/v1/tokens/%lld", (long long)number(f, "id"));
    assert_int_equal(ask(f, f->ada, "DELETE", strbuf_str(&path), NULL), 404);
    assert_int_equal(ask(f, f->bob, "DELETE", strbuf_str(&path), NULL), 204);
    assert_int_equal(ask(f, f->root, "GET", "/v1/tokens", NULL), 200);
    assert_int_equal(length(f, "tokens"), 3);
    strbuf_done(&path);
}

static void bad_tokens_are_refused_with_the_field(void **state)
{
    static const struct bad cases[] = {
        {"", "{\"user\":\"nobody\"}", 422, "user"},
        {"", "{\"expires_in\":\"soon\"}", 400, "expires_in"},
        {"", "{\"secret\":\"x\"}", 400, "secret"},
        {"", "{\"label\":\"\"}", 400, "label"},
        {"", "{\"label\":\"a\\u0007b\"}", 400, "label"},
        {"", "{\"label\":\"0123456789012345678901234567890123456789012345678901234567890123\"}",
         400, "label"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(ask(f, f->root, "POST", "/v1/tokens", cases[i].body), cases[i].status);
        assert_string_equal(text(f, "field"), cases[i].field);
    }
    http_client_header(f->root, "Idempotency-Key", "k");
    assert_int_equal(ask(f, f->root, "POST", "/v1/tokens", "{}"), 400);
    assert_int_equal(ask(f, f->root, "DELETE", "/v1/tokens/x", NULL), 404);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_set_up, fixture_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_team_is_created_changed_and_deleted),
        TEST(quotas_of_types_that_are_not_there_are_remarked_on),
        TEST(a_stale_etag_changes_nothing),
        TEST(a_team_shows_live_figures),
        TEST(members_see_their_subtree_only),
        TEST(bad_teams_are_refused_with_the_field),
        TEST(a_user_is_created_changed_and_deleted),
        TEST(a_deleted_user_s_tokens_are_refused),
        TEST(members_see_themselves_only),
        TEST(a_secret_is_shown_once),
        TEST(tokens_of_others_are_out_of_reach),
        TEST(bad_tokens_are_refused_with_the_field),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
