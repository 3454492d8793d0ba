/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "model/explanation.h"

static const struct model_explanation waiting = {
    .id = 90,
    .name = "digits",
    .own_team = "research",
    .state = MODEL_WORKLOAD_PENDING,
    .resource = MODEL_GPU_MILLI,
    .asked = 6000,
    .free = 2000,
    .missing = 4000,
    .team = "research",
    .used = 1000,
    .guarantee = 4000,
    .limit = 8000,
    .share = 4000,
    .request = "1 GPU",
    .tasks = 6,
    .position = 1,
    .pending = 2,
    .now_ms = 1796074199123,
    .start_ms = 1796074259123,
    .basis = "limits",
};

static void test_each_reason_has_its_sentence_and_remedy(void **state)
{
    static const struct {
        const char *reason, *sentence, *remedy;
    } cases[] = {
        {"none", "nothing is in its way: it starts in the next turn", NULL},
        {"no_such_device", "no node has what it asks for (1 GPU), nodes that are down included",
         "ask for devices that 'allot node' shows, or add such a node"},
        {"too_large", "it asks for 6 GPUs, more than the nodes can ever hold",
         "ask for 2 GPUs or less"},
        {"team_limit",
         "team research is at its limit of 8 GPUs: it uses 1 GPU, and this asks for 6 GPUs",
         "it would start now with 4 GPUs less"},
        {"team_guarantee",
         "team research is at its guarantee of 4 GPUs for work that cannot be preempted, and this "
         "asks for 6 GPUs",
         "it would start now with 4 GPUs less"},
        {"no_capacity",
         "it asks for 6 GPUs, and 2 are free where it could run; team research uses 1 GPU of "
         "its guarantee of 4 GPUs, and what is above it comes from what others leave idle",
         "it would start now with 4 GPUs less"},
        {"behind", "others come first: it is number 1 of 2 that wait in team research",
         "it starts when those before it have; a higher priority moves it up"},
        {"held", "its place (6 GPUs) is promised: it starts when those who give way have stopped",
         NULL},
        {"fragmented",
         "it asks for 6 GPUs: 2 are free in total, but in pieces too small for a task (1 GPU)",
         "it would start now with 4 GPUs less"},
        {"backoff", "it could not be launched and waits before the next attempt",
         "see 'allot logs 90' for why it could not be launched"},
        {"maintenance",
         "the maintenance of node 'gpu-07' begins at 1970-01-01T00:05:00.000Z, and this would not "
         "end before",
         "with a maximum run time of 4m or less it would start now"},
        {"reserved", "starting it now would delay a larger one that has the next place",
         "with a maximum run time of 4m or less it would start now"},
        {"new_word", "it waits: new_word", NULL},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct model_explanation x = waiting;
        struct arena a = ARENA_INIT;
        const char *remedy;

        x.reason = cases[i].reason;
        x.node = "gpu-07";
        x.window_from_ms = 300000;
        x.window_until_ms = 600000;
        x.run_ms = 299999;
        assert_string_equal(model_explanation_sentence(&x, &a), cases[i].sentence);
        remedy = model_explanation_remedy(&x, &a);
        assert_int_equal(remedy != NULL, cases[i].remedy != NULL);
        if (remedy)
            assert_string_equal(remedy, cases[i].remedy);
        arena_done(&a);
    }
}

static void test_who_is_waited_for_is_named(void **state)
{
    struct model_explanation x = waiting;
    struct arena a = ARENA_INIT;

    x.reason = "no_capacity";
    x.free = 0;
    x.missing = 6000;
    x.waits_for = (struct model_explanation_holder){.id = 83, .name = "train", .team = "product"};
    assert_string_equal(model_explanation_remedy(&x, &a),
                        "it starts when 'train' (83) of team product ends or gives way");
    assert_non_null(strstr(model_explanation_sentence(&x, &a), "6 GPUs, and none is free"));
    x.waits_for.team = "research";
    x.missing = 250;
    assert_string_equal(model_explanation_remedy(&x, &a),
                        "it starts when 'train' (83) ends or gives way, or with 0.25 GPU less");
    x.waits_for.id = 0;
    x.missing = 6000;
    assert_string_equal(model_explanation_remedy(&x, &a), "it starts once 6 GPUs more can be had");
    arena_done(&a);
}

static void test_what_does_not_wait_says_so(void **state)
{
    struct model_explanation x = waiting;
    struct arena a = ARENA_INIT;

    for (unsigned i = 0; i < MODEL_WORKLOAD_STATE_COUNT; i++) {
        const char *sentence;

        x.state = (enum model_workload_state)i;
        sentence = model_explanation_sentence(&x, &a);
        assert_true(strlen(sentence) > 0);
        if (model_workload_state_is_final(x.state))
            assert_non_null(strstr(sentence, model_workload_state_name(x.state)));
        assert_null(model_explanation_remedy(&x, &a));
    }
    arena_done(&a);
}

static void test_an_eviction_names_who_profits(void **state)
{
    struct model_eviction e = {.cause = "reclaim",
                               .for_id = 83,
                               .for_name = "train",
                               .for_team = "product",
                               .gpu_milli = 2000};
    struct arena a = ARENA_INIT;

    assert_string_equal(
        model_eviction_describe(&e, &a),
        "reclaimed: team product takes back 2 GPUs it is entitled to, for 'train' (83)");
    e.cause = "preempt";
    assert_string_equal(model_eviction_describe(&e, &a),
                        "preempted: 'train' (83) of the same team comes first");
    e.cause = "stale_gang";
    assert_non_null(strstr(model_eviction_describe(&e, &a), "fewer tasks than its minimum"));
    e = (struct model_eviction){.cause = "idle_only"};
    assert_string_equal(model_eviction_describe(&e, &a),
                        "gave way: it runs on idle capacity only, and other work needs it");
    e.cause = "new_word";
    assert_string_equal(model_eviction_describe(&e, &a), "evicted: new_word");
    e.cause = NULL;
    assert_string_equal(model_eviction_describe(&e, &a), "never evicted");
    arena_done(&a);
}

static void test_the_object_carries_the_numbers(void **state)
{
    static const struct model_explanation_holder holders[] = {
        {.id = 83, .name = "train", .team = "product", .gpu_milli = 2250}};
    _cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
    struct model_explanation x = waiting;
    struct json_writer w;

    x.reason = "no_capacity";
    x.limit = MODEL_UNLIMITED;
    x.holders = holders;
    x.holder_count = 1;
    x.last_eviction = "reclaimed";
    x.last_eviction_ms = 1796074199123;
    json_writer_init(&w, &text);
    model_explanation_encode(&x, &w);
    assert_string_equal(
        text.data,
        "{\"id\":90,\"name\":\"digits\",\"team\":\"research\",\"state\":\"pending\","
        "\"reason\":\"no_capacity\",\"sentence\":null,\"remedy\":null,\"request\":\"1 GPU\","
        "\"tasks\":6,\"at\":\"2026-11-30T21:29:59.123Z\",\"resource\":\"gpu\",\"asked\":6,"
        "\"free\":2,\"missing\":4,\"quota\":{\"team\":\"research\",\"used\":1,"
        "\"guarantee\":4,\"limit\":null,\"share\":4},\"position\":1,\"pending\":2,"
        "\"start_at\":\"2026-11-30T21:30:59.123Z\",\"start_in_ms\":60000,"
        "\"start_basis\":\"limits\",\"waits_for\":null,\"holders\":[{\"id\":83,"
        "\"name\":\"train\",\"team\":\"product\",\"gpu\":2.25}],"
        "\"last_eviction\":\"reclaimed\",\"last_eviction_at\":\"2026-11-30T21:29:59.123Z\"}");
}

static void test_what_does_not_wait_has_no_numbers(void **state)
{
    _cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
    struct model_explanation x = waiting;
    struct json_writer w;

    x.state = MODEL_WORKLOAD_RUNNING;
    json_writer_init(&w, &text);
    model_explanation_encode(&x, &w);
    assert_non_null(strstr(text.data, "\"reason\":null"));
    assert_null(strstr(text.data, "quota"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_reason_has_its_sentence_and_remedy),
        cmocka_unit_test(test_who_is_waited_for_is_named),
        cmocka_unit_test(test_what_does_not_wait_says_so),
        cmocka_unit_test(test_an_eviction_names_who_profits),
        cmocka_unit_test(test_the_object_carries_the_numbers),
        cmocka_unit_test(test_what_does_not_wait_has_no_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
