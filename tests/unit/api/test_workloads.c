/* SPDX-License-Identifier: Apache-2.0 */
/* Submit, list, get, stop, explain. */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/core.h"
#include "fixture.h"

#define ONE(team) "{\"team\":\"" team "\",\"gpus\":1,\"command\":[\"true\"]}"

static void one_workload_is_answered_with_itself(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask(f, f->ada, "POST", "/v1/workloads",
                         "{\"name\":\"digits\",\"team\":\"vision\",\"gpus\":2,\"tasks\":2,"
                         "\"command\":[\"python3\",\"train.py\"],\"env\":{\"LR\":\"0.1\"}}"),
                     201);
    assert_true(number(f, "id") > 0);
    assert_string_equal(text(f, "name"), "digits");
    assert_string_equal(text(f, "owner"), "ada");
    assert_string_equal(text(f, "state"), "pending");
    assert_int_equal(number(f, "tasks"), 2);
}

static void a_batch_is_answered_with_ids_in_order(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask(f, f->ada, "POST", "/v1/workloads",
                         "{\"workloads\":[" ONE("vision") "," ONE("speech") "]}"),
                     201);
    assert_int_equal(length(f, "workloads"), 2);
    assert_int_equal(number(f, "workloads.1.id"), number(f, "workloads.0.id") + 1);
    assert_string_equal(text(f, "workloads.1.team"), "speech");
    assert_int_equal(ask(f, f->ada, "POST", "/v1/workloads", "[" ONE("vision") "]"), 201);
    assert_int_equal(length(f, "workloads"), 1);
}

static void production_within_the_guarantee_evicts_nobody_beside_free_devices(void **state)
{
    struct fixture *f = *state;
    uint64_t id[3];

    assert_int_equal(ask(f, f->root, "PUT", "/v1/teams/other", "{\"guarantee\":{\"gpu\":1}}"), 200);
    for (int i = 0; i < 3; i++) {
        id[i] = submit(f, f->bob,
                       i < 2 ? "{\"team\":\"other\",\"gpus\":1,\"command\":[\"x\"]}"
                             : "{\"team\":\"other\",\"gpus\":1,\"class\":\"production\","
                               "\"command\":[\"x\"]}");
        wait_state(f, id[i], "running");
    }
    assert_int_equal(ask(f, f->bob, "GET", "/v1/workloads?state=running", NULL), 200);
    assert_int_equal(length(f, "workloads"), 3);
    assert_int_equal(number(f, "workloads.1.restarts"), 0);
    assert_int_equal(number(f, "workloads.2.restarts"), 0);
    /* one more would be above the guarantee */
    assert_int_equal(ask(f, f->bob, "POST", "/v1/workloads",
                         "{\"team\":\"other\",\"gpus\":2,\"class\":\"production\","
                         "\"command\":[\"x\"]}"),
                     422);
}

static void a_refusal_says_what_would_help(void **state)
{
    static const struct {
        const char *settings, *why, *remedy;
    } cases[] = {
        {"\"class\":\"production\"", "is not preemptible and",
         "ask for less, make it preemptible (class training or development), or have the "
         "guarantee raised"},
        {"\"kind\":\"service\",\"tasks\":2,\"max_unavailable\":1", "is not preemptible and",
         "ask for less, make it preemptible (class training or development) and leave "
         "max_unavailable out, or have the guarantee raised"},
        {"\"kind\":\"service\",\"class\":\"development\",\"tasks\":2,\"max_unavailable\":1",
         "is sure of what max_unavailable leaves and",
         "ask for less, leave max_unavailable out, or have the guarantee raised"},
        {"\"burst\":false", "may not burst and",
         "ask for less, let it burst, or have the guarantee raised"},
    };
    struct fixture *f = *state;
    char body[200];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(body, sizeof(body), "{\"team\":\"other\",\"gpus\":1,%s,\"command\":[\"x\"]}",
                 cases[i].settings);
        assert_int_equal(ask(f, f->bob, "POST", "/v1/workloads", body), 422);
        if (strstr(text(f, "detail"), cases[i].why) == NULL)
            fail_msg("%s", text(f, "detail"));
        assert_string_equal(text(f, "remedy"), cases[i].remedy);
    }
    /* and it does */
    assert_int_equal(ask(f, f->bob, "POST", "/v1/workloads",
                         "{\"team\":\"other\",\"gpus\":1,\"kind\":\"service\",\"tasks\":2,"
                         "\"class\":\"development\",\"command\":[\"x\"]}"),
                     201);
}

static void a_device_that_no_node_has_is_named(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask(f, f->ada, "POST", "/v1/workloads",
                         "{\"team\":\"vision\",\"name\":\"t\",\"gpus\":1,"
                         "\"gpu_type\":[\"h100\"],\"command\":[\"x\"]}"),
                     422);
    assert_string_equal(text(f, "detail"),
                        "workload 't' asks for GPUs of type 'h100', which no node has");
    assert_string_equal(text(f, "remedy"), "did you mean 'H100'? there are: H100");
    assert_int_equal(ask(f, f->ada, "POST", "/v1/workloads",
                         "{\"team\":\"vision\",\"mig\":\"1g.10gb\",\"command\":[\"x\"]}"),
                     422);
    assert_string_equal(text(f, "detail"),
                        "workload asks for 1 x 1g.10gb, and no node has such a device");
    assert_int_equal(ask(f, f->ada, "POST", "/v1/workloads",
                         "{\"team\":\"vision\",\"name\":\"123\",\"command\":[\"x\"]}"),
                     400);
    assert_string_equal(text(f, "detail"), "name '123' would be taken for an id");
}

static void a_batch_is_taken_as_a_whole_or_not_at_all(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(
        ask(f, f->ada, "POST", "/v1/workloads",
            "[" ONE("vision") ",{\"team\":\"vision\",\"gpus\":9,\"command\":[\"x\"]}]"),
        422);
    assert_string_equal(text(f, "code"), "unsatisfiable");
    assert_int_equal(ask(f, f->ada, "POST", "/v1/workloads",
                         "[" ONE("vision") ",{\"team\":\"vision\",\"gpus\":\"x\"}]"),
                     400);
    assert_string_equal(text(f, "field"), "workloads[1].gpus");
    assert_int_equal(ask(f, f->ada, "GET", "/v1/workloads", NULL), 200);
    assert_int_equal(length(f, "workloads"), 0);
}

static void ten_thousand_fit_and_one_more_does_not(void **state)
{
    struct fixture *f = *state;
    struct strbuf body = STRBUF_INIT;

    strbuf_addc(&body, '[');
    for (int i = 0; i < 10000; i++)
        strbuf_addf(&body, "%s%s", i ? "," : "", ONE("vision"));
    strbuf_addc(&body, ']');
    assert_int_equal(ask(f, f->ada, "POST", "/v1/workloads", strbuf_str(&body)), 201);
    assert_int_equal(length(f, "workloads"), 10000);
    strbuf_truncate(&body, body.len - 1);
    strbuf_addf(&body, ",%s]", ONE("vision"));
    assert_int_equal(ask(f, f->ada, "POST", "/v1/workloads", strbuf_str(&body)), 400);
    assert_string_equal(text(f, "code"), "too_large");
    strbuf_done(&body);
}

static void bad_submits_are_refused_with_the_field(void **state)
{
    static const struct {
        const char *body;
        int status;
        const char *field;
    } cases[] = {
        {"", 400, ""},
        {"null", 400, ""},
        {"[]", 400, "workloads"},
        {"{\"workloads\":3}", 400, "workloads"},
        {"{\"workloads\":[" ONE("vision") "],\"dry\":true}", 400, "dry"},
        {"{\"team\":\"vision\"", 400, ""},
        {"{\"team\":\"vision\"} x", 400, ""},
        {"{\"team\":\"vision\",\"command\":\"x\"}", 400, "command"},
        {"{\"team\":\"vision\",\"gpuz\":1,\"command\":[\"x\"]}", 400, "gpuz"},
        {"{\"team\":\"vision\",\"name\":\"../x\",\"command\":[\"x\"]}", 400, "name"},
        {"{\"team\":\"vision\",\"name\":\"a\\u0000b\",\"command\":[\"x\"]}", 400, ""},
        {"{\"team\":\"nowhere\",\"command\":[\"x\"]}", 422, "team"},
        {"{\"team\":\"vision\",\"gpus\":-1,\"command\":[\"x\"]}", 400, "gpus"},
        {"{\"team\":\"vision\",\"gpu\":1e30,\"command\":[\"x\"]}", 400, "gpu"},
        {"{\"team\":\"vision\",\"gpu\":0.0001,\"command\":[\"x\"]}", 400, "gpu"},
        {"{\"team\":\"vision\",\"tasks\":9223372036854775808,\"command\":[\"x\"]}", 400, "tasks"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int status = ask(f, f->ada, "POST", "/v1/workloads", cases[i].body);

        if (status != cases[i].status || strcmp(text(f, "field"), cases[i].field) != 0)
            fail_msg("%s: %d, field '%s': %s", cases[i].body, status, text(f, "field"),
                     f->reply.body.data);
        assert_true(text(f, "code")[0] != '\0');
    }
}

static void deeply_nested_json_is_refused(void **state)
{
    struct fixture *f = *state;
    struct strbuf body = STRBUF_INIT;

    for (int i = 0; i < 100000; i++)
        strbuf_addc(&body, '[');
    assert_int_equal(ask(f, f->ada, "POST", "/v1/workloads", strbuf_str(&body)), 400);
    strbuf_done(&body);
}

static void teams_of_others_cannot_be_used(void **state)
{
    struct fixture *f = *state;

    char detail[256];

    /* Nor is it told whether they exist, or have teams below them. */
    assert_int_equal(ask(f, f->root, "PUT", "/v1/teams/vision-a", "{\"parent\":\"vision\"}"), 201);
    assert_int_equal(ask(f, f->bob, "POST", "/v1/workloads", ONE("nowhere")), 422);
    assert_string_equal(text(f, "code"), "not_found");
    snprintf(detail, sizeof(detail), "%s", strchr(text(f, "detail"), '\'') + 8);
    assert_int_equal(ask(f, f->bob, "POST", "/v1/workloads", ONE("vision")), 422);
    assert_string_equal(text(f, "code"), "not_found");
    assert_string_equal(strchr(text(f, "detail"), '\'') + 7, detail);
}

static void the_same_key_is_answered_once(void **state)
{
    struct fixture *f = *state;
    int64_t id;

    http_client_header(f->ada, "Idempotency-Key", "k1");
    assert_int_equal(ask(f, f->ada, "POST", "/v1/workloads", ONE("vision")), 201);
    id = number(f, "id");
    http_client_header(f->ada, "Idempotency-Key", "k1");
    assert_int_equal(ask(f, f->ada, "POST", "/v1/workloads", ONE("vision")), 201);
    assert_int_equal(number(f, "id"), id);
    assert_int_equal(ask(f, f->ada, "GET", "/v1/workloads", NULL), 200);
    assert_int_equal(length(f, "workloads"), 1);
}

static void a_key_belongs_to_one_request_of_one_user(void **state)
{
    struct fixture *f = *state;

    http_client_header(f->ada, "Idempotency-Key", "k1");
    assert_int_equal(ask(f, f->ada, "POST", "/v1/workloads", ONE("vision")), 201);
    http_client_header(f->ada, "Idempotency-Key", "k1");
    assert_int_equal(ask(f, f->ada, "POST", "/v1/workloads", ONE("speech")), 422);
    assert_string_equal(text(f, "field"), "Idempotency-Key");
    http_client_header(f->bob, "Idempotency-Key", "k1");
    assert_int_equal(ask(f, f->bob, "POST", "/v1/workloads", ONE("other")), 201);
    http_client_header(f->ada, "Idempotency-Key", "a b");
    assert_int_equal(ask(f, f->ada, "POST", "/v1/workloads", ONE("vision")), 400);
}

static void a_refused_request_does_not_use_up_its_key(void **state)
{
    struct fixture *f = *state;

    http_client_header(f->ada, "Idempotency-Key", "k1");
    assert_int_equal(ask(f, f->ada, "POST", "/v1/workloads", "{\"team\":\"vision\"}"), 400);
    http_client_header(f->ada, "Idempotency-Key", "k1");
    assert_int_equal(ask(f, f->ada, "POST", "/v1/workloads", ONE("vision")), 201);
}

static void lists_are_filtered(void **state)
{
    static const struct {
        const char *query;
        int count;
    } cases[] = {
        {"", 3},
        {"?team=speech", 1},
        {"?owner=ada", 2},
        {"?state=live", 3},
        {"?state=succeeded,failed", 0},
        {"?kind=notebook", 1},
        {"?class=training,batch", 2},
        {"?name=one&team=vision", 1},
        {"?team=nowhere", 0},
    };
    struct fixture *f = *state;

    submit(f, f->ada, "{\"team\":\"vision\",\"name\":\"one\",\"gpus\":1,\"command\":[\"x\"]}");
    submit(f, f->ada, "{\"team\":\"speech\",\"kind\":\"notebook\",\"command\":[\"x\"]}");
    submit(f, f->root, "{\"team\":\"other\",\"name\":\"one\",\"command\":[\"x\"]}");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct strbuf path = STRBUF_INIT;

        strbuf_addf(&path, "/v1/workloads%s", cases[i].query);
        assert_int_equal(ask(f, f->root, "GET", strbuf_str(&path), NULL), 200);
        if (length(f, "workloads") != cases[i].count)
            fail_msg("%s: %d", cases[i].query, (int)length(f, "workloads"));
        strbuf_done(&path);
    }
    assert_int_equal(ask(f, f->bob, "GET", "/v1/workloads", NULL), 200);
    assert_int_equal(length(f, "workloads"), 1);
    assert_int_equal(ask(f, f->bob, "GET", "/v1/workloads?team=vision", NULL), 200);
    assert_int_equal(length(f, "workloads"), 0);
}

static void lists_come_in_pages(void **state)
{
    struct fixture *f = *state;
    struct strbuf path = STRBUF_INIT;
    int pages = 0, seen = 0;

    for (int i = 0; i < 5; i++)
        submit(f, f->ada, ONE("vision"));
    strbuf_adds(&path, "/v1/workloads?limit=2");
    do {
        assert_int_equal(ask(f, f->ada, "GET", strbuf_str(&path), NULL), 200);
        seen += (int)length(f, "workloads");
        pages++;
        strbuf_truncate(&path, strlen("/v1/workloads?limit=2"));
        strbuf_addf(&path, "&before=%lld", (long long)number(f, "next"));
    } while (value(f, "next"));
    assert_int_equal(seen, 5);
    assert_int_equal(pages, 3);
    strbuf_done(&path);
}

static void unknown_and_bad_query_parameters_are_refused_by_name(void **state)
{
    static const char *const queries[][2] = {
        {"color=red", "color"}, {"limit=0", "limit"},     {"limit=1001", "limit"},
        {"limit=x", "limit"},   {"before=-1", "before"},  {"state=asleep", "state"},
        {"kind=job,x", "kind"}, {"class=first", "class"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
        struct strbuf path = STRBUF_INIT;

        strbuf_addf(&path, "/v1/workloads?%s", queries[i][0]);
        assert_int_equal(ask(f, f->ada, "GET", strbuf_str(&path), NULL), 400);
        assert_string_equal(text(f, "field"), queries[i][1]);
        strbuf_done(&path);
    }
}

static void a_workload_is_found_by_number_and_by_name(void **state)
{
    struct fixture *f = *state;
    uint64_t id =
        submit(f, f->ada, "{\"team\":\"vision\",\"name\":\"digits\",\"command\":[\"x\"]}");

    assert_int_equal(ask(f, f->ada, "GET", "/v1/workloads/digits", NULL), 200);
    assert_int_equal(number(f, "id"), id);
    assert_int_equal(ask(f, f->ada, "GET", "/v1/workloads/vision:digits", NULL), 200);
    assert_int_equal(ask(f, f->ada, "GET", "/v1/workloads/speech:digits", NULL), 404);
    assert_int_equal(ask(f, f->bob, "GET", "/v1/workloads/digits", NULL), 404);
    assert_int_equal(ask(f, f->bob, "GET", "/v1/workloads/1", NULL), 404);
    submit(f, f->ada, "{\"team\":\"speech\",\"name\":\"digits\",\"command\":[\"x\"]}");
    assert_int_equal(ask(f, f->ada, "GET", "/v1/workloads/digits", NULL), 409);
    assert_int_equal(ask(f, f->ada, "GET", "/v1/workloads/99999", NULL), 404);
    assert_int_equal(ask(f, f->ada, "GET", "/v1/workloads/%2e%2e%2fetc", NULL), 404);
}

static void one_shows_all_of_its_tasks(void **state)
{
    struct fixture *f = *state;
    uint64_t id =
        submit(f, f->ada,
               "{\"team\":\"vision\",\"gpus\":4,\"tasks\":3,\"min_tasks\":1,\"command\":[\"x\"]}");

    wait_state(f, id, "running");
    assert_int_equal(length(f, "tasks_detail"), 3);
    assert_int_equal(number(f, "tasks_detail.2.index"), 2);
    assert_string_equal(text(f, "tasks_detail.2.state"), "pending");
    assert_string_equal(text(f, "command.0"), "x");
}

static void what_waits_says_why(void **state)
{
    struct fixture *f = *state;
    struct strbuf path = STRBUF_INIT;
    uint64_t first, second;

    first = submit(f, f->ada, "{\"team\":\"vision\",\"gpus\":8,\"command\":[\"x\"]}");
    wait_state(f, first, "running");
    second = submit(f, f->ada, "{\"team\":\"vision\",\"gpus\":8,\"command\":[\"x\"]}");
    strbuf_addf(&path, "/v1/workloads/%llu/explain", (unsigned long long)second);
    assert_int_equal(ask(f, f->ada, "GET", strbuf_str(&path), NULL), 200);
    assert_true(text(f, "reason")[0] != '\0');
    assert_true(text(f, "sentence")[0] != '\0');
    assert_string_equal(text(f, "request"), "8 GPUs");
    assert_int_equal(number(f, "position"), 1);
    assert_true(length(f, "holders") >= 0);
    assert_int_equal(ask(f, f->ada, "GET", "/v1/workloads?state=pending", NULL), 200);
    assert_int_equal(length(f, "workloads"), 1);
    assert_int_equal(number(f, "workloads.0.position"), 1);
    assert_true(text(f, "workloads.0.reason")[0] != '\0');
    assert_int_equal(ask(f, f->bob, "GET", strbuf_str(&path), NULL), 404);
    strbuf_done(&path);
}

static void what_has_ended_is_explained_too(void **state)
{
    struct fixture *f = *state;
    uint64_t id = submit(f, f->ada, ONE("vision"));

    wait_state(f, id, "running");
    engine_exit(f, "1.0.0", 3);
    wait_state(f, id, "failed");
    assert_int_equal(number(f, "exit_code"), 3);
    assert_int_equal(ask(f, f->ada, "GET", "/v1/workloads/1/explain", NULL), 200);
    assert_null(value(f, "reason"));
    assert_true(text(f, "sentence")[0] != '\0');
}

/* A command that holds core up until it is let go. */
struct hold {
    struct core_command command;
    sem_t held, go;
};

static void hold_core(struct core_command *c)
{
    struct hold *h = c->user;

    sem_post(&h->held);
    sem_wait(&h->go);
}

struct asking {
    struct fixture *f;
    const char *method, *path;
    int status;
};

static void *ask_aside(void *arg)
{
    struct asking *a = arg;

    a->status = ask(a->f, a->f->ada, a->method, a->path, NULL);
    return NULL;
}

/* Asks about workload 1, which runs, while core has yet to hear that it ends. */
static int ask_in_the_instant_of_its_end(struct fixture *f, const char *method, const char *path)
{
    struct hold h = {.command = {.kind = CORE_EXPLAIN_BRIEF, .done = hold_core, .user = &h}};
    struct asking a = {f, method, path, 0};
    pthread_t thread;

    wait_state(f, submit(f, f->ada, ONE("vision")), "running");
    while (strcmp(text(f, "tasks_detail.0.state"), "running") != 0)
        assert_int_equal(ask(f, f->ada, "GET", "/v1/workloads/1", NULL), 200);
    sem_init(&h.held, 0, 0);
    sem_init(&h.go, 0, 0);
    core_submit(f->core, &h.command);
    sem_wait(&h.held);
    engine_exit(f, "1.0.0", 0);
    assert_int_equal(pthread_create(&thread, NULL, ask_aside, &a), 0);
    usleep(100000); /* it finds the row and waits for core behind the end */
    sem_post(&h.go);
    pthread_join(thread, NULL);
    wait_state(f, 1, "succeeded"); /* H is not used any more */
    arena_done(&h.command.arena);
    sem_destroy(&h.held);
    sem_destroy(&h.go);
    return a.status;
}

static void what_ends_in_that_instant_is_explained(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask_in_the_instant_of_its_end(f, "GET", "/v1/workloads/1/explain"), 200);
    assert_int_equal(ask(f, f->ada, "GET", "/v1/workloads/1/explain", NULL), 200);
    assert_string_equal(text(f, "state"), "succeeded");
}

static void what_ends_in_that_instant_is_stopped_no_more(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask_in_the_instant_of_its_end(f, "POST", "/v1/workloads/1/stop"), 409);
}

static void a_workload_is_stopped(void **state)
{
    struct fixture *f = *state;
    uint64_t id = submit(f, f->ada, ONE("vision"));

    wait_state(f, id, "running");
    assert_int_equal(ask(f, f->bob, "POST", "/v1/workloads/1/stop", NULL), 404);
    assert_int_equal(ask(f, f->ada, "POST", "/v1/workloads/1/stop", "{\"grace\":\"x\"}"), 400);
    assert_int_equal(ask(f, f->ada, "POST", "/v1/workloads/1/stop", "{\"grace\":\"1s\"}"), 202);
    assert_string_equal(text(f, "state"), "stopping");
    wait_state(f, id, "cancelled");
    assert_int_equal(ask(f, f->ada, "POST", "/v1/workloads/1/stop", NULL), 409);
    assert_int_equal(ask(f, f->ada, "DELETE", "/v1/workloads/99", NULL), 404);
}

static void allocations_are_listed(void **state)
{
    struct fixture *f = *state;
    uint64_t id = submit(f, f->ada, "{\"team\":\"vision\",\"gpu\":0.25,\"command\":[\"x\"]}");

    wait_state(f, id, "running");
    assert_int_equal(ask(f, f->ada, "GET", "/v1/workloads/1/allocations", NULL), 200);
    assert_int_equal(length(f, "allocations"), 1);
    assert_string_equal(text(f, "allocations.0.gpu"), "0.25");
    assert_null(value(f, "allocations.0.ended_at"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_set_up, fixture_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_workload_is_answered_with_itself),
        TEST(a_batch_is_answered_with_ids_in_order),
        TEST(production_within_the_guarantee_evicts_nobody_beside_free_devices),
        TEST(a_refusal_says_what_would_help),
        TEST(a_device_that_no_node_has_is_named),
        TEST(a_batch_is_taken_as_a_whole_or_not_at_all),
        TEST(ten_thousand_fit_and_one_more_does_not),
        TEST(bad_submits_are_refused_with_the_field),
        TEST(deeply_nested_json_is_refused),
        TEST(teams_of_others_cannot_be_used),
        TEST(the_same_key_is_answered_once),
        TEST(a_key_belongs_to_one_request_of_one_user),
        TEST(a_refused_request_does_not_use_up_its_key),
        TEST(lists_are_filtered),
        TEST(lists_come_in_pages),
        TEST(unknown_and_bad_query_parameters_are_refused_by_name),
        TEST(a_workload_is_found_by_number_and_by_name),
        TEST(one_shows_all_of_its_tasks),
        TEST(what_waits_says_why),
        TEST(what_has_ended_is_explained_too),
        TEST(what_ends_in_that_instant_is_explained),
        TEST(what_ends_in_that_instant_is_stopped_no_more),
        TEST(a_workload_is_stopped),
        TEST(allocations_are_listed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
