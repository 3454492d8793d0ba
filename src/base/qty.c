/* SPDX-License-Identifier: Apache-2.0 */
#include "base/qty.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

/* More digits behind the point than this cannot matter: 10^18 is the largest that fits. */
#define FRACTION_DIGITS_MAX 18

typedef __int128 wide; /* of two 64-bit factors, or of a fraction and its unit */

/* A number as written: WHOLE + FRACTION / 10^DIGITS, trailing zeros of the fraction dropped. */
struct decimal {
    int64_t whole, fraction;
    int digits;
    bool too_large, too_precise;
};

struct unit {
    const char *suffix;
    int64_t factor;
};

#define MS_IN_S 1000

/* In the order in which formatting prefers them where two texts are equally short. */
static const struct unit byte_units[] = {
    {"PiB", 1LL << 50},
    {"TiB", 1LL << 40},
    {"GiB", 1LL << 30},
    {"MiB", 1LL << 20},
    {"KiB", 1LL << 10},
    {"PB", 1000000000000000LL},
    {"TB", 1000000000000LL},
    {"GB", 1000000000LL},
    {"MB", 1000000LL},
    {"kB", 1000LL},
    {"B", 1},
};

static const struct unit duration_units[] = {
    {"d", 24 * 60 * 60 * 1000LL},
    {"h", 60 * 60 * 1000LL},
    {"m", 60 * 1000LL},
    {"s", 1000LL},
    {"ms", 1LL},
};

#define MILLI_FORM "use a number with at most three decimals such as 2, 0.25 or 500m"
#define BYTES_FORM "use bytes such as 1024, 10GiB, 512Mi or 80G"
#define DURATION_FORM "use a duration such as 90s, 1h30m, 250ms or 2d; a bare number is seconds"
#define INT_FORM "use a whole number from 0 to 9223372036854775807"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int refuse_syntax(struct err *err, const char *text, const char *form)
{
    /* "-1" is well understood, just never meaningful here: say so. */
    if (text && text[0] == '-' && is_digit(text[1]))
        return err_set(err, -ERANGE, ERR_OUT_OF_RANGE, NULL, form, "'%.60s' is negative", text);
    return err_set(err, -EINVAL, ERR_INVALID, NULL, form, "'%.60s' is not a quantity",
                   text ? text : "");
}

static int refuse_range(struct err *err, const char *text, const char *form, const char *why)
{
    return err_set(err, -ERANGE, ERR_OUT_OF_RANGE, NULL, form, "'%.60s' is %s", text, why);
}

/* Appends a digit; false when the number no longer fits. */
static bool append_digit(int64_t *n, char digit)
{
    return !__builtin_mul_overflow(*n, 10, n) && !__builtin_add_overflow(*n, digit - '0', n);
}

static const char *parse_fraction(const char *p, struct decimal *ret_d)
{
    int zeros = 0; /* seen, but worth nothing unless another digit follows */

    for (; is_digit(*p); p++) {
        if (*p == '0') {
            if (zeros < FRACTION_DIGITS_MAX)
                zeros++;
            continue;
        }
        if (ret_d->digits + zeros + 1 > FRACTION_DIGITS_MAX) {
            ret_d->too_precise = true;
            continue;
        }
        for (; zeros > 0; zeros--, ret_d->digits++)
            (void)append_digit(&ret_d->fraction, '0');
        (void)append_digit(&ret_d->fraction, *p);
        ret_d->digits++;
    }
    return p;
}

/* Reads `digits[.digits]`; returns what follows, or NULL if P is no such number. */
static const char *parse_decimal(const char *p, struct decimal *ret_d)
{
    *ret_d = (struct decimal){0};
    if (!is_digit(*p))
        return NULL;
    for (; is_digit(*p); p++) {
        if (!ret_d->too_large && !append_digit(&ret_d->whole, *p))
            ret_d->too_large = true;
    }
    if (*p != '.')
        return p;
    if (!is_digit(p[1]))
        return NULL;
    return parse_fraction(p + 1, ret_d);
}

/* D in units of FACTOR, exactly. TEXT and FORM serve the message. */
static int scale(const struct decimal *d, int64_t factor, const char *text, const char *form,
                 int64_t *ret_value, struct err *err)
{
    wide power = 1, part;
    int64_t value;

    if (d->too_large || __builtin_mul_overflow(d->whole, factor, &value))
        return refuse_range(err, text, form, "too large");
    if (d->too_precise)
        return refuse_range(err, text, form, "too precise");
    for (int i = 0; i < d->digits; i++)
        power *= 10;
    part = (wide)d->fraction * factor;
    if (part % power != 0)
        return refuse_range(err, text, form, "too precise");
    if (__builtin_add_overflow(value, (int64_t)(part / power), &value))
        return refuse_range(err, text, form, "too large");
    *ret_value = value;
    return 0;
}

int qty_parse_milli(const char *text, int64_t *ret_milli, struct err *err)
{
    struct decimal d;
    const char *rest = text ? parse_decimal(text, &d) : NULL;

    if (rest && *rest == '\0')
        return scale(&d, 1000, text, MILLI_FORM, ret_milli, err);
    if (rest && strcmp(rest, "m") == 0)
        return scale(&d, 1, text, MILLI_FORM, ret_milli, err);
    return refuse_syntax(err, text, MILLI_FORM);
}

/* Suffixes are written with or without their final B. */
static bool is_byte_suffix(const char *rest, const char *suffix)
{
    size_t len = strlen(suffix) - 1;

    return strncmp(rest, suffix, len) == 0 && (rest[len] == '\0' || strcmp(rest + len, "B") == 0);
}

int qty_parse_bytes(const char *text, int64_t *ret_bytes, struct err *err)
{
    struct decimal d;
    const char *rest = text ? parse_decimal(text, &d) : NULL;

    for (size_t i = 0; rest && i < ARRAY_LEN(byte_units); i++) {
        if (is_byte_suffix(rest, byte_units[i].suffix))
            return scale(&d, byte_units[i].factor, text, BYTES_FORM, ret_bytes, err);
    }
    return refuse_syntax(err, text, BYTES_FORM);
}

/* The unit at P among those from index FROM on; the longest suffix wins ("ms" before "m"). */
static size_t match_duration_unit(const char *p, size_t from)
{
    size_t best = ARRAY_LEN(duration_units), best_len = 0;

    for (size_t i = 0; i < ARRAY_LEN(duration_units); i++) {
        size_t len = strlen(duration_units[i].suffix);

        if (strncmp(p, duration_units[i].suffix, len) == 0 && len > best_len) {
            best = i;
            best_len = len;
        }
    }
    return best >= from ? best : ARRAY_LEN(duration_units);
}

int qty_parse_duration_ms(const char *text, int64_t *ret_ms, struct err *err)
{
    int64_t total = 0, part;
    struct decimal d;
    size_t unit, from = 0;
    const char *p = text;
    int r;

    if (text == NULL || *text == '\0')
        return refuse_syntax(err, text, DURATION_FORM);
    while (*p) {
        const char *rest = parse_decimal(p, &d);

        if (rest == NULL)
            return refuse_syntax(err, text, DURATION_FORM);
        if (*rest == '\0' && p == text)
            return scale(&d, MS_IN_S, text, DURATION_FORM, ret_ms, err);
        unit = match_duration_unit(rest, from);
        if (unit == ARRAY_LEN(duration_units))
            return refuse_syntax(err, text, DURATION_FORM);
        r = scale(&d, duration_units[unit].factor, text, DURATION_FORM, &part, err);
        if (r < 0)
            return r;
        if (__builtin_add_overflow(total, part, &total))
            return refuse_range(err, text, DURATION_FORM, "too large");
        from = unit + 1;
        p = rest + strlen(duration_units[unit].suffix);
    }
    *ret_ms = total;
    return 0;
}

int qty_parse_int(const char *text, int64_t *ret_value, struct err *err)
{
    struct decimal d;
    const char *rest = text ? parse_decimal(text, &d) : NULL;

    if (rest == NULL || *rest != '\0' || strchr(text, '.'))
        return refuse_syntax(err, text, INT_FORM);
    return scale(&d, 1, text, INT_FORM, ret_value, err);
}

static uint64_t magnitude(int64_t v)
{
    return v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
}

/* WHOLE.FRACTION with the fraction in thousandths, shortest form. */
static int print_thousandths(char *text, size_t size, uint64_t whole, unsigned thousandths)
{
    int width = 3;

    if (thousandths == 0)
        return snprintf(text, size, "%llu", (unsigned long long)whole);
    for (; thousandths % 10 == 0; width--)
        thousandths /= 10;
    return snprintf(text, size, "%llu.%0*u", (unsigned long long)whole, width, thousandths);
}

const char *qty_format_milli(int64_t milli, char *text)
{
    uint64_t m = magnitude(milli);
    int n = snprintf(text, QTY_TEXT_MAX, "%s", milli < 0 ? "-" : "");

    print_thousandths(text + n, QTY_TEXT_MAX - (size_t)n, m / 1000, (unsigned)(m % 1000));
    return text;
}

const char *qty_format_bytes(int64_t bytes, char *text)
{
    char attempt[QTY_TEXT_MAX];
    uint64_t b = magnitude(bytes);
    size_t best;

    best =
        (size_t)snprintf(text, QTY_TEXT_MAX, "%s%llu", bytes < 0 ? "-" : "", (unsigned long long)b);
    for (size_t i = 0; i < ARRAY_LEN(byte_units) && b > 0; i++) {
        uint64_t factor = (uint64_t)byte_units[i].factor;
        wide thousandths = (wide)(b % factor) * 1000;
        size_t n;

        if (factor == 1 || b < factor || thousandths % factor != 0)
            continue;
        n = (size_t)snprintf(attempt, sizeof(attempt), "%s", bytes < 0 ? "-" : "");
        n += (size_t)print_thousandths(attempt + n, sizeof(attempt) - n, b / factor,
                                       (unsigned)(thousandths / factor));
        n += (size_t)snprintf(attempt + n, sizeof(attempt) - n, "%s", byte_units[i].suffix);
        /* At equal length the unit reads better than the bare number, the first unit best. */
        if (n < best || (n == best && is_digit(text[best - 1]))) {
            memcpy(text, attempt, n + 1);
            best = n;
        }
    }
    return text;
}

const char *qty_format_duration_ms(int64_t ms, char *text)
{
    uint64_t rest = magnitude(ms);
    size_t n = (size_t)snprintf(text, QTY_TEXT_MAX, "%s", ms < 0 ? "-" : "");

    if (rest > 0 && rest < MS_IN_S) {
        snprintf(text + n, QTY_TEXT_MAX - n, "%llums", (unsigned long long)rest);
        return text;
    }
    for (size_t i = 0; i < ARRAY_LEN(duration_units); i++) {
        uint64_t factor = (uint64_t)duration_units[i].factor;

        if (factor == MS_IN_S)
            break;
        if (rest >= factor)
            n += (size_t)snprintf(text + n, QTY_TEXT_MAX - n, "%llu%s",
                                  (unsigned long long)(rest / factor), duration_units[i].suffix);
        rest %= factor;
    }
    if (rest > 0 || ms == 0) {
        n += (size_t)print_thousandths(text + n, QTY_TEXT_MAX - n, rest / MS_IN_S,
                                       (unsigned)(rest % MS_IN_S));
        snprintf(text + n, QTY_TEXT_MAX - n, "s");
    }
    return text;
}

int64_t qty_add_sat(int64_t a, int64_t b)
{
    int64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

int64_t qty_mul_div(int64_t a, int64_t b, int64_t c)
{
    wide v = (wide)a * b / c;

    return v > INT64_MAX ? INT64_MAX : (int64_t)v;
}
