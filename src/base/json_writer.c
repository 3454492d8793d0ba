/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_writer.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"

void json_writer_init(struct json_writer *w, struct strbuf *out)
{
    *w = (struct json_writer){.out = out};
}

/* Writes the comma that is due before a value or a key. */
static void separate(struct json_writer *w)
{
    if (w->after_key) {
        w->after_key = false;
        return;
    }
    if (w->has_item[w->depth])
        strbuf_addc(w->out, ',');
    w->has_item[w->depth] = true;
}

static void begin(struct json_writer *w, char bracket)
{
    separate(w);
    strbuf_addc(w->out, bracket);
    assert(w->depth + 1 < JSON_DEPTH_MAX);
    w->has_item[++w->depth] = false;
}

static void end(struct json_writer *w, char bracket)
{
    assert(w->depth > 0 && !w->after_key);
    w->depth--;
    strbuf_addc(w->out, bracket);
}

void json_begin_object(struct json_writer *w)
{
    begin(w, '{');
}

void json_end_object(struct json_writer *w)
{
    end(w, '}');
}

void json_begin_array(struct json_writer *w)
{
    begin(w, '[');
}

void json_end_array(struct json_writer *w)
{
    end(w, ']');
}

/* Bytes that a string may hold as they are; the rest needs an escape or a look at the UTF-8. */
static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static void add_escape(struct strbuf *out, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    static const char names[] = "\"\"\\\\\bb\ff\nn\rr\tt";

    for (size_t i = 0; i + 1 < sizeof(names); i += 2) {
        if ((unsigned char)names[i] == c) {
            strbuf_add(out, (char[]){'\\', names[i + 1]}, 2);
            return;
        }
    }
    strbuf_add(out, (char[]){'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]}, 6);
}

static void add_quoted(struct strbuf *out, const char *s, size_t n)
{
    strbuf_reserve(out, n + 2);
    strbuf_addc(out, '"');
    for (size_t at = 0; at < n;) {
        size_t run = at, len;

        while (run < n && is_plain((unsigned char)s[run]))
            run++;
        strbuf_add(out, s + at, run - at);
        at = run;
        if (at == n)
            break;
        if ((unsigned char)s[at] < 0x80) {
            add_escape(out, (unsigned char)s[at++]);
            continue;
        }
        len = text_utf8_len(s + at, n - at);
        if (len > 0)
            strbuf_add(out, s + at, len);
        else
            strbuf_adds(out, "\xef\xbf\xbd");
        at += len > 0 ? len : 1;
    }
    strbuf_addc(out, '"');
}

void json_key(struct json_writer *w, const char *key)
{
    assert(!w->after_key);
    separate(w);
    add_quoted(w->out, key, strlen(key));
    strbuf_addc(w->out, ':');
    w->after_key = true;
}

void json_string(struct json_writer *w, const char *s)
{
    if (s)
        json_string_n(w, s, strlen(s));
    else
        json_null(w);
}

void json_string_n(struct json_writer *w, const char *s, size_t n)
{
    separate(w);
    add_quoted(w->out, s, n);
}

void json_i64(struct json_writer *w, int64_t v)
{
    separate(w);
    strbuf_add_i64(w->out, v);
}

void json_boolean(struct json_writer *w, bool v)
{
    separate(w);
    strbuf_adds(w->out, v ? "true" : "false");
}

void json_null(struct json_writer *w)
{
    separate(w);
    strbuf_adds(w->out, "null");
}

void json_raw(struct json_writer *w, const char *text, size_t n)
{
    separate(w);
    strbuf_add(w->out, text, n);
}

void json_key_string(struct json_writer *w, const char *key, const char *s)
{
    json_key(w, key);
    json_string(w, s);
}

void json_key_i64(struct json_writer *w, const char *key, int64_t v)
{
    json_key(w, key);
    json_i64(w, v);
}

void json_key_bool(struct json_writer *w, const char *key, bool v)
{
    json_key(w, key);
    json_boolean(w, v);
}

void json_key_time(struct json_writer *w, const char *key, int64_t wall_ms)
{
    char text[CLOCK_TEXT_MAX];

    json_key(w, key);
    if (wall_ms == 0) {
        json_null(w);
        return;
    }
    clock_format_utc(wall_ms, text);
    json_string(w, text);
}
