/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#define NAME_MAX_CHARS 63

static bool is_continuation(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

/*
 * Table 3-7 of the Unicode standard: the second byte of a sequence is restricted after E0, ED,
 * F0 and F4, which shuts out overlong forms, surrogates and anything above U+10FFFF.
 */
static bool second_byte_fits(unsigned char first, unsigned char second)
{
    if (!is_continuation(second))
        return false;
    switch (first) {
    case 0xe0:
        return second >= 0xa0;
    case 0xed:
        return second <= 0x9f;
    case 0xf0:
        return second >= 0x90;
    case 0xf4:
        return second <= 0x8f;
    default:
        return true;
    }
}

size_t text_utf8_len(const char *s, size_t n)
{
    const unsigned char *p = (const unsigned char *)s;
    size_t len;

    if (n == 0)
        return 0;
    if (p[0] < 0x80)
        return 1;
    if (p[0] < 0xc2 || p[0] > 0xf4)
        return 0;
    len = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (len > n || !second_byte_fits(p[0], p[1]))
        return 0;
    for (size_t i = 2; i < len; i++) {
        if (!is_continuation(p[i]))
            return 0;
    }
    return len;
}

bool text_is_utf8(const char *s, size_t n)
{
    while (n > 0) {
        size_t len = text_utf8_len(s, n);

        if (len == 0)
            return false;
        s += len;
        n -= len;
    }
    return true;
}

/* The code point of a valid sequence of LEN bytes. */
static uint32_t decode(const char *s, size_t len)
{
    static const unsigned char first_mask[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t c = (unsigned char)s[0] & first_mask[len];

    for (size_t i = 1; i < len; i++)
        c = c << 6 | ((unsigned char)s[i] & 0x3f);
    return c;
}

static bool is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x061c || (c >= 0x200b && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff;
}

void text_make_printable(char *s)
{
    for (size_t n = strlen(s), len; n > 0; s += len, n -= len) {
        len = text_utf8_len(s, n);
        if (len == 0 || is_control(decode(s, len)))
            memset(s, '?', len = len > 0 ? len : 1);
    }
}

static bool is_blank(uint32_t c)
{
    return c == ' ' || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x202f ||
           c == 0x205f || c == 0x3000;
}

static int refuse_name(struct err *err, const char *what, const char *why)
{
    return err_set(
        err, -EINVAL, ERR_INVALID, NULL,
        "use 1 to 63 characters, such as letters, digits, '-', '_' and '.', without '/', "
        "beginning with a letter or digit",
        "%s %s", what, why);
}

int text_check_name(const char *s, size_t n, const char *what, struct err *err)
{
    size_t chars = 0;
    uint32_t c = 0;

    if (n == 0)
        return refuse_name(err, what, "is empty");
    if (n > TEXT_NAME_MAX)
        return refuse_name(err, what, "is too long");
    if (s[0] == '.' || s[0] == '-')
        return refuse_name(err, what, "starts with '.' or '-'");
    for (size_t at = 0, len; at < n; at += len, chars++) {
        len = text_utf8_len(s + at, n - at);
        if (len == 0)
            return refuse_name(err, what, "is not valid UTF-8");
        c = decode(s + at, len);
        if (is_control(c))
            return refuse_name(err, what, "contains a control character");
        if (c == '/')
            return refuse_name(err, what, "contains '/'");
        if (at == 0 && is_blank(c))
            return refuse_name(err, what, "starts with a blank");
    }
    if (is_blank(c))
        return refuse_name(err, what, "ends with a blank");
    if (chars > NAME_MAX_CHARS)
        return refuse_name(err, what, "is too long");
    return 0;
}

bool text_starts_with(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}
