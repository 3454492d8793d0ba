/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/help.h"

#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

#include "cli/cli.h"
#include "cli/options.h"

#define HELP_COLUMN 26
#define HELP_WIDTH 78
#define CODE_WIDTH 5 /* of an exit code and the gap after it */

const char *cli_group_title(enum cli_group group)
{
    static const char *const titles[CLI_GROUP_COUNT] = {
        [CLI_WORK] = "Run work",         [CLI_SEE] = "See what happens, and why",
        [CLI_ACT] = "Act on what runs",  [CLI_MANAGE] = "Teams, people, machines",
        [CLI_SETUP] = "Set-up and help",
    };

    return titles[group];
}

const char *cli_command_word(const struct cli_command *c)
{
    const char *blank = strrchr(c->name, ' ');

    return blank ? blank + 1 : c->name;
}

static void heading(struct cli *cli, const char *text)
{
    fprintf(cli->out, "\n%s%s:%s\n", cli_style_begin(&cli->style, CLI_BOLD), text,
            cli_style_end(&cli->style));
}

/* "  LEFT    text", the text wrapped in its own column. LEFT is LEN columns wide. */
static void two_columns(struct cli *cli, const char *left, const char *text, int column)
{
    struct strbuf b = STRBUF_INIT;
    const char *wrapped;
    FILE *out;
    char *data = NULL;
    size_t len = 0;
    int used = (int)strlen(left);

    out = open_memstream(&data, &len);
    if (out == NULL)
        return;
    cli_wrap(out, text, column, HELP_WIDTH);
    fclose(out);
    wrapped = data;
    if (used + 2 <= column) {
        strbuf_addf(&b, "%-*s", column, left);
        wrapped += column;
    } else {
        strbuf_addf(&b, "%s\n", left);
    }
    fprintf(cli->out, "%s%s", strbuf_str(&b), wrapped);
    strbuf_done(&b);
    free(data);
}

void cli_help_overview(struct cli *cli)
{
    fprintf(cli->out, "allot gives your team GPUs in seconds: part of one, or many at once.\n"
                      "\nusage: allot COMMAND [OPTIONS] [ARGUMENTS]\n");
    for (int g = 0; g < CLI_GROUP_COUNT; g++) {
        heading(cli, cli_group_title(g));
        for (size_t i = 0; cli->commands[i]; i++) {
            const struct cli_command *c = cli->commands[i];

            if ((int)c->group == g)
                fprintf(cli->out, "  %s%-11s%s %s\n", cli_style_begin(&cli->style, CLI_CYAN),
                        c->name, cli_style_end(&cli->style), c->summary);
        }
    }
    fprintf(cli->out,
            "\nTry:\n"
            "  allot run --gpu 0.25 -- python3 train.py   a quarter of a GPU, now\n"
            "  allot why ID                               what a waiting workload waits for\n"
            "  allot help COMMAND                         options and examples\n");
}

static void option_line(struct cli *cli, const struct cli_option *o)
{
    struct strbuf left = STRBUF_INIT;
    char letter[8] = "    ";

    if (o->letter)
        snprintf(letter, sizeof(letter), "-%c, ", o->letter);
    strbuf_addf(&left, "  %s--%s%s%s", letter, o->name, o->arg ? " " : "", o->arg ? o->arg : "");
    two_columns(cli, strbuf_str(&left), o->help, HELP_COLUMN + 2);
    strbuf_done(&left);
}

static void options_help(struct cli *cli, const struct cli_option *options, const char *title)
{
    if (title && options->name)
        heading(cli, title);
    for (; !cli_option_is_end(options); options++) {
        if (options->name)
            option_line(cli, options);
        else
            heading(cli, options->help);
    }
}

static void examples_help(struct cli *cli, const char *text)
{
    const struct cli_style *s = &cli->style;

    heading(cli, "Examples");
    while (*text) {
        size_t n = strcspn(text, "\n");

        fprintf(cli->out, "  %s%.*s%s\n", *text == '#' ? cli_style_begin(s, CLI_DIM) : "", (int)n,
                text, *text == '#' ? cli_style_end(s) : "");
        text += n;
        if (*text == '\n')
            text++;
    }
}

/* Lines "CODE meaning". */
static void exit_codes_help(struct cli *cli, const char *text)
{
    heading(cli, "Exit codes");
    while (*text) {
        size_t n = strcspn(text, "\n"), code = strcspn(text, " \n");
        size_t meaning = code < n ? code + 1 : n;

        cli_wrap_after(cli->out, arena_printf(&cli->arena, "  %-*.*s", CODE_WIDTH, (int)code, text),
                       2 + CODE_WIDTH, arena_strndup(&cli->arena, text + meaning, n - meaning),
                       HELP_WIDTH);
        text += n;
        if (*text == '\n')
            text++;
    }
}

static void usage_lines(struct cli *cli, const struct cli_command *c)
{
    if (c->subcommands == NULL) {
        fprintf(cli->out, "\nusage: allot %s%s%s\n", c->name, c->usage ? " " : "",
                c->usage ? c->usage : "");
        return;
    }
    for (size_t i = 0; c->subcommands[i]; i++)
        fprintf(cli->out, "%s allot %s%s%s\n", i == 0 ? "\nusage:" : "      ",
                c->subcommands[i]->name, c->subcommands[i]->usage ? " " : "",
                c->subcommands[i]->usage ? c->subcommands[i]->usage : "");
}

void cli_help_command(struct cli *cli, const struct cli_command *c)
{
    fprintf(cli->out, "%sallot %s%s - %s\n", cli_style_begin(&cli->style, CLI_BOLD), c->name,
            cli_style_end(&cli->style), c->summary);
    usage_lines(cli, c);
    if (c->description) {
        fputc('\n', cli->out);
        cli_wrap(cli->out, c->description, 0, HELP_WIDTH);
    }
    for (size_t i = 0; c->subcommands && c->subcommands[i]; i++) {
        const struct cli_command *sub = c->subcommands[i];

        fprintf(cli->out, "\n%sallot %s%s - %s\n", cli_style_begin(&cli->style, CLI_BOLD),
                sub->name, cli_style_end(&cli->style), sub->summary);
        options_help(cli, cli_option_set(sub, 0), NULL);
    }
    options_help(cli, cli_option_set(c, 0), "Options");
    options_help(cli, cli_option_set(c, 1), NULL);
    options_help(cli, cli_common_options, "Common options");
    if (c->exit_codes)
        exit_codes_help(cli, c->exit_codes);
    if (c->examples)
        examples_help(cli, c->examples);
}
