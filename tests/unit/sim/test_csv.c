/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "sim/csv.h"

static char path[64];

static int make_file(void **state)
{
    snprintf(path, sizeof(path), "/tmp/allot-csv-XXXXXX");
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int drop_file(void **state)
{
    return unlink(path);
}

static void write_text(const void *text, size_t len)
{
    assert_int_equal(io_write_file_atomic(AT_FDCWD, path, text, len, 0600, 0), 0);
}

/* Opens TEXT and reads rows to the end: 0, or the first error. */
static int read_all(const char *text, size_t len, struct err *err)
{
    _cleanup_(csv_close) struct csv c = {0};
    write_text(text, len);
    int r = csv_open(&c, path, err);
    while (r >= 0 && (r = csv_next(&c, err)) > 0)
        ;
    return r;
}

static void fields_come_as_they_stand(void **state)
{
    _cleanup_(csv_close) struct csv c = {0};
    const char *text = "a,b,c\n1,,x y\r\n\"q,\"\"z\"\"\",\"\",end";
    write_text(text, strlen(text));
    assert_int_equal(csv_open(&c, path, NULL), 0);
    size_t b;
    assert_int_equal(csv_column(&c, "b", &b, NULL), 0);
    assert_int_equal(b, 1);
    assert_int_equal(csv_column(&c, "d", &b, NULL), -ENOENT);
    assert_int_equal(csv_next(&c, NULL), 1);
    assert_string_equal(csv_text(&c, 0), "1");
    assert_string_equal(csv_text(&c, 1), "");
    assert_string_equal(csv_text(&c, 2), "x y");
    assert_int_equal(csv_next(&c, NULL), 1);
    assert_string_equal(csv_text(&c, 0), "q,\"z\"");
    assert_string_equal(csv_text(&c, 1), "");
    assert_string_equal(csv_text(&c, 2), "end");
    assert_int_equal(csv_next(&c, NULL), 0);
}

static void an_empty_last_field_counts(void **state)
{
    assert_int_equal(read_all("a,b\n1,\n", 7, NULL), 0);
}

static void blank_lines_may_end_a_file(void **state)
{
    assert_int_equal(read_all("a,b\n1,2\n\n\r\n", 11, NULL), 0);
}

static void what_is_wrong_is_named_by_line(void **state)
{
    static const struct {
        const char *text;
        size_t len;
        const char *says;
    } cases[] = {
        {"", 0, "is empty"},
        {"a,b\n1,2\n1\n", 10, ":3': 1 fields instead of 2"},
        {"a,b\n1,2,3\n", 10, ":2': 3 fields instead of 2"},
        {"a,b\n\n1,2\n", 9, ":2': the line is empty"},
        {"a\n\"x\n", 5, ":2': a quoted field does not end"},
        {"a\n\"x\"y\n", 7, ":2': a quoted field does not end"},
        {"a\n1\0002\n", 6, ":2': a control character"},
        {"a\n\xff\n", 4, ":2': invalid UTF-8"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = ERR_INIT;
        assert_int_equal(read_all(cases[i].text, cases[i].len, &err), -EINVAL);
        assert_non_null(strstr(err.text, cases[i].says));
        assert_true(err.remedy[0] != '\0');
    }
}

static void a_missing_file_is_an_error(void **state)
{
    struct csv c;
    struct err err = ERR_INIT;
    assert_int_equal(csv_open(&c, "/nowhere/at all.csv", &err), -ENOENT);
    assert_non_null(strstr(err.text, "/nowhere/at all.csv"));
}

static void too_many_columns_are_refused(void **state)
{
    char text[3 * CSV_COLUMNS_MAX];
    memset(text, ',', sizeof(text));
    struct err err = ERR_INIT;
    assert_int_equal(read_all(text, sizeof(text), &err), -EINVAL);
    assert_non_null(strstr(err.text, "too many columns"));
}

static void numbers_are_whole_and_in_range(void **state)
{
    static const struct {
        const char *text;
        int result;
        int64_t value;
    } cases[] = {
        {"7", 0, 7},
        {"7.0", 0, 7},
        {"0", 0, 0},
        {"100", 0, 100},
        {"101", -ERANGE, 0},
        {"-1", -EINVAL, 0},
        {"7.5", -EINVAL, 0},
        {"7.", -EINVAL, 0},
        {"1e3", -EINVAL, 0},
        {"nan", -EINVAL, 0},
        {"9223372036854775808", -ERANGE, 0},
        {"99999999999999999999999999999999999999", -EINVAL, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        _cleanup_(csv_close) struct csv c = {0};
        char text[80];
        int64_t value = -1;
        write_text(text, (size_t)snprintf(text, sizeof(text), "n\n%s\n", cases[i].text));
        assert_int_equal(csv_open(&c, path, NULL), 0);
        assert_int_equal(csv_next(&c, NULL), 1);
        struct err err = ERR_INIT;
        assert_int_equal(csv_int(&c, 0, 0, 100, &value, &err), cases[i].result);
        assert_int_equal(value, cases[i].result == 0 ? cases[i].value : -1);
        assert_true(cases[i].result == 0 || strstr(err.text, ":2'") != NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(fields_come_as_they_stand, make_file, drop_file),
        cmocka_unit_test_setup_teardown(an_empty_last_field_counts, make_file, drop_file),
        cmocka_unit_test_setup_teardown(blank_lines_may_end_a_file, make_file, drop_file),
        cmocka_unit_test_setup_teardown(what_is_wrong_is_named_by_line, make_file, drop_file),
        cmocka_unit_test(a_missing_file_is_an_error),
        cmocka_unit_test_setup_teardown(too_many_columns_are_refused, make_file, drop_file),
        cmocka_unit_test_setup_teardown(numbers_are_whole_and_in_range, make_file, drop_file),
    };
    return cmocka_run_group_tests_name("sim/csv", tests, NULL, NULL);
}
