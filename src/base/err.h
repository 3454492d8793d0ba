/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors as an interface.
 *
 * A fallible function returns 0 or a negative errno and, where a person will read the reason,
 * takes an optional caller-owned `struct err`. The text names what failed and which input, in
 * lower case, subject in single quotes, no full stop; `remedy` says what to do; `code` is a
 * stable word for programs (one of the ERR_* below) and `field` the path of the offending input
 * ("tasks[3].gpu"). A NULL err is always allowed. Written on failure only.
 *
 *     return err_set(err, -EINVAL, ERR_OUT_OF_RANGE, "gpu",
 *                    "use 0.001 to 0.999, or a whole number", "gpu '%s' is out of range", text);
 */
#ifndef ALLOT_BASE_ERR_H
#define ALLOT_BASE_ERR_H

#define ERR_INVALID "invalid"             /* wrong type or syntax */
#define ERR_UNKNOWN_FIELD "unknown_field" /* a field that is not part of the schema */
#define ERR_MISSING "missing_field"
#define ERR_OUT_OF_RANGE "out_of_range" /* overflow, negative, too precise, too long */
#define ERR_NOT_FOUND "not_found"
#define ERR_CONFLICT "conflict" /* exists already, wrong state, If-Match failed */
#define ERR_UNSATISFIABLE "unsatisfiable" /* no node can ever hold it */
#define ERR_LIMIT "limit"                 /* above a team's limit for ever */
#define ERR_UNAUTHENTICATED "unauthenticated"
#define ERR_FORBIDDEN "forbidden"
#define ERR_UNAVAILABLE "unavailable" /* store full or read-only, engine unreachable */
#define ERR_TOO_LARGE "too_large"
#define ERR_UNSUPPORTED "unsupported" /* valid, but not by this engine or release */
#define ERR_INTERNAL "internal"

struct err {
    int errnum;       /* negative errno, as returned */
    const char *code; /* one of ERR_*, static */
    char field[96];
    char text[400];
    char remedy[240];
};

#define ERR_INIT                                                                                \
    {                                                                                           \
        0                                                                                       \
    }

/* Fills ERR (may be NULL) and returns ERRNUM. FIELD and REMEDY may be NULL. */
int err_set(struct err *err, int errnum, const char *code, const char *field, const char *remedy,
            const char *fmt, ...) __attribute__((format(printf, 6, 7)));

/* Puts "PREFIX" before the field path, as decoding returns upward: "gpu" -> "tasks[3].gpu". */
void err_prefix_field(struct err *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
