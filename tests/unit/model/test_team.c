/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "base/json_writer.h"
#include "base/rng.h"
#include "model/amount.h"
#include "model/team.h"

static int decode(struct arena *a, const char *text, struct model_team *t, struct err *err)
{
    struct json_object *json = parsed(a, text);
    int r = model_team_decode(json, a, t, err);

    json_object_put(json);
    return r;
}

static void test_defaults(void **state)
{
    struct arena a = ARENA_INIT;
    struct model_team t;

    model_team_init(&t);
    assert_int_equal(decode(&a, "{'name': 'nlp'}", &t, NULL), 0);
    assert_string_equal(t.name, "nlp");
    assert_null(t.parent);
    assert_int_equal(t.weight, 1);
    assert_int_equal(t.priority, 100);
    for (int i = 0; i < MODEL_RESOURCE_COUNT; i++) {
        assert_int_equal(t.guarantee[i], 0);
        assert_int_equal(t.limit[i], MODEL_UNLIMITED);
    }
    assert_int_equal(t.volume_limit, MODEL_UNLIMITED);
    arena_done(&a);
}

static void test_amounts_are_exact(void **state)
{
    struct arena a = ARENA_INIT;
    struct model_team t;

    model_team_init(&t);
    assert_int_equal(decode(&a,
                            "{'name': 'ml-research', 'parent': 'research', 'weight': 0,"
                            "'priority': -5, 'guarantee': {'gpu': 8, 'cpu': '500m', "
                            "'memory': '512GiB'}, 'limit': {'gpu': 12.001, 'volumes': 50}}",
                            &t, NULL),
                     0);
    assert_string_equal(t.parent, "research");
    assert_int_equal(t.guarantee[MODEL_GPU_MILLI], 8000);
    assert_int_equal(t.guarantee[MODEL_CPU_MILLI], 500);
    assert_int_equal(t.guarantee[MODEL_MEMORY_BYTES], 512LL << 30);
    assert_int_equal(t.limit[MODEL_GPU_MILLI], 12001);
    assert_int_equal(t.limit[MODEL_CPU_MILLI], MODEL_UNLIMITED);
    assert_int_equal(t.volume_limit, 50);
    assert_int_equal(t.weight, 0);
    assert_int_equal(t.priority, -5);
    arena_done(&a);
}

static void test_an_update_keeps_what_is_absent_and_null_lifts_a_limit(void **state)
{
    struct arena a = ARENA_INIT;
    struct model_team t;

    model_team_init(&t);
    assert_int_equal(decode(&a,
                            "{'name': 'nlp', 'parent': 'x', 'guarantee': {'gpu': 2},"
                            " 'limit': {'gpu': 4, 'cpu': 8}}",
                            &t, NULL),
                     0);
    assert_int_equal(decode(&a, "{'limit': {'gpu': null}, 'parent': null}", &t, NULL), 0);
    assert_string_equal(t.name, "nlp");
    assert_null(t.parent);
    assert_int_equal(t.guarantee[MODEL_GPU_MILLI], 2000);
    assert_int_equal(t.limit[MODEL_GPU_MILLI], MODEL_UNLIMITED);
    assert_int_equal(t.limit[MODEL_CPU_MILLI], 8000);
    arena_done(&a);
}

static void test_a_refused_update_changes_nothing(void **state)
{
    struct arena a = ARENA_INIT;
    struct model_team t;

    model_team_init(&t);
    assert_int_equal(decode(&a, "{'name': 'nlp', 'guarantee': {'gpu': 2}}", &t, NULL), 0);
    assert_int_equal(decode(&a, "{'guarantee': {'gpu': 9}, 'limit': {'gpu': 1}}", &t, NULL),
                     -EINVAL);
    assert_int_equal(t.guarantee[MODEL_GPU_MILLI], 2000);
    assert_int_equal(t.limit[MODEL_GPU_MILLI], MODEL_UNLIMITED);
    arena_done(&a);
}

static void test_refusals(void **state)
{
    static const struct refusal cases[] = {
        {"{}", ERR_MISSING, "name", "name is missing"},
        {"[]", ERR_INVALID, "", "must be an object, not an array"},
        {"{'name': 3}", ERR_INVALID, "name", "name must be a string, not a number"},
        {"{'name': '../etc'}", ERR_INVALID, "name", "starts with '.'"},
        {"{'name': 'a/../b'}", ERR_INVALID, "name", "contains '/'"},
        {"{'name': 'a\\nb'}", ERR_INVALID, "name", "control character"},
        {"{'name': 'a', 'parent': 'a'}", ERR_INVALID, "parent", "the team itself"},
        {"{'name': 'a', 'quotas': 1}", ERR_UNKNOWN_FIELD, "quotas", "known: name, parent, weight"},
        {"{'name': 'a', 'wieght': 1}", ERR_UNKNOWN_FIELD, "wieght", "did you mean 'weight'?"},
        {"{'name': 'a', 'guarantee': {'gpus': 1}}", ERR_UNKNOWN_FIELD, "guarantee.gpus",
         "guarantee.gpus is not a known field"},
        {"{'name': 'a', 'guarantee': {'gpu': -1}}", ERR_OUT_OF_RANGE, "guarantee.gpu",
         "guarantee.gpu '-1' is negative"},
        {"{'name': 'a', 'guarantee': {'gpu': 1e30}}", ERR_INVALID, "guarantee.gpu", "1e30"},
        {"{'name': 'a', 'guarantee': {'gpu': 0.0001}}", ERR_OUT_OF_RANGE, "guarantee.gpu",
         "too precise"},
        {"{'name': 'a', 'guarantee': {'gpu': 9223372036854775808}}", ERR_OUT_OF_RANGE,
         "guarantee.gpu", "too large"},
        {"{'name': 'a', 'guarantee': {'memory': '9PiB'}}", ERR_OUT_OF_RANGE, "guarantee.memory",
         "8PiB"},
        {"{'name': 'a', 'guarantee': {'gpu': true}}", ERR_INVALID, "guarantee.gpu",
         "a quantity, not a boolean"},
        {"{'name': 'a', 'guarantee': {'cpu': 4}, 'limit': {'cpu': 2.5}}", ERR_INVALID, "limit.cpu",
         "limit.cpu 2.5 is below the guarantee of 4"},
        {"{'name': 'a', 'limit': {'volumes': 1.5}}", ERR_INVALID, "limit.volumes",
         "limit.volumes '1.5' is not a whole number"},
        {"{'name': 'a', 'limit': [4]}", ERR_INVALID, "limit", "limit must be an object"},
        {"{'name': 'a', 'weight': -1}", ERR_OUT_OF_RANGE, "weight", "from 0 to 1000000"},
        {"{'name': 'a', 'weight': 1000001}", ERR_OUT_OF_RANGE, "weight", "out of range"},
        {"{'name': 'a', 'priority': 18446744073709551616}", ERR_OUT_OF_RANGE, "priority",
         "out of range"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;
        struct model_team t;

        model_team_init(&t);
        check_refusal(&cases[i], decode(&a, cases[i].text, &t, &err), &err);
        arena_done(&a);
    }
}

/* What RANDOM_TEAM points to. */
static struct model_type_quota random_types[2];

static void random_team(struct rng *r, struct model_team *t)
{
    static const int64_t max[MODEL_RESOURCE_COUNT] = {
        MODEL_AMOUNT_MILLI_MAX, MODEL_AMOUNT_MILLI_MAX, MODEL_AMOUNT_BYTES_MAX};

    model_team_init(t);
    t->name = rng_below(r, 2) ? "ml-research" : "équipe \"ü\" 部";
    t->parent = rng_below(r, 2) ? "top" : NULL;
    t->weight = (int64_t)rng_below(r, 1000001);
    t->priority = (int32_t)rng_below(r, 2000001) - 1000000;
    if (rng_below(r, 2)) {
        random_types[0] =
            (struct model_type_quota){"A100", MODEL_UNLIMITED, (int64_t)rng_below(r, 9)};
        random_types[1] = (struct model_type_quota){"H100", 0, MODEL_UNLIMITED};
        t->types = random_types;
        t->type_count = 2;
    }
    if (rng_below(r, 2))
        t->volume_limit = (int64_t)rng_below(r, 1000000001);
    for (int i = 0; i < MODEL_RESOURCE_COUNT; i++) {
        uint64_t shift = rng_below(r, 40);

        t->guarantee[i] = (int64_t)rng_below(r, ((uint64_t)max[i] >> shift) + 1);
        if (rng_below(r, 2))
            t->limit[i] =
                t->guarantee[i] + (int64_t)rng_below(r, (uint64_t)(max[i] - t->guarantee[i]) + 1);
    }
}

static void test_the_limit_of_a_hard_quota_follows_the_guarantee(void **state)
{
    struct arena a = ARENA_INIT;
    struct model_team t;
    struct err err = ERR_INIT;

    model_team_init(&t);
    assert_int_equal(
        decode(&a, "{'name': 'nlp', 'quota': 'hard', 'guarantee': {'gpu': 4, 'memory': '1GiB'}}",
               &t, NULL),
        0);
    assert_int_equal(t.limit[MODEL_GPU_MILLI], 4000);
    assert_int_equal(t.limit[MODEL_CPU_MILLI], MODEL_UNLIMITED);
    assert_int_equal(t.limit[MODEL_MEMORY_BYTES], 1LL << 30);
    assert_int_equal(decode(&a, "{'guarantee': {'gpu': 6}}", &t, NULL), 0);
    assert_int_equal(t.limit[MODEL_GPU_MILLI], 6000);
    assert_int_equal(decode(&a, "{'limit': {'gpu': 6, 'volumes': 2}}", &t, NULL), 0);
    assert_int_equal(decode(&a, "{'limit': {'gpu': 8}}", &t, &err), -EINVAL);
    assert_string_equal(err.field, "limit.gpu");
    assert_int_equal(decode(&a, "{'quota': 'soft'}", &t, &err), -EINVAL);
    assert_string_equal(err.field, "quota");
    assert_int_equal(t.limit[MODEL_GPU_MILLI], 6000);
    arena_done(&a);
}

static void test_types_of_guarantee_and_limit_are_one_list(void **state)
{
    struct arena a = ARENA_INIT;
    struct model_team t;
    struct err err = ERR_INIT;

    model_team_init(&t);
    assert_int_equal(decode(&a,
                            "{'name': 'nlp', 'guarantee': {'gpu': 4, 'gpu_types': {'H100': 2}},"
                            " 'limit': {'gpu_types': {'H100': 3.5, 'A100': 1}}}",
                            &t, NULL),
                     0);
    assert_int_equal(t.type_count, 2);
    assert_string_equal(t.types[0].type, "A100");
    assert_int_equal(t.types[0].guarantee, MODEL_UNLIMITED);
    assert_int_equal(t.types[0].limit, 1000);
    assert_int_equal(t.types[1].guarantee, 2000);
    assert_int_equal(t.types[1].limit, 3500);
    assert_int_equal(decode(&a, "{'limit': {'gpu_types': {'H100': 1}}}", &t, &err), -EINVAL);
    assert_string_equal(err.field, "limit.gpu_types");
    assert_int_equal(decode(&a, "{'guarantee': {'gpu': 1}}", &t, &err), -EINVAL);
    assert_string_equal(err.field, "guarantee.gpu_types");
    assert_int_equal(decode(&a, "{'limit': {'gpu_types': {'A100': null}}}", &t, NULL), 0);
    assert_int_equal(t.type_count, 1);
    assert_int_equal(decode(&a, "{'quota': 'hard', 'limit': null}", &t, NULL), 0);
    assert_int_equal(t.types[0].limit, 2000);
    assert_int_equal(decode(&a, "{'guarantee': {'gpu_types': {'a b/': 1}}}", &t, &err), -EINVAL);
    assert_int_equal(decode(&a, "{'guarantee': {'gpu_types': [1]}}", &t, &err), -EINVAL);
    assert_int_equal(decode(&a, "{'guarantee': {'gpu_types': {'H100': -1}}}", &t, &err), -ERANGE);
    assert_string_equal(err.field, "guarantee.gpu_types.H100");
    arena_done(&a);
}

static void test_what_is_written_reads_back_the_same(void **state)
{
    struct rng rng;

    rng_seed(&rng, 7);
    for (int i = 0; i < 2000; i++) {
        _cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
        struct arena a = ARENA_INIT;
        struct model_team t, back;
        struct json_object *json = NULL;
        struct json_writer w;

        random_team(&rng, &t);
        json_writer_init(&w, &text);
        model_team_encode(&t, &w);
        assert_int_equal(model_json_parse(text.data, text.len, &json, NULL), 0);
        json_object_object_del(json, "id");
        json_object_object_del(json, "version");
        model_team_init(&back);
        assert_int_equal(model_team_decode(json, &a, &back, NULL), 0);
        assert_string_equal(back.name, t.name);
        assert_int_equal(back.parent != NULL, t.parent != NULL);
        assert_memory_equal(back.guarantee, t.guarantee, sizeof(t.guarantee));
        assert_memory_equal(back.limit, t.limit, sizeof(t.limit));
        assert_int_equal(back.weight, t.weight);
        assert_int_equal(back.priority, t.priority);
        assert_int_equal(back.volume_limit, t.volume_limit);
        assert_int_equal(back.type_count, t.type_count);
        for (int32_t k = 0; k < t.type_count; k++) {
            assert_string_equal(back.types[k].type, t.types[k].type);
            assert_int_equal(back.types[k].guarantee, t.types[k].guarantee);
            assert_int_equal(back.types[k].limit, t.types[k].limit);
        }
        json_object_put(json);
        arena_done(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_amounts_are_exact),
        cmocka_unit_test(test_an_update_keeps_what_is_absent_and_null_lifts_a_limit),
        cmocka_unit_test(test_a_refused_update_changes_nothing),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_the_limit_of_a_hard_quota_follows_the_guarantee),
        cmocka_unit_test(test_types_of_guarantee_and_limit_are_one_list),
        cmocka_unit_test(test_what_is_written_reads_back_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
