/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion scripts, made from the command tables. What only the server knows (workloads,
 * teams, ...) is asked for with `allot completion --words KIND`, which stays silent when no
 * server answers.
 */
#include <string.h>

#include "cli/cli.h"
#include "cli/help.h"
#include "cli/options.h"

const char *cli_complete_kind(enum cli_complete complete)
{
    static const char *const kinds[CLI_COMPLETE_COUNT] = {
        [CLI_COMPLETE_WORKLOAD] = "workload",
        [CLI_COMPLETE_TEAM] = "team",
        [CLI_COMPLETE_NODE] = "node",
        [CLI_COMPLETE_USER] = "user",
    };

    return kinds[complete];
}

/* ---- bash ------------------------------------------------------------------------------- */

static void bash_options(FILE *out, const struct cli_command *c)
{
    for (int set = 0; set < CLI_OPTION_SETS; set++)
        for (const struct cli_option *o = cli_option_set(c, set); !cli_option_is_end(o); o++)
            if (o->name)
                fprintf(out, " --%s", o->name);
}

/* The shell command that completes one word of a kind. */
static void bash_words(struct cli *cli, FILE *out, enum cli_complete complete, const char *words)
{
    const char *kind = cli_complete_kind(complete);

    if (kind) {
        fprintf(out, "_allot_words \"$(allot completion --words %s 2>/dev/null)\"", kind);
    } else if (complete == CLI_COMPLETE_FILE) {
        fputs("COMPREPLY=($(compgen -f -- \"$cur\"))", out);
    } else if (complete == CLI_COMPLETE_WORDS) {
        fprintf(out, "_allot_words \"%s\"", words);
    } else if (complete == CLI_COMPLETE_COMMAND) {
        fputs("_allot_words \"", out);
        for (size_t i = 0; cli->commands[i]; i++)
            fprintf(out, "%s%s", i ? " " : "", cli->commands[i]->name);
        fputs("\"", out);
    } else {
        fputs(":", out);
    }
}

static void bash_option_value(struct cli *cli, FILE *out, const struct cli_option *o)
{
    if (o->name == NULL || o->arg == NULL)
        return;
    if (o->letter)
        fprintf(out, "            --%s|-%c) ", o->name, o->letter);
    else
        fprintf(out, "            --%s) ", o->name);
    bash_words(cli, out, o->complete, o->words);
    fputs("; return ;;\n", out);
}

static void bash_command(struct cli *cli, FILE *out, const struct cli_command *c)
{
    fprintf(out, "    \"%s\")\n        case \"$prev\" in\n", c->name);
    for (int set = 0; set < CLI_OPTION_SETS; set++)
        for (const struct cli_option *o = cli_option_set(c, set); !cli_option_is_end(o); o++)
            bash_option_value(cli, out, o);
    fputs("        esac\n        if [[ $cur == -* ]]; then\n            _allot_words \"", out);
    bash_options(out, c);
    fputs("\"\n        else\n            ", out);
    bash_words(cli, out, c->operand, c->operand_words);
    fputs("\n        fi\n        ;;\n", out);
}

static void bash_subcommands(FILE *out, const struct cli_command *c)
{
    fprintf(out, "    \"%s\")\n        _allot_words \"", c->name);
    for (size_t i = 0; c->subcommands[i]; i++)
        fprintf(out, "%s%s", i ? " " : "", cli_command_word(c->subcommands[i]));
    fputs("\"\n        ;;\n", out);
}

void cli_completion_bash(struct cli *cli, FILE *out)
{
    fputs("# bash completion for allot; made by 'allot completion bash'\n"
          "_allot_words() { COMPREPLY=($(compgen -W \"$1\" -- \"$cur\")); }\n"
          "_allot() {\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
          "    local command=${COMP_WORDS[1]} i\n"
          "    COMPREPLY=()\n"
          "    if ((COMP_CWORD == 1)); then\n        ",
          out);
    bash_words(cli, out, CLI_COMPLETE_COMMAND, NULL);
    fputs("\n        return\n    fi\n"
          "    # what follows '--' is somebody else's command line\n"
          "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
          "        if [[ ${COMP_WORDS[i]} == -- ]]; then\n"
          "            COMPREPLY=($(compgen -c -f -- \"$cur\"))\n            return\n        fi\n"
          "    done\n"
          "    case \"$command\" in\n",
          out);
    for (size_t i = 0; cli->commands[i]; i++)
        if (cli->commands[i]->subcommands)
            fprintf(out, "    %s) ((COMP_CWORD > 2)) && command+=\" ${COMP_WORDS[2]}\" ;;\n",
                    cli->commands[i]->name);
    fputs("    esac\n    case \"$command\" in\n", out);
    for (size_t i = 0; cli->commands[i]; i++) {
        const struct cli_command *c = cli->commands[i];

        if (c->subcommands == NULL) {
            bash_command(cli, out, c);
            continue;
        }
        bash_subcommands(out, c);
        for (size_t j = 0; c->subcommands[j]; j++)
            bash_command(cli, out, c->subcommands[j]);
    }
    fputs("    esac\n}\ncomplete -o default -F _allot allot\n", out);
}

/* ---- zsh -------------------------------------------------------------------------------- */

/* Text inside single quotes, inside brackets of a _arguments specification. */
static void zsh_text(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", out);
        else if (strchr("[]:\\", *text))
            fprintf(out, "\\%c", *text);
        else
            fputc(*text, out);
    }
}

static void zsh_action(FILE *out, enum cli_complete complete, const char *words)
{
    const char *kind = cli_complete_kind(complete);

    if (kind)
        fprintf(out, "{_allot_dynamic %s}", kind);
    else if (complete == CLI_COMPLETE_FILE)
        fputs("_files", out);
    else if (complete == CLI_COMPLETE_WORDS)
        fprintf(out, "(%s)", words);
    else if (complete == CLI_COMPLETE_COMMAND)
        fputs("_allot_commands", out);
    else
        fputs(" ", out);
}

static void zsh_option(FILE *out, const struct cli_option *o)
{
    for (int is_short = 0; o->name && is_short <= (o->letter != 0); is_short++) {
        if (is_short)
            fprintf(out, " \\\n            '*-%c[", o->letter);
        else
            fprintf(out, " \\\n            '*--%s[", o->name);
        zsh_text(out, o->help);
        fputc(']', out);
        if (o->arg) {
            fputc(':', out);
            zsh_text(out, o->arg);
            fputc(':', out);
            zsh_action(out, o->complete, o->words);
        }
        fputc('\'', out);
    }
}

static void zsh_command(FILE *out, const struct cli_command *c)
{
    fprintf(out, "        '%s')\n        _arguments -S", c->name);
    for (int set = 0; set < CLI_OPTION_SETS; set++)
        for (const struct cli_option *o = cli_option_set(c, set); !cli_option_is_end(o); o++)
            zsh_option(out, o);
    if (c->command_at > 1) {
        fputs(" \\\n            '1:argument:", out);
        zsh_action(out, c->operand, c->operand_words);
        fputc('\'', out);
    }
    if (c->command_at > 0) {
        fputs(" \\\n            '*::command:_normal'", out);
    } else if (c->operand != CLI_COMPLETE_NONE) {
        fputs(" \\\n            '*:argument:", out);
        zsh_action(out, c->operand, c->operand_words);
        fputc('\'', out);
    }
    fputs("\n        ;;\n", out);
}

static void zsh_describe(FILE *out, const struct cli_command *const *commands)
{
    for (size_t i = 0; commands[i]; i++) {
        fprintf(out, "        '%s:", cli_command_word(commands[i]));
        zsh_text(out, commands[i]->summary);
        fputs("'\n", out);
    }
}

void cli_completion_zsh(struct cli *cli, FILE *out)
{
    fputs(
        "#compdef allot\n# made by 'allot completion zsh'\n"
        "_allot_dynamic() { local -a w; w=(${(f)\"$(allot completion --words $1 2>/dev/null)\"}); "
        "compadd -a w }\n"
        "_allot_commands() {\n    local -a commands\n    commands=(\n",
        out);
    zsh_describe(out, cli->commands);
    fputs("    )\n    _describe command commands\n}\n_allot() {\n"
          "    local -a subcommands\n"
          "    if ((CURRENT == 2)); then\n        _allot_commands\n        return\n    fi\n"
          "    local command=$words[2]\n    shift words\n    ((CURRENT--))\n    case $command in\n",
          out);
    for (size_t i = 0; cli->commands[i]; i++) {
        if (cli->commands[i]->subcommands == NULL)
            continue;
        fprintf(out, "    %s)\n        subcommands=(\n", cli->commands[i]->name);
        zsh_describe(out, cli->commands[i]->subcommands);
        fputs("        )\n        if ((CURRENT == 2)); then\n"
              "            _describe subcommand subcommands\n            return\n        fi\n"
              "        command+=\" $words[2]\"\n        shift words\n        ((CURRENT--))\n"
              "        ;;\n",
              out);
    }
    fputs("    esac\n    case $command in\n", out);
    for (size_t i = 0; cli->commands[i]; i++) {
        const struct cli_command *c = cli->commands[i];

        if (c->subcommands == NULL)
            zsh_command(out, c);
        for (size_t j = 0; c->subcommands && c->subcommands[j]; j++)
            zsh_command(out, c->subcommands[j]);
    }
    fputs("    esac\n}\n_allot \"$@\"\n", out);
}
