/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

void record_add(struct strbuf *b, const char *key, const char *value)
{
    if (value == NULL)
        return;
    strbuf_adds(b, key);
    strbuf_addc(b, '=');
    strbuf_add(b, value, strlen(value) + 1);
}

void record_add_i64(struct strbuf *b, const char *key, int64_t value)
{
    strbuf_adds(b, key);
    strbuf_addc(b, '=');
    strbuf_add_i64(b, value);
    strbuf_addc(b, '\0');
}

const char *record_next(const char *data, size_t len, const char *key, size_t *it)
{
    size_t key_len = strlen(key);

    while (*it < len) {
        const char *item = data + *it;
        size_t n = strnlen(item, len - *it);

        /* A last item without its NUL was cut short: it is not a value. */
        if (*it + n == len)
            return NULL;
        *it += n + 1;
        if (n > key_len && item[key_len] == '=' && memcmp(item, key, key_len) == 0)
            return item + key_len + 1;
    }
    return NULL;
}

const char *record_get(const char *data, size_t len, const char *key)
{
    size_t it = 0;

    return record_next(data, len, key, &it);
}

int64_t record_get_i64(const char *data, size_t len, const char *key, int64_t fallback)
{
    const char *text = record_get(data, len, key);
    char *end;
    long long v;

    if (text == NULL || *text == '\0')
        return fallback;
    errno = 0;
    v = strtoll(text, &end, 10);
    return errno != 0 || *end != '\0' ? fallback : v;
}

char **record_list(const char *data, size_t len, const char *key, size_t *ret_count)
{
    VEC(char *) list = {0};
    const char *v;
    size_t it = 0;

    while ((v = record_next(data, len, key, &it)))
        vec_push(&list, (char *)v);
    if (ret_count)
        *ret_count = list.len;
    vec_push(&list, NULL);
    return list.items;
}
