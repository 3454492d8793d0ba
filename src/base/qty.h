/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantities: exact text <-> integer conversion.
 *
 * No floating point anywhere. A text is converted exactly or refused: more digits than the unit
 * holds ("0.0001" GPU), a negative number, an exponent ("1e30") or an overflow is an error that
 * names the text and the accepted form. Formatting chooses the shortest text that parses back
 * to the same number.
 *
 * Syntax: digits, an optional fraction, an optional suffix. No sign, no blanks, no exponent.
 *   milli     "2" = 2000, "0.25" = 250, "500m" = 500
 *   bytes     "1024", "10GiB", "80G"; suffixes k M G T P (1000) and Ki Mi Gi Ti Pi (1024),
 *             with or without a final B
 *   duration  "90s", "1h30m", "250ms", "2d"; a bare number is seconds; result in milliseconds
 */
#ifndef ALLOT_BASE_QTY_H
#define ALLOT_BASE_QTY_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Texts of at most QTY_TEXT_MAX - 1 bytes are produced. */
#define QTY_TEXT_MAX 32

/* All return 0, or -EINVAL (syntax) or -ERANGE (precision or size) with ERR filled in. */
int qty_parse_milli(const char *text, int64_t *ret_milli, struct err *err);
int qty_parse_bytes(const char *text, int64_t *ret_bytes, struct err *err);
int qty_parse_duration_ms(const char *text, int64_t *ret_ms, struct err *err);
/* Plain decimal integer 0..INT64_MAX. */
int qty_parse_int(const char *text, int64_t *ret_value, struct err *err);

/* TEXT holds QTY_TEXT_MAX bytes; returned for convenience. Negative values get a minus sign. */
const char *qty_format_milli(int64_t milli, char *text);       /* 250 -> "0.25" */
const char *qty_format_bytes(int64_t bytes, char *text);       /* 10737418240 -> "10GiB" */
const char *qty_format_duration_ms(int64_t ms, char *text);    /* 5400000 -> "1h30m" */

/* a + b, a * b / c without overflow in between; saturate at INT64_MAX (operands >= 0, c > 0). */
int64_t qty_add_sat(int64_t a, int64_t b);
int64_t qty_mul_div(int64_t a, int64_t b, int64_t c);

#endif
