/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes, devices, usage, status; OpenAPI; bad input below the level of routes. */
#include <ctype.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/routes.h"
#include "base/clock.h"
#include "fixture.h"

#define QUARTER "{\"team\":\"vision\",\"gpu\":0.25,\"name\":\"nb\",\"command\":[\"x\"]}"

static void health_tells_nothing(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask(f, f->nobody, "GET", "/v1/healthz", NULL), 200);
    assert_string_equal(strbuf_str(&f->reply.body), "{\"status\":\"ok\"}");
}

static void status_tells_state_and_who_asks(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask(f, f->ada, "GET", "/v1/status", NULL), 200);
    assert_string_equal(text(f, "user.name"), "ada");
    assert_string_equal(text(f, "store.ok"), "true");
    assert_true(number(f, "last_event") > 0);
}

static void nodes_show_their_devices_and_who_holds_them(void **state)
{
    struct fixture *f = *state;

    wait_state(f, submit(f, f->ada, QUARTER), "running");
    assert_int_equal(ask(f, f->ada, "GET", "/v1/nodes", NULL), 200);
    assert_int_equal(length(f, "nodes"), 1);
    assert_int_equal(length(f, "nodes.0.devices"), 8);
    assert_string_equal(text(f, "nodes.0.gpu_used"), "0.25");
    assert_string_equal(text(f, "nodes.0.use.0.holders.0.name"), "nb");
    assert_int_equal(ask(f, f->ada, "GET", "/v1/devices", NULL), 200);
    assert_int_equal(length(f, "devices"), 8);
    assert_string_equal(text(f, "devices.0.simulated"), "true");
    assert_string_equal(text(f, "devices.0.gpu_used"), "0.25");
    assert_string_equal(text(f, "devices.0.holders.0.team"), "vision");
    assert_int_equal(ask(f, f->ada, "GET", "/v1/devices?node=n2", NULL), 200);
    assert_int_equal(length(f, "devices"), 0);
}

static void work_of_other_teams_is_counted_but_not_named(void **state)
{
    struct fixture *f = *state;

    wait_state(f, submit(f, f->ada, QUARTER), "running");
    assert_int_equal(ask(f, f->bob, "GET", "/v1/devices", NULL), 200);
    assert_string_equal(text(f, "devices.0.gpu_used"), "0.25");
    assert_int_equal(length(f, "devices.0.holders"), 1);
    assert_null(value(f, "devices.0.holders.0.name"));
    assert_null(value(f, "devices.0.holders.0.workload"));
}

static void a_node_is_drained_and_used_again(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask(f, f->root, "POST", "/v1/nodes/n1/drain", NULL), 200);
    assert_string_equal(text(f, "drained"), "true");
    assert_int_equal(ask(f, f->root, "POST", "/v1/nodes/n1/undrain", NULL), 200);
    assert_string_equal(text(f, "drained"), "false");
    assert_int_equal(ask(f, f->root, "POST", "/v1/nodes/n2/drain", NULL), 404);
    assert_int_equal(ask(f, f->root, "GET", "/v1/nodes/n2", NULL), 404);
}

static void maintenance_is_announced_and_taken_back(void **state)
{
    struct fixture *f = *state;
    const char *path = "/v1/nodes/n1/maintenance";
    char explain[64];

    assert_int_equal(ask(f, f->root, "POST", path,
                         "{\"from\":\"2100-01-01T00:00:00Z\",\"until\":\"2100-01-01T04:00:00Z\"}"),
                     200);
    assert_string_equal(text(f, "maintenance.from"), "2100-01-01T00:00:00.000Z");
    assert_string_equal(text(f, "maintenance.until"), "2100-01-01T04:00:00.000Z");
    assert_int_equal(ask(f, f->root, "POST", path, "{\"until\":\"2001-01-01\"}"), 400);
    assert_string_equal(text(f, "field"), "until");
    assert_int_equal(ask(f, f->root, "POST", path, "{\"until\":\"soon\"}"), 400);
    assert_int_equal(ask(f, f->root, "POST", path, "{}"), 400);
    assert_int_equal(ask(f, f->ada, "POST", path, "{\"until\":\"2100-01-01\"}"), 403);
    assert_int_equal(ask(f, f->root, "GET", "/v1/nodes/n1", NULL), 200);
    assert_string_equal(text(f, "maintenance.until"), "2100-01-01T04:00:00.000Z");
    /* one that has begun: the node takes nothing, until it is taken back */
    assert_int_equal(ask(f, f->root, "POST", path, "{\"until\":\"2100-01-01\"}"), 200);
    uint64_t id = submit(f, f->ada, QUARTER);
    snprintf(explain, sizeof(explain), "/v1/workloads/%llu/explain", (unsigned long long)id);
    assert_int_equal(ask(f, f->ada, "GET", explain, NULL), 200);
    assert_string_equal(text(f, "reason"), "maintenance");
    assert_string_equal(text(f, "maintenance.node"), "n1");
    assert_int_equal(ask(f, f->root, "DELETE", path, NULL), 200);
    assert_null(value(f, "maintenance.until"));
    wait_state(f, id, "running");
    assert_int_equal(ask(f, f->root, "DELETE", "/v1/nodes/n2/maintenance", NULL), 404);
}

static void maintenance_says_whom_it_touches(void **state)
{
    static const struct {
        const char *settings, *outcome;
    } work[] = {
        {"\"class\":\"training\"", "evicted"},
        {"\"class\":\"training\",\"max_run_time\":\"1h\"", "ends"},
        {"\"class\":\"training\",\"expected_run_time\":\"2h\"", "ends"},
        {"\"class\":\"production\"", "stays"},
        {"\"class\":\"training\",\"max_run_time\":\"1h\",\"expected_run_time\":\"1m\"", "ends"},
        {"\"class\":\"training\",\"max_run_time\":\"3000d\"", "evicted"},
    };
    struct fixture *f = *state;
    char body[160], path[32], until[CLOCK_TEXT_MAX];

    assert_int_equal(ask(f, f->root, "PUT", "/v1/teams/other", "{\"guarantee\":{\"gpu\":1}}"), 200);
    for (size_t i = 0; i < sizeof(work) / sizeof(work[0]); i++) {
        snprintf(body, sizeof(body), "{\"team\":\"other\",\"gpus\":1,%s,\"command\":[\"x\"]}",
                 work[i].settings);
        wait_state(f, submit(f, f->root, body), "running");
    }
    clock_format_utc(clock_wall_ms() + 24 * 3600 * 1000, until);
    snprintf(body, sizeof(body), "{\"from\":\"%s\",\"until\":\"2100-01-01\"}", until);
    assert_int_equal(ask(f, f->root, "GET", "/v1/nodes/n1", NULL), 200);
    assert_int_equal(length(f, "maintenance_work"), 0);
    assert_int_equal(ask(f, f->root, "POST", "/v1/nodes/n1/maintenance", body), 200);
    assert_int_equal(length(f, "maintenance_work"), sizeof(work) / sizeof(work[0]));
    for (size_t i = 0; i < sizeof(work) / sizeof(work[0]); i++) {
        snprintf(path, sizeof(path), "maintenance_work.%zu.outcome", i);
        assert_string_equal(text(f, path), work[i].outcome);
    }
    assert_null(value(f, "maintenance_work.0.ends_at"));
    assert_non_null(value(f, "maintenance_work.1.ends_at"));
    /* work of others is not told */
    assert_int_equal(ask(f, f->ada, "GET", "/v1/nodes/n1", NULL), 200);
    assert_int_equal(length(f, "maintenance_work"), 0);
    assert_int_equal(ask(f, f->root, "DELETE", "/v1/nodes/n1/maintenance", NULL), 200);
    assert_int_equal(length(f, "maintenance_work"), 0);
}

static void usage_is_metered_by_team(void **state)
{
    struct fixture *f = *state;

    wait_state(f, submit(f, f->ada, "{\"team\":\"vision\",\"gpus\":2,\"command\":[\"x\"]}"),
               "running");
    usleep(20000);
    engine_exit(f, "1.0.0", 0);
    wait_state(f, 1, "succeeded");
    assert_int_equal(ask(f, f->ada, "GET", "/v1/usage", NULL), 200);
    assert_int_equal(length(f, "teams"), 1);
    assert_true(number(f, "teams.0.allocated_milli_gpu_ms") >= 2 * 1000 * 20);
    assert_int_equal(number(f, "teams.0.allocated_gpu_ms"),
                     number(f, "teams.0.allocated_milli_gpu_ms") / 1000);
    /* This engine measures nothing: that is not idle. */
    assert_true(number(f, "teams.0.unknown_gpu_ms") >= 2 * 20);
    assert_int_equal(number(f, "teams.0.idle_gpu_ms") + number(f, "teams.0.unknown_gpu_ms"),
                     number(f, "teams.0.allocated_gpu_ms"));
    assert_int_equal(ask(f, f->bob, "GET", "/v1/usage", NULL), 200);
    assert_int_equal(length(f, "teams"), 0);
    assert_int_equal(ask(f, f->ada, "GET", "/v1/usage?from=2020-01-01&to=2020-02-01T00:00Z", NULL),
                     200);
    assert_string_equal(text(f, "from"), "2020-01-01T00:00:00.000Z");
    assert_int_equal(length(f, "teams"), 0);
}

static void bad_windows_are_refused(void **state)
{
    static const char *const queries[] = {
        "from=yesterday",       "to=2026-02-31", "to=2026-1-1", "from=2026-01-02&to=2026-01-01",
        "to=2026-01-01T25:00Z", "to=1e9",        "from=-5"};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
        char path[128];

        snprintf(path, sizeof(path), "/v1/usage?%s", queries[i]);
        assert_int_equal(ask(f, f->ada, "GET", path, NULL), 400);
    }
}

/* ---- OpenAPI -------------------------------------------------------------------------------- */

/* Follows "#/a/b" from the root. */
static struct json_object *resolve(struct json_object *root, const char *ref)
{
    struct json_object *v = root;

    if (strncmp(ref, "#/", 2) != 0)
        return NULL;
    ref += 2;
    while (v && *ref) {
        size_t n = strcspn(ref, "/");
        char part[64] = "";

        memcpy(part, ref, n < sizeof(part) ? n : sizeof(part) - 1);
        if (!json_object_object_get_ex(v, part, &v))
            return NULL;
        ref += n + (ref[n] == '/');
    }
    return v;
}

static int check_refs(struct json_object *root, struct json_object *v)
{
    int count = 0;

    if (json_object_is_type(v, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(v); i++)
            count += check_refs(root, json_object_array_get_idx(v, i));
    } else if (json_object_is_type(v, json_type_object)) {
        json_object_object_foreach(v, key, child)
        {
            if (strcmp(key, "$ref") == 0) {
                if (resolve(root, json_object_get_string(child)) == NULL)
                    fail_msg("%s does not resolve", json_object_get_string(child));
                count++;
            } else {
                count += check_refs(root, child);
            }
        }
    }
    return count;
}

/* "get" of "GET /v1/...", or fails. */
static struct json_object *operation(struct fixture *f, const struct api_route *r)
{
    struct json_object *paths = NULL, *path = NULL, *op = NULL;
    char method[8] = "";

    for (int i = 0; r->method[i]; i++)
        method[i] = (char)tolower(r->method[i]);
    json_object_object_get_ex(f->json, "paths", &paths);
    json_object_object_get_ex(paths, r->path, &path);
    json_object_object_get_ex(path, method, &op);
    if (op == NULL)
        fail_msg("%s %s is not described", r->method, r->path);
    return op;
}

static void check_path_params(const struct api_route *r, struct json_object *op)
{
    struct json_object *params = NULL;
    int braces = 0, described = 0;

    for (const char *p = r->path; *p; p++)
        braces += *p == '{';
    json_object_object_get_ex(op, "parameters", &params);
    for (size_t i = 0; i < json_object_array_length(params); i++) {
        struct json_object *p = json_object_array_get_idx(params, i), *in, *name, *schema;

        assert_true(json_object_object_get_ex(p, "in", &in));
        assert_true(json_object_object_get_ex(p, "name", &name));
        assert_true(json_object_object_get_ex(p, "schema", &schema));
        described += strcmp(json_object_get_string(in), "path") == 0;
    }
    assert_int_equal(described, braces);
}

static void the_description_is_whole(void **state)
{
    struct fixture *f = *state;
    size_t count;
    const struct api_route *routes = api_routes(&count);
    const char *seen[128];

    assert_int_equal(ask(f, f->ada, "GET", "/v1/openapi.json", NULL), 200);
    assert_string_equal(text(f, "openapi"), "3.1.0");
    assert_true(text(f, "info.title")[0] && text(f, "info.version")[0]);
    assert_true(check_refs(f->json, f->json) > 50);
    for (size_t i = 0; i < count; i++) {
        struct json_object *op = operation(f, &routes[i]), *v, *responses;
        char status[8];

        assert_true(json_object_object_get_ex(op, "operationId", &v));
        seen[i] = json_object_get_string(v);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(seen[i], seen[j]);
        assert_true(json_object_object_get_ex(op, "summary", &v));
        assert_true(json_object_object_get_ex(op, "responses", &responses));
        snprintf(status, sizeof(status), "%d", routes[i].status);
        assert_true(json_object_object_get_ex(responses, status, &v));
        assert_true(json_object_object_get_ex(v, "description", &v));
        assert_true(json_object_object_get_ex(responses, "default", &v));
        assert_int_equal(json_object_object_get_ex(op, "requestBody", &v),
                         routes[i].request != NULL);
        check_path_params(&routes[i], op);
    }
}

/* ---- bad input ------------------------------------------------------------------------------ */

static void ten_megabytes_are_refused_and_the_connection_lives(void **state)
{
    struct fixture *f = *state;
    struct strbuf body = STRBUF_INIT;

    for (int i = 0; i < 10 * 1024 * 1024; i++)
        strbuf_addc(&body, ' ');
    assert_int_equal(ask(f, f->ada, "POST", "/v1/workloads", strbuf_str(&body)), 413);
    assert_string_equal(text(f, "code"), "too_large");
    assert_int_equal(ask(f, f->nobody, "POST", "/v1/workloads", strbuf_str(&body)), 401);
    assert_int_equal(ask(f, f->ada, "GET", "/v1/version", NULL), 200);
    strbuf_done(&body);
}

static void hostile_paths_are_refused(void **state)
{
    static const struct {
        const char *path;
        int status;
    } cases[] = {
        {"/v1/teams/a%00b", 400},  {"/v1/teams/%ff", 400},
        {"/v1//teams", 400},       {"/v1/teams/../../etc/passwd", 404},
        {"/v1/teams/lab/", 400},   {"/", 404},
        {"/v2/teams", 404},        {"/v1/workloads/18446744073709551616", 404},
        {"/v1/workloads/-1", 404},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int status = ask(f, f->root, "GET", cases[i].path, NULL);

        if (status != cases[i].status)
            fail_msg("%s: %d", cases[i].path, status);
        assert_int_equal(number(f, "status"), status);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_set_up, fixture_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(health_tells_nothing),
        TEST(status_tells_state_and_who_asks),
        TEST(nodes_show_their_devices_and_who_holds_them),
        TEST(work_of_other_teams_is_counted_but_not_named),
        TEST(a_node_is_drained_and_used_again),
        TEST(maintenance_is_announced_and_taken_back),
        TEST(maintenance_says_whom_it_touches),
        TEST(usage_is_metered_by_team),
        TEST(bad_windows_are_refused),
        TEST(the_description_is_whole),
        TEST(ten_megabytes_are_refused_and_the_connection_lives),
        TEST(hostile_paths_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
