/* SPDX-License-Identifier: Apache-2.0 */
#include "base/yaml.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <yaml.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/json_writer.h"
#include "base/map.h"

enum place { IN_SEQUENCE, BEFORE_KEY, BEFORE_VALUE };

/* A mapping or sequence that has begun and not ended. */
struct frame {
    enum place place;
    struct map keys; /* of a mapping, those seen so far; texts live in the arena */
};

struct conversion {
    yaml_parser_t parser;
    struct json_writer out;
    struct arena keys;
    struct frame frames[YAML_DEPTH_MAX];
    size_t depth;     /* frames in use */
    size_t documents; /* begun so far */
    struct err *err;
};

static int refuse(struct conversion *c, const yaml_mark_t *mark, int errnum, const char *code,
                  const char *remedy, const char *fmt, ...) __attribute__((format(printf, 6, 7)));

static int refuse(struct conversion *c, const yaml_mark_t *mark, int errnum, const char *code,
                  const char *remedy, const char *fmt, ...)
{
    char what[200];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    return err_set(c->err, errnum, code, NULL, remedy, "line %zu, column %zu: %s", mark->line + 1,
                   mark->column + 1, what);
}

static bool is_json_number(const char *s, size_t n)
{
    const char *end = s + n;

    if (s < end && *s == '-')
        s++;
    if (s == end || *s < '0' || *s > '9')
        return false;
    if (*s == '0')
        s++;
    else
        s += strspn(s, "0123456789");
    if (s < end && *s == '.') {
        size_t digits = strspn(s + 1, "0123456789");

        if (digits == 0)
            return false;
        s += 1 + digits;
    }
    if (s < end && (*s == 'e' || *s == 'E')) {
        size_t digits;

        s++;
        if (s < end && (*s == '+' || *s == '-'))
            s++;
        digits = strspn(s, "0123456789");
        if (digits == 0)
            return false;
        s += digits;
    }
    return s == end;
}

static bool is_one_of(const char *s, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(s, words[i]) == 0)
            return true;
    }
    return false;
}

/* Resolves a scalar without quotes as the core schema of YAML 1.2 does (10.3.2). */
static void write_plain(struct json_writer *out, const char *s, size_t n)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    static const char *const trues[] = {"true", "True", "TRUE"};
    static const char *const falses[] = {"false", "False", "FALSE"};

    if (is_one_of(s, nulls, ARRAY_LEN(nulls)))
        json_null(out);
    else if (is_one_of(s, trues, ARRAY_LEN(trues)))
        json_boolean(out, true);
    else if (is_one_of(s, falses, ARRAY_LEN(falses)))
        json_boolean(out, false);
    else if (is_json_number(s, n))
        json_raw(out, s, n);
    else
        json_string_n(out, s, n);
}

/* Nothing may be named, referred to or typed: text means what it says where it stands. */
static int check_properties(struct conversion *c, const yaml_event_t *e, const yaml_char_t *anchor,
                            const yaml_char_t *tag)
{
    if (anchor)
        return refuse(c, &e->start_mark, -EINVAL, ERR_UNSUPPORTED,
                      "write the value out wherever it is used", "anchor '&%.40s' is not allowed",
                      anchor);
    if (tag)
        return refuse(c, &e->start_mark, -EINVAL, ERR_UNSUPPORTED,
                      "remove the tag; put text in quotes", "tag '%.40s' is not allowed", tag);
    return 0;
}

static struct frame *top(struct conversion *c)
{
    return c->depth > 0 ? &c->frames[c->depth - 1] : NULL;
}

/* A value is complete or has begun: the mapping around it expects a key next. */
static void value_seen(struct conversion *c)
{
    struct frame *f = top(c);

    if (f && f->place == BEFORE_VALUE)
        f->place = BEFORE_KEY;
}

static int convert_key(struct conversion *c, const yaml_event_t *e)
{
    const char *key = (const char *)e->data.scalar.value;
    size_t len = e->data.scalar.length;
    struct frame *f = top(c);
    char *copy;

    if (len == 0 && e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
        return refuse(c, &e->start_mark, -EINVAL, ERR_INVALID, "give the value a key",
                      "a key is missing");
    if (strlen(key) != len)
        return refuse(c, &e->start_mark, -EINVAL, ERR_INVALID, NULL,
                      "key '%.40s' contains a NUL character", key);
    if (map_get_str(&f->keys, key))
        return refuse(c, &e->start_mark, -EINVAL, ERR_INVALID, "keep one of the two",
                      "key '%.40s' appears twice", key);
    if (f->keys.len == YAML_KEYS_MAX)
        return refuse(c, &e->start_mark, -EFBIG, ERR_TOO_LARGE, NULL,
                      "a mapping has more than %d keys", YAML_KEYS_MAX);
    copy = arena_strdup(&c->keys, key);
    map_put_str(&f->keys, copy, copy);
    json_key(&c->out, key);
    f->place = BEFORE_VALUE;
    return 0;
}

static int convert_scalar(struct conversion *c, const yaml_event_t *e)
{
    const char *text = (const char *)e->data.scalar.value;
    size_t len = e->data.scalar.length;
    bool plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    int r = check_properties(c, e, e->data.scalar.anchor, e->data.scalar.tag);

    if (r < 0)
        return r;
    if (c->depth > 0 && top(c)->place == BEFORE_KEY)
        return convert_key(c, e);
    if (c->depth == 0 && plain && len == 0)
        return 0; /* an empty document */
    value_seen(c);
    if (plain)
        write_plain(&c->out, text, len);
    else
        json_string_n(&c->out, text, len);
    return 0;
}

static int begin_container(struct conversion *c, const yaml_event_t *e, enum place place)
{
    struct frame *f = top(c);

    if (f && f->place == BEFORE_KEY)
        return refuse(c, &e->start_mark, -EINVAL, ERR_INVALID, "use text as the key",
                      "a key is a mapping or a sequence");
    if (c->depth == YAML_DEPTH_MAX)
        return refuse(c, &e->start_mark, -EFBIG, ERR_TOO_LARGE, NULL,
                      "more than %d levels are nested", YAML_DEPTH_MAX);
    value_seen(c);
    c->frames[c->depth++] = (struct frame){.place = place};
    if (place == IN_SEQUENCE)
        json_begin_array(&c->out);
    else
        json_begin_object(&c->out);
    return 0;
}

static void end_container(struct conversion *c)
{
    struct frame *f = top(c);

    if (f->place == IN_SEQUENCE)
        json_end_array(&c->out);
    else
        json_end_object(&c->out);
    map_done(&f->keys);
    c->depth--;
    /* The texts of the keys are let go where nothing can refer to them any more. */
    if (c->depth == 0)
        arena_reset(&c->keys);
}

static int begin_document(struct conversion *c, const yaml_event_t *e)
{
    if (e->data.document_start.tag_directives.start != e->data.document_start.tag_directives.end)
        return refuse(c, &e->start_mark, -EINVAL, ERR_UNSUPPORTED, "remove the line",
                      "the directive %%TAG is not allowed");
    if (++c->documents > YAML_DOCUMENTS_MAX)
        return refuse(c, &e->start_mark, -EFBIG, ERR_TOO_LARGE, "split the file",
                      "more than %d documents", YAML_DOCUMENTS_MAX);
    return 0;
}

static int convert_event(struct conversion *c, const yaml_event_t *e)
{
    int r;

    switch (e->type) {
    case YAML_DOCUMENT_START_EVENT:
        return begin_document(c, e);
    case YAML_SCALAR_EVENT:
        return convert_scalar(c, e);
    case YAML_SEQUENCE_START_EVENT:
        r = check_properties(c, e, e->data.sequence_start.anchor, e->data.sequence_start.tag);
        return r < 0 ? r : begin_container(c, e, IN_SEQUENCE);
    case YAML_MAPPING_START_EVENT:
        r = check_properties(c, e, e->data.mapping_start.anchor, e->data.mapping_start.tag);
        return r < 0 ? r : begin_container(c, e, BEFORE_KEY);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        end_container(c);
        return 0;
    case YAML_ALIAS_EVENT:
        return refuse(c, &e->start_mark, -EINVAL, ERR_UNSUPPORTED,
                      "write the value out wherever it is used", "alias '*%.40s' is not allowed",
                      e->data.alias.anchor);
    default:
        return 0;
    }
}

/* Bytes that are no characters are reported by offset: find the line and column of it. */
static yaml_mark_t mark_of_offset(const char *text, size_t len, size_t offset)
{
    yaml_mark_t mark = {0};

    for (size_t i = 0; i < len && i < offset; i++) {
        mark.column++;
        if (text[i] == '\n') {
            mark.line++;
            mark.column = 0;
        }
    }
    return mark;
}

static int refuse_syntax(struct conversion *c, const char *text, size_t len)
{
    const yaml_parser_t *p = &c->parser;
    yaml_mark_t mark = p->problem_mark;

    if (p->error == YAML_MEMORY_ERROR)
        return err_set(c->err, -ENOMEM, ERR_UNAVAILABLE, NULL, NULL, "out of memory");
    if (p->error == YAML_READER_ERROR)
        mark = mark_of_offset(text, len, p->problem_offset);
    return refuse(c, &mark, -EINVAL, ERR_INVALID, "correct the YAML or JSON there", "%s%s%s",
                  p->problem ? p->problem : "malformed", p->context ? " " : "",
                  p->context ? p->context : "");
}

static int convert_stream(struct conversion *c, const char *text, size_t len)
{
    yaml_event_type_t type;
    yaml_event_t event;
    int r;

    do {
        if (!yaml_parser_parse(&c->parser, &event))
            return refuse_syntax(c, text, len);
        type = event.type;
        r = convert_event(c, &event);
        yaml_event_delete(&event);
        if (r < 0)
            return r;
    } while (type != YAML_STREAM_END_EVENT);
    return 0;
}

int yaml_to_json(const char *text, size_t len, struct strbuf *ret_json_array, struct err *err)
{
    struct conversion c = {.err = err};
    size_t before = ret_json_array->len;
    int r;

    if (len > YAML_SIZE_MAX)
        return err_set(err, -EFBIG, ERR_TOO_LARGE, NULL, "split the file",
                       "the text is larger than %zu MiB", YAML_SIZE_MAX / (1024 * 1024));
    if (!yaml_parser_initialize(&c.parser))
        return err_set(err, -ENOMEM, ERR_UNAVAILABLE, NULL, NULL, "out of memory");
    yaml_parser_set_encoding(&c.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&c.parser, (const unsigned char *)text, len);
    json_writer_init(&c.out, ret_json_array);
    json_begin_array(&c.out);
    r = convert_stream(&c, text, len);
    if (r == 0)
        json_end_array(&c.out);
    else
        strbuf_truncate(ret_json_array, before);
    while (c.depth > 0)
        map_done(&c.frames[--c.depth].keys);
    arena_done(&c.keys);
    yaml_parser_delete(&c.parser);
    return r;
}
