/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/qty.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "cli/style.h"
#include "cli/suggest.h"

#define OPTIONAL "[OPTIONS] "

const struct cli_option cli_common_options[] = {
    {.name = "server", .arg = "URL", .help = "address of the server, or unix:/path"},
    {.name = "token", .arg = "TOKEN", .help = "access token (better: 'allot login')"},
    {.name = "output",
     .letter = 'o',
     .arg = "FORMAT",
     .complete = CLI_COMPLETE_WORDS,
     .words = "table json",
     .help = "table for people, json for programs"},
    {.name = "no-color", .help = "no colours (as with NO_COLOR set)"},
    {.name = "help", .letter = 'h', .help = "show help with examples"},
    {0},
};

/* Where the parser stands. */
struct parse {
    const struct cli_command *command;
    int argc;
    const char *const *argv;
    int at; /* next word */
    struct cli_args *args;
    struct err *err;
};

bool cli_option_is_end(const struct cli_option *o)
{
    return o->name == NULL && o->help == NULL;
}

const struct cli_option *cli_option_set(const struct cli_command *c, int set)
{
    static const struct cli_option empty;
    const struct cli_option *const sets[CLI_OPTION_SETS] = {c->options, c->shared_options,
                                                            cli_common_options};

    return sets[set] ? sets[set] : &empty;
}

/* By LETTER, or where that is 0 by the LEN bytes of NAME. */
static const struct cli_option *find(const struct cli_command *c, const char *name, size_t len,
                                     char letter)
{
    for (int set = 0; set < CLI_OPTION_SETS; set++)
        for (const struct cli_option *o = cli_option_set(c, set); !cli_option_is_end(o); o++)
            if (o->name && (letter ? o->letter == letter
                                   : strlen(o->name) == len && strncmp(o->name, name, len) == 0))
                return o;
    return NULL;
}

static int refuse_unknown(struct parse *p, const char *word, size_t len)
{
    char name[CLI_SUGGEST_MAX + 1], remedy[160];
    struct cli_suggestion s = {.word = name};
    const char *elsewhere;

    snprintf(name, sizeof(name), "%.*s", (int)len, word);
    elsewhere = cli_option_elsewhere(p->command->name, name);
    for (int set = 0; set < CLI_OPTION_SETS; set++)
        for (const struct cli_option *o = cli_option_set(p->command, set); !cli_option_is_end(o);
             o++)
            if (o->name)
                cli_suggestion_offer(&s, o->name);
    if (elsewhere)
        snprintf(remedy, sizeof(remedy), "%s", elsewhere);
    else if (s.best)
        snprintf(remedy, sizeof(remedy), "did you mean '--%s'?", s.best);
    else
        snprintf(remedy, sizeof(remedy), "see 'allot help %s'", p->command->name);
    return err_set(p->err, -EINVAL, ERR_INVALID, NULL, remedy, "unknown option '--%.*s'", (int)len,
                   word);
}

static bool word_in(const char *words, const char *value)
{
    size_t len = strlen(value);

    for (const char *w = words; *w;) {
        size_t n = strcspn(w, " ");

        if (n == len && strncmp(w, value, n) == 0)
            return true;
        w += n;
        w += strspn(w, " ");
    }
    return false;
}

static int take(struct parse *p, const struct cli_option *o, const char *value)
{
    struct cli_given given = {.option = o, .value = value};

    if (o->arg && o->words && !word_in(o->words, value)) {
        _cleanup_strbuf_ struct strbuf remedy = STRBUF_INIT;

        strbuf_adds(&remedy, "use one of: ");
        for (const char *c = o->words; *c; c++)
            strbuf_addf(&remedy, *c == ' ' ? ",%c" : "%c", *c);
        return err_set(p->err, -EINVAL, ERR_INVALID, NULL, strbuf_str(&remedy),
                       "option '--%s' does not know '%.80s'", o->name, value);
    }
    vec_push(&p->args->given, given);
    return 0;
}

/* The value of O, which stands in the next word. */
static int take_next(struct parse *p, const struct cli_option *o)
{
    if (p->at >= p->argc)
        return err_set(p->err, -EINVAL, ERR_MISSING, NULL, NULL, "option '--%s' needs a value (%s)",
                       o->name, o->arg);
    return take(p, o, p->argv[p->at++]);
}

static int parse_long(struct parse *p, const char *word)
{
    size_t len = strcspn(word, "=");
    const struct cli_option *o = find(p->command, word, len, 0);

    if (o == NULL)
        return refuse_unknown(p, word, len);
    if (o->arg == NULL && word[len] == '=')
        return err_set(p->err, -EINVAL, ERR_INVALID, NULL, NULL, "option '--%s' takes no value",
                       o->name);
    if (o->arg == NULL)
        return take(p, o, NULL);
    return word[len] == '=' ? take(p, o, word + len + 1) : take_next(p, o);
}

static int parse_short(struct parse *p, const char *letters)
{
    for (const char *l = letters; *l; l++) {
        const struct cli_option *o = find(p->command, NULL, 0, *l);
        int r;

        if (o == NULL) {
            const char letter[] = {*l, '\0'};
            const char *elsewhere = cli_option_elsewhere(p->command->name, letter);
            char remedy[160];

            snprintf(remedy, sizeof(remedy), "see 'allot help %s'", p->command->name);
            if (elsewhere)
                snprintf(remedy, sizeof(remedy), "%s", elsewhere);
            return err_set(p->err, -EINVAL, ERR_INVALID, NULL, remedy, "unknown option '-%c'", *l);
        }
        if (o->arg)
            return l[1] ? take(p, o, l + 1) : take_next(p, o);
        r = take(p, o, NULL);
        if (r < 0)
            return r;
    }
    return 0;
}

static bool at_command(const struct parse *p)
{
    return p->command->command_at > 0 &&
           p->args->operands.len + 1 >= (size_t)p->command->command_at;
}

static void take_command(struct parse *p)
{
    if (p->at >= p->argc)
        return;
    p->args->command_line = &p->argv[p->at];
    p->args->command_count = (size_t)(p->argc - p->at);
    p->at = p->argc;
}

static int parse_words(struct parse *p)
{
    while (p->at < p->argc) {
        const char *word = p->argv[p->at];
        int r = 0;

        if (strcmp(word, "--") == 0) {
            p->at++;
            break;
        }
        if (word[0] == '-' && word[1] != '\0') {
            p->at++;
            r = word[1] == '-' ? parse_long(p, word + 2) : parse_short(p, word + 1);
        } else if (at_command(p)) {
            break;
        } else {
            vec_push(&p->args->operands, word);
            p->at++;
        }
        if (r < 0)
            return r;
    }
    if (at_command(p))
        take_command(p);
    while (p->at < p->argc)
        vec_push(&p->args->operands, p->argv[p->at++]);
    return 0;
}

/* How to find out what a missing word could be. */
static const char *operand_remedy(enum cli_complete operand)
{
    static const char *const remedies[CLI_COMPLETE_COUNT] = {
        [CLI_COMPLETE_WORKLOAD] = "'allot ps' lists workloads; a number or a name will do",
        [CLI_COMPLETE_TEAM] = "'allot team' lists teams",
        [CLI_COMPLETE_NODE] = "'allot node' lists nodes",
        [CLI_COMPLETE_USER] = "'allot user' lists people",
    };

    return remedies[operand];
}

static int check_operands(struct parse *p)
{
    const struct cli_command *c = p->command;
    size_t count = p->args->operands.len;
    const char *usage = c->usage ? c->usage : "an argument";

    if (cli_option_given(p->args, "help"))
        return 0;
    if (count + p->args->command_count < (size_t)c->min_operands)
        return err_set(p->err, -EINVAL, ERR_MISSING, NULL, operand_remedy(c->operand),
                       "'%s' needs %s", c->name,
                       usage + (text_starts_with(usage, OPTIONAL) ? strlen(OPTIONAL) : 0));
    if (c->max_operands != CLI_MANY && count > (size_t)c->max_operands)
        return err_set(p->err, -EINVAL, ERR_INVALID, NULL, NULL, "unexpected argument '%.80s'",
                       p->args->operands.items[c->max_operands]);
    return 0;
}

int cli_args_parse(const struct cli_command *command, int argc, const char *const *argv,
                   struct cli_args *ret_args, struct err *err)
{
    struct cli_args args = {.command = command};
    struct parse p = {.command = command, .argc = argc, .argv = argv, .args = &args, .err = err};
    int r = parse_words(&p);

    if (r == 0)
        r = check_operands(&p);
    if (r < 0) {
        cli_args_done(&args);
        return r;
    }
    *ret_args = args;
    return 0;
}

void cli_args_done(struct cli_args *args)
{
    vec_done(&args->given);
    vec_done(&args->operands);
}

const char *cli_option_each(const struct cli_args *args, const char *name, size_t *it)
{
    const struct cli_option *o = find(args->command, name, strlen(name), 0);

    assert(o);
    while (*it < args->given.len) {
        const struct cli_given *g = &args->given.items[(*it)++];

        if (g->option == o)
            return g->value ? g->value : "";
    }
    return NULL;
}

void cli_option_give(struct cli_args *args, const char *name, const char *value)
{
    const struct cli_option *o = find(args->command, name, strlen(name), 0);

    assert(o);
    vec_push(&args->given, ((struct cli_given){.option = o, .value = value}));
}

const char *cli_option_value(const struct cli_args *args, const char *name)
{
    const char *last = NULL, *v;
    size_t it = 0;

    while ((v = cli_option_each(args, name, &it)))
        last = v;
    return last;
}

int cli_option_time(const struct cli_args *args, const char *name, int64_t *ret_ms, struct err *err)
{
    const char *text = cli_option_value(args, name);

    /* A bare number would be milliseconds since 1970: nobody means that here. */
    if (text && (strchr(text, '-') == NULL || clock_parse_utc(text, ret_ms) < 0))
        return err_set(err, -EINVAL, ERR_INVALID, NULL,
                       "write 2026-11-30, 2026-11-30T21:00Z or 2026-11-30T22:00+01:00",
                       "option '--%s' does not understand '%.60s'", name, text);
    return 0;
}

int cli_option_duration(const struct cli_args *args, const char *name, int64_t *ret_ms,
                        struct err *err)
{
    const char *text = cli_option_value(args, name);

    if (text && qty_parse_duration_ms(text, ret_ms, NULL) < 0)
        return err_set(err, -EINVAL, ERR_INVALID, NULL,
                       "write a duration such as 90s, 1h30m or 2d; a bare number is seconds",
                       "option '--%s' does not understand '%.60s'", name, text);
    return 0;
}

int cli_option_number(const struct cli_args *args, const char *name, int64_t min, int64_t max,
                      int64_t *ret_value, struct err *err)
{
    const char *text = cli_option_value(args, name);
    int64_t value;

    if (text == NULL)
        return 0;
    if (qty_parse_int(text, &value, NULL) < 0 || value < min || value > max) {
        char remedy[80] = "give a whole number, 0 or more";

        if (max < INT64_MAX)
            snprintf(remedy, sizeof(remedy), "give a whole number from %lld to %lld",
                     (long long)min, (long long)max);
        return err_set(err, -EINVAL, ERR_INVALID, NULL, remedy,
                       "option '--%s' does not understand '%.60s'", name, text);
    }
    *ret_value = value;
    return 0;
}

bool cli_option_given(const struct cli_args *args, const char *name)
{
    return cli_option_value(args, name) != NULL;
}
