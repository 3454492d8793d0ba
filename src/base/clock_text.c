/* SPDX-License-Identifier: Apache-2.0 */
/* Apart from clock.c so that code which formats a time does not pull in the reading of one. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/qty.h"

#define DAY_MS (24 * 60 * 60 * MS_PER_S)
#define DAYS_400_YEARS 146097LL
#define DAYS_100_YEARS 36524LL
#define DAYS_4_YEARS 1461LL
/* From 0000-03-01 to 1970-01-01. */
#define DAYS_TO_EPOCH 719468LL

/*
 * Proleptic Gregorian date of a day counted from 1970. Years begin in March, so that the leap
 * day is the last of its year (Richards, "Calendars", Explanatory Supplement to the
 * Astronomical Almanac, 2013).
 */
static void civil_from_days(int64_t days, int64_t *ret_year, int *ret_month, int *ret_day)
{
    int64_t era, of_era, year, of_year, month;

    days += DAYS_TO_EPOCH;
    era = (days >= 0 ? days : days - (DAYS_400_YEARS - 1)) / DAYS_400_YEARS;
    of_era = days - era * DAYS_400_YEARS;
    year = (of_era - of_era / (DAYS_4_YEARS - 1) + of_era / DAYS_100_YEARS -
            of_era / (DAYS_400_YEARS - 1)) /
           365;
    of_year = of_era - (365 * year + year / 4 - year / 100);
    month = (5 * of_year + 2) / 153;
    *ret_day = (int)(of_year - (153 * month + 2) / 5 + 1);
    *ret_month = (int)(month < 10 ? month + 3 : month - 9);
    *ret_year = year + era * 400 + (*ret_month <= 2 ? 1 : 0);
}

void clock_format_utc(int64_t wall_ms, char *text)
{
    int64_t days = wall_ms / DAY_MS, of_day = wall_ms % DAY_MS, year;
    int month, day;

    if (of_day < 0) {
        of_day += DAY_MS;
        days--;
    }
    civil_from_days(days, &year, &month, &day);
    snprintf(text, CLOCK_TEXT_MAX, "%04lld-%02d-%02dT%02d:%02d:%02d.%03dZ", (long long)year, month,
             day, (int)(of_day / 3600000), (int)(of_day / 60000 % 60), (int)(of_day / 1000 % 60),
             (int)(of_day % 1000));
}

/* N digits into *RET; the text behind them, or NULL. NULL is passed on. */
static const char *digits(const char *text, int n, int *ret)
{
    int value = 0;

    for (int i = 0; text && i < n; i++) {
        if (text[i] < '0' || text[i] > '9')
            return NULL;
        value = value * 10 + (text[i] - '0');
    }
    *ret = value;
    return text ? text + n : NULL;
}

/* The text behind C, or NULL where it does not stand there. */
static const char *behind(const char *text, char c)
{
    return text && *text == c ? text + 1 : NULL;
}

/* "2026-11-30": the day counted from 1970. */
static const char *parse_date(const char *p, int64_t *ret_day)
{
    int year, month, day, back_month, back_day;
    int64_t of_year, back_year;

    p = digits(p, 4, &year);
    p = digits(behind(p, '-'), 2, &month);
    p = digits(behind(p, '-'), 2, &day);
    if (p == NULL || month < 1 || month > 12)
        return NULL;
    /* The reverse of civil_from_days(). */
    if (month <= 2)
        year--;
    of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    *ret_day = 365LL * year + year / 4 - year / 100 + year / 400 + of_year - DAYS_TO_EPOCH;
    civil_from_days(*ret_day, &back_year, &back_month, &back_day);
    /* A person who wrote the 31st of February wants to know. */
    return back_month == month && back_day == day ? p : NULL;
}

/* "5", "123" behind the point: milliseconds; nothing finer. */
static const char *parse_fraction(const char *p, int64_t *ret_ms)
{
    static const int scale[] = {0, 100, 10, 1};
    size_t n = strspn(p, "0123456789");
    int value;

    if (n < 1 || n > 3)
        return NULL;
    p = digits(p, (int)n, &value);
    *ret_ms = (int64_t)value * scale[n];
    return p;
}

/* "Z", "+01:00", "-05:30": how far the clock is ahead of UTC. */
static const char *parse_offset(const char *p, int64_t *ret_ms)
{
    int sign = p && *p == '-' ? -1 : 1, hours, minutes;

    *ret_ms = 0;
    if (p && *p == 'Z')
        return p + 1;
    p = p && (*p == '+' || *p == '-') ? digits(p + 1, 2, &hours) : NULL;
    p = digits(behind(p, ':'), 2, &minutes);
    if (p == NULL || hours > 23 || minutes > 59)
        return NULL;
    *ret_ms = sign * (hours * 60 + minutes) * 60 * MS_PER_S;
    return p;
}

/* "T21:29:59.123Z", seconds and fraction optional: milliseconds behind the day's start in UTC. */
static const char *parse_clock(const char *p, int64_t *ret_ms)
{
    int hour, minute, second = 0;
    int64_t ms = 0, ahead;

    p = digits(behind(p, 'T'), 2, &hour);
    p = digits(behind(p, ':'), 2, &minute);
    if (p && *p == ':') {
        p = digits(p + 1, 2, &second);
        if (p && *p == '.')
            p = parse_fraction(p + 1, &ms);
    }
    p = parse_offset(p, &ahead);
    if (p == NULL || hour > 23 || minute > 59 || second > 59)
        return NULL;
    *ret_ms = ((hour * 60 + minute) * 60 + second) * MS_PER_S + ms - ahead;
    return p;
}

int clock_parse_utc(const char *text, int64_t *ret_wall_ms)
{
    int64_t ms, day, of_day = 0;
    const char *p;

    if (qty_parse_int(text, &ms, NULL) < 0) {
        p = parse_date(text, &day);
        if (p && *p)
            p = parse_clock(p, &of_day);
        if (p == NULL || *p)
            return -EINVAL;
        ms = day * DAY_MS + of_day;
    }
    if (ms < 0 || ms > CLOCK_UTC_MAX_MS)
        return -EINVAL;
    *ret_wall_ms = ms;
    return 0;
}
