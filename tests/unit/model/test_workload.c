/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "model/check.h"
#include "model/workload.h"

#define BASE "'team': 'nlp', 'command': ['true']"

static int decode(struct arena *a, const char *text, struct model_workload *w, struct err *err)
{
    struct json_object *json = parsed(a, text);
    int r;

    *w = (struct model_workload){0};
    r = model_workload_decode(json, a, w, err);
    json_object_put(json);
    return r;
}

static const struct model_request *request_of(struct arena *a, const char *fields,
                                              struct model_workload *w)
{
    struct err err = ERR_INIT;

    if (decode(a, arena_printf(a, "{" BASE ", %s}", fields), w, &err) < 0)
        fail_msg("%s: %s", fields, err.text);
    return &w->shape->groups[0].request;
}

static void test_defaults_of_a_job(void **state)
{
    struct arena a = ARENA_INIT;
    const struct model_shape *s;
    struct model_workload w;

    assert_int_equal(decode(&a, "{" BASE "}", &w, NULL), 0);
    s = w.shape;
    assert_null(w.name);
    assert_string_equal(w.team, "nlp");
    assert_int_equal(s->kind, MODEL_JOB);
    assert_int_equal(s->class_, MODEL_TRAINING);
    assert_true(s->preemptible);
    assert_true(s->burst);
    assert_int_equal(s->handling, MODEL_CHECKPOINT);
    assert_int_equal(s->grace_ms, 30000);
    assert_int_equal(s->task_count, 1);
    assert_int_equal(s->min_tasks, 1);
    assert_int_equal(s->max_retries, 0);
    assert_int_equal(s->group_count, 1);
    assert_string_equal(s->groups[0].name, "main");
    assert_int_equal(s->groups[0].request.device_count, 0);
    assert_int_equal(s->groups[0].request.cpu_milli, 1000);
    assert_string_equal(w.launch->groups[0].command[0], "true");
    assert_null(w.launch->groups[0].command[1]);
    arena_done(&a);
}

static void test_class_follows_kind(void **state)
{
    struct arena a = ARENA_INIT;
    struct model_workload w;

    request_of(&a, "'kind': 'notebook'", &w);
    assert_int_equal(w.shape->class_, MODEL_DEVELOPMENT);
    assert_int_equal(w.shape->handling, MODEL_RESTART);
    request_of(&a, "'kind': 'service'", &w);
    assert_int_equal(w.shape->class_, MODEL_PRODUCTION);
    assert_false(w.shape->preemptible);
    assert_false(w.shape->burst);
    request_of(&a, "'kind': 'service', 'class': 'development'", &w);
    assert_true(w.shape->preemptible);
    assert_true(w.shape->burst);
    request_of(&a, "'kind': 'service', 'class': 'training', 'tasks': 4, 'max_unavailable': 1", &w);
    assert_false(w.shape->burst);
    assert_int_equal(w.shape->max_unavailable, 1);
    assert_int_equal(w.shape->min_tasks, 3);
    request_of(&a, "'class': 'production', 'preemptible': true", &w);
    assert_true(w.shape->preemptible);
    assert_false(w.shape->burst);
    arena_done(&a);
}

static void test_forms_of_a_gpu_request(void **state)
{
    static const struct {
        const char *fields;
        int32_t count, milli;
        int64_t memory, cpu;
        int32_t charge;
        const char *says;
    } cases[] = {
        {"'gpus': 2", 2, 1000, 0, 0, 2000, "2 GPUs"},
        {"'gpus': '2'", 2, 1000, 0, 0, 2000, "2 GPUs"},
        {"'gpus': 0", 0, 0, 0, 1000, 0, "cpu only"},
        {"'gpu': 0.25", 1, 250, 0, 0, 250, "0.25 GPU"},
        {"'gpu': '250m', 'gpu_count': 4", 4, 250, 0, 0, 1000, "4 x 0.25 GPU"},
        {"'gpu': 1", 1, 1000, 0, 0, 1000, "1 GPU"},
        {"'gpu': 3, 'cpu': '500m'", 3, 1000, 0, 500, 3000, "3 GPUs"},
        {"'gpu': 0.001", 1, 1, 0, 0, 1, "0.001 GPU"},
        {"'gpu_memory': '10GiB'", 1, 0, 10LL << 30, 0, 125, "10GiB of a GPU"},
        {"'gpu_memory': '1KiB'", 1, 0, 1024, 0, 1, "1KiB of a GPU"},
        {"'mig': '1g.10gb'", 0, 0, 0, 0, 142, "1 x 1g.10gb"},
        {"'mig': {'3g.40gb': 1, '1g.10gb': 2}", 0, 0, 0, 0, 712, "2 x 1g.10gb + 1 x 3g.40gb"},
        {"'gpus': 2, 'gpu_type': 'H100'", 2, 1000, 0, 0, 2000, "2 x H100"},
        {"'gpu': 0.5, 'gpu_type': ['H100', 'A100']", 1, 500, 0, 0, 500, "0.5 H100|A100"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena a = ARENA_INIT;
        struct model_workload w;
        const struct model_request *q = request_of(&a, cases[i].fields, &w);

        assert_int_equal(q->device_count, cases[i].count);
        assert_int_equal(q->device_milli, cases[i].milli);
        assert_int_equal(q->device_memory_bytes, cases[i].memory);
        assert_int_equal(q->cpu_milli, cases[i].cpu);
        assert_int_equal(model_request_gpu_milli(q, 0), cases[i].charge);
        assert_string_equal(model_request_describe(q, &a), cases[i].says);
        arena_done(&a);
    }
}

static void test_memory_is_charged_as_a_ceiling(void **state)
{
    const struct model_request q = {.device_count = 2, .device_memory_bytes = 1};
    const struct model_request most = {.device_count = 1024, .device_memory_bytes = INT64_MAX};

    assert_int_equal(model_request_gpu_milli(&q, 80LL << 30), 2);
    assert_int_equal(model_request_gpu_milli(&q, 1), 2000);
    assert_int_equal(model_request_gpu_milli(&q, 3), 2 * 334);
    assert_int_equal(model_request_gpu_milli(&most, 80LL << 30), 1024000);
}

static void test_ranks_run_through_the_groups(void **state)
{
    struct arena a = ARENA_INIT;
    struct model_workload w;
    int32_t rank = -1;

    request_of(&a,
               "'groups': [{'name': 'ps', 'tasks': 2, 'gpus': 1},"
               "{'name': 'worker', 'tasks': 3, 'min_tasks': 0}]",
               &w);
    assert_int_equal(w.shape->task_count, 5);
    assert_int_equal(w.shape->min_tasks, 2);
    assert_int_equal(model_shape_group_of(w.shape, 0, &rank), 0);
    assert_int_equal(rank, 0);
    assert_int_equal(model_shape_group_of(w.shape, 1, NULL), 0);
    assert_int_equal(model_shape_group_of(w.shape, 2, &rank), 1);
    assert_int_equal(rank, 0);
    assert_int_equal(model_shape_group_of(w.shape, 4, &rank), 1);
    assert_int_equal(rank, 2);
    arena_done(&a);
}

static void test_groups_inherit_command_and_env(void **state)
{
    struct arena a = ARENA_INIT;
    struct model_workload w;
    const struct model_launch_group *g;

    assert_int_equal(decode(&a,
                            "{'team': 'nlp', 'command': ['a'], 'env': {'B': '1', 'C': '2'},"
                            "'groups': [{'name': 'x'},"
                            "{'name': 'y', 'command': ['b'], 'env': {'C': '3', 'A': '4'}}]}",
                            &w, NULL),
                     0);
    g = w.launch->groups;
    assert_string_equal(g[0].command[0], "a");
    assert_int_equal(g[0].env_count, 2);
    assert_string_equal(g[1].command[0], "b");
    assert_int_equal(g[1].env_count, 3);
    assert_string_equal(g[1].env[0].key, "A");
    assert_string_equal(g[1].env[1].value, "1");
    assert_string_equal(g[1].env[2].value, "3");
    arena_done(&a);
}

static void test_a_preset_team_is_the_default(void **state)
{
    struct arena a = ARENA_INIT;
    struct model_workload w = {.team = "mine"};
    struct json_object *json = parsed(&a, "{'command': ['true']}");

    assert_int_equal(model_workload_decode(json, &a, &w, NULL), 0);
    assert_string_equal(w.team, "mine");
    json_object_put(json);
    arena_done(&a);
}

static void test_unicode_names_are_fine(void **state)
{
    struct arena a = ARENA_INIT;
    struct model_workload w;

    request_of(&a, "'name': 'modèle-数据'", &w);
    assert_string_equal(w.name, "modèle-数据");
    arena_done(&a);
}

static void test_the_largest_workload_is_accepted(void **state)
{
    struct arena a = ARENA_INIT;
    struct model_workload w;

    request_of(&a, "'tasks': 10000, 'gpus': 1024, 'memory': '64TiB', 'max_run_time': '3650d'", &w);
    assert_int_equal(w.shape->task_count, 10000);
    arena_done(&a);
}

static const struct refusal refusals[] = {
    {"{'command': ['x']}", ERR_MISSING, "team", "team is missing"},
    {"{'team': 'a'}", ERR_MISSING, "command", "command is missing"},
    {"{'team': '../a'}", ERR_INVALID, "team", "'../a' starts with '.'"},
    {"{" BASE ", 'name': 'a\\u0007b'}", ERR_INVALID, "name", "control character"},
    {"{" BASE ", 'name': ''}", ERR_INVALID, "name", "name '' is empty"},
    {"{" BASE ", 'name': '123'}", ERR_INVALID, "name", "would be taken for an id"},
    {"{" BASE ", 'gpuz': 1}", ERR_UNKNOWN_FIELD, "gpuz", "did you mean 'gpus'?"},
    {"{" BASE ", 'replicas': 1}", ERR_UNKNOWN_FIELD, "replicas", "known: name, team, kind"},
    {"{" BASE ", 'id': 1}", ERR_UNKNOWN_FIELD, "id", "id is not a known field"},
    {"{" BASE ", 'kind': 'pod'}", ERR_INVALID, "kind", "job, notebook or service"},
    {"{" BASE ", 'class': 'urgent'}", ERR_INVALID, "class", "production, training"},
    {"{" BASE ", 'priority': 1000001}", ERR_OUT_OF_RANGE, "priority", "to 1000000"},
    {"{" BASE ", 'gpus': '0.5'}", ERR_INVALID, "gpus", "\"gpu\": 0.5"},
    {"{" BASE ", 'gpus': 0.5}", ERR_INVALID, "gpus", "gpus '0.5' is not a whole number"},
    {"{" BASE ", 'gpus': -1}", ERR_OUT_OF_RANGE, "gpus", "negative"},
    {"{" BASE ", 'gpus': 1025}", ERR_OUT_OF_RANGE, "gpus", "0 to 1024"},
    {"{" BASE ", 'gpus': 1e30}", ERR_INVALID, "gpus", "'1e30'"},
    {"{" BASE ", 'gpus': 9223372036854775808}", ERR_OUT_OF_RANGE, "gpus", "too large"},
    {"{" BASE ", 'gpu': 0.0001}", ERR_OUT_OF_RANGE, "gpu", "use 0.001 to 0.999"},
    {"{" BASE ", 'gpu': 1.5}", ERR_OUT_OF_RANGE, "gpu", "neither"},
    {"{" BASE ", 'gpu': -1}", ERR_OUT_OF_RANGE, "gpu", "negative"},
    {"{" BASE ", 'gpu': 'half'}", ERR_INVALID, "gpu", "'half'"},
    {"{" BASE ", 'gpus': 1, 'gpu': 0.5}", ERR_INVALID, "gpu", "gpu cannot stand beside gpus"},
    {"{" BASE ", 'gpus': 1, 'mig': '1g.10gb'}", ERR_INVALID, "mig", "beside gpus"},
    {"{" BASE ", 'gpus': 1, 'gpu_count': 2}", ERR_INVALID, "gpu_count", "use gpus"},
    {"{" BASE ", 'gpu_memory': 0}", ERR_OUT_OF_RANGE, "gpu_memory", "such as 10GiB"},
    {"{" BASE ", 'gpu_type': 'H100'}", ERR_INVALID, "gpu_type", "no GPU is asked for"},
    {"{" BASE ", 'gpus': 1, 'gpu_type': ['A', 'A']}", ERR_INVALID, "gpu_type", "'A' twice"},
    {"{" BASE ", 'gpus': 1, 'gpu_type': ['A', 3]}", ERR_INVALID, "gpu_type[1]",
     "gpu_type[1] must be a string"},
    {"{" BASE ", 'mig': '8g.10gb'}", ERR_INVALID, "mig", "'8g.10gb' is not a MIG profile"},
    {"{" BASE ", 'mig': {'1g.10gb': 0}}", ERR_OUT_OF_RANGE, "mig.1g.10gb", "from 1"},
    {"{" BASE ", 'mig': {}}", ERR_INVALID, "mig", "mig must be a profile"},
    {"{" BASE ", 'cpu': 0}", ERR_OUT_OF_RANGE, "cpu", "500m"},
    {"{" BASE ", 'memory': '65TiB'}", ERR_OUT_OF_RANGE, "memory", "64TiB"},
    {"{" BASE ", 'memory': '1GiBB'}", ERR_INVALID, "memory", "'1GiBB'"},
    {"{" BASE ", 'tasks': 0}", ERR_OUT_OF_RANGE, "tasks", "from 1 to 10000"},
    {"{" BASE ", 'tasks': 10001}", ERR_OUT_OF_RANGE, "tasks", "from 1 to 10000"},
    {"{" BASE ", 'tasks': 2, 'min_tasks': 3}", ERR_INVALID, "min_tasks",
     "min_tasks 3 is above tasks 2"},
    {"{" BASE ", 'min_tasks': 0}", ERR_OUT_OF_RANGE, "min_tasks", "below 1"},
    {"{" BASE ", 'max_run_time': '-1s'}", ERR_OUT_OF_RANGE, "max_run_time", "negative"},
    {"{" BASE ", 'max_run_time': '3651d'}", ERR_OUT_OF_RANGE, "max_run_time", "3650d"},
    {"{" BASE ", 'max_run_time': '1h', 'expected_run_time': '2h'}", ERR_INVALID,
     "expected_run_time", "longer than max_run_time"},
    {"{" BASE ", 'preemption': {'grace': '25h'}}", ERR_OUT_OF_RANGE, "preemption.grace", "1d"},
    {"{" BASE ", 'preemption': {'handling': 'x'}}", ERR_INVALID, "preemption.handling",
     "checkpoint, restart or suspend"},
    {"{" BASE ", 'preemption': {'gracee': '1s'}}", ERR_UNKNOWN_FIELD, "preemption.gracee",
     "did you mean 'grace'?"},
    {"{" BASE ", 'topology': {'required': ''}}", ERR_INVALID, "topology.required", "label"},
    {"{" BASE ", 'node_labels': {'zone': 3}}", ERR_INVALID, "node_labels.zone",
     "node_labels.zone must be a string"},
    {"{" BASE ", 'env': {'1A': 'x'}}", ERR_INVALID, "env", "'1A' is not a name"},
    {"{" BASE ", 'env': {'A=B': 'x'}}", ERR_INVALID, "env", "'A=B'"},
    {"{" BASE ", 'env': {'ALLOT_RANK': 'x'}}", ERR_INVALID, "env", "reserved"},
    {"{" BASE ", 'env': {'A': 1}}", ERR_INVALID, "env.A", "double quotes"},
    {"{" BASE ", 'env': ['A']}", ERR_INVALID, "env", "env must be an object"},
    {"{'team': 'a', 'command': []}", ERR_INVALID, "command", "command is empty"},
    {"{'team': 'a', 'command': ['']}", ERR_INVALID, "command", "command is empty"},
    {"{'team': 'a', 'command': 'ls'}", ERR_INVALID, "command", "an array of strings"},
    {"{'team': 'a', 'command': ['ls', null]}", ERR_INVALID, "command[1]", "not null"},
    {"{" BASE ", 'image': '-x'}", ERR_INVALID, "image", "docker://"},
    {"{" BASE ", 'workdir': 'a/b'}", ERR_INVALID, "workdir", "absolute path"},
    {"{" BASE ", 'workdir': '/a/../b'}", ERR_INVALID, "workdir", "'..'"},
    {"{" BASE ", 'checkpoint_dir': '/a/..'}", ERR_INVALID, "checkpoint_dir", "'..'"},
    {"{" BASE ", 'max_retries': -1}", ERR_OUT_OF_RANGE, "max_retries", "from 0 to 1000"},
    {"{" BASE ", 'preemptible': 'no'}", ERR_INVALID, "preemptible", "true or false"},
    {"{" BASE ", 'max_unavailable': 1}", ERR_INVALID, "max_unavailable", "is for services"},
    {"{" BASE ", 'kind': 'service', 'class': 'training', 'burst': true, 'max_unavailable': 1}",
     ERR_INVALID, "burst", "within the guarantee"},
    {"{" BASE ", 'kind': 'service', 'tasks': 2, 'max_unavailable': 3}", ERR_OUT_OF_RANGE,
     "max_unavailable", "use 1 to the number of tasks"},
    {"{" BASE ", 'kind': 'service', 'max_unavailable': 0}", ERR_OUT_OF_RANGE, "max_unavailable",
     "use 1 to the number of tasks"},
    {"{" BASE ", 'kind': 'service', 'max_unavailable': -1}", ERR_OUT_OF_RANGE, "max_unavailable",
     "use 1 to the number of tasks"},
    {"{" BASE ", 'kind': 'service', 'max_unavailable': 10001}", ERR_OUT_OF_RANGE,
     "max_unavailable", "use 1 to the number of tasks"},
    {"{" BASE ", 'class': 'production', 'burst': true}", ERR_INVALID, "burst",
     "stays within guarantees"},
    {"{" BASE ", 'class': 'batch', 'kind': 'service'}", ERR_INVALID, "class", "batch"},
    {"{" BASE ", 'class': 'batch', 'preemptible': false}", ERR_INVALID, "preemptible", "gives way"},
    {"{" BASE ", 'groups': []}", ERR_INVALID, "groups", "1 to 64 groups"},
    {"{" BASE ", 'groups': [{'gpus': 1}]}", ERR_MISSING, "groups[0].name",
     "groups[0].name is missing"},
    {"{" BASE ", 'groups': [{'name': 'a'}, {'name': 'a'}]}", ERR_INVALID, "groups[1].name",
     "'a' is taken by groups[0]"},
    {"{" BASE ", 'groups': [{'name': 'a', 'gpus': '0.5'}]}", ERR_INVALID, "groups[0].gpus",
     "groups[0].gpus '0.5' is not a whole number"},
    {"{" BASE ", 'groups': [{'name': 'a', 'gpus': 1, 'gpu': 1}]}", ERR_INVALID, "groups[0].gpu",
     "groups[0].gpu cannot stand beside gpus"},
    {"{" BASE ", 'groups': [{'name': 'a', 'team': 'x'}]}", ERR_UNKNOWN_FIELD, "groups[0].team",
     "groups[0].team is not a known field"},
    {"{" BASE ", 'groups': [{'name': 'a'}], 'gpus': 1}", ERR_INVALID, "gpus",
     "gpus cannot stand beside groups"},
    {"{" BASE ", 'groups': [{'name': 'a', 'tasks': 2}], 'tasks': 3}", ERR_INVALID, "tasks",
     "not the sum"},
    {"{" BASE ", 'groups': [{'name': 'a', 'tasks': 2}, {'name': 'b'}], 'min_tasks': 2}",
     ERR_INVALID, "min_tasks", "below the sum of the groups' minima, 3"},
    {"{" BASE ", 'groups': [{'name': 'a', 'tasks': 1, 'min_tasks': 2}, {'name': 'b'}]}",
     ERR_INVALID, "groups[0].min_tasks", "groups[0].min_tasks 2 is above tasks 1"},
    {"{" BASE ", 'groups': [{'name': 'a', 'tasks': 9999}, {'name': 'b', 'tasks': 2}]}",
     ERR_OUT_OF_RANGE, "tasks", "10000"},
    {"{" BASE ", 'groups': [{'name': 'a', 'topology': {'preferred': 'x'}}]}", ERR_INVALID,
     "groups[0].topology.preferred", "the whole workload"},
};

static void test_refusals_name_the_field_and_the_way_out(void **state)
{

    for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
        struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;
        struct model_workload w;

        check_refusal(&refusals[i], decode(&a, refusals[i].text, &w, &err), &err);
        arena_done(&a);
    }
}

/* {BASE, FIELD: <COUNT copies of ITEM, comma-separated, inside OPEN and CLOSE>} */
static char *repeated(struct arena *a, const char *field, const char *open, const char *item,
                      int count, const char *close)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

    strbuf_addf(&b, "{'team': 'nlp', '%s': %s", field, open);
    for (int i = 0; i < count; i++) {
        for (const char *p = item; *p; p++) {
            if (*p == '#')
                strbuf_add_i64(&b, i);
            else
                strbuf_addc(&b, *p);
        }
        strbuf_adds(&b, i < count - 1 ? "," : "");
    }
    strbuf_addf(&b, "%s}", close);
    return arena_strdup(a, strbuf_str(&b));
}

static void test_every_list_is_bounded(void **state)
{
    static const struct {
        const char *field, *open, *item, *close;
        int max;
    } cases[] = {
        {"command", "[", "'#'", "]", MODEL_COMMAND_MAX},
        {"env", "{", "'V#': ''", "}, 'command': ['x']", MODEL_ENV_MAX},
        {"groups", "[", "{'name': 'g#'}", "], 'command': ['x']", MODEL_GROUPS_MAX},
        {"node_labels", "{", "'l#': 'x'", "}, 'command': ['x']", MODEL_LABELS_MAX},
        {"gpu_type", "[", "'T#'", "], 'gpus': 1, 'command': ['x']", MODEL_GPU_TYPES_MAX},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;
        struct model_workload w;

        for (int over = 0; over <= 1; over++) {
            const char *text = repeated(&a, cases[i].field, cases[i].open, cases[i].item,
                                        cases[i].max + over, cases[i].close);
            int r = decode(&a, text, &w, &err);

            if (over == 0 && r < 0)
                fail_msg("%s: %s", cases[i].field, err.text);
            assert_int_equal(r < 0, over);
        }
        assert_string_equal(err.field, cases[i].field);
        arena_done(&a);
    }
}

static void test_command_and_env_are_bounded_in_bytes(void **state)
{
    struct arena a = ARENA_INIT;
    char *big = arena_alloc(&a, MODEL_COMMAND_BYTES_MAX + 1);
    struct model_workload w;
    struct err err = ERR_INIT;

    memset(big, 'x', MODEL_COMMAND_BYTES_MAX - 1);
    assert_int_equal(
        decode(&a, arena_printf(&a, "{'team': 'a', 'command': ['%s']}", big), &w, NULL), 0);
    big[MODEL_COMMAND_BYTES_MAX - 1] = 'x';
    assert_int_equal(
        decode(&a, arena_printf(&a, "{'team': 'a', 'command': ['%s']}", big), &w, &err), -E2BIG);
    assert_string_equal(err.field, "command");
    assert_int_equal(decode(&a, arena_printf(&a, "{" BASE ", 'env': {'A': '%s'}}", big), &w, &err),
                     -E2BIG);
    assert_string_equal(err.field, "env");
    /* Two halves that are too large together. */
    big[MODEL_COMMAND_BYTES_MAX * 2 / 3] = '\0';
    assert_int_equal(decode(&a,
                            arena_printf(&a,
                                         "{" BASE ", 'env': {'A': '%s'}, 'groups': ["
                                         "{'name': 'g', 'env': {'B': '%s'}}]}",
                                         big, big),
                            &w, &err),
                     -E2BIG);
    assert_string_equal(err.field, "env");
    arena_done(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults_of_a_job),
        cmocka_unit_test(test_class_follows_kind),
        cmocka_unit_test(test_forms_of_a_gpu_request),
        cmocka_unit_test(test_memory_is_charged_as_a_ceiling),
        cmocka_unit_test(test_ranks_run_through_the_groups),
        cmocka_unit_test(test_groups_inherit_command_and_env),
        cmocka_unit_test(test_a_preset_team_is_the_default),
        cmocka_unit_test(test_unicode_names_are_fine),
        cmocka_unit_test(test_the_largest_workload_is_accepted),
        cmocka_unit_test(test_refusals_name_the_field_and_the_way_out),
        cmocka_unit_test(test_every_list_is_bounded),
        cmocka_unit_test(test_command_and_env_are_bounded_in_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
