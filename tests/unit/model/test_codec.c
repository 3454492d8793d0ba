/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is stored comes back the same, and no text, however damaged, does more than be refused.
 */
#include "support.h"

#include "base/json_writer.h"
#include "base/rng.h"
#include "model/workload.h"
#include "random_workload.h"

#define ROUNDS 300

static void write_shape(const struct model_shape *s, struct strbuf *out)
{
    struct json_writer w;

    json_writer_init(&w, out);
    model_shape_encode(s, &w);
}

static void write_launch(const struct model_launch *l, struct strbuf *out)
{
    struct json_writer w;

    json_writer_init(&w, out);
    model_launch_encode(l, &w);
}

static void assert_same_text(const char *a, const char *b)
{
    assert_int_equal(a != NULL, b != NULL);
    if (a)
        assert_string_equal(a, b);
}

static void assert_same_pairs(const struct model_pair *a, int32_t a_count,
                              const struct model_pair *b, int32_t b_count)
{
    assert_int_equal(a_count, b_count);
    for (int32_t i = 0; i < a_count; i++) {
        assert_string_equal(a[i].key, b[i].key);
        assert_string_equal(a[i].value, b[i].value);
    }
}

static void assert_same_request(const struct model_request *a, const struct model_request *b)
{
    assert_int_equal(a->device_count, b->device_count);
    assert_int_equal(a->device_milli, b->device_milli);
    assert_int_equal(a->device_memory_bytes, b->device_memory_bytes);
    assert_int_equal(a->cpu_milli, b->cpu_milli);
    assert_int_equal(a->memory_bytes, b->memory_bytes);
    assert_int_equal(a->mig_count, b->mig_count);
    for (int32_t i = 0; i < a->mig_count; i++) {
        assert_string_equal(a->mig[i].profile, b->mig[i].profile);
        assert_int_equal(a->mig[i].count, b->mig[i].count);
    }
    assert_int_equal(a->gpu_type_count, b->gpu_type_count);
    for (int32_t i = 0; i < a->gpu_type_count; i++)
        assert_string_equal(a->gpu_types[i], b->gpu_types[i]);
    assert_same_pairs(a->labels, a->label_count, b->labels, b->label_count);
}

static void assert_same_shape(const struct model_shape *a, const struct model_shape *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->class_, b->class_);
    assert_int_equal(a->priority, b->priority);
    assert_int_equal(a->preemptible, b->preemptible);
    assert_int_equal(a->burst, b->burst);
    assert_int_equal(a->handling, b->handling);
    assert_int_equal(a->max_retries, b->max_retries);
    assert_int_equal(a->min_tasks, b->min_tasks);
    assert_int_equal(a->task_count, b->task_count);
    assert_int_equal(a->grace_ms, b->grace_ms);
    assert_int_equal(a->limit_ms, b->limit_ms);
    assert_int_equal(a->expected_ms, b->expected_ms);
    assert_int_equal(a->min_run_ms, b->min_run_ms);
    assert_same_text(a->topology_required, b->topology_required);
    assert_same_text(a->topology_preferred, b->topology_preferred);
    assert_int_equal(a->group_count, b->group_count);
    for (int32_t i = 0; i < a->group_count; i++) {
        assert_string_equal(a->groups[i].name, b->groups[i].name);
        assert_int_equal(a->groups[i].tasks, b->groups[i].tasks);
        assert_int_equal(a->groups[i].min_tasks, b->groups[i].min_tasks);
        assert_same_text(a->groups[i].topology_required, b->groups[i].topology_required);
        assert_same_request(&a->groups[i].request, &b->groups[i].request);
    }
}

static void assert_same_launch(const struct model_launch *a, const struct model_launch *b)
{
    assert_same_text(a->image, b->image);
    assert_same_text(a->workdir, b->workdir);
    assert_same_text(a->checkpoint_dir, b->checkpoint_dir);
    assert_int_equal(a->group_count, b->group_count);
    for (int32_t i = 0; i < a->group_count; i++) {
        const char *const *p = a->groups[i].command, *const *q = b->groups[i].command;

        for (; *p && *q; p++, q++)
            assert_string_equal(*p, *q);
        assert_null(*p);
        assert_null(*q);
        assert_same_pairs(a->groups[i].env, a->groups[i].env_count, b->groups[i].env,
                          b->groups[i].env_count);
    }
}

static void test_a_stored_shape_comes_back(void **state)
{
    struct rng rng;

    rng_seed(&rng, 1);
    for (int i = 0; i < ROUNDS; i++) {
        _cleanup_strbuf_ struct strbuf text = STRBUF_INIT, again = STRBUF_INIT;
        struct arena a = ARENA_INIT;
        struct model_workload w;
        const struct model_shape *back = NULL;
        struct err err = ERR_INIT;

        random_workload(&rng, &a, &w);
        write_shape(w.shape, &text);
        if (model_shape_decode(text.data, text.len, &a, &back, &err) < 0)
            fail_msg("round %d: %s: %s", i, err.text, text.data);
        assert_same_shape(w.shape, back);
        write_shape(back, &again);
        assert_string_equal(text.data, again.data);
        arena_done(&a);
    }
}

static void test_a_stored_launch_comes_back(void **state)
{
    struct rng rng;

    rng_seed(&rng, 2);
    for (int i = 0; i < ROUNDS; i++) {
        _cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
        struct arena a = ARENA_INIT;
        struct model_workload w;
        const struct model_launch *back = NULL;
        struct err err = ERR_INIT;

        random_workload(&rng, &a, &w);
        write_launch(w.launch, &text);
        if (model_launch_decode(text.data, text.len, &a, &back, &err) < 0)
            fail_msg("round %d: %s: %s", i, err.text, text.data);
        assert_same_launch(w.launch, back);
        arena_done(&a);
    }
}

static const char *const server_fields[] = {
    "id",       "owner",      "state",    "submitted_at",  "started_at",
    "ended_at", "evicted_at", "restarts", "running_tasks", "ended_tasks",
    "failures", "exit_code",  "message",  "request",
};

/* What the API shows, without what only the server can say, is what a person could have sent. */
static void test_what_the_api_shows_can_be_sent_again(void **state)
{
    struct rng rng;

    rng_seed(&rng, 3);
    for (int i = 0; i < ROUNDS; i++) {
        _cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
        struct arena a = ARENA_INIT;
        struct json_object *json = NULL;
        struct model_workload w, back = {0};
        struct json_writer out;
        struct err err = ERR_INIT;

        random_workload(&rng, &a, &w);
        json_writer_init(&out, &text);
        model_workload_encode(&w, &out);
        assert_int_equal(model_json_parse(text.data, text.len, &json, &err), 0);
        for (size_t j = 0; j < ARRAY_LEN(server_fields); j++) {
            assert_true(json_object_object_get_ex(json, server_fields[j], NULL));
            json_object_object_del(json, server_fields[j]);
        }
        if (model_workload_decode(json, &a, &back, &err) < 0)
            fail_msg("round %d: %s: %s", i, err.text, text.data);
        assert_string_equal(back.name, w.name);
        assert_string_equal(back.team, w.team);
        assert_same_shape(w.shape, back.shape);
        assert_same_launch(w.launch, back.launch);
        json_object_put(json);
        arena_done(&a);
    }
}

static void test_equal_shapes_give_equal_text(void **state)
{
    static const char *const ways[] = {
        "{'team': 'a', 'command': ['x'], 'gpu': 1, 'node_labels': {'b': '1', 'a': '2'},"
        "'max_run_time': '60m', 'topology': null}",
        "{'max_run_time': 3600, 'node_labels': {'a': '2', 'b': '1'}, 'gpus': '1', 'tasks': 1,"
        "'class': 'training', 'team': 'b', 'command': ['y'], 'memory': 0}",
        "{'team': 'a', 'command': ['x'], 'max_run_time': '1h', 'groups': [{'name': 'main',"
        "'gpus': 1, 'node_labels': {'a': '2', 'b': '1'}}]}",
    };
    _cleanup_strbuf_ struct strbuf first = STRBUF_INIT;
    struct arena a = ARENA_INIT;

    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        _cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
        struct json_object *json = parsed(&a, ways[i]);
        struct model_workload w = {0};

        assert_int_equal(model_workload_decode(json, &a, &w, NULL), 0);
        write_shape(w.shape, i == 0 ? &first : &text);
        if (i > 0)
            assert_string_equal(text.data, first.data);
        json_object_put(json);
    }
    arena_done(&a);
}

/* One shape and one launch of moderate size, to be damaged. */
static void sample(struct strbuf *shape, struct strbuf *launch)
{
    struct arena a = ARENA_INIT;
    struct json_object *json =
        parsed(&a, "{'team': 'a', 'command': ['x', '-c', 'y'], 'env': {'A': 'b'}, 'image': 'i',"
                   "'groups': [{'name': 'p', 'mig': {'1g.10gb': 2}, 'gpu_type': ['H100']},"
                   "{'name': 'q', 'tasks': 3, 'gpu': 0.5, 'node_labels': {'zone': 'a'}}]}");
    struct model_workload w = {0};

    assert_int_equal(model_workload_decode(json, &a, &w, NULL), 0);
    write_shape(w.shape, shape);
    write_launch(w.launch, launch);
    json_object_put(json);
    arena_done(&a);
}

static void test_a_truncated_row_is_refused(void **state)
{
    _cleanup_strbuf_ struct strbuf shape = STRBUF_INIT, launch = STRBUF_INIT;
    const struct model_launch *l = NULL;
    const struct model_shape *s = NULL;
    struct arena a = ARENA_INIT;

    sample(&shape, &launch);
    for (size_t len = 0; len < shape.len; len++)
        assert_int_equal(model_shape_decode(shape.data, len, &a, &s, NULL), -EINVAL);
    for (size_t len = 0; len < launch.len; len++)
        assert_int_equal(model_launch_decode(launch.data, len, &a, &l, NULL), -EINVAL);
    assert_int_equal(model_shape_decode("[]", 2, &a, &s, NULL), -EINVAL);
    assert_int_equal(model_shape_decode("{}", 2, &a, &s, NULL), -EINVAL);
    assert_int_equal(model_launch_decode("{}", 2, &a, &l, NULL), -EINVAL);
    arena_done(&a);
}

static void damage(struct rng *r, struct strbuf *text)
{
    static const char bytes[] = "{}[]\",:0123456789-.eE\\ \0\x7f\xff\xc3nulltruefalse";
    size_t hits = 1 + rng_below(r, 3);

    for (size_t i = 0; i < hits; i++)
        text->data[rng_below(r, text->len)] = bytes[rng_below(r, sizeof(bytes))];
}

/* Whatever a damaged row decodes to obeys the rules: it encodes to what decodes again. */
static void test_a_damaged_row_is_refused_or_valid(void **state)
{
    _cleanup_strbuf_ struct strbuf shape = STRBUF_INIT, launch = STRBUF_INIT;
    int refused = 0;
    struct rng rng;

    rng_seed(&rng, 4);
    sample(&shape, &launch);
    for (int i = 0; i < 20000; i++) {
        _cleanup_strbuf_ struct strbuf text = STRBUF_INIT, again = STRBUF_INIT;
        const struct model_shape *s = NULL;
        struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;

        strbuf_add(&text, shape.data, shape.len);
        damage(&rng, &text);
        if (model_shape_decode(text.data, text.len, &a, &s, &err) < 0) {
            assert_true(err.text[0] != '\0' && err.code != NULL);
            refused++;
        } else {
            write_shape(s, &again);
            assert_int_equal(model_shape_decode(again.data, again.len, &a, &s, NULL), 0);
        }
        arena_done(&a);
    }
    assert_true(refused > 10000 && refused < 20000);
}

static void test_damaged_launches_never_crash(void **state)
{
    _cleanup_strbuf_ struct strbuf shape = STRBUF_INIT, launch = STRBUF_INIT;
    struct rng rng;

    rng_seed(&rng, 5);
    sample(&shape, &launch);
    for (int i = 0; i < 20000; i++) {
        _cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
        const struct model_launch *l = NULL;
        struct arena a = ARENA_INIT;

        strbuf_add(&text, launch.data, launch.len);
        damage(&rng, &text);
        if (model_launch_decode(text.data, text.len, &a, &l, NULL) == 0)
            assert_true(l->group_count >= 1 && l->groups[0].command[0][0] != '\0');
        arena_done(&a);
    }
}

static void test_numbers_of_a_row_are_bounded(void **state)
{
    static const char *const swaps[][2] = {
        {"\"tasks\":3", "\"tasks\":2147483647"},
        {"\"tasks\":3", "\"tasks\":-3"},
        {"\"device_count\":1", "\"device_count\":1025"},
        {"\"device_milli\":500", "\"device_milli\":1001"},
        {"\"device_memory_bytes\":0", "\"device_memory_bytes\":-1"},
        {"\"device_memory_bytes\":0", "\"device_memory_bytes\":9223372036854775807"},
        {"\"cpu_milli\":0", "\"cpu_milli\":-1"},
        {"\"grace_ms\":30000", "\"grace_ms\":9223372036854775807"},
        {"\"min_tasks\":4", "\"min_tasks\":5"},
        {"\"1g.10gb\":2", "\"1g.10gb\":4096"},
        {"\"class\":\"training\"", "\"class\":\"Training\""},
    };
    _cleanup_strbuf_ struct strbuf shape = STRBUF_INIT, launch = STRBUF_INIT;

    sample(&shape, &launch);
    for (size_t i = 0; i < ARRAY_LEN(swaps); i++) {
        const char *at = strstr(shape.data, swaps[i][0]);
        const struct model_shape *s = NULL;
        struct arena a = ARENA_INIT;
        char *text;

        assert_non_null(at);
        text = arena_printf(&a, "%.*s%s%s", (int)(at - shape.data), shape.data, swaps[i][1],
                            at + strlen(swaps[i][0]));
        if (model_shape_decode(text, strlen(text), &a, &s, NULL) == 0)
            fail_msg("accepted: %s", swaps[i][1]);
        arena_done(&a);
    }
}

static void test_a_list_row_without_shape_is_written(void **state)
{
    const struct model_workload w = {
        .id = 81, .name = "x", .team = "t", .owner = "o", .message = "why"};
    _cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
    struct json_writer out;

    json_writer_init(&out, &text);
    model_workload_encode(&w, &out);
    assert_string_equal(text.data,
                        "{\"id\":81,\"name\":\"x\",\"team\":\"t\",\"owner\":\"o\","
                        "\"state\":\"pending\",\"submitted_at\":null,\"started_at\":null,"
                        "\"ended_at\":null,\"evicted_at\":null,\"running_tasks\":0,\"ended_tasks\":"
                        "0,\"restarts\":0,"
                        "\"failures\":0,\"exit_code\":0,\"message\":\"why\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stored_shape_comes_back),
        cmocka_unit_test(test_a_stored_launch_comes_back),
        cmocka_unit_test(test_what_the_api_shows_can_be_sent_again),
        cmocka_unit_test(test_equal_shapes_give_equal_text),
        cmocka_unit_test(test_a_truncated_row_is_refused),
        cmocka_unit_test(test_a_damaged_row_is_refused_or_valid),
        cmocka_unit_test(test_damaged_launches_never_crash),
        cmocka_unit_test(test_numbers_of_a_row_are_bounded),
        cmocka_unit_test(test_a_list_row_without_shape_is_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
