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
    .each = 1000,
    .free = 2000,
    .most = 2000,
    .missing = 4000,
    .less = 4000,
    .less_tasks = 4,
    .gang = 6,
    .fitting = 2,
    .team = "research",
    .used = 1000,
    .guarantee = 4000,
    .limit = 8000,
    .share = 4000,
    .request = "1 GPU",
    .tasks = 6,
    .asks_gpu = true,
    .position = 1,
    .pending = 2,
    .now_ms = 1796074199123,
    .start_ms = 1796074259123,
    .basis = "limits",
};

static void check(const struct model_explanation *x, const char *sentence, const char *remedy)
{
    struct arena a = ARENA_INIT;
    const char *r = model_explanation_remedy(x, &a);

    assert_string_equal(model_explanation_sentence(x, &a), sentence);
    assert_int_equal(r != NULL, remedy != NULL);
    if (remedy)
        assert_string_equal(r, remedy);
    arena_done(&a);
}

#define LESS "it would start now with 4 GPUs less (2 of the 6 tasks)"

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
        {"above_limit", "it asks for 6 GPUs, above the limit of team research, 8 GPUs",
         "ask for 8 GPUs or less, or have the limit raised"},
        {"above_guarantee",
         "it asks for 6 GPUs and cannot be preempted, which is above the guarantee of team "
         "research, 4 GPUs",
         "ask for 4 GPUs or less, make it preemptible, or have the guarantee raised"},
        {"team_limit",
         "team research has a limit of 8 GPUs and uses 1 GPU, and this asks for 6 GPUs",
         LESS ", or an administrator can raise the limit of team research, if there is "
              "room beyond it"},
        {"team_guarantee",
         "it does not burst, so it stays within the guarantee, and team research has one of 4 "
         "GPUs: it uses 1 GPU, and this asks for 6 GPUs",
         LESS ", or where there is room, if it may burst"},
        {"backoff", "it could not be launched and waits before the next attempt",
         "it is tried again by itself; if the fault is its own, stop it (allot stop 90) and submit "
         "it anew"},
        {"stopping",
         "what ran of it before is still stopping; until that has stopped it does not start again",
         NULL},
        {"held", "its place (6 GPUs) is promised: it starts when that is free", NULL},
        {"reserved", "starting it now would delay a larger one that has the next place",
         "with a maximum run time of 4m or less it would start now"},
        {"topology",
         "it needs one domain that holds all of it (6 GPUs): 2 are free in total, but in no "
         "single domain",
         LESS ", or with topology 'preferred' it need not wait for that"},
        {"fragmented",
         "it asks for 6 GPUs: 2 are free in total, but not where all of its tasks fit; 2 of the 6 "
         "tasks that must start together fit now",
         LESS},
        {"nodes_down", "only nodes that are down or drained could hold it: 'gpu-07' (drained)",
         "it starts there when such a node is up again or undrained, and has room"},
        {"maintenance",
         "node 'gpu-07' will be under maintenance from 2026-11-30 22:00 UTC until 2026-12-01 "
         "02:00:30 UTC, and this may not have ended by then",
         "with a maximum run time of 4m or less it would start now"},
        {"protected",
         "it asks for 6 GPUs, and 2 are free where it could run; 2 of the 6 tasks that must start "
         "together fit now; what it may take the place of has not had its minimum run time yet",
         LESS},
        {"budget",
         "it asks for 6 GPUs, and 2 are free where it could run; 2 of the 6 tasks that must start "
         "together fit now; a service, which would have to give way, may have no more than 1 of "
         "its tasks missing at once (max_unavailable)",
         LESS ", or when other work ends"},
        {"overcommitted",
         "team research is within its guarantee of 4 GPUs, but the guarantees of all teams add up "
         "to 16 GPUs, and there are 8 GPUs: who uses his own guarantee loses nothing",
         LESS ", or an administrator can lower guarantees that are not needed"},
        {"no_capacity",
         "it asks for 6 GPUs, and 2 are free where it could run; 2 of the 6 tasks that must start "
         "together fit now; team research uses 1 GPU of its guarantee of 4 GPUs (fair share 4 "
         "GPUs), and what is above comes from what others leave idle",
         LESS},
        {"promised", "2 are free, but promised to others that wait for stops", NULL},
        {"behind", "others come first: it is number 1 of 2 that wait in team research",
         "it starts when those before it have; a higher priority moves it up inside its team"},
        {"new_word", "it waits: new_word", NULL},
    };
    static const struct model_explanation_node node = {"gpu-07", "drained"};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct model_explanation x = waiting;

        x.reason = cases[i].reason;
        x.nodes = &node;
        x.node_count = 1;
        x.window_from_ms = 1796076000000;
        x.window_until_ms = 1796090430000;
        x.run_ms = 299999;
        x.budget = 1;
        x.guarantees = 16000;
        x.capacity = 8000;
        check(&x, cases[i].sentence, cases[i].remedy);
    }
}

static void test_who_is_waited_for_is_named(void **state)
{
    struct model_explanation x = waiting;

    x.reason = "no_capacity";
    x.free = x.less = 0;
    x.missing = 6000;
    x.gang = 0;
    x.guarantee = 0;
    x.waits_for = (struct model_explanation_holder){.id = 83, .name = "train", .team = "product"};
    check(&x,
          "it asks for 6 GPUs, and none is free where it could run; team research has no guarantee "
          "and a fair share of 4 GPUs, of which it uses 1 GPU: what is above comes from what "
          "others leave idle",
          "it starts when 'train' (83) of team product ends");
    x.waits_for.team = "research";
    x.less = 250;
    x.less_tasks = 0;
    x.share = 8000;
    x.type = "H100";
    check(&x,
          "it asks for 6 GPUs of type H100, and none is free where it could run; team research is "
          "entitled to it (it uses 1 GPU of 8 GPUs), but nothing that runs may be evicted for it",
          "it starts when 'train' (83) ends, or it would start now with 0.25 GPU of type H100 "
          "less");
    x.waits_for = (struct model_explanation_holder){0};
    x.less = 0;
    x.idle_only = true;
    check(&x,
          "it asks for 6 GPUs of type H100, and none is free where it could run; batch work uses "
          "what all others leave idle",
          "it starts once 6 GPUs more can be had");
}

static void test_a_limit_names_whose_it_is(void **state)
{
    struct model_explanation x = waiting;

    x.reason = "team_limit";
    x.team = "lab";
    x.limit = x.used = 8000;
    x.less = 0;
    check(&x,
          "team lab, to which team research belongs, is at its limit of 8 GPUs: it uses 8 GPUs, "
          "and this asks for 6 GPUs",
          "it starts when work of that team ends, or an administrator can raise the limit of team "
          "lab, if there is room beyond it");
    x.hard_quota = true;
    x.gpu_type = "H100";
    x.waits_for = (struct model_explanation_holder){.id = 83, .name = "train", .team = "vision"};
    x.less = 2000;
    x.less_tasks = 0;
    x.takes = 1000;
    check(&x,
          "team lab, to which team research belongs, is at its hard quota of 8 GPUs of type H100: "
          "it uses 8 GPUs, and this asks for 6 GPUs",
          "it starts when 'train' (83) of team vision ends, or it would start now with 2 GPUs of "
          "type H100 less, taking 1 GPU from others, or an administrator can raise the guarantee "
          "of team lab, if there is room beyond it");
    x = waiting;
    x.reason = "team_guarantee";
    x.firm = true;
    x.less = 0;
    check(&x,
          "work that cannot be preempted stays within the guarantee, and team research has one of "
          "4 GPUs: such work uses 1 GPU, and this asks for 6 GPUs",
          "it starts when such work ends, or where there is room, if it may be preempted");
}

static void test_what_is_stated_of_a_type_is_told(void **state)
{
    static const struct model_explanation_type types[] = {
        {"research", "A100", 1000, 2000, MODEL_UNLIMITED},
        {"research", "H100", 2000, 2000, MODEL_UNLIMITED},
        {"lab", "H100", 2000, MODEL_UNLIMITED, 8000},
    };
    static const struct model_eviction eviction = {
        .cause = "reclaim", .for_team = "product", .gpu_milli = 2000, .gpu_type = "H100"};
    _cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
    struct model_explanation x = waiting;
    struct arena a = ARENA_INIT;
    struct json_writer w;

    x.reason = "no_capacity";
    x.type = "H100";
    x.types = types;
    x.type_count = 3;
    x.used = 2000;
    x.less = x.less_tasks = 0;
    check(&x,
          "it asks for 6 GPUs of type H100, and 2 are free where it could run; 2 of the 6 tasks "
          "that must start together fit now; team research uses 2 GPUs of its guarantee of 4 GPUs "
          "(fair share 4 GPUs), and what is above comes from what others leave idle; of type H100 "
          "team research uses 2 GPUs of its guarantee of 2 GPUs",
          "it starts once 4 GPUs more can be had");
    json_writer_init(&w, &text);
    model_explanation_encode(&x, &w);
    assert_non_null(strstr(text.data, "\"quota_types\":[{\"team\":\"research\","
                                      "\"gpu_type\":\"A100\",\"used\":1,\"guarantee\":2,"
                                      "\"limit\":null},"));
    assert_non_null(strstr(text.data, "{\"team\":\"lab\",\"gpu_type\":\"H100\",\"used\":2,"
                                      "\"guarantee\":null,\"limit\":8}]"));
    assert_string_equal(model_eviction_describe(&eviction, &a),
                        "reclaimed: team product takes back 2 GPUs of type H100 it is entitled to");
    arena_done(&a);
}

static void test_what_is_scarce_is_named(void **state)
{
    struct model_explanation x = waiting;

    x.reason = "cpu";
    x.resource = MODEL_CPU_MILLI;
    x.each = 4000;
    x.most = 2000;
    x.less = x.less_tasks = 0;
    x.gang = x.tasks = 1;
    check(&x,
          "GPUs are free, but not with the cores beside them: it asks for 4 cores, and the most "
          "that is free on one node is 2 cores",
          "ask for less cpu in each task, or wait for cores to come free");
    x.less = 2000;
    check(&x,
          "GPUs are free, but not with the cores beside them: it asks for 4 cores, and the most "
          "that is free on one node is 2 cores",
          "it would start now with 2 cores less, or wait for cores to come free");
    x.reason = "memory";
    x.resource = MODEL_MEMORY_BYTES;
    x.each = 4LL << 30;
    x.most = 0;
    x.asks_gpu = false;
    x.gang = x.tasks = x.fitting = 2;
    x.less = 2LL << 30;
    check(&x,
          "a task asks for 4GiB of memory, and no such node has any left; 2 of the 2 tasks "
          "that must start together fit now",
          "it would start now if each of its tasks asked for 1GiB of memory less, or wait for some "
          "to come free");
    x = waiting;
    x.reason = "fragmented";
    x.gang = 1;
    x.each = x.asked = 500;
    x.most = 400;
    x.less = 100;
    x.less_tasks = 0;
    check(&x, "it asks for 0.5 GPU: 2 are free in total, but at most 0.4 GPU on one GPU",
          "it would start now with 0.1 GPU less");
    x.each = x.asked = 4000;
    x.most = 2000;
    x.less = 0;
    check(&x, "it asks for 4 GPUs: 2 are free in total, but at most 2 GPUs on one node",
          "it starts once 4 GPUs more can be had");
    x = waiting;
    x.reason = "topology";
    x.level = "rack";
    x.domain = "a/r1";
    check(&x,
          "it needs one rack that holds all of it (6 GPUs): the best, 'a/r1', has room for 2 of "
          "its 6 tasks",
          LESS ", or with topology 'preferred' it need not wait for that");
}

static void test_those_who_stop_are_counted(void **state)
{
    struct model_explanation_holder holders[] = {
        {.id = 3, .name = "a", .team = "research", .amount = 1000},
        {.team = "product", .amount = 3000, .count = 2},
    };
    struct model_explanation x = waiting;

    x.reason = "held";
    x.holders = holders;
    x.holder_count = 1;
    check(&x, "its place (6 GPUs) is promised: it starts when 'a' (3) has stopped", NULL);
    x.holder_count = 2;
    check(&x, "its place (6 GPUs) is promised: it starts when 'a' (3) and 2 others have stopped",
          NULL);
    x.holders = &holders[1];
    x.holder_count = 1;
    check(&x,
          "its place (6 GPUs) is promised: it starts when work of team product and 1 other have "
          "stopped",
          NULL);
}

static bool sees_research(const void *ctx, const char *team)
{
    return strcmp(team, "research") == 0;
}

static void test_work_that_may_not_be_seen_is_summed_up_by_team(void **state)
{
    struct model_explanation_holder holders[] = {
        {.id = 81, .name = "secret", .team = "product", .amount = 3000},
        {.id = 82, .name = "own", .team = "research", .amount = 2000},
        {.id = 83, .name = "secret-2", .team = "product", .amount = 1000},
        {.id = 84, .name = "secret-3", .team = "sales", .amount = 1000},
    };
    _cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
    struct model_explanation x = waiting;
    struct arena a = ARENA_INIT;
    struct json_writer w;

    x.reason = "no_capacity";
    x.holders = holders;
    x.holder_count = 4;
    x.waits_for = holders[0];
    x.waits_for.amount = 0;
    model_explanation_redact(&x, sees_research, NULL);
    x.remedy = model_explanation_remedy(&x, &a);
    x.sentence = model_explanation_sentence(&x, &a);
    assert_string_equal(x.remedy, "it starts when work of team product ends, or " LESS);
    json_writer_init(&w, &text);
    model_explanation_encode(&x, &w);
    assert_null(strstr(text.data, "secret"));
    assert_null(strstr(text.data, "81"));
    assert_non_null(strstr(
        text.data, "\"holders\":[{\"id\":null,\"name\":null,\"team\":\"product\",\"workloads\":2,"
                   "\"gpu\":4},{\"id\":82,\"name\":\"own\",\"team\":\"research\",\"gpu\":2},"
                   "{\"id\":null,\"name\":null,\"team\":\"sales\",\"workloads\":1,\"gpu\":1}]"));
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
    e.cause = "reclaim";
    e.for_id = 0;
    assert_string_equal(model_eviction_describe(&e, &a),
                        "reclaimed: team product takes back 2 GPUs it is entitled to");
    e.cause = "consolidate";
    assert_string_equal(model_eviction_describe(&e, &a),
                        "moved: work of team product needs the room in one piece");
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
    struct model_explanation_holder holders[] = {
        {.id = 83, .name = "train", .team = "product", .amount = 2250}};
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
        "\"each\":1,\"free\":2,\"most\":2,\"missing\":4,\"less\":4,\"less_tasks\":4,"
        "\"gang_tasks\":6,\"fitting_tasks\":2,\"quota\":{\"team\":\"research\",\"hard\":false,"
        "\"used\":1,\"guarantee\":4,\"limit\":null,\"share\":4},\"position\":1,\"pending\":2,"
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
        cmocka_unit_test(test_a_limit_names_whose_it_is),
        cmocka_unit_test(test_what_is_scarce_is_named),
        cmocka_unit_test(test_what_is_stated_of_a_type_is_told),
        cmocka_unit_test(test_those_who_stop_are_counted),
        cmocka_unit_test(test_work_that_may_not_be_seen_is_summed_up_by_team),
        cmocka_unit_test(test_what_does_not_wait_says_so),
        cmocka_unit_test(test_an_eviction_names_who_profits),
        cmocka_unit_test(test_the_object_carries_the_numbers),
        cmocka_unit_test(test_what_does_not_wait_has_no_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
