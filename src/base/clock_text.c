/* SPDX-License-Identifier: Apache-2.0 */
/* Apart from clock.c so that code which formats a time does not pull in the reading of one. */
#include <errno.h>
#include <stdio.h>
#include <time.h>

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

/* N digits into *RET; the text behind them, or NULL. */
static const char *digits(const char *text, int n, int *ret)
{
    int value = 0;

    for (int i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9')
            return NULL;
        value = value * 10 + (text[i] - '0');
    }
    *ret = value;
    return text + n;
}

/* "T21:29:59.123Z", seconds and fraction optional. */
static const char *parse_clock(const char *p, struct tm *tm, int *ret_ms)
{
    p = digits(p + 1, 2, &tm->tm_hour);
    if (p == NULL || *p != ':')
        return NULL;
    p = digits(p + 1, 2, &tm->tm_min);
    if (p && *p == ':')
        p = digits(p + 1, 2, &tm->tm_sec);
    if (p && *p == '.')
        p = digits(p + 1, 3, ret_ms);
    if (p == NULL || *p != 'Z' || tm->tm_hour > 23 || tm->tm_min > 59 || tm->tm_sec > 59)
        return NULL;
    return p + 1;
}

int clock_parse_utc(const char *text, int64_t *ret_ms)
{
    struct tm tm = {0}, back;
    const char *p = text;
    int64_t ms;
    int frac = 0;
    time_t t;

    if (qty_parse_int(text, &ms, NULL) == 0) {
        if (ms < 0 || ms > CLOCK_UTC_MAX_MS)
            return -EINVAL;
        *ret_ms = ms;
        return 0;
    }
    p = digits(p, 4, &tm.tm_year);
    if (p && *p == '-')
        p = digits(p + 1, 2, &tm.tm_mon);
    else
        p = NULL;
    if (p && *p == '-')
        p = digits(p + 1, 2, &tm.tm_mday);
    else
        p = NULL;
    if (p && *p == 'T')
        p = parse_clock(p, &tm, &frac);
    if (p == NULL || *p != '\0' || tm.tm_year < 1970)
        return -EINVAL;
    tm.tm_year -= 1900;
    tm.tm_mon--;
    back = tm;
    t = timegm(&back);
    /* timegm() mends the 31st of February; a person who wrote it wants to know. */
    if (back.tm_mday != tm.tm_mday || back.tm_mon != tm.tm_mon)
        return -EINVAL;
    *ret_ms = (int64_t)t * MS_PER_S + frac;
    return 0;
}
