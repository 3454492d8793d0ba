/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text checks shared by every input: UTF-8 and names.
 *
 * A name (team, workload, user, node) is 1..63 characters and at most 252 bytes of valid UTF-8
 * without control characters, blanks at either end, '/', NUL, or a leading '.' or '-'. That
 * keeps names usable as a path component, an URL segment and a table cell.
 *
 * Control characters are the C0 and C1 controls, the line separators, and the invisible marks
 * that reorder the text around them: what could make a terminal show something else.
 */
#ifndef ALLOT_BASE_TEXT_H
#define ALLOT_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define TEXT_NAME_MAX 252 /* bytes, without NUL */

/* Bytes of the valid UTF-8 sequence at S, of N bytes at hand; 0 if there is none. */
size_t text_utf8_len(const char *s, size_t n);
/* Are all N bytes valid UTF-8? NUL is valid here; names refuse it as a control character. */
bool text_is_utf8(const char *s, size_t n);
/* Replaces each byte of a control character, or of what is not UTF-8, by '?'. */
void text_make_printable(char *s);
/* 0, or -EINVAL with the reason; WHAT ("team name") is the subject of the message. */
int text_check_name(const char *s, size_t n, const char *what, struct err *err);
/* Does S begin with PREFIX? */
bool text_starts_with(const char *s, const char *prefix);

#endif
