/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static void copy_text(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from ? from : "");
    text_make_printable(to); /* hostile input is quoted in messages */
}

int err_set(struct err *err, int errnum, const char *code, const char *field, const char *remedy,
            const char *fmt, ...)
{
    va_list ap;

    if (err == NULL)
        return errnum;
    err->errnum = errnum;
    err->code = code;
    copy_text(err->field, sizeof(err->field), field);
    copy_text(err->remedy, sizeof(err->remedy), remedy);
    va_start(ap, fmt);
    vsnprintf(err->text, sizeof(err->text), fmt, ap);
    va_end(ap);
    text_make_printable(err->text);
    return errnum;
}

void err_prefix_field(struct err *err, const char *fmt, ...)
{
    char former[sizeof(err->field)];
    size_t len;
    va_list ap;

    if (err == NULL)
        return;
    memcpy(former, err->field, sizeof(former));
    va_start(ap, fmt);
    vsnprintf(err->field, sizeof(err->field), fmt, ap);
    va_end(ap);
    len = strlen(err->field);
    snprintf(err->field + len, sizeof(err->field) - len, "%s%s",
             len > 0 && former[0] && former[0] != '[' ? "." : "", former);
    text_make_printable(err->field);
}
