/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sse.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The value of "NAME: value" or "NAME:value", or NULL. */
static const char *value_of(const char *line, const char *name)
{
    size_t n = strlen(name);

    if (strncmp(line, name, n) != 0 || line[n] != ':')
        return NULL;
    line += n + 1;
    return *line == ' ' ? line + 1 : line;
}

static int take_line(struct cli_sse *s)
{
    const char *line = strbuf_str(&s->line), *v;
    int r = 0;

    if (*line == '\0') {
        if (s->data.len > 0)
            r = s->event(s->user, strbuf_str(&s->data));
        strbuf_truncate(&s->data, 0);
    } else if ((v = value_of(line, "data"))) {
        if (s->data.len > 0)
            strbuf_addc(&s->data, '\n');
        strbuf_adds(&s->data, v);
        if (s->data.len > CLI_SSE_MAX)
            r = -EMSGSIZE;
    } else if ((v = value_of(line, "id"))) {
        snprintf(s->id, sizeof(s->id), "%s", v);
    }
    strbuf_truncate(&s->line, 0);
    return r;
}

int cli_sse_feed(struct cli_sse *s, const char *bytes, size_t len)
{
    while (len > 0) {
        const char *end = memchr(bytes, '\n', len);
        size_t n = end ? (size_t)(end - bytes) : len;
        int r;

        if (s->line.len + n > CLI_SSE_MAX)
            return -EMSGSIZE;
        strbuf_add(&s->line, bytes, n);
        if (end == NULL)
            return 0;
        if (s->line.len > 0 && s->line.data[s->line.len - 1] == '\r')
            strbuf_truncate(&s->line, s->line.len - 1);
        r = take_line(s);
        if (r != 0)
            return r;
        bytes += n + 1;
        len -= n + 1;
    }
    return 0;
}

void cli_sse_reset(struct cli_sse *s)
{
    strbuf_truncate(&s->line, 0);
    strbuf_truncate(&s->data, 0);
}

void cli_sse_done(struct cli_sse *s)
{
    strbuf_done(&s->line);
    strbuf_done(&s->data);
}
