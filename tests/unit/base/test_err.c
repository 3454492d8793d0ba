/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/err.h"

static void set_fills_everything(void **state)
{
    struct err e = ERR_INIT;

    assert_int_equal(err_set(&e, -EINVAL, ERR_INVALID, "gpu", "use %d", "gpu '%s' is odd", "x"),
                     -EINVAL);
    assert_int_equal(e.errnum, -EINVAL);
    assert_string_equal(e.code, "invalid");
    assert_string_equal(e.field, "gpu");
    assert_string_equal(e.remedy, "use %d"); /* a text, not a format */
    assert_string_equal(e.text, "gpu 'x' is odd");
}

static void null_err_is_allowed(void **state)
{
    assert_int_equal(err_set(NULL, -ENOENT, ERR_NOT_FOUND, NULL, NULL, "no"), -ENOENT);
    err_prefix_field(NULL, "tasks");
}

static void prefixes_join_to_a_path(void **state)
{
    struct err e = ERR_INIT;

    err_set(&e, -EINVAL, ERR_INVALID, "gpu", NULL, "no");
    err_prefix_field(&e, "[%d]", 3);
    assert_string_equal(e.field, "[3].gpu");
    err_prefix_field(&e, "tasks");
    assert_string_equal(e.field, "tasks[3].gpu");
}

static void prefix_alone_stands_for_itself(void **state)
{
    struct err e = ERR_INIT;

    err_set(&e, -EINVAL, ERR_INVALID, NULL, NULL, "no");
    err_prefix_field(&e, "spec");
    assert_string_equal(e.field, "spec");
}

static void hostile_text_cannot_move_the_cursor(void **state)
{
    struct err e = ERR_INIT;

    err_set(&e, -EINVAL, ERR_INVALID, "a\nb", "c\rd", "name '%s'", "\x1b[2J\x7f");
    assert_string_equal(e.text, "name '?[2J?'");
    assert_string_equal(e.field, "a?b");
    assert_string_equal(e.remedy, "c?d");
}

static void long_text_is_cut(void **state)
{
    struct err e = ERR_INIT;
    char name[2000];

    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    err_set(&e, -EINVAL, ERR_INVALID, name, name, "%s", name);
    assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
    err_prefix_field(&e, "%s", name);
    assert_int_equal(strlen(e.field), sizeof(e.field) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_fills_everything),
        cmocka_unit_test(null_err_is_allowed),
        cmocka_unit_test(prefixes_join_to_a_path),
        cmocka_unit_test(prefix_alone_stands_for_itself),
        cmocka_unit_test(hostile_text_cannot_move_the_cursor),
        cmocka_unit_test(long_text_is_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
