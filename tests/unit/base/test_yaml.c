/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/yaml.h"

static void check_json(const char *yaml, const char *want)
{
    _cleanup_strbuf_ struct strbuf json = STRBUF_INIT;
    struct err e = ERR_INIT;

    if (yaml_to_json(yaml, strlen(yaml), &json, &e) != 0)
        fail_msg("'%s' was refused: %s", yaml, e.text);
    assert_string_equal(json.data, want);
}

/* Refuses YAML with a text that holds both parts. */
static void check_refusal(const char *yaml, size_t len, int errnum, const char *where,
                          const char *what)
{
    _cleanup_strbuf_ struct strbuf json = STRBUF_INIT;
    struct err e = ERR_INIT;

    strbuf_adds(&json, "before");
    assert_int_equal(yaml_to_json(yaml, len, &json, &e), errnum);
    assert_string_equal(json.data, "before");
    if (!strstr(e.text, where) || !strstr(e.text, what))
        fail_msg("'%s' lacks '%s' or '%s'", e.text, where, what);
}

static void check_invalid(const char *yaml, const char *where, const char *what)
{
    check_refusal(yaml, strlen(yaml), -EINVAL, where, what);
}

static void block_style_becomes_json(void **state)
{
    check_json("kind: Team\nspec:\n  quota: {gpu: 4}\n  members:\n  - ann\n  - 'b b'\n",
               "[{\"kind\":\"Team\",\"spec\":{\"quota\":{\"gpu\":4},"
               "\"members\":[\"ann\",\"b b\"]}}]");
}

static void several_documents_become_several_elements(void **state)
{
    check_json("---\na: 1\n---\n- x\n--- 7\n...\n", "[{\"a\":1},[\"x\"],7]");
}

static void empty_documents_are_left_out(void **state)
{
    check_json("", "[]");
    check_json("# only a comment\n", "[]");
    check_json("---\n---\na: 1\n---\n", "[{\"a\":1}]");
    check_json("null", "[null]");
}

static void json_is_yaml(void **state)
{
    check_json("{\"a\":[1,-2.50,true,null,\"x\\n\\u00e9\\/\"],\n\t\"b\":{}}",
               "[{\"a\":[1,-2.50,true,null,\"x\\n\xc3\xa9/\"],\"b\":{}}]");
}

static void plain_words_follow_the_core_schema(void **state)
{
    check_json("[null, Null, NULL, ~, true, True, TRUE, false, False, FALSE]",
               "[[null,null,null,null,true,true,true,false,false,false]]");
    check_json("[yes, no, on, off, nUll, tRUE, y]",
               "[[\"yes\",\"no\",\"on\",\"off\",\"nUll\",\"tRUE\",\"y\"]]");
    check_json("a:\nb: ''\n", "[{\"a\":null,\"b\":\"\"}]");
}

static void numbers_are_copied_digit_by_digit(void **state)
{
    check_json("[0.25, 0, -1, 1e30, 2.50, 9223372036854775808, 0.1000000000000000000000000001]",
               "[[0.25,0,-1,1e30,2.50,9223372036854775808,0.1000000000000000000000000001]]");
}

static void numbers_that_json_lacks_stay_text(void **state)
{
    check_json("[007, +1, .5, 5., 0x10, 0o7, .inf, .nan, 1_000, 1e, -, 10GiB, 500m, 1.2.3]",
               "[[\"007\",\"+1\",\".5\",\"5.\",\"0x10\",\"0o7\",\".inf\",\".nan\",\"1_000\","
               "\"1e\",\"-\",\"10GiB\",\"500m\",\"1.2.3\"]]");
}

static void quoted_text_stays_text(void **state)
{
    check_json("[\"8\", '8', \"true\", 'null', \"\\0\\x41\"]",
               "[[\"8\",\"8\",\"true\",\"null\",\"\\u0000A\"]]");
    check_json("a: |\n  1\n  2\nb: >\n  3\n", "[{\"a\":\"1\\n2\\n\",\"b\":\"3\\n\"}]");
}

static void keys_are_always_text(void **state)
{
    check_json("1: a\ntrue: b\n~: c\n\"\": d\n? e\n: f\n",
               "[{\"1\":\"a\",\"true\":\"b\",\"~\":\"c\",\"\":\"d\",\"e\":\"f\"}]");
}

static void a_byte_order_mark_is_skipped(void **state)
{
    check_json("\xef\xbb\xbf"
               "a: \xc3\xa9",
               "[{\"a\":\"\xc3\xa9\"}]");
}

static void anchors_aliases_and_tags_are_refused(void **state)
{
    check_invalid("a: 1\nb: &x [1]\n", "line 2, column 4", "anchor '&x'");
    check_invalid("b: &x 1\n", "line 1, column 4", "anchor '&x'");
    check_invalid("b: &x {}\n", "line 1, column 4", "anchor '&x'");
    check_invalid("b: *x\n", "line 1, column 4", "alias '*x'");
    check_invalid("b: !!str 1\n", "line 1, column 4", "tag 'tag:yaml.org,2002:str'");
    check_invalid("b: !x {}\n", "line 1, column 4", "tag '!x'");
    check_invalid("b: ! 1\n", "line 1, column 4", "tag '!'");
    check_invalid("%TAG ! tag:x,2000:\n---\na: 1\n", "line 1, column 1", "%TAG");
}

static void duplicate_keys_are_refused(void **state)
{
    check_invalid("a: 1\nb: 2\n\"a\": 3\n", "line 3, column 1", "key 'a' appears twice");
    check_json("a: {x: 1}\nb: {x: 1}\n---\na: 1\n",
               "[{\"a\":{\"x\":1},\"b\":{\"x\":1}},{\"a\":1}]");
}

static void odd_keys_are_refused(void **state)
{
    check_invalid("? [a]\n: b\n", "line 1, column 3", "a key is a mapping or a sequence");
    check_invalid("{{a: 1}: b}", "line 1, column 2", "a key is a mapping or a sequence");
    check_invalid("?\n: b\n", "line 1, column 2", "a key is missing");
    check_invalid("\"a\\0b\": 1", "line 1, column 1", "NUL");
}

static void syntax_errors_name_the_place(void **state)
{
    check_invalid("a: 1\n b: 2\n", "line 2, column 3", "mapping values are not allowed");
    check_invalid("{\"a\": [1, 2", "line 2, column 1", "did not find");
    check_invalid("a:\n\t- b\n", "line 2, column 1", "cannot start");
    check_invalid("{}{}", "line 1, column 3", "document start");
}

static void bytes_that_are_no_text_are_refused(void **state)
{
    check_invalid("a: 1\nb: \xff\n", "line 2, column 4", "UTF-8");
    check_invalid("a: \x1b[2J\n", "line 1, column 4", "control characters");
    check_refusal("a: \0b", 5, -EINVAL, "line 1, column 4", "control characters");
    check_invalid("\xff\xfe"
                  "a",
                  "line 1, column 1", "UTF-8");
}

/* PREFIX repeated N times in memory to free(). */
static char *repeat(const char *part, size_t n)
{
    struct strbuf b = STRBUF_INIT;

    while (n-- > 0)
        strbuf_adds(&b, part);
    return strbuf_steal(&b);
}

static void depth_is_bounded(void **state)
{
    char *open = repeat("[", YAML_DEPTH_MAX), *close = repeat("]", YAML_DEPTH_MAX);
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT, want = STRBUF_INIT;

    strbuf_addf(&b, "%s%s", open, close);
    strbuf_addf(&want, "[%s]", b.data);
    check_json(b.data, want.data);
    strbuf_truncate(&b, 0);
    strbuf_addf(&b, "[%s", open);
    check_refusal(b.data, b.len, -EFBIG, "line 1, column 33", "more than 32 levels");
    free(open);
    free(close);
    open = repeat("[", 100000);
    check_refusal(open, 100000, -EFBIG, "line 1, column 33", "more than 32 levels");
    free(open);
}

static void documents_are_bounded(void **state)
{
    char *most = repeat("--- 1\n", YAML_DOCUMENTS_MAX);
    char *more = repeat("---\n", YAML_DOCUMENTS_MAX + 1);
    _cleanup_strbuf_ struct strbuf json = STRBUF_INIT;

    assert_int_equal(yaml_to_json(most, strlen(most), &json, NULL), 0);
    assert_int_equal(json.len, 2 * YAML_DOCUMENTS_MAX + 1);
    check_refusal(more, strlen(more), -EFBIG, "line 1001, column 1", "more than 1000 documents");
    free(most);
    free(more);
}

static void keys_are_bounded(void **state)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

    for (int i = 0; i <= YAML_KEYS_MAX; i++)
        strbuf_addf(&b, "k%d: 1\n", i);
    check_refusal(b.data, b.len, -EFBIG, "line 1001, column 1", "more than 1000 keys");
}

static void size_is_bounded(void **state)
{
    char *text = repeat("#", YAML_SIZE_MAX + 1);
    _cleanup_strbuf_ struct strbuf json = STRBUF_INIT;

    assert_int_equal(yaml_to_json(text, YAML_SIZE_MAX, &json, NULL), 0);
    check_refusal(text, YAML_SIZE_MAX + 1, -EFBIG, "larger than", "10 MiB");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(block_style_becomes_json),
        cmocka_unit_test(several_documents_become_several_elements),
        cmocka_unit_test(empty_documents_are_left_out),
        cmocka_unit_test(json_is_yaml),
        cmocka_unit_test(plain_words_follow_the_core_schema),
        cmocka_unit_test(numbers_are_copied_digit_by_digit),
        cmocka_unit_test(numbers_that_json_lacks_stay_text),
        cmocka_unit_test(quoted_text_stays_text),
        cmocka_unit_test(keys_are_always_text),
        cmocka_unit_test(a_byte_order_mark_is_skipped),
        cmocka_unit_test(anchors_aliases_and_tags_are_refused),
        cmocka_unit_test(duplicate_keys_are_refused),
        cmocka_unit_test(odd_keys_are_refused),
        cmocka_unit_test(syntax_errors_name_the_place),
        cmocka_unit_test(bytes_that_are_no_text_are_refused),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(documents_are_bounded),
        cmocka_unit_test(keys_are_bounded),
        cmocka_unit_test(size_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
