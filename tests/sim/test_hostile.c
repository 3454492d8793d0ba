/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: test-scenario-hostile FILE...
 *
 * Every line of the files, cut short and damaged at random places: the parser answers with an
 * error that says something, or with a scenario, and never with anything else.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/rng.h"
#include "sim/scenario_data.h"

#define DAMAGES 60
#define CUTS 20

static const char *const words[] = {
    "null", "true", "-1",      "1e30", "9223372036854775808", "\"\"", "[]",
    "{}",   "0.5",  "\\u0000", "\xff", "[[[[[[[[[[[[[[[[[["};

static bool answers(const char *text, size_t len)
{
    struct arena arena = ARENA_INIT;
    struct err err = ERR_INIT;
    struct sim_scenario s;
    int r = sim_scenario_parse(&arena, text, len, &s, &err);
    arena_done(&arena);
    return r == 0 || (r < 0 && err.text[0] != '\0');
}

/* Replaces a few bytes, or a word in front of the next comma, by something else. */
static size_t damage(struct rng *r, const char *line, size_t len, char *out)
{
    memcpy(out, line, len + 1);
    if (rng_below(r, 2) == 0) {
        for (uint64_t n = 1 + rng_below(r, 4); n > 0; n--)
            out[rng_below(r, len)] = (char)(1 + rng_below(r, 255));
        return strlen(out);
    }
    char *from = strchr(out + rng_below(r, len), ':');
    if (from == NULL)
        return len;
    size_t old = strcspn(++from, ",}]");
    const char *word = words[rng_below(r, ARRAY_LEN(words))];
    size_t fresh = strlen(word), tail = strlen(from + old);
    memmove(from + fresh, from + old, tail + 1);
    memcpy(from, word, fresh);
    return strlen(out);
}

static bool line_holds(struct rng *r, char *line, size_t len)
{
    _cleanup_free_ char *text = malloc(len + 64);
    if (text == NULL)
        abort();
    bool ok = answers(line, len);
    for (int i = 0; i < DAMAGES; i++) {
        size_t n = damage(r, line, len, text);
        ok = answers(text, n) && ok;
    }
    for (int i = 0; i < CUTS; i++) {
        size_t n = rng_below(r, len);
        memcpy(text, line, n);
        text[n] = '\0';
        ok = answers(text, n) && ok;
    }
    return ok;
}

static bool file_holds(struct rng *r, const char *path)
{
    _cleanup_fclose_ FILE *f = fopen(path, "re");
    _cleanup_free_ char *line = NULL;
    size_t cap = 0;
    ssize_t len;
    bool ok = f != NULL;
    while (f != NULL && (len = getline(&line, &cap, f)) > 0) {
        if (line[len - 1] == '\n')
            line[--len] = '\0';
        ok = line_holds(r, line, (size_t)len) && ok;
    }
    return ok;
}

int main(int argc, char **argv)
{
    struct rng r;
    int status = 0;
    rng_seed(&r, 1);
    printf("1..%d\n", argc - 1);
    for (int i = 1; i < argc; i++) {
        bool ok = file_holds(&r, argv[i]);
        const char *name = strrchr(argv[i], '/');
        printf("%s %d - damaged lines of %s\n", ok ? "ok" : "not ok", i,
               name == NULL ? argv[i] : name + 1);
        status |= !ok;
    }
    return status;
}
