/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/json_writer.h"

static struct strbuf buf;
static struct json_writer w;

static int begin(void **state)
{
    json_writer_init(&w, &buf);
    return 0;
}

static int end(void **state)
{
    strbuf_done(&buf);
    return 0;
}

static void values_and_commas(void **state)
{
    json_begin_object(&w);
    json_key_i64(&w, "a", -5);
    json_key(&w, "b");
    json_begin_array(&w);
    json_boolean(&w, true);
    json_null(&w);
    json_begin_object(&w);
    json_end_object(&w);
    json_begin_array(&w);
    json_end_array(&w);
    json_string(&w, NULL);
    json_end_array(&w);
    json_key_bool(&w, "c", false);
    json_key_string(&w, "d", "x");
    json_key(&w, "e");
    json_raw(&w, "{\"z\":1}", 7);
    json_end_object(&w);
    assert_string_equal(buf.data, "{\"a\":-5,\"b\":[true,null,{},[],null],\"c\":false,"
                                  "\"d\":\"x\",\"e\":{\"z\":1}}");
}

static void strings_are_escaped(void **state)
{
    json_string_n(&w, "\"\\\b\f\n\r\t\0\x1f\x7f/", 11);
    assert_string_equal(buf.data, "\"\\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u001f\\u007f/\"");
}

static void keys_are_escaped(void **state)
{
    json_begin_object(&w);
    json_key_i64(&w, "a\"b", 1);
    json_end_object(&w);
    assert_string_equal(buf.data, "{\"a\\\"b\":1}");
}

static void valid_utf8_is_kept_and_invalid_replaced(void **state)
{
    json_string(&w, "\xc3\xa9 \xff \xed\xa0\x80 \xe2\x82");
    assert_string_equal(buf.data, "\"\xc3\xa9 \xef\xbf\xbd "
                                  "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd "
                                  "\xef\xbf\xbd\xef\xbf\xbd\"");
}

static void times_are_iso_or_null(void **state)
{
    json_begin_object(&w);
    json_key_time(&w, "a", 0);
    json_key_time(&w, "b", 1);
    json_end_object(&w);
    assert_string_equal(buf.data, "{\"a\":null,\"b\":\"1970-01-01T00:00:00.001Z\"}");
}

static void several_documents_in_one_array(void **state)
{
    json_begin_array(&w);
    for (int i = 0; i < 3; i++)
        json_i64(&w, i);
    json_end_array(&w);
    assert_string_equal(buf.data, "[0,1,2]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(values_and_commas, begin, end),
        cmocka_unit_test_setup_teardown(strings_are_escaped, begin, end),
        cmocka_unit_test_setup_teardown(keys_are_escaped, begin, end),
        cmocka_unit_test_setup_teardown(valid_utf8_is_kept_and_invalid_replaced, begin, end),
        cmocka_unit_test_setup_teardown(times_are_iso_or_null, begin, end),
        cmocka_unit_test_setup_teardown(several_documents_in_one_array, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
