/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "model/node.h"
#include "model/team.h"

static void encode(const struct model_node *n, struct strbuf *out)
{
    struct json_writer w;

    strbuf_truncate(out, 0);
    json_writer_init(&w, out);
    model_node_encode(n, &w);
}

static void test_devices_of_a_spec(void **state)
{
    static const struct {
        const char *spec, *type, *profile;
        int32_t count, mig_milli;
        int64_t memory;
    } cases[] = {
        {"8xH100", "H100", NULL, 8, 0, 80LL << 30},
        {"8xh100", "H100", NULL, 8, 0, 80LL << 30},
        {"1xH200", "H200", NULL, 1, 0, 141LL << 30},
        {"4xA100:40GiB", "A100", NULL, 4, 0, 40LL << 30},
        {"1024xL4", "L4", NULL, 1024, 0, 24LL << 30},
        {"2xMI300X:192GiB", "MI300X", NULL, 2, 0, 192LL << 30},
        {"7xH100/1g.10gb", "H100", "1g.10gb", 7, 142, 10LL << 30},
        {"2xA100:40GiB/3g.20gb", "A100", "3g.20gb", 2, 428, 20LL << 30},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct model_device *d = NULL;
        struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;
        int32_t count = 0;

        if (model_devices_from_spec(cases[i].spec, &a, &d, &count, &err) < 0)
            fail_msg("%s: %s", cases[i].spec, err.text);
        assert_int_equal(count, cases[i].count);
        assert_string_equal(d[0].type, cases[i].type);
        assert_int_equal(d[count - 1].memory_bytes, cases[i].memory);
        assert_int_equal(d[0].mig_milli, cases[i].mig_milli);
        assert_int_equal(d[0].mig_profile != NULL, cases[i].profile != NULL);
        if (cases[i].profile)
            assert_string_equal(d[0].mig_profile, cases[i].profile);
        assert_true(d[0].simulated);
        assert_true(count == 1 || strcmp(d[0].uuid, d[1].uuid) != 0);
        arena_done(&a);
    }
}

static void test_specs_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "x",
        "H100",
        "8",
        "8x",
        "0xH100",
        "1025xH100",
        "-1xH100",
        "1.5xH100",
        "99999999999999999999xH100",
        "8xNOSUCH",
        "8xH100:",
        "8xH100:0",
        "8xH100:-1GiB",
        "8xH100:1e30",
        "8xH100+2xA100",
        "8xH100,2xA100",
        "8xH100/",
        "8xH100/9g.10gb",
        "8xL4/1g.99gb",
        "8x../H100:1GiB",
        "8xH\x01:1GiB",
        "8 xH100",
        "8xH100:80GiB:80GiB",
        "8xHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHH"
        "HHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHH:1GiB",
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        const struct model_device *d = NULL;
        struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;
        int32_t count = 0;

        if (model_devices_from_spec(bad[i], &a, &d, &count, &err) >= 0)
            fail_msg("accepted: %s", bad[i]);
        assert_true(err.text[0] != '\0' && err.remedy[0] != '\0');
        arena_done(&a);
    }
}

static void test_a_node_comes_back(void **state)
{
    static const struct model_device devices[] = {
        {"GPU-1", "H100", 80LL << 30, NULL, 0, true, NULL},
        {"GPU-2", "H100", 12345, "1g.10gb", 142, false, "/dev/nvidia0"},
        {NULL, NULL, 0, NULL, 0, false, NULL},
    };
    static const struct model_pair labels[] = {{"a/zone", ""}, {"rack", "é1"}};
    static const struct model_backend backends[] = {
        {"shim", MODEL_BACKEND_USED, NULL},
        {"dmem", MODEL_BACKEND_ABSENT, "this kernel has none"},
    };
    const struct model_node n = {
        .id = 5,
        .name = "node-é",
        .cluster = "local",
        .state = MODEL_NODE_UNKNOWN,
        .drained = true,
        .gpu_type = "H100",
        .sharing = "none",
        .limits = "cgroup1",
        .isolation = "bubblewrap",
        .cpu_milli = 2001,
        .memory_bytes = MODEL_UNLIMITED,
        .devices = devices,
        .device_count = 3,
        .labels = labels,
        .label_count = 2,
        .backends = backends,
        .backend_count = 2,
    };
    _cleanup_strbuf_ struct strbuf text = STRBUF_INIT, again = STRBUF_INIT;
    struct arena a = ARENA_INIT;
    struct model_node back = {0};
    struct err err = ERR_INIT;

    encode(&n, &text);
    if (model_node_decode(text.data, text.len, &a, &back, &err) < 0)
        fail_msg("%s: %s", err.text, text.data);
    encode(&back, &again);
    assert_string_equal(text.data, again.data);
    assert_int_equal(back.id, 5);
    assert_int_equal(back.state, MODEL_NODE_UNKNOWN);
    assert_true(back.drained);
    assert_int_equal(back.cpu_milli, 2001);
    assert_int_equal(back.memory_bytes, MODEL_UNLIMITED);
    assert_int_equal(back.device_count, 3);
    assert_int_equal(back.devices[1].memory_bytes, 12345);
    assert_string_equal(back.devices[1].path, "/dev/nvidia0");
    assert_null(back.devices[2].uuid);
    assert_string_equal(back.labels[0].value, "");
    assert_int_equal(back.backend_count, 2);
    assert_int_equal(back.backends[0].state, MODEL_BACKEND_USED);
    assert_null(back.backends[0].reason);
    assert_string_equal(back.backends[1].reason, "this kernel has none");
    arena_done(&a);
}

static void test_damaged_nodes_are_refused(void **state)
{
    static const char *const bad[] = {
        "{}",
        "{\"name\":\"n\"}",
        "{\"name\":\"n\",\"devices\":{}}",
        "{\"name\":\"n\",\"devices\":[{}]}",
        "{\"name\":\"n\",\"devices\":[1]}",
        "{\"name\":\"n\",\"devices\":[{\"memory\":\"-1\"}]}",
        "{\"name\":\"n\",\"devices\":[{\"memory\":1,\"mig_milli\":1001}]}",
        "{\"name\":\"../n\",\"devices\":[]}",
        "{\"name\":\"n\",\"devices\":[],\"state\":\"on fire\"}",
        "{\"name\":\"n\",\"devices\":[],\"cpu\":-1}",
        "{\"name\":\"n\",\"devices\":[],\"id\":-1}",
        "{\"name\":\"n\",\"devices\":[],\"gpus\":8}",
        "{\"name\":\"n\",\"devices\":[],\"sharing_backends\":{}}",
        "{\"name\":\"n\",\"devices\":[],\"sharing_backends\":[{\"name\":\"mps\"}]}",
        "{\"name\":\"n\",\"devices\":[],\"sharing_backends\":[{\"name\":\"m\",\"state\":\"up\"}]}",
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct arena a = ARENA_INIT;
        struct model_node n = {.name = "kept"};

        if (model_node_decode(bad[i], strlen(bad[i]), &a, &n, NULL) >= 0)
            fail_msg("accepted: %s", bad[i]);
        assert_string_equal(n.name, "kept");
        arena_done(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_devices_of_a_spec),
        cmocka_unit_test(test_specs_are_refused),
        cmocka_unit_test(test_a_node_comes_back),
        cmocka_unit_test(test_damaged_nodes_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
