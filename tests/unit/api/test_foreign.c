/* SPDX-License-Identifier: Apache-2.0 */
/* What one may not see is answered, byte for byte, like what is not there. On every route. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/routes.h"
#include "base/cleanup.h"
#include "fixture.h"

/* What is not bob's, and what nobody has, where a path or a parameter names it. */
struct pair {
    const char *below; /* routes whose paths begin so, or NULL */
    const char *param; /* query parameter, or NULL */
    const char *foreign, *unknown;
};

/* ada's work 1 "hidden" of team vision runs. */
static const struct pair pairs[] = {
    {"/v1/teams/", "team", "vision", "nowhere"},
    {"/v1/teams/", "team", "lab", "nowhere"}, /* with teams below it */
    {"/v1/users/", "owner", "ada", "nobody"},
    {"/v1/workloads/", "workload", "1", "7777"},
    {"/v1/workloads/", "workload", "hidden", "nothing"},
    {"/v1/workloads/", "workload", "vision:hidden", "nowhere:nothing"},
    {NULL, "name", "hidden", "nothing"},
};

static void set_up_work(struct fixture *f)
{
    uint64_t id = submit(f, f->ada,
                         "{\"team\":\"vision\",\"name\":\"hidden\",\"gpus\":1,"
                         "\"command\":[\"true\"]}");

    assert_int_equal(id, 1);
    wait_state(f, id, "running");
}

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Are A and B the same but for P's names, each in its own? */
static bool same_but_names(const char *a, const char *b, const struct pair *p)
{
    while (*a && *b) {
        if (starts(a, p->foreign) && starts(b, p->unknown)) {
            a += strlen(p->foreign);
            b += strlen(p->unknown);
        } else if (*a++ != *b++) {
            return false;
        }
    }
    return *a == *b;
}

static int ask_as(struct fixture *f, struct http_client *who, const struct api_route *route,
                  const char *path)
{
    bool exec = strstr(path, "/exec") != NULL;

    if (exec)
        http_client_header(who, "Upgrade", "allot-exec");
    return ask(f, who, route->method, path,
               route->request == NULL ? NULL
               : exec                 ? "{\"command\":[\"true\"]}"
                                      : "{}");
}

/* Both paths, as bob, and what is said of each. */
static void compare(struct fixture *f, const struct api_route *route, const struct pair *p,
                    const char *foreign, const char *unknown)
{
    int status = ask_as(f, f->bob, route, foreign);
    _cleanup_free_ char *first = strdup(strbuf_str(&f->reply.body));

    if (ask_as(f, f->bob, route, unknown) != status ||
        !same_but_names(first, strbuf_str(&f->reply.body), p))
        fail_msg("%s %s: %d %s\n%s: %d %s", route->method, foreign, status, first, unknown,
                 f->reply.status, strbuf_str(&f->reply.body));
    if (starts(foreign, p->below ? p->below : "-"))
        assert_true(status == 404 || (route->auth == API_AUTH_ADMIN && status == 403));
}

/* The route's path with NAME for its first argument and 0 for its second. */
static void fill(const char *path, const char *name, char *to, size_t size)
{
    size_t n = strcspn(path, "{");
    const char *rest = strchr(path, '}') + 1;
    const char *second = strchr(rest, '{');

    if (second)
        snprintf(to, size, "%.*s%s%.*s0%s", (int)n, path, name, (int)(second - rest), rest,
                 strchr(second, '}') + 1);
    else
        snprintf(to, size, "%.*s%s%s", (int)n, path, name, rest);
}

static void every_path_is_answered_alike(void **state)
{
    struct fixture *f = *state;
    size_t count, walked = 0;
    const struct api_route *routes = api_routes(&count);

    set_up_work(f);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < ARRAY_LEN(pairs); k++) {
            const struct pair *p = &pairs[k];
            char foreign[128], unknown[128];

            if (p->below == NULL || !starts(routes[i].path, p->below))
                continue;
            fill(routes[i].path, p->foreign, foreign, sizeof(foreign));
            fill(routes[i].path, p->unknown, unknown, sizeof(unknown));
            compare(f, &routes[i], p, foreign, unknown);
            if (strcmp(routes[i].method, "GET") == 0) { /* it is there, for others */
                assert_int_equal(ask(f, f->root, "GET", foreign, NULL), 200);
                assert_int_equal(ask(f, f->root, "GET", unknown, NULL), 404);
            }
            walked++;
        }
    assert_true(walked >= 3 * 8 + 2 * 3 + 3);
    assert_int_equal(ask(f, f->root, "GET", "/v1/workloads/1", NULL), 200);
    assert_string_equal(text(f, "state"), "running");
}

static void every_parameter_is_answered_alike(void **state)
{
    struct fixture *f = *state;
    size_t count, walked = 0;
    const struct api_route *routes = api_routes(&count);

    set_up_work(f);
    for (size_t i = 0; i < count; i++)
        for (const struct api_param *x = routes[i].params; x && x->name; x++)
            for (size_t k = 0; k < ARRAY_LEN(pairs); k++) {
                const struct pair *p = &pairs[k];
                const char *more = "";
                char foreign[160], unknown[160];

                if (strcmp(x->name, p->param) != 0)
                    continue;
                if (strcmp(routes[i].path, "/v1/events") == 0)
                    more = "&after=0";
                if (strcmp(routes[i].path, "/v1/usage") == 0)
                    more = "&from=1000&to=4102444800000";
                snprintf(foreign, sizeof(foreign), "%s?%s=%s%s", routes[i].path, x->name,
                         p->foreign, more);
                snprintf(unknown, sizeof(unknown), "%s?%s=%s%s", routes[i].path, x->name,
                         p->unknown, more);
                compare(f, &routes[i], p, foreign, unknown);
                walked++;
            }
    /* Workloads by team, owner and name; events by team and workload; usage by team. */
    assert_int_equal(walked, 2 + 1 + 1 + 2 + 3 + 2);
}

static void every_body_is_answered_alike(void **state)
{
    static const struct {
        const char *path, *format;
        struct pair names;
    } bodies[] = {
        {"/v1/workloads",
         "{\"team\":\"%s\",\"gpus\":1,\"command\":[\"true\"]}",
         {.foreign = "vision", .unknown = "nowhere"}},
        {"/v1/workloads",
         "{\"team\":\"%s\",\"gpus\":1,\"command\":[\"true\"]}",
         {.foreign = "lab", .unknown = "nowhere"}},
        {"/v1/workloads",
         "{\"team\":\"%s\",\"name\":\"hidden\",\"command\":[\"true\"]}",
         {.foreign = "vision", .unknown = "nowhere"}},
        {"/v1/workloads",
         "[{\"team\":\"other\",\"command\":[\"true\"]},"
         "{\"team\":\"%s\",\"gpus\":999,\"command\":[\"true\"]}]",
         {.foreign = "vision", .unknown = "nowhere"}},
        {"/v1/tokens", "{\"user\":\"%s\"}", {.foreign = "ada", .unknown = "nobody"}},
    };
    struct fixture *f = *state;

    set_up_work(f);
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        const struct pair *p = &bodies[i].names;
        struct strbuf foreign = STRBUF_INIT, unknown = STRBUF_INIT;
        char *at = strstr(bodies[i].format, "%s");
        _cleanup_free_ char *first = NULL;
        int status;

        strbuf_add(&foreign, bodies[i].format, (size_t)(at - bodies[i].format));
        strbuf_adds(&unknown, strbuf_str(&foreign));
        strbuf_adds(&foreign, p->foreign);
        strbuf_adds(&foreign, at + 2);
        strbuf_adds(&unknown, p->unknown);
        strbuf_adds(&unknown, at + 2);
        status = ask(f, f->bob, "POST", bodies[i].path, strbuf_str(&foreign));
        first = strdup(strbuf_str(&f->reply.body));
        assert_true(status >= 400 && status < 500);
        assert_int_equal(ask(f, f->bob, "POST", bodies[i].path, strbuf_str(&unknown)), status);
        if (!same_but_names(first, strbuf_str(&f->reply.body), p))
            fail_msg("%s\n%s", first, strbuf_str(&f->reply.body));
        strbuf_done(&foreign);
        strbuf_done(&unknown);
    }
    assert_int_equal(ask(f, f->bob, "GET", "/v1/workloads", NULL), 200);
    assert_int_equal(length(f, "workloads"), 0);
}

static void tokens_of_others_are_not_there(void **state)
{
    struct fixture *f = *state;
    struct strbuf path = STRBUF_INIT;
    struct pair p = {.unknown = "7777"};
    const struct api_route route = {.method = "DELETE", .auth = API_AUTH_USER};
    char id[32];

    assert_int_equal(ask(f, f->ada, "POST", "/v1/tokens", NULL), 201);
    snprintf(id, sizeof(id), "%lld", (long long)number(f, "id"));
    p.foreign = id;
    strbuf_addf(&path, "/v1/tokens/%s", id);
    compare(f, &route, &p, strbuf_str(&path), "/v1/tokens/7777");
    assert_int_equal(f->reply.status, 404);
    assert_int_equal(ask(f, f->ada, "DELETE", strbuf_str(&path), NULL), 204);
    strbuf_done(&path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_set_up, fixture_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_path_is_answered_alike),
        TEST(every_parameter_is_answered_alike),
        TEST(every_body_is_answered_alike),
        TEST(tokens_of_others_are_not_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
