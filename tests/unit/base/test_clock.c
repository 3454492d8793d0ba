/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
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

static void times_that_are_written_read_back(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {
        {"2026-11-30T12:00:00.123Z", 1796040000123},
        {"2026-11-30T12:00:00.5Z", 1796040000500},
        {"2026-11-30T12:00:00.05Z", 1796040000050},
        {"2026-11-30T12:00:00Z", 1796040000000},
        {"2026-11-30T12:00Z", 1796040000000},
        {"2026-11-30", 1795996800000},
        {"1796040000123", 1796040000123},
        {"0", 0},
        {"1970-01-01", 0},
        /* leap years: each fourth, not each hundredth, each four-hundredth */
        {"2024-02-29", 1709164800000},
        {"2000-02-29", 951782400000},
        {"2100-03-01", 4107542400000},
        {"2026-12-31T23:59:59.999Z", 1798761599999},
        /* the offset is how far that clock is ahead */
        {"2026-11-30T13:00+01:00", 1796040000000},
        {"2026-11-30T06:30:00-05:30", 1796040000000},
        {"2026-12-01T01:00:00.123+13:00", 1796040000123},
        {"1969-12-31T23:00-01:00", 0},
        {"9999-12-31T23:59:59.999Z", CLOCK_UTC_MAX_MS},
    };

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        int64_t ms = -1;

        if (clock_parse_utc(good[i].text, &ms) < 0 || ms != good[i].ms)
            fail_msg("'%s' is %lld, not %lld", good[i].text, (long long)ms, (long long)good[i].ms);
    }
}

static void times_that_are_none_are_refused(void **state)
{
    static const char *const bad[] = {
        "", "yesterday", "-1", "2026-11", "2026-11-3", "2026-13-01",
        "2026-00-01", "2026-01-00", "2026-02-30", "2026-02-29", "2100-02-29", "2026-04-31",
        "2026-11-30T24:00Z", "2026-11-30T23:60Z", "2026-11-30T23:59:60Z", "2026-11-30T12Z",
        "2026-11-30T12:00", "2026-11-30T12:00:00", "2026-11-30 12:00Z", "2026-11-30T12:00:00.Z",
        "2026-11-30T12:00:00.1234Z", "2026-11-30T12:00ZZ", "2026-11-30T12:00z", "2026-11-30Z",
        "2026-11-30T12:00+1", "2026-11-30T12:00+0100", "2026-11-30T12:00+24:00",
        "2026-11-30T12:00+01:60", "2026-11-30T12:00+01:00Z", "1970-01-01T00:00+00:01",
        "1969-12-31", "0000-01-01", "9999-12-31T23:59-00:01", "10000-01-01", "253402300800000",
        "99999999999999999999",
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        int64_t ms = -7;

        if (clock_parse_utc(bad[i], &ms) != -EINVAL || ms != -7)
            fail_msg("'%s' is %lld", bad[i], (long long)ms);
    }
}

static void every_day_reads_back(void **state)
{
    for (int64_t day = 0; day < 400 * 366; day++) {
        char text[CLOCK_TEXT_MAX];
        int64_t ms;

        clock_format_utc(day * 86400000 + day % 86400000, text);
        assert_int_equal(clock_parse_utc(text, &ms), 0);
        assert_int_equal(ms, day * 86400000 + day % 86400000);
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
        cmocka_unit_test(times_that_are_written_read_back),
        cmocka_unit_test(times_that_are_none_are_refused),
        cmocka_unit_test(every_day_reads_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
