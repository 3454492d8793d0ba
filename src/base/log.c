/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/strbuf.h"

static _Atomic int max_level = LOG_LEVEL_INFO;

static const char *const level_names[] = {
    [LOG_LEVEL_ERROR] = "error",
    [LOG_LEVEL_WARN] = "warn",
    [LOG_LEVEL_INFO] = "info",
    [LOG_LEVEL_DEBUG] = "debug",
};

void log_set_level(enum log_level max)
{
    atomic_store(&max_level, (int)max);
}

static bool wants_time(void)
{
    struct stat st;

    if (fstat(STDERR_FILENO, &st) < 0)
        return false;
    return S_ISREG(st.st_mode) || isatty(STDERR_FILENO);
}

static void add_escaped(struct strbuf *line, const struct strbuf *text)
{
    for (size_t i = 0; i < text->len; i++) {
        unsigned char c = (unsigned char)text->data[i];

        if (c == '\n')
            strbuf_adds(line, "\\n");
        else if (c < 0x20 || c == 0x7f)
            strbuf_addf(line, "\\x%02x", c);
        else
            strbuf_addc(line, (char)c);
    }
}

void log_write(enum log_level level, const char *fmt, ...)
{
    _cleanup_strbuf_ struct strbuf text = STRBUF_INIT, line = STRBUF_INIT;
    char time_text[CLOCK_TEXT_MAX];
    int saved = errno;
    va_list ap;

    if ((int)level > atomic_load(&max_level))
        return;
    va_start(ap, fmt);
    strbuf_addv(&text, fmt, ap);
    va_end(ap);
    if (wants_time()) {
        clock_format_utc(clock_wall_ms(), time_text);
        strbuf_addf(&line, "%s ", time_text);
    }
    strbuf_addf(&line, "%s ", level_names[level]);
    add_escaped(&line, &text);
    strbuf_addc(&line, '\n');
    /* One write a line keeps threads apart. Nobody is left to tell if it fails. */
    (void)io_write_all(STDERR_FILENO, line.data, line.len);
    errno = saved;
}
