/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

static void starts_empty(void **state)
{
    struct strbuf b = STRBUF_INIT;
    char *text;

    assert_string_equal(strbuf_str(&b), "");
    strbuf_truncate(&b, 0);
    text = strbuf_steal(&b);
    assert_string_equal(text, "");
    free(text);
}

static void pieces_join(void **state)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

    strbuf_adds(&b, "a");
    strbuf_addc(&b, 'b');
    strbuf_addf(&b, "%s%d", "c", 1);
    strbuf_add(&b, "\0d", 2);
    assert_int_equal(b.len, 6);
    assert_memory_equal(b.data, "abc1\0d", 7);
}

static void long_formats_grow_the_buffer(void **state)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

    for (int i = 0; i < 300; i++)
        strbuf_addf(&b, "%0*d|", i, 7);
    assert_int_equal(b.len, 300 * 299 / 2 + 300 + 1);
    assert_int_equal(strlen(b.data), b.len);
}

static void integers_print_in_full(void **state)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

    strbuf_add_i64(&b, 0);
    strbuf_addc(&b, ' ');
    strbuf_add_i64(&b, -7);
    strbuf_addc(&b, ' ');
    strbuf_add_i64(&b, INT64_MAX);
    strbuf_addc(&b, ' ');
    strbuf_add_i64(&b, INT64_MIN);
    assert_string_equal(b.data, "0 -7 9223372036854775807 -9223372036854775808");
}

static void truncate_shortens(void **state)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

    strbuf_adds(&b, "abcdef");
    strbuf_truncate(&b, 2);
    assert_string_equal(strbuf_str(&b), "ab");
    strbuf_adds(&b, "x");
    assert_string_equal(strbuf_str(&b), "abx");
}

static void steal_leaves_nothing_behind(void **state)
{
    struct strbuf b = STRBUF_INIT;
    char *text;

    strbuf_adds(&b, "mine");
    text = strbuf_steal(&b);
    assert_string_equal(text, "mine");
    assert_null(b.data);
    assert_int_equal(b.len + b.cap, 0);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starts_empty),
        cmocka_unit_test(pieces_join),
        cmocka_unit_test(long_formats_grow_the_buffer),
        cmocka_unit_test(integers_print_in_full),
        cmocka_unit_test(truncate_shortens),
        cmocka_unit_test(steal_leaves_nothing_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
