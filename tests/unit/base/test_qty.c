/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/qty.h"
#include "base/rng.h"

typedef int parse_fn(const char *text, int64_t *ret_value, struct err *err);
typedef const char *format_fn(int64_t value, char *text);

static void check_value(parse_fn *parse, const char *text, int64_t want)
{
    struct err e = ERR_INIT;
    int64_t got = -77;

    if (parse(text, &got, &e) != 0 || got != want)
        fail_msg("'%s' gave %lld (%s), wanted %lld", text, (long long)got, e.text, (long long)want);
}

static void check_refusal(parse_fn *parse, const char *text, int errnum)
{
    struct err e = ERR_INIT;
    int64_t got = -77;

    assert_int_equal(parse(text, &got, &e), errnum);
    assert_int_equal(got, -77);
    assert_string_equal(e.code, errnum == -ERANGE ? ERR_OUT_OF_RANGE : ERR_INVALID);
    assert_true(e.remedy[0] != '\0');
    assert_non_null(strstr(e.text, text));
}

static void milli_parses_exactly(void **state)
{
    check_value(qty_parse_milli, "0", 0);
    check_value(qty_parse_milli, "2", 2000);
    check_value(qty_parse_milli, "0.25", 250);
    check_value(qty_parse_milli, "0.001", 1);
    check_value(qty_parse_milli, "0.2500000000000000000000000000", 250);
    check_value(qty_parse_milli, "500m", 500);
    check_value(qty_parse_milli, "9223372036854775.807", INT64_MAX);
    check_value(qty_parse_milli, "9223372036854775807m", INT64_MAX);
    check_value(qty_parse_milli, "007", 7000);
}

static void milli_refuses_what_does_not_fit(void **state)
{
    check_refusal(qty_parse_milli, "0.0001", -ERANGE);
    check_refusal(qty_parse_milli, "0.0010000000000000000001", -ERANGE);
    check_refusal(qty_parse_milli, "0.00000000000000000000000000001", -ERANGE);
    check_refusal(qty_parse_milli, "0.5m", -ERANGE);
    check_refusal(qty_parse_milli, "-1", -ERANGE);
    check_refusal(qty_parse_milli, "9223372036854775808", -ERANGE);
    check_refusal(qty_parse_milli, "9223372036854775.808", -ERANGE);
    check_refusal(qty_parse_milli, "99999999999999999999999999999999", -ERANGE);
}

static void milli_refuses_other_syntax(void **state)
{
    static const char *const bad[] = {
        "",      " 1",   "1 ",  "1e30", "+1",  "-", "--1", ".5",       "2.",
        "1.2.3", "0x10", "nan", "1mm",  "1,5", "m", "1M",  "\xd9\xa1",
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        check_refusal(qty_parse_milli, bad[i], -EINVAL);
}

static void bytes_know_both_families_of_suffixes(void **state)
{
    check_value(qty_parse_bytes, "1024", 1024);
    check_value(qty_parse_bytes, "10B", 10);
    check_value(qty_parse_bytes, "10GiB", 10737418240);
    check_value(qty_parse_bytes, "10Gi", 10737418240);
    check_value(qty_parse_bytes, "80G", 80000000000);
    check_value(qty_parse_bytes, "80GB", 80000000000);
    check_value(qty_parse_bytes, "1k", 1000);
    check_value(qty_parse_bytes, "1Ki", 1024);
    check_value(qty_parse_bytes, "1.5GiB", 1610612736);
    check_value(qty_parse_bytes, "0.0009765625Mi", 1024);
    check_value(qty_parse_bytes, "8191PiB", 8191 * (1ll << 50));
}

static void bytes_refuse_what_does_not_fit(void **state)
{
    check_refusal(qty_parse_bytes, "8192PiB", -ERANGE);
    check_refusal(qty_parse_bytes, "9223372036854775808", -ERANGE);
    check_refusal(qty_parse_bytes, "1.5", -ERANGE);
    check_refusal(qty_parse_bytes, "0.3KiB", -ERANGE);
    check_refusal(qty_parse_bytes, "-1GiB", -ERANGE);
    check_refusal(qty_parse_bytes, "10gib", -EINVAL);
    check_refusal(qty_parse_bytes, "10GiBs", -EINVAL);
    check_refusal(qty_parse_bytes, "10 GiB", -EINVAL);
    check_refusal(qty_parse_bytes, "1e3", -EINVAL);
    check_refusal(qty_parse_bytes, "GiB", -EINVAL);
    check_refusal(qty_parse_bytes, "10BB", -EINVAL);
}

static void durations_add_up(void **state)
{
    check_value(qty_parse_duration_ms, "90s", 90000);
    check_value(qty_parse_duration_ms, "90", 90000);
    check_value(qty_parse_duration_ms, "1h30m", 5400000);
    check_value(qty_parse_duration_ms, "250ms", 250);
    check_value(qty_parse_duration_ms, "2d", 172800000);
    check_value(qty_parse_duration_ms, "1.5s", 1500);
    check_value(qty_parse_duration_ms, "1d2h3m4s5ms", 93784005);
    check_value(qty_parse_duration_ms, "0.5h", 1800000);
}

static void durations_refuse_other_syntax(void **state)
{
    check_refusal(qty_parse_duration_ms, "", -EINVAL);
    check_refusal(qty_parse_duration_ms, "1h30", -EINVAL);
    check_refusal(qty_parse_duration_ms, "30m1h", -EINVAL);
    check_refusal(qty_parse_duration_ms, "1h1h", -EINVAL);
    check_refusal(qty_parse_duration_ms, "1w", -EINVAL);
    check_refusal(qty_parse_duration_ms, "h", -EINVAL);
    check_refusal(qty_parse_duration_ms, "0.0001s", -ERANGE);
    check_refusal(qty_parse_duration_ms, "-5s", -ERANGE);
    check_refusal(qty_parse_duration_ms, "9223372036854775807s", -ERANGE);
    check_refusal(qty_parse_duration_ms, "106751991167d24h", -ERANGE);
}

static void integers_are_plain(void **state)
{
    check_value(qty_parse_int, "0", 0);
    check_value(qty_parse_int, "9223372036854775807", INT64_MAX);
    check_refusal(qty_parse_int, "9223372036854775808", -ERANGE);
    check_refusal(qty_parse_int, "-1", -ERANGE);
    check_refusal(qty_parse_int, "1.0", -EINVAL);
    check_refusal(qty_parse_int, "1k", -EINVAL);
    check_refusal(qty_parse_int, "", -EINVAL);
}

static void null_is_refused(void **state)
{
    int64_t v;

    assert_int_equal(qty_parse_milli(NULL, &v, NULL), -EINVAL);
    assert_int_equal(qty_parse_bytes(NULL, &v, NULL), -EINVAL);
    assert_int_equal(qty_parse_duration_ms(NULL, &v, NULL), -EINVAL);
    assert_int_equal(qty_parse_int(NULL, &v, NULL), -EINVAL);
}

static void check_text(format_fn *format, int64_t value, const char *want)
{
    char text[QTY_TEXT_MAX];

    assert_string_equal(format(value, text), want);
}

static void texts_are_short(void **state)
{
    check_text(qty_format_milli, 250, "0.25");
    check_text(qty_format_milli, 0, "0");
    check_text(qty_format_milli, 2000, "2");
    check_text(qty_format_milli, 1001, "1.001");
    check_text(qty_format_milli, -500, "-0.5");
    check_text(qty_format_bytes, 0, "0");
    check_text(qty_format_bytes, 10737418240, "10GiB");
    check_text(qty_format_bytes, 80000000000, "80GB");
    check_text(qty_format_bytes, 1610612736, "1.5GiB");
    check_text(qty_format_bytes, 1024, "1KiB");
    check_text(qty_format_bytes, 1000, "1kB");
    check_text(qty_format_bytes, 999, "999");
    check_text(qty_format_bytes, 1234567, "1234567");
    check_text(qty_format_bytes, -1024, "-1KiB");
    check_text(qty_format_duration_ms, 0, "0s");
    check_text(qty_format_duration_ms, 5400000, "1h30m");
    check_text(qty_format_duration_ms, 250, "250ms");
    check_text(qty_format_duration_ms, 1500, "1.5s");
    check_text(qty_format_duration_ms, 172800000, "2d");
    check_text(qty_format_duration_ms, -60000, "-1m");
}

static void extremes_fit_the_text(void **state)
{
    check_text(qty_format_milli, INT64_MIN, "-9223372036854775.808");
    check_text(qty_format_bytes, INT64_MIN, "-8192PiB");
    check_text(qty_format_bytes, INT64_MAX, "9223372036854775807");
    check_text(qty_format_duration_ms, INT64_MIN, "-106751991167d7h12m55.808s");
}

static void check_round_trip(int64_t value, parse_fn *parse, format_fn *format)
{
    char text[QTY_TEXT_MAX];

    check_value(parse, format(value, text), value);
}

static void texts_parse_back_to_the_same_number(void **state)
{
    struct rng r;

    rng_seed(&r, 11);
    for (int i = 0; i < 50000; i++) {
        int64_t v = (int64_t)(rng_u64(&r) >> (1 + rng_below(&r, 63)));

        if (rng_below(&r, 2))
            v = v / 1000 * 1000;
        if (rng_below(&r, 2))
            v = v >> 10 << 10;
        check_round_trip(v, qty_parse_milli, qty_format_milli);
        check_round_trip(v, qty_parse_bytes, qty_format_bytes);
        check_round_trip(v, qty_parse_duration_ms, qty_format_duration_ms);
    }
}

static void arithmetic_saturates(void **state)
{
    assert_true(qty_add_sat(1, 2) == 3);
    assert_true(qty_add_sat(INT64_MAX, 1) == INT64_MAX);
    assert_true(qty_mul_div(INT64_MAX, 1000, 1000) == INT64_MAX);
    assert_true(qty_mul_div(INT64_MAX, INT64_MAX, 1) == INT64_MAX);
    assert_true(qty_mul_div(7, 3, 2) == 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(milli_parses_exactly),
        cmocka_unit_test(milli_refuses_what_does_not_fit),
        cmocka_unit_test(milli_refuses_other_syntax),
        cmocka_unit_test(bytes_know_both_families_of_suffixes),
        cmocka_unit_test(bytes_refuse_what_does_not_fit),
        cmocka_unit_test(durations_add_up),
        cmocka_unit_test(durations_refuse_other_syntax),
        cmocka_unit_test(integers_are_plain),
        cmocka_unit_test(null_is_refused),
        cmocka_unit_test(texts_are_short),
        cmocka_unit_test(extremes_fit_the_text),
        cmocka_unit_test(texts_parse_back_to_the_same_number),
        cmocka_unit_test(arithmetic_saturates),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
