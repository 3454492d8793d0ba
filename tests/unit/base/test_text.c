/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/text.h"

#define REFUSED(bytes) \
    assert_int_equal(text_check_name(bytes, sizeof(bytes) - 1, "name", NULL), -EINVAL)
#define ACCEPTED(bytes) assert_int_equal(text_check_name(bytes, sizeof(bytes) - 1, "name", NULL), 0)

static void well_formed_utf8_passes(void **state)
{
    assert_true(text_is_utf8("", 0));
    assert_true(text_is_utf8("a\0b", 3));
    assert_true(text_is_utf8("\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf", 10));
    assert_true(text_is_utf8("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", 8));
}

static void malformed_utf8_fails(void **state)
{
    static const char *const bad[] = {
        "\x80",
        "\xc0\x80",
        "\xc1\xbf",
        "\xc2",
        "\xc2\x41",
        "\xe0\x9f\xbf",
        "\xed\xa0\x80",
        "\xe2\x82",
        "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80",
        "\xff",
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(text_is_utf8(bad[i], strlen(bad[i])));
}

static void names_in_any_script_pass(void **state)
{
    ACCEPTED("a");
    ACCEPTED("ml-research_2.x");
    ACCEPTED("\xe7\xa0\x94\xe7\xa9\xb6");
    ACCEPTED("two words");
}

static void names_that_break_paths_fail(void **state)
{
    REFUSED("");
    REFUSED(".");
    REFUSED("..");
    REFUSED("../x");
    REFUSED("-rf");
    REFUSED("a/b");
    REFUSED("a\0b");
}

static void names_that_break_displays_fail(void **state)
{
    REFUSED("a\nb");
    REFUSED("\x7f");
    REFUSED("a\xc2\x85"); /* next line, C1 */
    REFUSED("a\xe2\x80\xae"
            "b");             /* right-to-left override */
    REFUSED("a\xe2\x80\xa8"); /* line separator */
    REFUSED("\xef\xbb\xbf"
            "a"); /* byte order mark */
    REFUSED(" a");
    REFUSED("a ");
    REFUSED("a\xc2\xa0");
    REFUSED("a\xff");
}

static void length_counts_characters(void **state)
{
    char name[300];

    memset(name, 'a', sizeof(name));
    assert_int_equal(text_check_name(name, 63, "name", NULL), 0);
    assert_int_equal(text_check_name(name, 64, "name", NULL), -EINVAL);
    for (int i = 0; i < 63; i++)
        memcpy(name + 4 * i, "\xf0\x9f\x9a\x80", 4);
    assert_int_equal(text_check_name(name, 252, "name", NULL), 0);
    assert_int_equal(text_check_name(name, 253, "name", NULL), -EINVAL);
}

static void the_message_names_the_subject(void **state)
{
    struct err e = ERR_INIT;

    text_check_name("a/b", 3, "team name", &e);
    assert_string_equal(e.text, "team name contains '/'");
    assert_string_equal(e.code, ERR_INVALID);
}

static void what_could_fool_a_terminal_becomes_question_marks(void **state)
{
    char text[] = "a\x1b[2J \xc2\x9b \xe2\x80\xae \xff\xc3 gr\xc3\xbc\xc3\x9f";

    text_make_printable(text);
    assert_string_equal(text, "a?[2J ?? ??? ?? gr\xc3\xbc\xc3\x9f");
}

static void prefixes_match(void **state)
{
    assert_true(text_starts_with("abc", "ab"));
    assert_true(text_starts_with("abc", ""));
    assert_false(text_starts_with("ab", "abc"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(well_formed_utf8_passes),
        cmocka_unit_test(malformed_utf8_fails),
        cmocka_unit_test(names_in_any_script_pass),
        cmocka_unit_test(names_that_break_paths_fail),
        cmocka_unit_test(names_that_break_displays_fail),
        cmocka_unit_test(length_counts_characters),
        cmocka_unit_test(the_message_names_the_subject),
        cmocka_unit_test(what_could_fool_a_terminal_becomes_question_marks),
        cmocka_unit_test(prefixes_match),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
