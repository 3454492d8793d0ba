/* SPDX-License-Identifier: Apache-2.0 */
/* What the scenario runner prints and returns: files that are wrong, expected failures, counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/scenario.h"

#define HEAD "{\"format\":\"allot-scenario-1\",\"id\":\"one\",\"title\":\"first\","
#define NODES "\"nodes\":[{\"name\":\"n\",\"gpus\":1}],"
#define TEAMS "\"teams\":[{\"name\":\"t\"}],"
#define WORK                                                                                       \
    "\"workloads\":[{\"name\":\"w\",\"team\":\"t\",\"tasks\":[{\"request\":{\"gpu_milli\":1000}}]" \
    "}],"
#define EXPECT(state) \
    "\"expect\":[{\"when\":\"settled\",\"workloads\":{\"w\":{\"state\":\"" state "\"}}}]}"
#define GOOD HEAD NODES TEAMS WORK EXPECT("running")
#define WRONG HEAD NODES TEAMS WORK EXPECT("pending")

struct outcome {
    char *text;
    int status;
};

static void temporary(const char *content, char *path)
{
    memcpy(path, "/tmp/allot-scenario-XXXXXX", 27);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, strlen(content)), (ssize_t)strlen(content));
    close(fd);
}

static struct outcome run(const char *content, const char *known, const char *only, bool trace)
{
    char path[32], list[32];
    struct outcome o = {0};
    size_t size;
    FILE *out = open_memstream(&o.text, &size);
    const char *const files[] = {path};
    temporary(content, path);
    if (known != NULL)
        temporary(known, list);
    struct sim_scenarios_options options = {.files = files,
                                            .file_count = 1,
                                            .only = only,
                                            .expect_fail = known == NULL ? NULL : list,
                                            .trace = trace};
    o.status = sim_scenarios_run(&options, out);
    fclose(out);
    unlink(path);
    if (known != NULL)
        unlink(list);
    return o;
}

static void says(struct outcome o, int status, const char *text)
{
    if (strstr(o.text, text) == NULL)
        fail_msg("'%s' is not in: %s", text, o.text);
    assert_int_equal(o.status, status);
    free(o.text);
}

static void test_pass_is_counted(void **state)
{
    says(run(GOOD "\n", NULL, NULL, false), 0, "ok 1 - one first\n1..1\n1 passed, 0 failed\n");
}

static void test_difference_is_described(void **state)
{
    says(run(WRONG "\n", NULL, NULL, false), 1,
         "not ok 1 - one first\n# settled: workload 'w' is running, expected pending\n");
}

static void test_failures_are_counted(void **state)
{
    says(run(GOOD "\n\n" WRONG "\n", NULL, NULL, false), 1, "\n1 passed, 1 failed\n");
}

static void test_only_runs_one(void **state)
{
    says(run(WRONG "\n", NULL, "other", false), 2, "no scenario has the id 'other'");
}

static void test_trace_prints_decisions(void **state)
{
    says(run(GOOD "\n", NULL, NULL, true), 0,
         "# 00:00:00.000 start w/0 on n devices 0: it fits and its gates are open\n");
}

static void test_expected_failure_is_counted_apart(void **state)
{
    says(run(WRONG "\n", "one # waits for later\n", NULL, false), 0,
         "not ok 1 - one first # TODO waits for later\n");
}

static void test_expected_failure_that_passes_fails_the_run(void **state)
{
    says(run(GOOD "\n", "one # waits for later\n", NULL, false), 1, "# PASSES although");
}

static void test_expected_failure_needs_a_reason(void **state)
{
    says(run(GOOD "\n", "one\n", NULL, false), 2, ":1: 'one' needs a reason");
}

static void test_truncated_line_is_named(void **state)
{
    says(run(GOOD "\n{\"format\":\n", NULL, NULL, false), 1, ":2: not JSON");
}

static void test_unknown_field_is_named(void **state)
{
    says(run(HEAD "\"nodes\":[{\"name\":\"n\",\"gpuz\":1}]," TEAMS WORK EXPECT("running"), NULL,
             NULL, false),
         1, ":1: nodes[0]: unknown field 'gpuz'");
}

static void test_negative_amount_is_refused(void **state)
{
    says(run(HEAD "\"nodes\":[{\"name\":\"n\",\"gpus\":-1}]," TEAMS WORK EXPECT("running"), NULL,
             NULL, false),
         1, "nodes[0].gpus: -1 is not between");
}

static void test_unknown_team_is_named(void **state)
{
    says(run(HEAD NODES "\"teams\":[{\"name\":\"u\"}]," WORK EXPECT("running"), NULL, NULL, false),
         1, "workloads[0]: unknown team 't'");
}

static void test_cycle_of_teams_is_refused(void **state)
{
    says(run(HEAD NODES "\"teams\":[{\"name\":\"t\",\"parent\":\"u\"},{\"name\":\"u\","
                        "\"parent\":\"t\"}]," WORK EXPECT("running"),
             NULL, NULL, false),
         1, "the teams form a cycle");
}

static void test_missing_file_is_said(void **state)
{
    const char *const files[] = {"/nonexistent/x.jsonl"};
    struct sim_scenarios_options options = {.files = files, .file_count = 1};
    struct outcome o = {0};
    size_t size;
    FILE *out = open_memstream(&o.text, &size);
    o.status = sim_scenarios_run(&options, out);
    fclose(out);
    says(o, 2, "cannot open '/nonexistent/x.jsonl'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pass_is_counted),
        cmocka_unit_test(test_difference_is_described),
        cmocka_unit_test(test_failures_are_counted),
        cmocka_unit_test(test_only_runs_one),
        cmocka_unit_test(test_trace_prints_decisions),
        cmocka_unit_test(test_expected_failure_is_counted_apart),
        cmocka_unit_test(test_expected_failure_that_passes_fails_the_run),
        cmocka_unit_test(test_expected_failure_needs_a_reason),
        cmocka_unit_test(test_truncated_line_is_named),
        cmocka_unit_test(test_unknown_field_is_named),
        cmocka_unit_test(test_negative_amount_is_refused),
        cmocka_unit_test(test_unknown_team_is_named),
        cmocka_unit_test(test_cycle_of_teams_is_refused),
        cmocka_unit_test(test_missing_file_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
