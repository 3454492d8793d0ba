/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of model share: documents in, decoded structs or the error out.
 *
 * Test texts are written with single quotes, which stand for double ones.
 */
#ifndef ALLOT_TESTS_MODEL_SUPPORT_H
#define ALLOT_TESTS_MODEL_SUPPORT_H

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <json-c/json.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "model/json.h"

/* TEXT with its single quotes turned into double ones. */
static inline char *quoted(struct arena *a, const char *text)
{
    char *copy = arena_strdup(a, text);

    for (char *p = copy; *p; p++) {
        if (*p == '\'')
            *p = '"';
    }
    return copy;
}

/* Parses or fails the test. */
static inline struct json_object *parsed(struct arena *a, const char *text)
{
    struct json_object *json = NULL;
    struct err err = ERR_INIT;
    const char *real = quoted(a, text);

    if (model_json_parse(real, strlen(real), &json, &err) < 0)
        fail_msg("%s: %s", real, err.text);
    return json;
}

/* A document that must be refused, and what the answer must say. */
struct refusal {
    const char *text;
    const char *code;
    const char *field;
    const char *says; /* part of the text or of the remedy */
};

static inline void check_refusal(const struct refusal *want, int r, const struct err *err)
{
    if (r >= 0)
        fail_msg("%s: accepted", want->text);
    if (r != err->errnum || strcmp(err->code, want->code) != 0 ||
        strcmp(err->field, want->field) != 0 ||
        (strstr(err->text, want->says) == NULL && strstr(err->remedy, want->says) == NULL))
        fail_msg("%s: %d %s, field '%s': %s (%s); expected %s, '%s': %s", want->text, r, err->code,
                 err->field, err->text, err->remedy, want->code, want->field, want->says);
}

#endif
