/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "model/workload.h"

static int parse(const char *text, size_t len, struct err *err)
{
    struct json_object *json = NULL;
    int r = model_json_parse(text, len, &json, err);

    json_object_put(json);
    return r;
}

static void test_every_prefix_of_a_document_is_refused(void **state)
{
    static const char text[] = "{\"a\": [1, -2.5, \"x\\u00e9\\\"\", {\"b\": null}], \"c\": true}";

    assert_int_equal(parse(text, sizeof(text) - 1, NULL), 0);
    for (size_t len = 0; len < sizeof(text) - 1; len++) {
        struct err err = ERR_INIT;

        assert_int_equal(parse(text, len, &err), -EINVAL);
        assert_non_null(strstr(err.text, "JSON is invalid at byte"));
    }
}

static void test_hostile_texts(void **state)
{
    static const struct refusal cases[] = {
        {"", ERR_INVALID, "", "empty"},
        {" \n ", ERR_INVALID, "", "empty"},
        {"12", ERR_INVALID, "", "begins with"},
        {"\"x\"", ERR_INVALID, "", "begins with"},
        {"{\"a\": 1} x", ERR_INVALID, "", "unexpected character"},
        {"{\"a\": 1}{\"a\": 1}", ERR_INVALID, "", "unexpected character"},
        {"{\"a\": 1,}", ERR_INVALID, "", "JSON is invalid"},
        {"{\"a\": 1 /* x */}", ERR_INVALID, "", "JSON is invalid"},
        {"{'a': 1}", ERR_INVALID, "", "double quotes"},
        {"{\"a\": NaN}", ERR_INVALID, "", "NaN"},
        {"{\"a\": -Infinity}", ERR_INVALID, "", "Infinity"},
        {"{\"a\": TRUE}", ERR_INVALID, "", "JSON is invalid"},
        {"{\"a\": 01}", ERR_INVALID, "", "JSON is invalid"},
        {"{\"a\": +1}", ERR_INVALID, "", "JSON is invalid"},
        {"{\"a\": \"x\ny\"}", ERR_INVALID, "", "must be escaped"},
        {"{\"a\": \"x\\u0000y\"}", ERR_INVALID, "", "NUL"},
        {"{\"a\\u0000b\": 1}", ERR_INVALID, "", "NUL"},
        {"{\"a\": \"\\x\"}", ERR_INVALID, "", "JSON is invalid"},
        {"{\"a\": \"\xff\xfe\"}", ERR_INVALID, "", "UTF-8"},
        {"{\"a\": \"\xc0\xaf\"}", ERR_INVALID, "", "UTF-8"},
        {"{\"a\": \"\xed\xa0\x80\"}", ERR_INVALID, "", "UTF-8"},
        {"{\"a\": 1, \"b\": {\"a\": 2, \"c\": 1}, \"a\": 3}", ERR_INVALID, "a", "'a' stands twice"},
        {"[{\"a\": 1}, {\"b\": 1, \"b\": 1}]", ERR_INVALID, "b", "'b' stands twice"},
        {"{\"a\": 1, \"\\u0061\": 2}", ERR_INVALID, "", "stands twice"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = ERR_INIT;

        check_refusal(&cases[i], parse(cases[i].text, strlen(cases[i].text), &err), &err);
    }
}

static void test_raw_nul_is_refused_anywhere(void **state)
{
    static const char inside[] = "{\"a\": \"x\0y\"}", after[] = "{\"a\": 1}\0", between[] = "{\0}";

    assert_int_equal(parse(inside, sizeof(inside) - 1, NULL), -EINVAL);
    assert_int_equal(parse(after, sizeof(after) - 1, NULL), -EINVAL);
    assert_int_equal(parse(between, sizeof(between) - 1, NULL), -EINVAL);
}

static void test_equal_keys_of_different_objects_are_fine(void **state)
{
    static const char text[] = "[{\"a\": \":\\\":\", \"b\": {\"a\": 1}}, {\"a\": 2}]";

    assert_int_equal(parse(text, sizeof(text) - 1, NULL), 0);
}

static int parse_nested(char open, char close, size_t depth)
{
    char *text = malloc(2 * depth);
    struct err err = ERR_INIT;
    int r;

    memset(text, open, depth);
    memset(text + depth, close, depth);
    r = parse(text, 2 * depth, &err);
    free(text);
    return r;
}

static void test_depth_is_bounded(void **state)
{
    assert_int_equal(parse_nested('[', ']', MODEL_JSON_DEPTH_MAX), 0);
    assert_int_equal(parse_nested('[', ']', MODEL_JSON_DEPTH_MAX + 1), -EINVAL);
    assert_int_equal(parse_nested('[', ']', 10000), -EINVAL);
    assert_int_equal(parse_nested('{', '}', 10000), -EINVAL);
}

static void test_size_is_bounded(void **state)
{
    struct err err = ERR_INIT;

    /* Refused by its length alone. */
    assert_int_equal(parse("{}", MODEL_JSON_BYTES_MAX + 1, &err), -E2BIG);
    assert_string_equal(err.code, ERR_TOO_LARGE);
}

static void test_a_large_body_of_rubbish_is_refused(void **state)
{
    size_t len = 10 << 20;
    char *text = malloc(len);

    memset(text, '{', len);
    assert_int_equal(parse(text, len, NULL), -EINVAL);
    memset(text, '"', len);
    text[0] = '[';
    assert_int_equal(parse(text, len, NULL), -EINVAL);
    memset(text, '\\', len);
    memcpy(text, "[\"", 2);
    assert_int_equal(parse(text, len, NULL), -EINVAL);
    free(text);
}

static void test_a_path_grows_as_decoders_return(void **state)
{
    struct err err = ERR_INIT;

    err_set(&err, -EINVAL, ERR_INVALID, NULL, NULL, "'x' is not a whole number");
    model_json_in(&err, "gpus");
    assert_string_equal(err.field, "gpus");
    assert_string_equal(err.text, "gpus 'x' is not a whole number");
    model_json_in(&err, "[%d]", 3);
    model_json_in(&err, "groups");
    assert_string_equal(err.field, "groups[3].gpus");
    assert_string_equal(err.text, "groups[3].gpus 'x' is not a whole number");
    model_json_in(NULL, "ignored");
}

struct numbers {
    int32_t i32;
    int64_t i64, milli, bytes, ms;
    bool flag;
};

static int read_numbers(const char *text, struct numbers *n, struct err *err)
{
    static const struct model_json_field fields[] = {
        {"i32", model_json_read_i32, offsetof(struct numbers, i32)},
        {"i64", model_json_read_i64, offsetof(struct numbers, i64)},
        {"milli", model_json_read_milli, offsetof(struct numbers, milli)},
        {"bytes", model_json_read_bytes, offsetof(struct numbers, bytes)},
        {"ms", model_json_read_duration, offsetof(struct numbers, ms)},
        {"flag", model_json_read_bool, offsetof(struct numbers, flag)},
    };
    struct arena a = ARENA_INIT;
    struct json_object *json = parsed(&a, text);
    int r = model_json_read(json, fields, ARRAY_LEN(fields), &a, n, err);

    json_object_put(json);
    arena_done(&a);
    return r;
}

static void test_readers_are_exact_at_their_bounds(void **state)
{
    struct numbers n = {0};

    assert_int_equal(read_numbers("{'i32': -2147483647, 'i64': 9223372036854775807,"
                                  "'milli': 0.25, 'bytes': '1.5KiB', 'ms': '1h30m',"
                                  "'flag': true}",
                                  &n, NULL),
                     0);
    assert_int_equal(n.i32, -2147483647);
    assert_int_equal(n.i64, INT64_MAX);
    assert_int_equal(n.milli, 250);
    assert_int_equal(n.bytes, 1536);
    assert_int_equal(n.ms, 5400000);
    assert_true(n.flag);
}

static void test_null_leaves_the_destination_alone(void **state)
{
    struct numbers n = {.i32 = 7, .milli = 8, .flag = true};

    assert_int_equal(read_numbers("{'i32': null, 'milli': null, 'flag': null}", &n, NULL), 0);
    assert_int_equal(n.i32, 7);
    assert_int_equal(n.milli, 8);
    assert_true(n.flag);
}

static void test_readers_refuse(void **state)
{
    static const struct refusal cases[] = {
        {"{'i32': 2147483648}", ERR_OUT_OF_RANGE, "i32", "i32 '2147483648' is out of range"},
        {"{'i32': -2147483648}", ERR_OUT_OF_RANGE, "i32", "out of range"},
        {"{'i64': 9223372036854775808}", ERR_OUT_OF_RANGE, "i64", "'9223372036854775808'"},
        {"{'i64': 18446744073709551617}", ERR_OUT_OF_RANGE, "i64", "out of range"},
        {"{'i64': -9223372036854775809}", ERR_OUT_OF_RANGE, "i64", "out of range"},
        {"{'i64': 1e3}", ERR_INVALID, "i64", "'1e3' is not a whole number"},
        {"{'i64': '3'}", ERR_INVALID, "i64", "'3' is not a whole number"},
        {"{'i64': {}}", ERR_INVALID, "i64", "not an object"},
        {"{'milli': -1}", ERR_OUT_OF_RANGE, "milli", "negative"},
        {"{'milli': -0.5}", ERR_OUT_OF_RANGE, "milli", "negative"},
        {"{'milli': 1e30}", ERR_INVALID, "milli", "'1e30'"},
        {"{'milli': '0.0001'}", ERR_OUT_OF_RANGE, "milli", "too precise"},
        {"{'milli': []}", ERR_INVALID, "milli", "not an array"},
        {"{'bytes': '9223372036854775808'}", ERR_OUT_OF_RANGE, "bytes", "too large"},
        {"{'bytes': '10 GiB'}", ERR_INVALID, "bytes", "'10 GiB'"},
        {"{'ms': '1h-3m'}", ERR_INVALID, "ms", "'1h-3m'"},
        {"{'flag': 1}", ERR_INVALID, "flag", "must be true or false, not a number"},
        {"{'flag': 'true'}", ERR_INVALID, "flag", "must be true or false, not a string"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct numbers n = {0};
        struct err err = ERR_INIT;

        check_refusal(&cases[i], read_numbers(cases[i].text, &n, &err), &err);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_prefix_of_a_document_is_refused),
        cmocka_unit_test(test_hostile_texts),
        cmocka_unit_test(test_raw_nul_is_refused_anywhere),
        cmocka_unit_test(test_equal_keys_of_different_objects_are_fine),
        cmocka_unit_test(test_depth_is_bounded),
        cmocka_unit_test(test_size_is_bounded),
        cmocka_unit_test(test_a_large_body_of_rubbish_is_refused),
        cmocka_unit_test(test_a_path_grows_as_decoders_return),
        cmocka_unit_test(test_readers_are_exact_at_their_bounds),
        cmocka_unit_test(test_null_leaves_the_destination_alone),
        cmocka_unit_test(test_readers_refuse),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
