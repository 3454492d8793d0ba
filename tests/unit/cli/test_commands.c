/* SPDX-License-Identifier: Apache-2.0 */
/* What commands print for what the server says, and what they ask of it. */
#include "fake.h"

#include <string.h>

static void expect(const char *line, int code, const char *out)
{
    int got = fake_run(line);

    if (got != code || strcmp(fake_out, out) != 0)
        fail_msg("'%s' gave %d\n%s%swanted %d\n%s", line, got, fake_out, fake_err, code, out);
}

static void ps(void **state)
{
    (void)state;
    fake_answer("GET /v1/workloads?state=live&limit=200", 200,
                "{\"workloads\":["
                "{\"id\":83,\"name\":\"serve\",\"team\":\"product\",\"state\":\"pending\","
                "\"gpus\":2,\"tasks\":1,\"submitted_at\":\"2026-11-30T11:59:50Z\","
                "\"reason\":\"team_limit\",\"position\":1},"
                "{\"id\":81,\"name\":\"digits\",\"team\":\"research\",\"state\":\"running\","
                "\"gpus\":1,\"tasks\":6,\"running_tasks\":6,\"restarts\":1,"
                "\"submitted_at\":\"2026-11-30T11:57:00Z\"},"
                "{\"id\":9,\"name\":\"nb\",\"team\":\"research\",\"state\":\"running\","
                "\"gpu\":0.25,\"gpu_type\":[\"H100\"],\"tasks\":1,\"running_tasks\":1,"
                "\"submitted_at\":\"2026-11-29T12:00:00Z\"}]}");
    expect("ps", 0,
           "ID  NAME    TEAM      STATE    ASKS FOR   AGE  NOTE\n"
           "83  serve   product   pending  2 GPU      10s  #1: team at its limit\n"
           "81  digits  research  running  6 x 1 GPU   3m  6 of 6 tasks, 1 restart\n"
           " 9  nb      research  running  0.25 H100   1d  -\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ps, fake_setup, fake_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
