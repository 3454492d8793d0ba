/* SPDX-License-Identifier: Apache-2.0 */
/* What 'allot why' prints for what the server says. */
#include "fake.h"

#include <string.h>

static void expect(const char *line, int code, const char *out)
{
    int got = fake_run(line);

    if (got != code || strcmp(fake_out, out) != 0)
        fail_msg("'%s' gave %d\n%s%swanted %d\n%s", line, got, fake_out, fake_err, code, out);
}

static void why_explains_a_wait(void **state)
{
    (void)state;
    fake_answer("GET /v1/workloads/83/explain", 200,
                "{\"id\":83,\"name\":\"serve\",\"team\":\"product\",\"state\":\"pending\","
                "\"reason\":\"team_limit\",\"sentence\":\"team product is at its limit of 4 GPUs: "
                "it uses 4, and this asks for 2\",\"remedy\":\"it starts when 'train' (80) ends\","
                "\"request\":\"2 GPUs\",\"tasks\":1,\"at\":\"2026-11-30T12:00:00Z\","
                "\"resource\":\"gpu\",\"asked\":2,\"free\":2,\"missing\":2,"
                "\"quota\":{\"team\":\"product\",\"used\":4,\"guarantee\":4,\"limit\":4,"
                "\"share\":4},\"position\":1,\"pending\":3,"
                "\"start_at\":\"2026-11-30T12:10:00Z\",\"start_in_ms\":600000,"
                "\"start_basis\":\"limits\",\"waits_for\":null,"
                "\"holders\":[{\"id\":80,\"name\":\"train\",\"team\":\"product\",\"gpu\":4}],"
                "\"last_eviction\":\"reclaimed: team research takes back 2 GPUs\","
                "\"last_eviction_at\":\"2026-11-30T11:50:00Z\"}");
    expect("why 83", 0,
           "serve (83) of team product: pending\n"
           "\n"
           "  Team product is at its limit of 4 GPUs: it uses 4, and this asks for 2.\n"
           "  It starts when 'train' (80) ends.\n"
           "\n"
           "  asks for      2 GPUs\n"
           "  team          product uses 4, guarantee 4, limit 4, fair share 4\n"
           "  position      1 of 3 that wait in its team\n"
           "  start         in about 10m, from the run-time limits of what runs\n"
           "  last evicted  10m ago: reclaimed: team research takes back 2 GPUs\n"
           "\n"
           "Who uses that limit\n"
           "ID  NAME   TEAM     GPU\n"
           "80  train  product    4\n");
}

static void why_tells_types_apart(void **state)
{
    (void)state;
    fake_answer("GET /v1/workloads/6/explain", 200,
                "{\"id\":6,\"name\":\"big\",\"team\":\"vis\",\"state\":\"pending\","
                "\"reason\":\"team_limit\",\"sentence\":\"team vis is at its limit of 2 GPUs of "
                "type H100: it uses 2 GPUs, and this asks for 1 GPU\",\"remedy\":null,"
                "\"resource\":\"gpu\",\"asked\":1,\"free\":0,"
                "\"quota\":{\"team\":\"vis\",\"gpu_type\":\"H100\",\"used\":2,"
                "\"guarantee\":null,\"limit\":2,\"share\":null},"
                "\"quota_types\":[{\"team\":\"vis\",\"gpu_type\":\"A100\",\"used\":1,"
                "\"guarantee\":1,\"limit\":1},{\"team\":\"vis\",\"gpu_type\":\"H100\","
                "\"used\":2,\"guarantee\":null,\"limit\":2},{\"team\":\"lab\","
                "\"gpu_type\":\"H100\",\"used\":3,\"guarantee\":4,\"limit\":null}]}");
    expect("why 6", 0,
           "big (6) of team vis: pending\n"
           "\n"
           "  Team vis is at its limit of 2 GPUs of type H100: it uses 2 GPUs, and this\n"
           "  asks for 1 GPU.\n"
           "\n"
           "  asks for      1 GPU\n"
           "  team          vis uses 2 of type H100, limit 2\n"
           "  by type       vis uses 1 of type A100, guarantee 1, limit 1\n"
           "  by type       lab uses 3 of type H100, guarantee 4\n"
           "  start         unknown: what it waits for declares no time limit (--max-run-time)\n");
}

#define AWAY                                                                                       \
    "{\"id\":6,\"name\":\"big\",\"team\":\"lab\",\"state\":\"pending\",\"reason\":\"nodes_down\"," \
    "\"sentence\":\"only nodes that are down or drained could hold it\",\"remedy\":null,"          \
    "\"request\":\"8 GPUs\",\"tasks\":1,\"resource\":\"gpu\",\"asked\":8,\"free\":0.5,"            \
    "\"start_at\":null,\"start_basis\":\"unknown\",\"holders\":[]}"

static void why_blames_a_node_that_is_away_and_nobody_else(void **state)
{
    (void)state;
    fake_answer("GET /v1/workloads/6/explain", 200, AWAY);
    expect("why 6", 0,
           "big (6) of team lab: pending\n"
           "\n"
           "  Only nodes that are down or drained could hold it.\n"
           "\n"
           "  asks for      8 GPUs\n"
           "  start         when a node comes back ('allot node undrain')\n");
}

static void why_tells_what_kept_it_from_its_launch(void **state)
{
    (void)state;
    fake_answer("GET /v1/workloads/6/explain", 200,
                "{\"id\":6,\"name\":\"big\",\"team\":\"lab\",\"state\":\"pending\","
                "\"reason\":\"backoff\",\"sentence\":\"could not be launched and is "
                "tried again: there is no such "
                "image\",\"remedy\":null,\"resource\":\"gpu\",\"asked\":1,\"free\":0,"
                "\"start_at\":\"2026-11-30T12:00:02Z\",\"start_in_ms\":2000,"
                "\"start_basis\":\"backoff\"}");
    expect("why 6", 0,
           "big (6) of team lab: pending\n"
           "\n"
           "  Could not be launched and is tried again: there is no such image.\n"
           "\n"
           "  asks for      1 GPU\n"
           "  start         in about 2s, when the pause after a failed launch ends\n");
}

static void why_counts_work_that_may_not_be_seen(void **state)
{
    (void)state;
    fake_answer("GET /v1/workloads/6/explain", 200,
                "{\"id\":6,\"name\":\"big\",\"team\":\"lab\",\"state\":\"pending\","
                "\"reason\":\"cpu\",\"sentence\":\"it asks for cores\",\"remedy\":null,"
                "\"request\":\"1 GPU\",\"tasks\":4,\"resource\":\"cpu\",\"asked\":16,\"free\":8,"
                "\"gang_tasks\":4,\"fitting_tasks\":2,\"quota\":{\"team\":\"lab\",\"used\":0},"
                "\"start_at\":null,\"start_basis\":\"unknown\",\"holders\":["
                "{\"id\":null,\"name\":null,\"team\":\"other\",\"workloads\":2,\"cpu\":20.5},"
                "{\"id\":3,\"name\":\"nb\",\"team\":\"lab\",\"cpu\":4}]}");
    expect("why 6", 0,
           "big (6) of team lab: pending\n"
           "\n"
           "  It asks for cores.\n"
           "\n"
           "  asks for      16 cores (4 x 1 GPU)\n"
           "  free now      8 cores\n"
           "  fit now       2 of 4 tasks\n"
           "  team          lab uses 0\n"
           "  start         unknown: what it waits for declares no time limit (--max-run-time)\n"
           "\n"
           "Who holds what it needs\n"
           "ID  NAME           TEAM   CORES\n"
           " -  (2 workloads)  other   20.5\n"
           " 3  nb             lab        4\n");
}

static void on_a_terminal_fields_break_between_words(void **state)
{
    (void)state;
    fake_terminal = true;
    fake_style.width = 50;
    fake_answer("GET /v1/workloads/6/explain", 200, AWAY);
    assert_int_equal(fake_run("why 6"), 0);
    assert_non_null(strstr(fake_out, "  start         when a node comes back ('allot\n"
                                     "                node undrain')\n"));
}

static void why_tells_what_happened(void **state)
{
    (void)state;
    fake_answer(
        "GET /v1/workloads/7/explain", 200,
        "{\"id\":7,\"name\":\"old\",\"team\":\"nlp\",\"state\":\"failed\",\"reason\":null}");
    fake_answer("GET /v1/workloads/7", 200,
                "{\"id\":7,\"name\":\"old\",\"team\":\"nlp\",\"state\":\"failed\",\"exit_code\":3,"
                "\"message\":\"task 0 exited with 3\",\"started_at\":\"2026-11-30T11:00:00Z\","
                "\"ended_at\":\"2026-11-30T11:01:30Z\"}");
    fake_answer("GET /v1/workloads/7/events", 200,
                "{\"events\":[{\"time\":\"2026-11-30T10:59:00Z\",\"type\":\"workload.submitted\","
                "\"message\":\"bo submitted it\"},{\"time\":\"2026-11-30T11:01:30Z\","
                "\"type\":\"workload.ended\",\"message\":null}]}");
    expect("why 7", 0,
           "old (7) of team nlp: failed\n"
           "\n"
           "  It ended 58m ago with exit code 3 after 1m 30s.\n"
           "  Task 0 exited with 3.\n"
           "\n"
           "     WHEN  WHAT HAPPENED\n"
           "1h 1m ago  bo submitted it\n"
           "  58m ago  workload.ended\n");
}

static void why_says_by_when_others_must_have_stopped(void **state)
{
    (void)state;
    fake_answer("GET /v1/workloads/6/explain", 200,
                "{\"id\":6,\"name\":\"big\",\"team\":\"lab\",\"state\":\"pending\","
                "\"reason\":\"held\",\"sentence\":\"its place is promised\",\"remedy\":null,"
                "\"request\":\"4 GPUs\",\"tasks\":1,\"resource\":\"gpu\",\"asked\":4,\"free\":0,"
                "\"start_at\":\"2026-11-30T12:00:18Z\",\"start_in_ms\":17010,"
                "\"start_basis\":\"victims\",\"holders\":["
                "{\"id\":3,\"name\":\"nb\",\"team\":\"lab\",\"gpu\":8}]}");
    expect("why 6", 0,
           "big (6) of team lab: pending\n"
           "\n"
           "  Its place is promised.\n"
           "\n"
           "  asks for      4 GPUs\n"
           "  start         in about 18s at the latest, when those that give way have stopped\n"
           "\n"
           "Who has to stop\n"
           "ID  NAME  TEAM  GPU\n"
           " 3  nb    lab     8\n");
}

static void why_says_of_what_gives_way_that_it_will_wait(void **state)
{
    (void)state;
    fake_answer(
        "GET /v1/workloads/7/explain", 200,
        "{\"id\":7,\"name\":\"old\",\"team\":\"nlp\",\"state\":\"running\","
        "\"reason\":\"stopping\",\"sentence\":\"it is stopping\",\"waits_for\":{\"id\":7}}");
    fake_answer("GET /v1/workloads/7", 200,
                "{\"id\":7,\"name\":\"old\",\"team\":\"nlp\",\"state\":\"running\","
                "\"message\":\"preempted\",\"started_at\":\"2026-11-30T11:00:00Z\"}");
    fake_answer("GET /v1/workloads/7/events", 200, "{\"events\":[]}");
    expect("why 7", 0,
           "old (7) of team nlp: running\n"
           "\n"
           "  It gives way: it is stopping, and will wait to start again.\n"
           "  Preempted.\n");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(why_explains_a_wait),
        TEST(why_tells_types_apart),
        TEST(why_blames_a_node_that_is_away_and_nobody_else),
        TEST(why_tells_what_kept_it_from_its_launch),
        TEST(why_counts_work_that_may_not_be_seen),
        TEST(why_says_by_when_others_must_have_stopped),
        TEST(why_says_of_what_gives_way_that_it_will_wait),
        TEST(on_a_terminal_fields_break_between_words),
        TEST(why_tells_what_happened),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
