/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "model/manifest.h"

#define QUOTA_HEAD                                                                            \
    "'apiVersion': 'v1', 'kind': 'ResourceQuota', 'metadata': {'name': 'gpus', 'namespace': " \
    "'ml-research'}"
#define QUOTA(hard) "{" QUOTA_HEAD ", 'spec': {'hard': {" hard "}}}"
#define TEAM(spec) \
    "{'apiVersion': 'allot/v1', 'kind': 'Team', 'metadata': {'name': 'nlp'}, 'spec': " spec "}"
#define WORKLOAD(metadata, spec) \
    "{'apiVersion': 'allot/v1', 'kind': 'Workload', 'metadata': " metadata ", 'spec': " spec "}"

static int decode(struct arena *a, const char *text, struct model_manifest *m, struct err *err)
{
    struct json_object *json = parsed(a, text);
    int r = model_manifest_decode(json, a, m, err);

    json_object_put(json);
    return r;
}

static struct model_manifest decoded(struct arena *a, const char *text)
{
    struct model_manifest m = {0};
    struct err err = ERR_INIT;

    if (decode(a, text, &m, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return m;
}

static void test_a_resource_quota_is_a_team(void **state)
{
    struct arena a = ARENA_INIT;
    struct model_manifest m = decoded(&a, QUOTA("'requests.nvidia.com/gpu': '8',"
                                                "'limits.nvidia.com/gpu': '16',"
                                                "'persistentvolumeclaims': '50'"));

    assert_int_equal(m.kind, MODEL_MANIFEST_TEAM);
    assert_string_equal(m.source, "ResourceQuota");
    assert_string_equal(m.name, "ml-research");
    assert_null(m.ignored);
    assert_string_equal(m.body, "{\"name\":\"ml-research\",\"guarantee\":{\"gpu\":8},"
                                "\"limit\":{\"gpu\":16,\"volumes\":50}}");
    arena_done(&a);
}

static void test_a_quota_without_limits_is_hard(void **state)
{
    struct arena a = ARENA_INIT;

    assert_string_equal(decoded(&a, QUOTA("'requests.nvidia.com/gpu': 4")).body,
                        "{\"name\":\"ml-research\",\"guarantee\":{\"gpu\":4},"
                        "\"limit\":{\"gpu\":4}}");
    assert_string_equal(decoded(&a, QUOTA("'limits.cpu': '10'")).body,
                        "{\"name\":\"ml-research\",\"guarantee\":{\"cpu\":0},"
                        "\"limit\":{\"cpu\":10}}");
    assert_string_equal(decoded(&a, QUOTA("")).body,
                        "{\"name\":\"ml-research\",\"guarantee\":{},\"limit\":{}}");
    arena_done(&a);
}

static void test_kubernetes_quantities_are_exact(void **state)
{
    static const struct {
        const char *key, *text, *body;
    } cases[] = {
        {"requests.cpu", "'500m'", "{\"cpu\":0.5}"},
        {"requests.cpu", "'1k'", "{\"cpu\":1000}"},
        {"requests.cpu", "0.25", "{\"cpu\":0.25}"},
        {"cpu", "'2.500'", "{\"cpu\":2.5}"},
        {"requests.memory", "'16Gi'", "{\"memory\":\"16GiB\"}"},
        {"requests.memory", "'0.5Ki'", "{\"memory\":\"512\"}"},
        {"requests.memory", "'1G'", "{\"memory\":\"1GB\"}"},
        {"memory", "'1000m'", "{\"memory\":\"1\"}"},
        {"requests.memory", "128974848", "{\"memory\":\"123MiB\"}"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena a = ARENA_INIT;
        const char *text = arena_printf(&a, "{" QUOTA_HEAD ", 'spec': {'hard': {'%s': %s}}}",
                                        cases[i].key, cases[i].text);

        assert_string_equal(decoded(&a, text).body,
                            arena_printf(&a,
                                         "{\"name\":\"ml-research\",\"guarantee\":%s,"
                                         "\"limit\":%s}",
                                         cases[i].body, cases[i].body));
        arena_done(&a);
    }
}

static void test_what_means_nothing_here_is_named(void **state)
{
    struct arena a = ARENA_INIT;
    struct model_manifest m =
        decoded(&a, "{'apiVersion': 'v1', 'kind': 'ResourceQuota', 'metadata': {'namespace': 'x',"
                    "'labels': {'a': 'b'}}, 'spec': {'hard': {'pods': '10', 'requests.cpu': 1},"
                    "'scopes': ['BestEffort']}, 'status': {'used': {}}}");

    assert_string_equal(m.ignored, "metadata.labels, status, spec.scopes, spec.hard.pods");
    arena_done(&a);
}

static void test_a_team_keeps_its_spec(void **state)
{
    struct arena a = ARENA_INIT;
    struct model_manifest m = decoded(&a, TEAM("{'parent': 'ai', 'limit': {'gpu': 0.250}}"));

    assert_string_equal(m.source, "Team");
    assert_string_equal(m.name, "nlp");
    assert_string_equal(m.body, "{\"parent\":\"ai\",\"limit\":{\"gpu\":0.250},\"name\":\"nlp\"}");
    assert_null(m.ignored);
    m = decoded(&a, "{'apiVersion': 'allot/v1', 'kind': 'Team', 'metadata': {'name': 'nlp',"
                    "'namespace': 'x'}}");
    assert_string_equal(m.ignored, "metadata.namespace");
    assert_string_equal(decoded(&a, TEAM("null")).body, "{\"name\":\"nlp\"}");
    arena_done(&a);
}

static void test_a_workload_takes_its_names_from_metadata(void **state)
{
    struct arena a = ARENA_INIT;
    struct model_manifest m = decoded(&a, WORKLOAD("{'name': 'digits', 'namespace': 'nlp'}",
                                                   "{'gpu': 0.25, 'command': ['/bin/true']}"));

    assert_int_equal(m.kind, MODEL_MANIFEST_WORKLOAD);
    assert_string_equal(m.name, "digits");
    assert_string_equal(m.body, "{\"gpu\":0.25,\"command\":[\"/bin/true\"],"
                                "\"name\":\"digits\",\"team\":\"nlp\"}");
    m = decoded(&a, WORKLOAD("{}", "{'command': ['x']}"));
    assert_null(m.name);
    assert_string_equal(m.body, "{\"command\":[\"x\"]}");
    m = decoded(&a, WORKLOAD("{'namespace': 'nlp'}", "{'command': ['x'], 'team': 'nlp'}"));
    assert_string_equal(m.body, "{\"command\":[\"x\"],\"team\":\"nlp\"}");
    arena_done(&a);
}

static void test_a_list_holds_several(void **state)
{
    struct arena a = ARENA_INIT;
    struct json_object *list = parsed(
        &a, "{'apiVersion': 'v1', 'kind': 'List', 'items': [" QUOTA("") ", " TEAM("{}") "]}");
    struct json_object *one = parsed(&a, TEAM("{}"));
    struct model_manifest m = {0};

    assert_int_equal(model_manifest_count(list), 2);
    assert_int_equal(model_manifest_decode(model_manifest_item(list, 1), &a, &m, NULL), 0);
    assert_string_equal(m.source, "Team");
    assert_null(model_manifest_item(list, 2));
    assert_int_equal(model_manifest_decode(NULL, &a, &m, NULL), -EINVAL);
    assert_int_equal(model_manifest_count(one), 1);
    assert_ptr_equal(model_manifest_item(one, 0), one);
    json_object_put(list);
    json_object_put(one);
    arena_done(&a);
}

static void test_refusals(void **state)
{
    static const struct refusal cases[] = {
        {"[]", ERR_INVALID, "", "must be an object, not an array"},
        {"{}", ERR_MISSING, "kind", "kind is missing"},
        {"{'kind': 'Team'}", ERR_MISSING, "apiVersion", "apiVersion is missing"},
        {"{'kind': 'Pod', 'apiVersion': 'v1'}", ERR_UNSUPPORTED, "kind",
         "ResourceQuota, Team or Workload"},
        {"{'kind': 'Team', 'apiVersion': 'v1'}", ERR_UNSUPPORTED, "apiVersion", "allot/v1"},
        {"{'kind': ['Team']}", ERR_INVALID, "kind", "kind must be a string"},
        {"{'kind': 'Team', 'apiVersion': 'allot/v1', 'metadata': 3}", ERR_INVALID, "metadata",
         "must be an object"},
        {"{'kind': 'Team', 'apiVersion': 'allot/v1'}", ERR_MISSING, "metadata.name", "missing"},
        {"{'kind': 'Team', 'apiVersion': 'allot/v1', 'metadata': {'name': '../x'}}", ERR_INVALID,
         "metadata.name", "metadata.name '../x'"},
        {TEAM("{'quotas': 1}"), ERR_UNKNOWN_FIELD, "spec.quotas",
         "spec.quotas is not a known field"},
        {TEAM("{'name': 'other'}"), ERR_INVALID, "spec.name", "is not metadata.name 'nlp'"},
        {TEAM("[]"), ERR_INVALID, "spec", "must be an object"},
        {"{" QUOTA_HEAD "}", ERR_MISSING, "spec", "spec is missing"},
        {"{" QUOTA_HEAD ", 'spec': {}}", ERR_MISSING, "spec.hard", "requests.nvidia.com/gpu"},
        {"{'apiVersion': 'v1', 'kind': 'ResourceQuota', 'spec': {'hard': {}}}", ERR_MISSING,
         "metadata.namespace", "missing"},
        {QUOTA("'requests.nvidia.com/gpu': '-1'"), ERR_OUT_OF_RANGE,
         "spec.hard.requests.nvidia.com/gpu", "'-1' is negative"},
        {QUOTA("'requests.nvidia.com/gpu': '1e30'"), ERR_INVALID,
         "spec.hard.requests.nvidia.com/gpu", "'1e30' is not a quantity"},
        {QUOTA("'requests.nvidia.com/gpu': '0.0001'"), ERR_OUT_OF_RANGE,
         "spec.hard.requests.nvidia.com/gpu", "too precise"},
        {QUOTA("'requests.cpu': '0.00000000000000000000000000000000000000000000001'"),
         ERR_OUT_OF_RANGE, "spec.hard.requests.cpu", "too precise"},
        {QUOTA("'requests.cpu': '9223372036854775808'"), ERR_OUT_OF_RANGE, "spec.hard.requests.cpu",
         "too large"},
        {QUOTA("'requests.memory': '9223372036854775807Pi'"), ERR_OUT_OF_RANGE,
         "spec.hard.requests.memory", "too large"},
        {QUOTA("'requests.memory': '500m'"), ERR_OUT_OF_RANGE, "spec.hard.requests.memory",
         "too precise"},
        {QUOTA("'requests.memory': '16GB'"), ERR_INVALID, "spec.hard.requests.memory", "16Gi"},
        {QUOTA("'requests.cpu': ''"), ERR_INVALID, "spec.hard.requests.cpu", "quantity"},
        {QUOTA("'requests.cpu': null"), ERR_INVALID, "spec.hard.requests.cpu", "not null"},
        {QUOTA("'persistentvolumeclaims': '1.5'"), ERR_OUT_OF_RANGE,
         "spec.hard.persistentvolumeclaims", "too precise"},
        {QUOTA("'cpu': 1, 'requests.cpu': 2"), ERR_INVALID, "spec.hard.requests.cpu",
         "contradicts"},
        {QUOTA("'requests.cpu': 4, 'limits.cpu': 2"), ERR_INVALID, "limit.cpu",
         "below the guarantee of 4"},
        {WORKLOAD("{'namespace': 'a'}", "{'command': ['x'], 'team': 'b'}"), ERR_INVALID,
         "spec.team", "is not metadata.namespace 'a'"},
        {WORKLOAD("{}", "{'command': ['x'], 'gpus': '0.5'}"), ERR_INVALID, "spec.gpus",
         "\"gpu\": 0.5"},
        {WORKLOAD("{}", "null"), ERR_MISSING, "spec", "spec is missing"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;
        struct model_manifest m;

        check_refusal(&cases[i], decode(&a, cases[i].text, &m, &err), &err);
        arena_done(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_resource_quota_is_a_team),
        cmocka_unit_test(test_a_quota_without_limits_is_hard),
        cmocka_unit_test(test_kubernetes_quantities_are_exact),
        cmocka_unit_test(test_what_means_nothing_here_is_named),
        cmocka_unit_test(test_a_team_keeps_its_spec),
        cmocka_unit_test(test_a_workload_takes_its_names_from_metadata),
        cmocka_unit_test(test_a_list_holds_several),
        cmocka_unit_test(test_refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
