/* SPDX-License-Identifier: Apache-2.0 */
/* Who may do what: every route of the table, and the roles. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/routes.h"
#include "fixture.h"

/* A path that matches a route: braces become "1". */
static char *concrete(const char *pattern)
{
    struct strbuf b = STRBUF_INIT;

    for (const char *p = pattern; *p; p++) {
        if (*p == '{') {
            p = strchr(p, '}');
            strbuf_addc(&b, '1');
        } else {
            strbuf_addc(&b, *p);
        }
    }
    return strbuf_steal(&b);
}

static void every_route_but_health_is_denied_without_a_token(void **state)
{
    struct fixture *f = *state;
    size_t count;
    const struct api_route *routes = api_routes(&count);
    int open = 0;

    for (size_t i = 0; i < count; i++) {
        char *path = concrete(routes[i].path);
        int status = ask(f, f->nobody, routes[i].method, path, routes[i].request ? "{}" : NULL);

        if (routes[i].auth == API_AUTH_NONE) {
            open++;
            assert_int_equal(status, 200);
        } else if (status != 401) {
            fail_msg("%s %s answers %d without a token", routes[i].method, path, status);
        } else {
            assert_string_equal(text(f, "code"), "unauthenticated");
        }
        free(path);
    }
    assert_int_equal(open, 1);
}

static void every_route_but_health_is_denied_with_a_wrong_token(void **state)
{
    struct fixture *f = *state;
    size_t count;
    const struct api_route *routes = api_routes(&count);
    struct strbuf url = STRBUF_INIT;
    struct http_client *wrong;
    char token[API_TOKEN_MAX];

    api_token_make(token);
    strbuf_addf(&url, "http://%s", api_address(f->api));
    assert_int_equal(http_client_create(strbuf_str(&url), token, &wrong, NULL), 0);
    for (size_t i = 0; i < count; i++) {
        char *path = concrete(routes[i].path);
        int status = ask(f, wrong, routes[i].method, path, routes[i].request ? "{}" : NULL);

        if (routes[i].auth != API_AUTH_NONE && status != 401)
            fail_msg("%s %s answers %d with a wrong token", routes[i].method, path, status);
        free(path);
    }
    http_client_destroy(wrong);
    strbuf_done(&url);
}

static void every_admin_route_is_forbidden_to_members(void **state)
{
    struct fixture *f = *state;
    size_t count;
    const struct api_route *routes = api_routes(&count);
    int seen = 0;

    for (size_t i = 0; i < count; i++) {
        char *path = concrete(routes[i].path);

        if (routes[i].auth == API_AUTH_ADMIN) {
            seen++;
            assert_int_equal(ask(f, f->ada, routes[i].method, path, "{}"), 403);
        }
        free(path);
    }
    assert_true(seen >= 6);
}

static void other_schemes_and_odd_headers_are_denied(void **state)
{
    static const char *const headers[] = {"Basic cm9vdDpyb290", "Bearer",      "Bearer ",
                                          "bearer x",           "Bearer alt_", ""};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        http_client_header(f->nobody, "Authorization", headers[i]);
        assert_int_equal(ask(f, f->nobody, "GET", "/v1/version", NULL), 401);
    }
}

static void an_unknown_path_is_denied_before_it_is_unknown(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask(f, f->nobody, "GET", "/v1/nothing", NULL), 401);
    assert_int_equal(ask(f, f->ada, "GET", "/v1/nothing", NULL), 404);
    assert_string_equal(text(f, "code"), "not_found");
}

static void a_wrong_method_names_the_right_ones(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask(f, f->root, "PATCH", "/v1/teams/lab", "{}"), 405);
    assert_string_equal(text(f, "remedy"), "use GET, HEAD, PUT, DELETE");
}

static void a_revoked_token_is_refused_at_once(void **state)
{
    struct fixture *f = *state;
    struct http_client *late;
    struct strbuf url = STRBUF_INIT, path = STRBUF_INIT;

    strbuf_addf(&url, "http://%s", api_address(f->api));
    assert_int_equal(ask(f, f->ada, "POST", "/v1/tokens", "{\"label\":\"laptop\"}"), 201);
    assert_int_equal(http_client_create(strbuf_str(&url), text(f, "token"), &late, NULL), 0);
    strbuf_addf(&path, "/v1/tokens/%lld", (long long)number(f, "id"));
    assert_int_equal(ask(f, late, "GET", "/v1/version", NULL), 200);
    assert_int_equal(ask(f, f->ada, "DELETE", strbuf_str(&path), NULL), 204);
    assert_int_equal(ask(f, late, "GET", "/v1/version", NULL), 401);
    http_client_destroy(late);
    strbuf_done(&url);
    strbuf_done(&path);
}

static void an_expired_token_is_refused(void **state)
{
    struct fixture *f = *state;
    struct http_client *late;
    struct strbuf url = STRBUF_INIT;
    int status = 200;

    strbuf_addf(&url, "http://%s", api_address(f->api));
    assert_int_equal(ask(f, f->ada, "POST", "/v1/tokens", "{\"expires_in\":\"100ms\"}"), 201);
    assert_int_equal(http_client_create(strbuf_str(&url), text(f, "token"), &late, NULL), 0);
    for (int i = 0; i < 100000 && status == 200; i++)
        status = ask(f, late, "GET", "/v1/version", NULL);
    assert_int_equal(status, 401);
    http_client_destroy(late);
    strbuf_done(&url);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_set_up, fixture_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_route_but_health_is_denied_without_a_token),
        TEST(every_route_but_health_is_denied_with_a_wrong_token),
        TEST(every_admin_route_is_forbidden_to_members),
        TEST(other_schemes_and_odd_headers_are_denied),
        TEST(an_unknown_path_is_denied_before_it_is_unknown),
        TEST(a_wrong_method_names_the_right_ones),
        TEST(a_revoked_token_is_refused_at_once),
        TEST(an_expired_token_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
