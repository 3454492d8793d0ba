/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "base/vec.h"
#include "cli/cli.h"
#include "cli/help.h"
#include "cli/options.h"
#include "cli/session.h"
#include "cli/suggest.h"

int64_t cli_now_ms(const struct cli *cli)
{
    return cli->fixed_now_ms ? cli->fixed_now_ms : clock_wall_ms();
}

struct arena cli_scratch_begin(struct cli *cli)
{
    struct arena kept = cli->arena;

    cli->arena = (struct arena)ARENA_INIT;
    return kept;
}

void cli_scratch_end(struct cli *cli, const struct arena *kept)
{
    arena_done(&cli->arena);
    cli->arena = *kept;
}

const char *cli_safe(struct cli *cli, const char *text)
{
    char *copy;

    if (text == NULL || text[0] == '\0')
        return "";
    copy = arena_strdup(&cli->arena, text);
    text_make_printable(copy);
    return copy;
}

static void say(struct cli *cli, const char *lead, const char *text)
{
    cli_wrap_after(cli->err, lead, (int)strlen(lead), text, cli->err_width);
}

int cli_write(struct cli *cli, const char *data, size_t len)
{
    if (fwrite(data, 1, len, cli->out) != len && cli->out_error == 0)
        cli->out_error = errno;
    return -cli->out_error;
}

/* What did not fit in a buffer may have failed before, and nobody looked at errno. */
int cli_flush(struct cli *cli)
{
    if (fflush(cli->out) != 0 && cli->out_error == 0)
        cli->out_error = errno;
    if (ferror(cli->out) && cli->out_error == 0)
        cli->out_error = EIO;
    return -cli->out_error;
}

void cli_say(struct cli *cli, const char *text)
{
    say(cli, "allot: ", text);
}

/* Does the field say what the text does not? A plain name adds nothing for people. */
static bool shows_field(const struct err *err)
{
    return strpbrk(err->field, ".[") && strstr(err->text, err->field) == NULL;
}

static void print_error(struct cli *cli, const struct err *err)
{
    const char *text = cli_safe(cli, err->text);

    fflush(cli->out);
    if (shows_field(err))
        text = arena_printf(&cli->arena, "%s (%s)", text, cli_safe(cli, err->field));
    cli_say(cli, text);
    if (err->remedy[0])
        say(cli, "hint: ", cli_safe(cli, err->remedy));
}

int cli_fail(struct cli *cli, const struct err *err)
{
    print_error(cli, err);
    return CLI_EXIT_FAILED;
}

int cli_fail_usage(struct cli *cli, const struct err *err)
{
    print_error(cli, err);
    return CLI_EXIT_USAGE;
}

static const struct cli_command *find_in(const struct cli_command *const *commands,
                                         const char *word)
{
    for (size_t i = 0; commands[i]; i++)
        if (strcmp(cli_command_word(commands[i]), word) == 0)
            return commands[i];
    return NULL;
}

const struct cli_command *cli_find_command(const struct cli *cli, const char *name)
{
    const char *blank = strchr(name, ' ');
    char first[32];
    const struct cli_command *c;

    if (blank == NULL)
        return find_in(cli->commands, name);
    if ((size_t)(blank - name) >= sizeof(first))
        return NULL;
    snprintf(first, sizeof(first), "%.*s", (int)(blank - name), name);
    c = find_in(cli->commands, first);
    return c && c->subcommands ? find_in(c->subcommands, blank + 1) : NULL;
}

/* GROUP NULL: of the program. */
static int refuse_unknown(struct cli *cli, const struct cli_command *group, const char *word)
{
    const struct cli_command *const *commands = group ? group->subcommands : cli->commands;
    struct cli_suggestion s = {.word = word};
    struct err err = ERR_INIT;
    char remedy[160];
    const char *elsewhere = group ? NULL : cli_verb_elsewhere(word);

    for (size_t i = 0; commands[i]; i++)
        cli_suggestion_offer(&s, cli_command_word(commands[i]));
    if (elsewhere)
        snprintf(remedy, sizeof(remedy), "here that is 'allot %s'", elsewhere);
    else if (s.best)
        snprintf(remedy, sizeof(remedy), "did you mean '%s'?", s.best);
    else
        snprintf(remedy, sizeof(remedy), "'allot help%s%s' lists the commands", group ? " " : "",
                 group ? group->name : "");
    err_set(&err, -EINVAL, ERR_INVALID, NULL, remedy, "unknown command '%s%s%.80s'",
            group ? group->name : "", group ? " " : "", word);
    return cli_fail_usage(cli, &err);
}

static void apply_common(struct cli *cli, const struct cli_args *args)
{
    const char *output = cli_option_value(args, "output"), *token;
    const char *server = cli_option_value(args, "server");

    if (output)
        cli->json = strcmp(output, "json") == 0;
    if (server)
        cli_config_use_server(&cli->config, server);
    token = cli_option_value(args, "token");
    if (token)
        cli->config.token = token;
    if (cli_option_given(args, "no-color"))
        cli->style.color = false;
}

static int run_command(struct cli *cli, const struct cli_command *c, int argc,
                       const char *const *argv)
{
    _cleanup_(cli_args_done) struct cli_args args = {0};
    struct err err = ERR_INIT;

    if (cli_args_parse(c, argc, argv, &args, &err) < 0)
        return cli_fail_usage(cli, &err);
    apply_common(cli, &args);
    if (cli_option_given(&args, "help")) {
        cli_help_command(cli, c);
        return 0;
    }
    return c->run(cli, &args);
}

/* `allot team` alone lists; so does `allot team --output json`. What does more wants to be named.
 */
static int run_unnamed(struct cli *cli, const struct cli_command *group, int argc,
                       const char *const *argv)
{
    const struct cli_command *c = group->subcommands[0];
    struct err err = ERR_INIT;

    if (strcmp(cli_command_word(c), "list") == 0)
        return run_command(cli, c, argc, argv);
    if (argc == 0) {
        cli_help_command(cli, group);
        return 0;
    }
    err_set(&err, -EINVAL, ERR_MISSING, NULL,
            arena_printf(&cli->arena, "such as 'allot %s'", c->name),
            "'%s' needs a command before '%.80s'", group->name, argv[0]);
    return cli_fail_usage(cli, &err);
}

static int run_group(struct cli *cli, const struct cli_command *group, int argc,
                     const char *const *argv)
{
    const struct cli_command *c;

    if (argc > 0 && (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0)) {
        cli_help_command(cli, group);
        return 0;
    }
    if (argc == 0 || argv[0][0] == '-')
        return run_unnamed(cli, group, argc, argv);
    c = find_in(group->subcommands, argv[0]);
    if (c == NULL)
        return refuse_unknown(cli, group, argv[0]);
    return run_command(cli, c, argc - 1, argv + 1);
}

/* Options before the command's name: those of every command, kept for it. */
static int leading_options(int argc, const char *const *argv)
{
    int at = 0;

    while (at < argc && argv[at][0] == '-' && argv[at][1]) {
        const char *word = argv[at++];
        const char *name = word[1] == '-' ? word + 2 : word + 1;

        for (const struct cli_option *o = cli_common_options; !cli_option_is_end(o); o++) {
            char letter[2] = {o->letter, '\0'};

            if (o->arg && strcmp(name, word[1] == '-' ? o->name : letter) == 0 && at < argc)
                at++;
        }
    }
    return at;
}

static bool is_one_of(const char *word, const char *a, const char *b)
{
    return strcmp(word, a) == 0 || strcmp(word, b) == 0;
}

/* Options without a command. */
static int run_nothing(struct cli *cli, int argc, const char *const *argv)
{
    static const char *const version[] = {"version", "--client"};
    struct err err = ERR_INIT;

    if (argc > 0 && is_one_of(argv[0], "--version", "-V"))
        return cli_run(cli, ARRAY_LEN(version), version);
    if (argc == 0 || is_one_of(argv[0], "--help", "-h")) {
        cli_help_overview(cli);
        return 0;
    }
    err_set(&err, -EINVAL, ERR_MISSING, NULL, "'allot help' lists the commands",
            "no command follows '%.80s'", argv[0]);
    return cli_fail_usage(cli, &err);
}

int cli_run(struct cli *cli, int argc, const char *const *argv)
{
    int before = leading_options(argc, argv);
    const struct cli_command *c;
    VEC(const char *) words = {0};
    int code;

    if (before >= argc)
        return run_nothing(cli, argc, argv);
    c = find_in(cli->commands, argv[before]);
    if (c == NULL)
        return refuse_unknown(cli, NULL, argv[before]);
    if (c->subcommands && before + 1 < argc && argv[before + 1][0] != '-')
        vec_push(&words, argv[before + 1]);
    for (int i = 0; i < before; i++)
        vec_push(&words, argv[i]);
    for (int i = before + 1 + (words.len > (size_t)before); i < argc; i++)
        vec_push(&words, argv[i]);
    code = c->subcommands ? run_group(cli, c, (int)words.len, words.items)
                          : run_command(cli, c, (int)words.len, words.items);
    vec_done(&words);
    return code;
}

/* Names are UTF-8 whatever the locale says; without this, tables would show them as escapes. */
static void use_utf8(struct cli *cli)
{
    setlocale(LC_CTYPE, "");
    cli->style = cli_style_of(cli->out);
    if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
        setlocale(LC_CTYPE, "C.UTF-8");
}

static void join_commands(const struct cli_command *const *extra, struct cli *cli)
{
    const struct cli_command **all;
    size_t n = 0, more = 0;

    while (cli_builtin_commands[n])
        n++;
    while (extra && extra[more])
        more++;
    all = arena_new_array(&cli->arena, const struct cli_command *, n + more + 1);
    memcpy(all, cli_builtin_commands, n * sizeof(*all));
    for (size_t i = 0; i < more; i++) {
        size_t at = 0;

        while (at < n && strcmp(all[at]->name, extra[i]->name) != 0)
            at++;
        all[at] = extra[i];
        n += at == n;
    }
    cli->commands = all;
}

/* A descriptor that is closed would be that of the next socket, and be written to. */
static void open_standard_streams(void)
{
    int fd = open("/dev/null", O_RDWR);

    while (fd >= 0 && fd < STDERR_FILENO)
        fd = dup(fd);
    if (fd > STDERR_FILENO)
        close(fd);
}

/* Output that is lost is a failure, also of what went well. */
static int end_output(struct cli *cli, int code)
{
    struct err err = ERR_INIT;
    int r = cli_flush(cli);

    if (r == 0)
        return code;
    err_set(&err, r, ERR_UNAVAILABLE, NULL, "make room, or write it elsewhere",
            "standard output could not be written%s%s", r == -EIO ? "" : ": ",
            r == -EIO ? "" : strerror(-r));
    r = cli_fail(cli, &err);
    return code ? code : r;
}

int cli_main(int argc, char **argv, const struct cli_command *const *extra)
{
    struct cli cli = {.out = stdout, .err = stderr, .arena = ARENA_INIT};
    struct err err = ERR_INIT;
    int code;

    open_standard_streams();
    use_utf8(&cli);
    cli.err_tty = isatty(STDERR_FILENO);
    cli.err_width = cli.err_tty ? cli_style_of(stderr).width : 0;
    cli.in_tty = isatty(STDIN_FILENO);
    join_commands(extra, &cli);
    if (cli_config_load(&cli.arena, &cli.config, &err) < 0) {
        code = cli_fail(&cli, &err);
    } else {
        if (cli.config.warning)
            fprintf(stderr, "warning: %s\n", cli.config.warning);
        code = cli_run(&cli, argc - 1, (const char *const *)argv + 1);
    }
    code = end_output(&cli, code);
    if (cli.client)
        http_client_destroy(cli.client);
    arena_done(&cli.arena);
    return code;
}
