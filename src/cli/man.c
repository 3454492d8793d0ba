/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Manual pages in man(7) roff. Text from the tables is escaped: a backslash, a leading dot or
 * quote would be a request; a hyphen would become a dash that cannot be searched for.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "cli/cli.h"
#include "cli/help.h"
#include "cli/options.h"

static void put_text(FILE *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        bool begin = i == 0 || text[i - 1] == '\n';

        if (begin && (text[i] == '.' || text[i] == '\''))
            fputs("\\&", out);
        if (text[i] == '\\')
            fputs("\\e", out);
        else if (text[i] == '-')
            fputs("\\-", out);
        else
            fputc(text[i], out);
    }
}

static void put(FILE *out, const char *text)
{
    put_text(out, text, strlen(text));
}

static void put_upper(FILE *out, const char *text)
{
    for (; *text; text++)
        fputc(*text == ' ' ? '-' : toupper((unsigned char)*text), out);
}

/* Empty lines become paragraphs; lines that begin with a blank stay as they are. */
static void put_paragraphs(FILE *out, const char *text)
{
    bool literal = false;

    while (*text) {
        size_t n = strcspn(text, "\n");
        bool keep = *text == ' ';

        if (keep != literal)
            fputs(keep ? ".nf\n" : ".fi\n", out);
        literal = keep;
        if (n == 0) {
            fputs(".PP\n", out);
        } else {
            put_text(out, text, n);
            fputc('\n', out);
        }
        text += n;
        if (*text == '\n')
            text++;
    }
    if (literal)
        fputs(".fi\n", out);
}

static void put_options(FILE *out, const struct cli_option *o)
{
    for (; !cli_option_is_end(o); o++) {
        if (o->name == NULL) {
            fputs(".SS \"", out);
            put(out, o->help);
            fputs("\"\n", out);
            continue;
        }
        fputs(".TP\n", out);
        if (o->letter)
            fprintf(out, "\\fB\\-%c\\fR, ", o->letter);
        fputs("\\fB\\-\\-", out);
        put(out, o->name);
        fputs("\\fR", out);
        if (o->arg) {
            fputs(" \\fI", out);
            put(out, o->arg);
            fputs("\\fR", out);
        }
        fputc('\n', out);
        put(out, o->help);
        if (o->words) {
            fputs(" (", out);
            put(out, o->words);
            fputc(')', out);
        }
        fputs(".\n", out);
    }
}

static void put_synopsis_line(FILE *out, const struct cli_command *c)
{
    fputs("\\fBallot ", out);
    put(out, c->name);
    fputs("\\fR ", out);
    put(out, c->usage ? c->usage : "[OPTIONS]");
    fputs("\n.br\n", out);
}

static void put_examples(FILE *out, const char *text)
{
    fputs(".SH EXAMPLES\n.nf\n", out);
    put(out, text);
    fputs("\n.fi\n", out);
}

static void put_exit_codes(FILE *out, const struct cli_command *c)
{
    const char *text = c && c->exit_codes ? c->exit_codes
                                          : "0 done\n"
                                            "1 the server refused, or could not be reached\n"
                                            "2 the command line is wrong";

    fputs(".SH EXIT STATUS\n", out);
    while (*text) {
        size_t n = strcspn(text, "\n"), code = strcspn(text, " ");

        if (code < n) {
            fputs(".TP\n\\fB", out);
            put_text(out, text, code);
            fputs("\\fR\n", out);
            put_text(out, text + code + 1, n - code - 1);
            fputc('\n', out);
        }
        text += n;
        if (*text == '\n')
            text++;
    }
}

static void put_environment(FILE *out)
{
    fputs(".SH ENVIRONMENT\n"
          ".TP\n\\fBALLOT_SERVER\\fR, \\fBALLOT_TOKEN\\fR, \\fBALLOT_TEAM\\fR\n"
          "Server, access token and default team; they take precedence over the configuration "
          "file.\n"
          ".TP\n\\fBALLOT_CONFIG\\fR\nAnother configuration file.\n"
          ".TP\n\\fBNO_COLOR\\fR\nNo colours.\n"
          ".SH FILES\n.TP\n\\fI~/.config/allot/config\\fR\n"
          "Server, token and team, as written by \\fBallot login\\fR.\n",
          out);
}

static void put_overview(struct cli *cli, FILE *out)
{
    fputs(".TH ALLOT 1 \"\" \"allot " ALLOT_VERSION "\" \"allot manual\"\n"
          ".SH NAME\nallot \\- GPUs for every team, in seconds\n"
          ".SH SYNOPSIS\n\\fBallot\\fR \\fICOMMAND\\fR [OPTIONS] [ARGUMENTS]\n"
          ".SH DESCRIPTION\n"
          "allot shares the GPUs that a company owns. People ask for part of a GPU or for many "
          "and have them at once when there is room; quotas, classes and fair shares decide who "
          "gives way when there is not, and every wait comes with its reason.\n",
          out);
    for (int g = 0; g < CLI_GROUP_COUNT; g++) {
        fprintf(out, ".SH \"%s\"\n", cli_group_title(g));
        for (size_t i = 0; cli->commands[i]; i++) {
            const struct cli_command *c = cli->commands[i];

            if ((int)c->group != g)
                continue;
            fprintf(out, ".TP\n\\fBallot\\-%s\\fR(%d)\n", c->name, c->section ? c->section : 1);
            put(out, c->summary);
            fputs(".\n", out);
        }
    }
    fputs(".SH \"COMMON OPTIONS\"\n", out);
    put_options(out, cli_common_options);
}

static void put_subcommands(FILE *out, const struct cli_command *c)
{
    fputs(".SH SUBCOMMANDS\n", out);
    for (size_t i = 0; c->subcommands[i]; i++) {
        const struct cli_command *sub = c->subcommands[i];

        fputs(".SS \"", out);
        put(out, sub->name);
        fputs("\"\n", out);
        put(out, sub->summary);
        fputs(".\n", out);
        if (sub->description) {
            fputs(".PP\n", out);
            put_paragraphs(out, sub->description);
        }
        put_options(out, cli_option_set(sub, 0));
    }
}

static void put_command(FILE *out, const struct cli_command *c)
{
    fputs(".TH ALLOT\\-", out);
    put_upper(out, c->name);
    fprintf(out, " %d \"\" \"allot " ALLOT_VERSION "\" \"allot manual\"\n.SH NAME\nallot\\-",
            c->section ? c->section : 1);
    put(out, c->name);
    fputs(" \\- ", out);
    put(out, c->summary);
    fputs("\n.SH SYNOPSIS\n", out);
    if (c->subcommands == NULL)
        put_synopsis_line(out, c);
    for (size_t i = 0; c->subcommands && c->subcommands[i]; i++)
        put_synopsis_line(out, c->subcommands[i]);
    fputs(".SH DESCRIPTION\n", out);
    put_paragraphs(out, c->description ? c->description : c->summary);
    if (c->subcommands)
        put_subcommands(out, c);
    if (c->options || c->shared_options) {
        fputs(".SH OPTIONS\n", out);
        put_options(out, cli_option_set(c, 0));
        put_options(out, cli_option_set(c, 1));
    }
    fputs(".SH \"COMMON OPTIONS\"\n", out);
    put_options(out, cli_common_options);
    if (c->examples)
        put_examples(out, c->examples);
}

void cli_man_page(struct cli *cli, const struct cli_command *c, FILE *out)
{
    fputs(".\\\" Made from the command table; do not edit.\n", out);
    if (c)
        put_command(out, c);
    else
        put_overview(cli, out);
    put_exit_codes(out, c);
    put_environment(out);
    fputs(".SH \"SEE ALSO\"\n", out);
    if (c)
        fputs("\\fBallot\\fR(1)\n", out);
    else
        fputs("\\fBallot\\-run\\fR(1), \\fBallot\\-why\\fR(1), \\fBallot\\-supervise\\fR(8)\n",
              out);
}

static int write_page(struct cli *cli, const struct cli_command *c, const char *folder,
                      struct err *err)
{
    int section = c && c->section ? c->section : 1;
    const char *subfolder = arena_printf(&cli->arena, "%s/man%d", folder, section);
    const char *path = c ? arena_printf(&cli->arena, "%s/allot-%s.%d", subfolder, c->name, section)
                         : arena_printf(&cli->arena, "%s/allot.1", subfolder);
    _cleanup_fclose_ FILE *out = NULL;
    int r = io_mkdirs(subfolder, 0755);

    if (r == 0) {
        out = fopen(path, "we");
        if (out == NULL)
            r = -errno;
    }
    if (r == 0) {
        cli_man_page(cli, c, out);
        if (fflush(out) != 0 || ferror(out))
            r = -EIO;
    }
    if (r < 0)
        return err_set(err, r, ERR_INVALID, NULL, NULL, "cannot write '%s': %s", path,
                       strerror(-r));
    return 0;
}

int cli_man_write_all(struct cli *cli, const char *folder, struct err *err)
{
    int r = write_page(cli, NULL, folder, err);

    for (size_t i = 0; r == 0 && cli->commands[i]; i++)
        r = write_page(cli, cli->commands[i], folder, err);
    return r;
}
