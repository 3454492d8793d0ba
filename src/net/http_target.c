/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http_internal.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static int bad(struct err *err, const char *what)
{
    return err_set(err, -EINVAL, ERR_INVALID, NULL, "percent-encode names as UTF-8 (RFC 3986)",
                   "request target has %s", what);
}

/* Percent-decodes N bytes into the arena; '+' is a blank in queries only. */
static int decode(struct arena *a, const char *s, size_t n, bool query, const char **ret_text,
                  struct err *err)
{
    char *out = arena_alloc(a, n + 1);
    size_t len = 0;

    for (size_t i = 0; i < n; i++) {
        char c = s[i];

        if (c == '%') {
            int hi = i + 2 < n ? hex_digit(s[i + 1]) : -1;
            int lo = hi >= 0 ? hex_digit(s[i + 2]) : -1;

            if (lo < 0)
                return bad(err, "a '%' that two hexadecimal digits do not follow");
            c = (char)(hi << 4 | lo);
            i += 2;
        } else if (c == '+' && query) {
            c = ' ';
        }
        if (c == '\0')
            return bad(err, "a NUL character");
        out[len++] = c;
    }
    if (!text_is_utf8(out, len))
        return bad(err, "invalid UTF-8");
    *ret_text = out;
    return 0;
}

static int parse_path(struct http_request *r, const char *path, size_t n, struct err *err)
{
    const char **segments = arena_new_array(&r->arena, const char *, HTTP_SEGMENTS_MAX);
    const char *end = path + n;
    int res;

    if (n == 0 || path[0] != '/')
        return bad(err, "no leading '/'");
    r->segments = segments;
    while (path < end) {
        const char *slash;

        path++; /* the slash before this segment */
        slash = memchr(path, '/', (size_t)(end - path));
        if (slash == NULL)
            slash = end;
        if (slash == path && slash == end && r->segment_count == 0)
            return 0; /* "/" alone */
        if (slash == path)
            return bad(err, "an empty path segment");
        if (r->segment_count == HTTP_SEGMENTS_MAX)
            return bad(err, "too many path segments");
        res = decode(&r->arena, path, (size_t)(slash - path), false, &segments[r->segment_count],
                     err);
        if (res < 0)
            return res;
        r->segment_count++;
        path = slash;
    }
    return 0;
}

static int parse_query(struct http_request *r, const char *query, struct err *err)
{
    struct http_param *params = arena_new_array(&r->arena, struct http_param, HTTP_PARAMS_MAX);

    r->params = params;
    while (*query) {
        size_t n = strcspn(query, "&");
        const char *eq = memchr(query, '=', n);
        size_t name_len = eq ? (size_t)(eq - query) : n;
        struct http_param *p = &params[r->param_count];
        int res;

        if (n > 0 && r->param_count == HTTP_PARAMS_MAX)
            return bad(err, "too many query parameters");
        if (n > 0) {
            res = decode(&r->arena, query, name_len, true, &p->name, err);
            if (res < 0)
                return res;
            p->value = "";
            if (eq)
                res = decode(&r->arena, eq + 1, n - name_len - 1, true, &p->value, err);
            if (res < 0)
                return res;
            r->param_count++;
        }
        query += n;
        if (*query == '&')
            query++;
    }
    return 0;
}

int http_target_parse(struct http_request *r, const char *target, struct err *err)
{
    size_t len = strlen(target);
    size_t path_len = strcspn(target, "?");
    int res;

    if (len > HTTP_TARGET_MAX)
        return err_set(err, -E2BIG, ERR_TOO_LARGE, NULL, "send long values in a body",
                       "request target has %zu bytes and may have %d", len, HTTP_TARGET_MAX);
    r->path = arena_strndup(&r->arena, target, path_len);
    res = parse_path(r, target, path_len, err);
    if (res < 0 || target[path_len] == '\0')
        return res;
    return parse_query(r, target + path_len + 1, err);
}
