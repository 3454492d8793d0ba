/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/style.h"

#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/strbuf.h"

#define WIDTH_UNKNOWN 80
#define WRAP_MIN 20 /* columns below which text is not wrapped into them */
#define WIDTH_MIN 40

static const char *const sequences[CLI_COLOR_COUNT] = {
    [CLI_PLAIN] = "",        [CLI_BOLD] = "\033[1m",     [CLI_DIM] = "\033[2m",
    [CLI_RED] = "\033[31m",  [CLI_GREEN] = "\033[32m",   [CLI_YELLOW] = "\033[33m",
    [CLI_BLUE] = "\033[34m", [CLI_MAGENTA] = "\033[35m", [CLI_CYAN] = "\033[36m",
};

static int terminal_width(int fd)
{
    struct winsize size;

    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= WIDTH_MIN)
        return size.ws_col;
    return WIDTH_UNKNOWN;
}

struct cli_style cli_style_of(FILE *out)
{
    int fd = fileno(out);
    const char *term = getenv("TERM");
    struct cli_style s = {.tty = fd >= 0 && isatty(fd), .width = WIDTH_UNKNOWN};

    s.unicode = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    if (s.tty)
        s.width = terminal_width(fd);
    s.color = s.tty && getenv("NO_COLOR") == NULL && !(term && strcmp(term, "dumb") == 0);
    return s;
}

const char *cli_style_begin(const struct cli_style *s, enum cli_color color)
{
    return s->color ? sequences[color] : "";
}

const char *cli_style_end(const struct cli_style *s)
{
    return s->color ? "\033[0m" : "";
}

enum cli_color cli_state_color(const char *state)
{
    static const struct {
        const char *state;
        enum cli_color color;
    } colors[] = {
        {"running", CLI_GREEN},  {"up", CLI_GREEN},      {"pending", CLI_YELLOW},
        {"held", CLI_YELLOW},    {"starting", CLI_CYAN}, {"stopping", CLI_MAGENTA},
        {"suspended", CLI_BLUE},
        {"drained", CLI_YELLOW}, {"failed", CLI_RED},    {"down", CLI_RED},
        {"unknown", CLI_RED},    {"cancelled", CLI_DIM}, {"succeeded", CLI_DIM},
    };

    for (size_t i = 0; i < sizeof(colors) / sizeof(colors[0]); i++)
        if (state && strcmp(colors[i].state, state) == 0)
            return colors[i].color;
    return CLI_PLAIN;
}

const char *cli_bar(const struct cli_style *s, int64_t part, int64_t whole, int width,
                    struct arena *arena)
{
    struct strbuf b = STRBUF_INIT;
    char *text;
    int64_t half = 0;

    if (whole > 0 && part > 0)
        half = (int64_t)((__int128)part * width * 2 / whole);
    if (part > 0 && half == 0)
        half = 1;
    if (half > width * 2)
        half = width * 2;
    for (int i = 0; i < width; i++) {
        if (half >= 2 * (i + 1))
            strbuf_adds(&b, s->unicode ? "\u2588" : "#");
        else if (half == 2 * i + 1)
            strbuf_adds(&b, s->unicode ? "\u258c" : "+");
        else
            strbuf_adds(&b, s->unicode ? "\u2500" : "-");
    }
    text = arena_strdup(arena, strbuf_str(&b));
    strbuf_done(&b);
    return text;
}

const char *cli_duration(int64_t ms, struct arena *arena)
{
    long long s = ms > 0 ? ms / MS_PER_S : 0;

    if (ms < MS_PER_S)
        return ms > 0 ? arena_printf(arena, "%lldms", (long long)ms) : "0s";
    if (s < 60)
        return arena_printf(arena, "%llds", s);
    if (s < 600 && s % 60)
        return arena_printf(arena, "%lldm %llds", s / 60, s % 60);
    if (s < 3600)
        return arena_printf(arena, "%lldm", s / 60);
    if (s < 86400)
        return s % 3600 < 60 ? arena_printf(arena, "%lldh", s / 3600)
                             : arena_printf(arena, "%lldh %lldm", s / 3600, s % 3600 / 60);
    return s % 86400 < 3600 ? arena_printf(arena, "%lldd", s / 86400)
                            : arena_printf(arena, "%lldd %lldh", s / 86400, s % 86400 / 3600);
}

const char *cli_age(int64_t ms, struct arena *arena)
{
    long long s = ms > 0 ? ms / MS_PER_S : 0;

    if (s < 60)
        return arena_printf(arena, "%llds", s);
    if (s < 3600)
        return arena_printf(arena, "%lldm", s / 60);
    if (s < 86400)
        return arena_printf(arena, "%lldh", s / 3600);
    return arena_printf(arena, "%lldd", s / 86400);
}

const char *cli_when(int64_t then_ms, int64_t now_ms, struct arena *arena)
{
    int64_t age = now_ms - then_ms;

    if (then_ms == 0)
        return "-";
    if (age > -MS_PER_S && age < MS_PER_S)
        return age >= 0 ? "just now" : "now";
    if (age < 0)
        return arena_printf(arena, "in %s", cli_duration(-age, arena));
    return arena_printf(arena, "%s ago", cli_duration(age, arena));
}

static void put_blanks(FILE *out, int count)
{
    fprintf(out, "%*s", count, "");
}

/* One paragraph line of the source: its words, continued at column AT. Returns the column. */
static int wrap_line(FILE *out, const char *line, size_t len, int at, int indent, int width)
{
    size_t i = 0;

    while (i < len) {
        size_t n = 0;

        while (i < len && line[i] == ' ')
            i++;
        while (i + n < len && line[i + n] != ' ')
            n++;
        if (n == 0)
            break;
        if (at > indent && at + 1 + (int)n > width) {
            fputc('\n', out);
            at = 0;
        } else if (at > indent) {
            fputc(' ', out);
            at++;
        }
        if (at == 0) {
            put_blanks(out, indent);
            at = indent;
        }
        fwrite(line + i, 1, n, out);
        at += (int)n;
        i += n;
    }
    return at;
}

void cli_wrap(FILE *out, const char *text, int indent, int width)
{
    int at = 0;

    while (*text) {
        size_t len = strcspn(text, "\n");

        if (len == 0 || *text == ' ') {
            if (at > 0)
                fputc('\n', out);
            at = 0;
            if (len)
                put_blanks(out, indent);
            fwrite(text, 1, len, out);
            fputc('\n', out);
        } else {
            at = wrap_line(out, text, len, at, indent, width);
        }
        text += len;
        if (*text == '\n')
            text++;
    }
    if (at > 0)
        fputc('\n', out);
}

void cli_wrap_after(FILE *out, const char *lead, int indent, const char *text, int width)
{
    fputs(lead, out);
    if (width - indent < WRAP_MIN)
        fputs(text, out);
    else
        wrap_line(out, text, strlen(text), indent, indent, width);
    fputc('\n', out);
}
