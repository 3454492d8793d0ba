/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How output may look: terminal or not, colours, width, bars, words for times.
 *
 * Colours and terminal width apply to a terminal only; what is piped is plain and never cut.
 * NO_COLOR (any value) and --no-color switch colours off, as does TERM=dumb. Where the locale
 * is not UTF-8, bars and marks are ASCII.
 */
#ifndef ALLOT_CLI_STYLE_H
#define ALLOT_CLI_STYLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"

struct cli_style {
    bool tty;
    bool color;
    bool unicode;
    int width; /* columns of text that is laid out for reading; 80 when unknown */
};

enum cli_color {
    CLI_PLAIN,
    CLI_BOLD,
    CLI_DIM,
    CLI_RED,
    CLI_GREEN,
    CLI_YELLOW,
    CLI_BLUE,
    CLI_MAGENTA,
    CLI_CYAN,
    CLI_COLOR_COUNT
};

/* What OUT allows; looks at the environment. */
struct cli_style cli_style_of(FILE *out);

/* The escape sequence that begins a colour, "" where there are none; cli_style_end() ends any. */
const char *cli_style_begin(const struct cli_style *s, enum cli_color color);
const char *cli_style_end(const struct cli_style *s);
/* The colour that a state of a workload, task or node is shown in. */
enum cli_color cli_state_color(const char *state);

/* A bar of WIDTH cells for PART of WHOLE (both >= 0; WHOLE 0 = empty), exact to a half cell. */
const char *cli_bar(const struct cli_style *s, int64_t part, int64_t whole, int width,
                    struct arena *arena);

/* "4s", "3m", "2h 10m", "5d 3h": two units at most. Negative counts as 0. */
const char *cli_duration(int64_t ms, struct arena *arena);
/* For lists: one unit, whole: "0s", "49s", "3m", "5d". */
const char *cli_age(int64_t ms, struct arena *arena);
/* "just now", "3m ago", "in 10m"; "-" for 0. */
const char *cli_when(int64_t then_ms, int64_t now_ms, struct arena *arena);

/* Writes TEXT wrapped at WIDTH columns, each line indented; empty lines part paragraphs and lines
 * that begin with a blank are kept as they are. */
void cli_wrap(FILE *out, const char *text, int indent, int width);
/* Writes LEAD, which takes INDENT columns, and TEXT, one paragraph, beside it, wrapped at WIDTH
 * columns, further lines under the first. Where WIDTH leaves no room, or is 0, on one line. */
void cli_wrap_after(FILE *out, const char *lead, int indent, const char *text, int width);

#endif
