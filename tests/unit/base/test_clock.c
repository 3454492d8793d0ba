/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/rng.h"

static void boot_clock_never_goes_back(void **state)
{
    int64_t last = clock_boot_ns();

    for (int i = 0; i < 1000; i++) {
        int64_t now = clock_boot_ns();

        assert_true(now >= last);
        last = now;
    }
    assert_true(clock_boot_ms() >= last / NS_PER_MS);
}

static void wall_clock_is_unix_time(void **state)
{
    assert_in_range(clock_wall_ms() / MS_PER_S, (uint64_t)time(NULL) - 2, (uint64_t)time(NULL) + 2);
}

static void known_times_format(void **state)
{
    char text[CLOCK_TEXT_MAX];

    clock_format_utc(0, text);
    assert_string_equal(text, "1970-01-01T00:00:00.000Z");
    clock_format_utc(1796074199123, text);
    assert_string_equal(text, "2026-11-30T21:29:59.123Z");
    clock_format_utc(-1, text);
    assert_string_equal(text, "1969-12-31T23:59:59.999Z");
    clock_format_utc(951782400000, text);
    assert_string_equal(text, "2000-02-29T00:00:00.000Z");
}

static void extremes_fit(void **state)
{
    char text[CLOCK_TEXT_MAX];

    clock_format_utc(INT64_MAX, text);
    assert_string_equal(text, "292278994-08-17T07:12:55.807Z");
    clock_format_utc(INT64_MIN, text);
    assert_string_equal(text, "-292275055-05-16T16:47:04.192Z");
}

static void dates_agree_with_the_c_library(void **state)
{
    struct rng r;

    rng_seed(&r, 3);
    for (int i = 0; i < 20000; i++) {
        int64_t s = (int64_t)rng_below(&r, 8000000000u) - 4000000000;
        time_t t = (time_t)s;
        char text[CLOCK_TEXT_MAX], want[CLOCK_TEXT_MAX];
        struct tm tm;

        gmtime_r(&t, &tm);
        strftime(want, sizeof(want), "%Y-%m-%dT%H:%M:%S.000Z", &tm);
        clock_format_utc(s * 1000, text);
        assert_string_equal(text, want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boot_clock_never_goes_back),
        cmocka_unit_test(wall_clock_is_unix_time),
        cmocka_unit_test(known_times_format),
        cmocka_unit_test(extremes_fit),
        cmocka_unit_test(dates_agree_with_the_c_library),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
