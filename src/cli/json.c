/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/json.h"

#include <json-c/json.h>
#include <limits.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/qty.h"

#define REPLY_BYTES_MAX (64 << 20)
#define REPLY_DEPTH_MAX 32
#define KEY_MAX 64

DEFINE_CLEANUP(struct json_tokener *, json_tokener_free, json_tokener_freep)

struct json_object *cli_json_parse(const char *text, size_t len)
{
    _cleanup_(json_tokener_freep) struct json_tokener *tokener = NULL;
    struct json_object *json;

    if (text == NULL || len == 0 || len > REPLY_BYTES_MAX)
        return NULL;
    tokener = json_tokener_new_ex(REPLY_DEPTH_MAX);
    if (tokener == NULL)
        return NULL;
    json = json_tokener_parse_ex(tokener, text, (int)len);
    if (json && json_tokener_get_error(tokener) != json_tokener_success) {
        json_object_put(json);
        return NULL;
    }
    return json;
}

struct json_object *cli_json_get(struct json_object *json, const char *path)
{
    char key[KEY_MAX];

    while (json && path && *path) {
        size_t n = strcspn(path, ".");

        if (n >= sizeof(key) || !json_object_is_type(json, json_type_object))
            return NULL;
        memcpy(key, path, n);
        key[n] = '\0';
        if (!json_object_object_get_ex(json, key, &json))
            return NULL;
        path += n;
        if (*path == '.')
            path++;
    }
    return json;
}

const char *cli_json_text(struct json_object *json, const char *path)
{
    struct json_object *v = cli_json_get(json, path);

    if (v == NULL || json_object_is_type(v, json_type_object) ||
        json_object_is_type(v, json_type_array))
        return NULL;
    return json_object_get_string(v);
}

int64_t cli_json_int(struct json_object *json, const char *path, int64_t otherwise)
{
    struct json_object *v = cli_json_get(json, path);

    return json_object_is_type(v, json_type_int) ? json_object_get_int64(v) : otherwise;
}

bool cli_json_bool(struct json_object *json, const char *path)
{
    struct json_object *v = cli_json_get(json, path);

    return json_object_is_type(v, json_type_boolean) && json_object_get_boolean(v);
}

int64_t cli_json_milli(struct json_object *json, const char *path, int64_t otherwise)
{
    const char *text = cli_json_text(json, path);
    int64_t milli;

    return text && qty_parse_milli(text, &milli, NULL) == 0 ? milli : otherwise;
}

int64_t cli_json_bytes(struct json_object *json, const char *path, int64_t otherwise)
{
    const char *text = cli_json_text(json, path);
    int64_t bytes;

    return text && qty_parse_bytes(text, &bytes, NULL) == 0 ? bytes : otherwise;
}

int64_t cli_json_time(struct json_object *json, const char *path)
{
    const char *text = cli_json_text(json, path);
    int64_t ms;

    return text && clock_parse_utc(text, &ms) == 0 ? ms : 0;
}

size_t cli_json_len(struct json_object *json, const char *path)
{
    struct json_object *v = cli_json_get(json, path);

    return json_object_is_type(v, json_type_array) ? json_object_array_length(v) : 0;
}

struct json_object *cli_json_at(struct json_object *json, const char *path, size_t index)
{
    return index < cli_json_len(json, path)
               ? json_object_array_get_idx(cli_json_get(json, path), index)
               : NULL;
}
