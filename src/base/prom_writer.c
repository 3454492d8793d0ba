/* SPDX-License-Identifier: Apache-2.0 */
#include "base/prom_writer.h"

#include <inttypes.h>
#include <string.h>

#include "base/qty.h"
#include "base/text.h"

void prom_writer_init(struct prom_writer *w, struct strbuf *out)
{
    *w = (struct prom_writer){.out = out};
}

void prom_family(struct prom_writer *w, const char *name, const char *type, const char *help)
{
    w->name = name;
    w->type = type;
    w->help = help;
    w->told = false;
}

/* In help texts quotes stay as they are. */
static void add_escaped(struct strbuf *out, const char *text, bool quotes)
{
    size_t left = strlen(text), n;

    for (; left > 0; text += n, left -= n) {
        n = text_utf8_len(text, left);
        if (n == 0) {
            strbuf_addc(out, '?');
            n = 1;
        } else if (*text == '\n') {
            strbuf_adds(out, "\\n");
        } else if (*text == '\\' || (quotes && *text == '"')) {
            strbuf_addc(out, '\\');
            strbuf_addc(out, *text);
        } else {
            strbuf_add(out, text, n);
        }
    }
}

void prom_begin(struct prom_writer *w)
{
    if (!w->told) {
        strbuf_addf(w->out, "# HELP %s ", w->name);
        add_escaped(w->out, w->help, false);
        strbuf_addf(w->out, "\n# TYPE %s %s\n", w->name, w->type);
        w->told = true;
    }
    strbuf_adds(w->out, w->name);
    w->labelled = false;
}

void prom_label(struct prom_writer *w, const char *name, const char *value)
{
    strbuf_addc(w->out, w->labelled ? ',' : '{');
    strbuf_adds(w->out, name);
    strbuf_adds(w->out, "=\"");
    add_escaped(w->out, value, true);
    strbuf_addc(w->out, '"');
    w->labelled = true;
}

static void begin_value(struct prom_writer *w)
{
    strbuf_adds(w->out, w->labelled ? "} " : " ");
}

void prom_i64(struct prom_writer *w, int64_t value)
{
    begin_value(w);
    strbuf_add_i64(w->out, value);
    strbuf_addc(w->out, '\n');
}

void prom_milli(struct prom_writer *w, int64_t value)
{
    char text[QTY_TEXT_MAX];

    begin_value(w);
    strbuf_adds(w->out, qty_format_milli(value, text));
    strbuf_addc(w->out, '\n');
}

void prom_micro(struct prom_writer *w, int64_t value)
{
    begin_value(w);
    strbuf_addf(w->out, "%" PRId64 ".%06" PRId64 "\n", value / 1000000, value % 1000000);
}
