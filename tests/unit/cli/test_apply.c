/* SPDX-License-Identifier: Apache-2.0 */
/* `allot apply`: everything is checked before the first call; teams in order; only changes. */
#include "fake.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/strbuf.h"

static char folder[] = "/tmp/allot-test-apply-XXXXXX";

static int group_setup(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int group_teardown(void **state)
{
    (void)state;
    return io_remove_tree(AT_FDCWD, folder);
}

static const char *file(const char *name, const char *text)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    assert_int_equal(io_write_file_atomic(AT_FDCWD, path, text, strlen(text), 0600, 0), 0);
    return path;
}

static int apply(const char *text, const char *option)
{
    const char *const words[] = {"apply", "-f", file("doc.yaml", text), option, NULL};

    return fake_run_words(words);
}

#define TEAM(name, spec) \
    "apiVersion: allot/v1\nkind: Team\nmetadata: {name: " name "}\nspec: " spec "\n---\n"
#define WORKLOAD(name, team)                                                                  \
    "apiVersion: allot/v1\nkind: Workload\nmetadata: {name: " name ", namespace: " team "}\n" \
    "spec: {gpus: 1, command: [\"true\"]}\n---\n"

static void parents_come_first_and_workloads_last(void **state)
{
    (void)state;
    fake_answer("PUT /v1/teams/lab", 201, "{}");
    fake_answer("PUT /v1/teams/nlp", 201, "{}");
    fake_answer("PUT /v1/teams/bert", 201, "{}");
    fake_answer("GET /v1/workloads?name=w&team=bert&limit=100", 200, "{\"workloads\":[]}");
    fake_answer("POST /v1/workloads", 201, "{\"id\":12,\"name\":\"w\"}");
    assert_int_equal(apply(WORKLOAD("w", "bert") TEAM("bert", "{parent: nlp}")
                               TEAM("nlp", "{parent: lab}") TEAM("lab", "{}"),
                           NULL),
                     0);
    assert_string_equal(fake_out, "team lab created\nteam nlp created\nteam bert created\n"
                                  "workload w (12) created\n");
}

static void what_is_the_same_is_left_alone(void **state)
{
    (void)state;
    fake_answer("GET /v1/teams/nlp", 200,
                "{\"id\":3,\"version\":9,\"name\":\"nlp\",\"parent\":null,\"weight\":1,"
                "\"priority\":100,\"guarantee\":{\"gpu\":4,\"cpu\":0,\"memory\":0},"
                "\"limit\":{\"gpu\":null,\"volumes\":null},\"used\":{\"gpu\":1},\"running\":1}");
    fake_answer("GET /v1/workloads?name=w&team=nlp&limit=100", 200,
                "{\"workloads\":[{\"id\":4,\"state\":\"failed\"},"
                "{\"id\":7,\"state\":\"running\"}]}");
    assert_int_equal(apply(TEAM("nlp", "{guarantee: {gpu: 4}}") WORKLOAD("w", "nlp"), NULL), 0);
    assert_string_equal(fake_out, "team nlp unchanged\nworkload w (7) unchanged\n");
    assert_null(strstr(fake_calls(), "PUT"));
    assert_null(strstr(fake_calls(), "POST"));
}

static void what_differs_is_configured_if_nobody_was_faster(void **state)
{
    (void)state;
    fake_answer("GET /v1/teams/nlp", 200,
                "{\"name\":\"nlp\",\"weight\":2,\"guarantee\":{\"gpu\":4}}");
    fake_answer("PUT /v1/teams/nlp", 200, "{}");
    assert_int_equal(apply(TEAM("nlp", "{guarantee: {gpu: 4}}"), NULL), 0);
    assert_string_equal(fake_out, "team nlp configured\n");
}

static void a_failed_workload_is_submitted_again(void **state)
{
    (void)state;
    fake_answer("GET /v1/teams/nlp", 200, "{\"name\":\"nlp\"}");
    fake_answer("GET /v1/workloads?name=w&team=nlp&limit=100", 200,
                "{\"workloads\":[{\"id\":4,\"state\":\"failed\"}]}");
    fake_answer("POST /v1/workloads", 201, "{\"id\":13}");
    assert_int_equal(apply(WORKLOAD("w", "nlp"), NULL), 0);
    assert_string_equal(fake_out, "workload w (13) created\n");
}

static void one_bad_document_stops_everything_before_the_first_call(void **state)
{
    (void)state;
    assert_int_equal(apply(TEAM("nlp", "{}") TEAM("x", "{guarantee: {gpu: -1}}"), NULL), 1);
    assert_string_equal(fake_calls(), "");
    assert_non_null(strstr(fake_err, "doc.yaml, document 2: "));
    assert_int_equal(apply(TEAM("nlp", "{}") TEAM("x", "{colour: red}"), NULL), 1);
    assert_non_null(strstr(fake_err, "colour"));
    assert_int_equal(apply("kind: [", NULL), 1);
    assert_int_equal(apply("kind: Deployment\n", NULL), 1);
    assert_string_equal(fake_calls(), "");
}

#define DRY_RUN "POST /v1/workloads?dry_run=true"

static void a_dry_run_only_looks(void **state)
{
    (void)state;
    fake_answer(DRY_RUN, 422, "{\"detail\":\"no such team\",\"field\":\"team\"}");
    assert_int_equal(apply(TEAM("nlp", "{}") WORKLOAD("w", "nlp"), "--dry-run"), 0);
    assert_string_equal(fake_out, "team nlp created (dry run)\nworkload w created (dry run)\n");
    assert_non_null(strstr(fake_err, "not known before team 'nlp' is there"));
    assert_null(strstr(fake_calls(), "PUT"));
    assert_null(strstr(fake_calls(), "POST /v1/workloads {"));
}

static void a_dry_run_warns(void **state)
{
    (void)state;
    fake_answer("GET /v1/teams", 200, "{\"teams\":[{\"name\":\"old\",\"guarantee\":{\"gpu\":3}}]}");
    fake_answer("GET /v1/nodes", 200, "{\"nodes\":[{\"devices\":[{},{},{},{}]}]}");
    fake_answer(DRY_RUN, 200,
                "{\"workloads\":[{\"reason\":\"no_capacity\",\"sentence\":\"none is free\"}]}");
    assert_int_equal(apply(TEAM("nlp", "{guarantee: {gpu: 2}}") WORKLOAD("w", "nlp"), "--dry-run"),
                     0);
    assert_string_equal(fake_err, "allot: warning: it would wait: none is free\n"
                                  "allot: warning: guarantees add up to 5 GPUs; there are 4\n");
}

static void a_dry_run_is_refused_as_the_run_would_be(void **state)
{
    (void)state;
    fake_answer(DRY_RUN, 422, "{\"detail\":\"no node has that\",\"code\":\"unsatisfiable\"}");
    assert_int_equal(apply(TEAM("nlp", "{}") WORKLOAD("w", "nlp"), "--dry-run"), 1);
    assert_non_null(strstr(fake_err, "document 2: no node has that"));
}

static void a_team_that_is_nowhere_stops_everything(void **state)
{
    (void)state;
    fake_answer("GET /v1/teams", 200, "{\"teams\":[{\"name\":\"vision\"}]}");
    assert_int_equal(apply(TEAM("nlp", "{}") WORKLOAD("w", "visoin"), "--dry-run"), 1);
    assert_string_equal(fake_out, "");
    assert_non_null(strstr(fake_err, "document 2: team 'visoin' does not exist or is not yours"));
    assert_non_null(strstr(fake_err, "did you mean 'vision'?"));
    assert_int_equal(apply(TEAM("nlp", "{}") TEAM("bert", "{parent: lap}"), NULL), 1);
    assert_null(strstr(fake_calls(), "PUT"));
}

static void promising_too_much_is_noted(void **state)
{
    (void)state;
    fake_answer("PUT /v1/teams/nlp", 201, "{}");
    fake_answer("GET /v1/teams", 200,
                "{\"teams\":[{\"name\":\"nlp\",\"guarantee\":{\"gpu\":2}},"
                "{\"name\":\"bert\",\"parent\":\"nlp\",\"guarantee\":{\"gpu\":2}}]}");
    fake_answer("GET /v1/nodes", 200, "{\"nodes\":[{\"devices\":[{}]}]}");
    assert_int_equal(apply(TEAM("nlp", "{guarantee: {gpu: 2}}"), NULL), 0);
    assert_string_equal(fake_err, "allot: warning: guarantees add up to 2 GPUs; there is 1\n");
}

static void circles_and_doubles_are_refused(void **state)
{
    (void)state;
    assert_int_equal(apply(TEAM("a", "{parent: b}") TEAM("b", "{parent: a}"), NULL), 1);
    assert_non_null(strstr(fake_err, "is its own ancestor"));
    assert_int_equal(apply(TEAM("a", "{}") TEAM("a", "{}"), NULL), 1);
    assert_non_null(strstr(fake_err, "team 'a' stands in two documents"));
    assert_string_equal(fake_calls(), "");
}

static void a_hard_quota_is_left_alone(void **state)
{
    (void)state;
    fake_answer("GET /v1/teams/x", 200,
                "{\"id\":3,\"version\":2,\"name\":\"x\",\"quota\":\"hard\",\"weight\":1,"
                "\"priority\":100,\"guarantee\":{\"gpu\":4,\"cpu\":0,\"memory\":\"0\","
                "\"gpu_types\":{\"H100\":2}},\"limit\":{\"gpu\":4,\"cpu\":null,\"memory\":null,"
                "\"volumes\":null,\"gpu_types\":{\"H100\":2}},\"used\":{\"gpu\":1}}");
    assert_int_equal(
        apply(TEAM("x", "{quota: hard, guarantee: {gpu: 4, gpu_types: {H100: 2}}}"), NULL), 0);
    assert_string_equal(fake_out, "team x unchanged\n");
}

static void a_resource_quota_becomes_a_team(void **state)
{
    (void)state;
    fake_answer("PUT /v1/teams/ml-research", 201, "{}");
    assert_int_equal(apply("apiVersion: v1\nkind: ResourceQuota\n"
                           "metadata: {name: gpu-quota, namespace: ml-research}\n"
                           "spec:\n  hard:\n    requests.nvidia.com/gpu: \"8\"\n"
                           "    limits.nvidia.com/gpu: \"16\"\n"
                           "    persistentvolumeclaims: \"50\"\n    services: \"3\"\n",
                           NULL),
                     0);
    assert_string_equal(fake_out, "team ml-research created\n");
    assert_non_null(strstr(fake_err, "ignored: "));
    assert_non_null(strstr(fake_err, "services"));
    assert_non_null(strstr(fake_calls(), "PUT /v1/teams/ml-research {"));
}

static void folders_are_read_by_name(void **state)
{
    const char *const words[] = {"apply", "-f", folder, "--dry-run", "-o", "json", NULL};

    (void)state;
    file("doc.yaml", TEAM("b", "{}"));
    file("a.json", "{\"apiVersion\":\"allot/v1\",\"kind\":\"Team\",\"metadata\":{\"name\":\"a\"}}");
    file("notes.txt", "nothing of this is read: [");
    assert_int_equal(fake_run_words(words), 0);
    assert_string_equal(fake_out, "[{\"kind\":\"team\",\"name\":\"a\",\"outcome\":\"created\"},"
                                  "{\"kind\":\"team\",\"name\":\"b\",\"outcome\":\"created\"}]\n");
}

static void files_are_submitted_together(void **state)
{
    const char *const words[] = {
        "submit", "-f", file("doc.yaml", WORKLOAD("w", "nlp") "team: nlp\ncommand: [\"true\"]\n"),
        NULL};

    (void)state;
    fake_answer("POST /v1/workloads", 201, "{\"workloads\":[{\"id\":20},{\"id\":21}]}");
    assert_int_equal(fake_run_words(words), 0);
    assert_string_equal(fake_out, "20\n21\n");
    assert_non_null(strstr(fake_calls(), "POST /v1/workloads {\"workloads\":[{"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(parents_come_first_and_workloads_last),
        TEST(what_is_the_same_is_left_alone),
        TEST(what_differs_is_configured_if_nobody_was_faster),
        TEST(a_failed_workload_is_submitted_again),
        TEST(one_bad_document_stops_everything_before_the_first_call),
        TEST(a_dry_run_only_looks),
        TEST(a_dry_run_warns),
        TEST(a_dry_run_is_refused_as_the_run_would_be),
        TEST(a_team_that_is_nowhere_stops_everything),
        TEST(promising_too_much_is_noted),
        TEST(circles_and_doubles_are_refused),
        TEST(a_hard_quota_is_left_alone),
        TEST(a_resource_quota_becomes_a_team),
        TEST(folders_are_read_by_name),
        TEST(files_are_submitted_together),
    };

    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
