/* SPDX-License-Identifier: Apache-2.0 */
#include "api/internal.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/qty.h"

const char *call_param(struct api_call *call, const char *name)
{
    for (int i = 0; i < call->http->param_count; i++)
        if (strcmp(call->http->params[i].name, name) == 0)
            return call->http->params[i].value;
    return NULL;
}

int call_param_int(struct api_call *call, const char *name, int64_t min, int64_t max,
                   int64_t *ret_value, struct err *err)
{
    const char *text = call_param(call, name);
    int64_t value;

    if (text == NULL)
        return 0;
    if (qty_parse_int(text, &value, NULL) < 0 || value < min || value > max)
        return err_set(err, -EINVAL, ERR_OUT_OF_RANGE, name, NULL,
                       "%s '%.60s' is not a number from %lld to %lld", name, text, (long long)min,
                       (long long)max);
    *ret_value = value;
    return 0;
}

int call_param_bool(struct api_call *call, const char *name, bool *ret_value, struct err *err)
{
    const char *text = call_param(call, name);

    if (text == NULL)
        return 0;
    if (strcmp(text, "true") == 0 || strcmp(text, "1") == 0 || *text == '\0')
        *ret_value = true;
    else if (strcmp(text, "false") == 0 || strcmp(text, "0") == 0)
        *ret_value = false;
    else
        return err_set(err, -EINVAL, ERR_INVALID, name, "use true or false",
                       "%s '%.60s' is neither true nor false", name, text);
    return 0;
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

int api_parse_time(const char *text, int64_t *ret_ms)
{
    struct tm tm = {0}, back;
    const char *p = text;
    int64_t ms;
    int frac = 0;
    time_t t;

    if (qty_parse_int(text, &ms, NULL) == 0) {
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

int call_param_time(struct api_call *call, const char *name, int64_t *ret_ms, struct err *err)
{
    const char *text = call_param(call, name);

    if (text == NULL || api_parse_time(text, ret_ms) == 0)
        return 0;
    return err_set(err, -EINVAL, ERR_INVALID, name,
                   "write 2026-11-30, 2026-11-30T21:29:59Z or milliseconds since 1970",
                   "%s '%.60s' is not a time", name, text);
}
