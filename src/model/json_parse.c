/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsing with json-c, and what json-c lets pass.
 *
 * Even when strict, json-c takes single quotes, NaN and Infinity, raw control characters, cuts
 * keys at an escaped NUL, and lets the last of two equal keys win. A scan of the text before the
 * parse refuses the former; duplicates show afterwards, because the text then has more keys than
 * the objects made of it.
 */
#include "model/json.h"

#include <errno.h>
#include <json-c/json.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "base/text.h"

DEFINE_CLEANUP(struct json_tokener *, json_tokener_free, json_tokener_freep)

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static int refuse_at(struct err *err, size_t at, const char *why)
{
    return err_set(err, -EINVAL, ERR_INVALID, NULL, "send one complete JSON document (RFC 8259)",
                   "JSON is invalid at byte %zu: %s", at, why);
}

/* The index of the quote that closes the string opened at AT, or LEN. */
static size_t string_end(const char *text, size_t len, size_t at)
{
    for (size_t i = at + 1; i < len; i++) {
        if (text[i] == '\\')
            i++;
        else if (text[i] == '"')
            return i;
    }
    return len;
}

static int scan_string(const char *text, size_t from, size_t to, struct err *err)
{
    for (size_t i = from; i < to; i++) {
        if ((unsigned char)text[i] < 0x20)
            return refuse_at(err, i, "a control character inside a string must be escaped");
        if (text[i] != '\\')
            continue;
        i++;
        if (to - i >= 5 && memcmp(text + i, "u0000", 5) == 0)
            return refuse_at(err, i, "NUL is not allowed");
    }
    return 0;
}

static int scan(const char *text, size_t len, size_t *ret_keys, struct err *err)
{
    size_t keys = 0, start = 0;

    while (start < len && is_blank(text[start]))
        start++;
    if (start == len)
        return refuse_at(err, start, "the document is empty");
    if (text[start] != '{' && text[start] != '[')
        return refuse_at(err, start, "a document begins with '{' or '['");
    for (size_t i = start; i < len; i++) {
        size_t end;
        int r;

        if (text[i] == '"') {
            end = string_end(text, len, i);
            r = scan_string(text, i, end, err);
            if (r < 0)
                return r;
            i = end;
        } else if (text[i] == ':') {
            keys++;
        } else if (text[i] == '\'') {
            return refuse_at(err, i, "strings stand in double quotes");
        } else if (text[i] == 'N' || text[i] == 'I') {
            return refuse_at(err, i, "NaN and Infinity are not numbers here");
        } else if ((unsigned char)text[i] < 0x20 && !is_blank(text[i])) {
            return refuse_at(err, i, "a control character");
        }
    }
    *ret_keys = keys;
    return 0;
}

/* Depth is bounded by the tokener. */
static size_t count_keys(struct json_object *v)
{
    size_t keys = 0;

    if (json_object_is_type(v, json_type_object)) {
        json_object_object_foreach(v, key, value)
        {
            (void)key;
            keys += 1 + count_keys(value);
        }
    } else if (json_object_is_type(v, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(v); i++)
            keys += count_keys(json_object_array_get_idx(v, i));
    }
    return keys;
}

/* The first key that its own object has twice, for the message. Equal keys that are escaped in
 * different ways are counted but not found here: NULL. */
static const char *find_duplicate(const char *text, size_t len, struct arena *arena)
{
    size_t stack[MODEL_JSON_DEPTH_MAX + 2] = {0}, depth = 0, containers = 0;
    const char *found = NULL;
    struct map seen = MAP_INIT;

    for (size_t i = 0; i < len && found == NULL; i++) {
        if (text[i] == '{' || text[i] == '[') {
            if (++depth >= ARRAY_LEN(stack))
                break;
            stack[depth] = ++containers;
        } else if ((text[i] == '}' || text[i] == ']') && depth > 0) {
            depth--;
        } else if (text[i] == '"') {
            size_t end = string_end(text, len, i), after = end + 1;
            char *key;

            while (after < len && is_blank(text[after]))
                after++;
            if (after < len && text[after] == ':') {
                key =
                    arena_printf(arena, "%zu %.*s", stack[depth], (int)(end - i - 1), text + i + 1);
                if (map_put_str(&seen, key, key))
                    found = strchr(key, ' ') + 1;
            }
            i = end;
        }
    }
    map_done(&seen);
    return found;
}

static int refuse_duplicate(const char *text, size_t len, struct err *err)
{
    struct arena arena = ARENA_INIT;
    const char *key = find_duplicate(text, len, &arena);
    int r;

    r = err_set(err, -EINVAL, ERR_INVALID, key, "give each field once",
                "'%.60s' stands twice in one object", key ? key : "a field");
    arena_done(&arena);
    return r;
}

static int refuse_syntax(enum json_tokener_error error, size_t at, struct err *err)
{
    if (error == json_tokener_continue)
        return refuse_at(err, at, "the document ends too early");
    if (error == json_tokener_error_depth)
        return refuse_at(err, at, "nested more than 32 levels deep");
    return refuse_at(err, at, json_tokener_error_desc(error));
}

int model_json_parse(const char *text, size_t len, struct json_object **ret_json, struct err *err)
{
    _cleanup_(json_tokener_freep) struct json_tokener *tokener = NULL;
    struct json_object *json;
    size_t keys = 0;
    int r;

    if (len > MODEL_JSON_BYTES_MAX)
        return err_set(err, -E2BIG, ERR_TOO_LARGE, NULL, "split it into smaller requests",
                       "document of %zu bytes is larger than %d", len, MODEL_JSON_BYTES_MAX);
    if (!text_is_utf8(text, len))
        return refuse_at(err, 0, "the text is not valid UTF-8");
    r = scan(text, len, &keys, err);
    if (r < 0)
        return r;
    tokener = json_tokener_new_ex(MODEL_JSON_DEPTH_MAX);
    if (tokener == NULL)
        return err_set(err, -ENOMEM, ERR_INTERNAL, NULL, NULL, "out of memory");
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
    json = json_tokener_parse_ex(tokener, text, (int)len);
    if (json == NULL)
        return refuse_syntax(json_tokener_get_error(tokener), json_tokener_get_parse_end(tokener),
                             err);
    if (count_keys(json) != keys) {
        json_object_put(json);
        return refuse_duplicate(text, len, err);
    }
    *ret_json = json;
    return 0;
}
