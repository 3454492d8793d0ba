/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "model/event.h"
#include "model/task.h"
#include "model/user.h"

static void test_an_intent_has_one_spelling(void **state)
{
    char text[MODEL_INTENT_MAX];
    uint64_t workload = 0;
    int32_t task = 0, attempt = 0;

    model_intent_format(81, 0, 2, text);
    assert_string_equal(text, "81.0.2");
    assert_int_equal(model_intent_parse(text, &workload, &task, &attempt), 0);
    assert_int_equal(workload, 81);
    assert_int_equal(task, 0);
    assert_int_equal(attempt, 2);
    model_intent_format(UINT64_MAX, INT32_MAX, INT32_MAX, text);
    assert_int_equal(model_intent_parse(text, &workload, &task, &attempt), 0);
    assert_true(workload == UINT64_MAX && task == INT32_MAX && attempt == INT32_MAX);
}

static void test_other_spellings_of_an_intent_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "1",
        "1.2",
        "1.2.",
        "1.2.3.",
        "1.2.3.4",
        ".1.2",
        "1..2",
        "1.2.x",
        "01.2.3",
        "1.-2.3",
        "1.2.+3",
        " 1.2.3",
        "1.2.3 ",
        "a",
        "../1.2.3",
        "1.2.3/",
        "18446744073709551616.0.0",
        "1.2147483648.0",
        "1.0.2147483648",
        "1,2,3",
    };
    uint64_t workload = 7;
    int32_t task = 7, attempt = 7;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        if (model_intent_parse(bad[i], &workload, &task, &attempt) != -EINVAL)
            fail_msg("accepted: %s", bad[i]);
    }
    assert_true(workload == 7 && task == 7 && attempt == 7);
}

static void test_devices_come_back(void **state)
{
    static const uint16_t devices[] = {0, 3, 65535};
    _cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
    uint16_t back[3] = {0};

    model_devices_format(devices, 3, &text);
    assert_string_equal(text.data, "0,3,65535");
    assert_int_equal(model_devices_parse(text.data, back, 3), 3);
    assert_memory_equal(back, devices, sizeof(devices));
    assert_int_equal(model_devices_parse(text.data, back, 2), -E2BIG);
    assert_int_equal(model_devices_parse("", back, 3), 0);
}

static void test_damaged_device_lists_are_refused(void **state)
{
    static const char *const bad[] = {",", "1,", ",1", "1,,2", "65536", "-1", "1 2", "x", "01"};
    uint16_t back[8];

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        if (model_devices_parse(bad[i], back, 8) != -EINVAL)
            fail_msg("accepted: %s", bad[i]);
    }
}

static void test_a_task_shows_its_exit_only_once_it_has_one(void **state)
{
    static const uint16_t devices[] = {2, 5};
    struct model_task t = {.workload = 81,
                           .index = 3,
                           .attempt = 1,
                           .state = MODEL_TASK_RUNNING,
                           .node_name = "n1",
                           .devices = devices,
                           .device_count = 2,
                           .gpu_milli = 500,
                           .started_ms = 1796074199123};
    _cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
    struct json_writer w;

    json_writer_init(&w, &text);
    model_task_encode(&t, &w);
    assert_string_equal(text.data,
                        "{\"index\":3,\"attempt\":1,\"state\":\"running\",\"node\":\"n1\","
                        "\"devices\":[2,5],\"gpu\":0.5,"
                        "\"started_at\":\"2026-11-30T21:29:59.123Z\","
                        "\"ended_at\":null,\"exit_code\":null,\"exit_signal\":null,"
                        "\"message\":null}");
    t.state = MODEL_TASK_FAILED;
    t.exit_code = 137;
    t.exit_signal = 9;
    strbuf_truncate(&text, 0);
    json_writer_init(&w, &text);
    model_task_encode(&t, &w);
    assert_non_null(strstr(text.data, "\"exit_code\":137,\"exit_signal\":9"));
}

static void test_an_event_leaves_out_what_it_is_not_about(void **state)
{
    const struct model_event full = {
        .seq = 9,
        .time_ms = 1796074199123,
        .type = MODEL_EVENT_TASK_ENDED,
        .workload = 81,
        .task = 0,
        .workload_name = "x",
        .team = "nlp",
        .node = "n1",
        .actor = "allot",
        .message = "done",
        .data = "{\"exit_code\":0}",
    };
    const struct model_event bare = {.seq = 10,
                                     .time_ms = 1796074199123,
                                     .type = MODEL_EVENT_SERVER,
                                     .task = -1,
                                     .actor = "allot",
                                     .message = "started"};
    _cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
    struct json_writer w;

    json_writer_init(&w, &text);
    model_event_encode(&full, &w);
    assert_string_equal(text.data,
                        "{\"seq\":9,\"time\":\"2026-11-30T21:29:59.123Z\",\"type\":\"task.ended\","
                        "\"workload\":81,\"name\":\"x\",\"task\":0,\"team\":\"nlp\","
                        "\"node\":\"n1\",\"actor\":\"allot\",\"message\":\"done\","
                        "\"data\":{\"exit_code\":0}}");
    strbuf_truncate(&text, 0);
    json_writer_init(&w, &text);
    model_event_encode(&bare, &w);
    assert_string_equal(text.data, "{\"seq\":10,\"time\":\"2026-11-30T21:29:59.123Z\","
                                   "\"type\":\"server.started\",\"actor\":\"allot\","
                                   "\"message\":\"started\"}");
}

static int decode_user(struct arena *a, const char *text, struct model_user *u, struct err *err)
{
    struct json_object *json = parsed(a, text);
    int r = model_user_decode(json, a, u, err);

    json_object_put(json);
    return r;
}

static void test_a_user_comes_back_and_is_updated(void **state)
{
    _cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
    struct arena a = ARENA_INIT;
    struct model_user u = {0}, back = {0};
    struct json_writer w;

    assert_int_equal(decode_user(&a, "{'name': 'ada', 'teams': ['nlp', 'é']}", &u, NULL), 0);
    assert_false(u.admin);
    assert_int_equal(u.team_count, 2);
    assert_int_equal(decode_user(&a, "{'role': 'admin'}", &u, NULL), 0);
    assert_true(u.admin);
    assert_int_equal(u.team_count, 2);
    json_writer_init(&w, &text);
    model_user_encode(&u, &w);
    assert_int_equal(decode_user(&a, text.data, &back, NULL), 0);
    assert_string_equal(back.name, "ada");
    assert_true(back.admin);
    assert_string_equal(back.teams[1], "é");
    arena_done(&a);
}

static void test_users_are_refused(void **state)
{
    static const struct refusal cases[] = {
        {"{}", ERR_MISSING, "name", "name is missing"},
        {"{'name': 'a', 'role': 'root'}", ERR_INVALID, "role", "admin or member"},
        {"{'name': 'a', 'role': true}", ERR_INVALID, "role", "must be a string"},
        {"{'name': 'a', 'teams': 'x'}", ERR_INVALID, "teams", "an array of strings"},
        {"{'name': 'a', 'teams': ['x', '../y']}", ERR_INVALID, "teams[1]", "starts with '.'"},
        {"{'name': 'a', 'admin': true}", ERR_UNKNOWN_FIELD, "admin", "known: name, role, teams"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;
        struct model_user u = {0};

        check_refusal(&cases[i], decode_user(&a, cases[i].text, &u, &err), &err);
        arena_done(&a);
    }
}

static void test_a_token_never_shows_its_hash(void **state)
{
    const struct model_token t = {
        .id = 4, .user = "ada", .label = "ci", .hash = {0xab, 0xcd}, .created_ms = 1796074199123};
    _cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
    struct json_writer w;

    json_writer_init(&w, &text);
    model_token_encode(&t, &w);
    assert_string_equal(text.data, "{\"id\":4,\"user\":\"ada\",\"label\":\"ci\","
                                   "\"created_at\":\"2026-11-30T21:29:59.123Z\","
                                   "\"expires_at\":null}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_intent_has_one_spelling),
        cmocka_unit_test(test_other_spellings_of_an_intent_are_refused),
        cmocka_unit_test(test_devices_come_back),
        cmocka_unit_test(test_damaged_device_lists_are_refused),
        cmocka_unit_test(test_a_task_shows_its_exit_only_once_it_has_one),
        cmocka_unit_test(test_an_event_leaves_out_what_it_is_not_about),
        cmocka_unit_test(test_a_user_comes_back_and_is_updated),
        cmocka_unit_test(test_users_are_refused),
        cmocka_unit_test(test_a_token_never_shows_its_hash),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
