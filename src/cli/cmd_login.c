/* SPDX-License-Identifier: Apache-2.0 */
/* allot login: keep server and token for later. */
#include <errno.h>
#include <json-c/json.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/session.h"
#include "net/http_client.h"

#define TOKEN_LINE_MAX 512

/* A line of standard input, not shown where that is a terminal. */
static int read_token(struct cli *cli, const char **ret_token, struct err *err)
{
    char line[TOKEN_LINE_MAX];
    struct termios before, quiet;
    bool hidden = cli->in_tty && tcgetattr(STDIN_FILENO, &before) == 0;
    bool got;

    if (hidden) {
        fprintf(cli->err, "token: ");
        fflush(cli->err);
        quiet = before;
        quiet.c_lflag &= ~(tcflag_t)ECHO;
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet);
    }
    got = fgets(line, sizeof(line), stdin) != NULL;
    if (hidden) {
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
        fprintf(cli->err, "\n");
    }
    if (got)
        line[strcspn(line, "\r\n")] = '\0';
    if (!got || line[0] == '\0')
        return err_set(err, -EINVAL, ERR_MISSING, NULL,
                       "an administrator makes one with 'allot token create USER'",
                       "no token given");
    *ret_token = arena_strdup(&cli->arena, line);
    return 0;
}

/* Is there an address at all? Nobody should type a secret for nothing. */
static int check_server(struct cli *cli, struct err *err)
{
    struct http_client *probe;
    int r = cli_client_new(cli, &probe, err);

    if (r == 0)
        http_client_destroy(probe);
    return r;
}

static int run(struct cli *cli, const struct cli_args *args)
{
    _cleanup_json_ struct json_object *reply = NULL;
    const char *token = cli_option_value(args, "token"), *team = cli_option_value(args, "team");
    struct err err = ERR_INIT;

    if (args->operands.len > 0)
        cli->config.server = args->operands.items[0];
    if (check_server(cli, &err) < 0 || (token == NULL && read_token(cli, &token, &err) < 0))
        return cli_fail_usage(cli, &err);
    cli->config.token = token;
    if (team)
        cli->config.team = team;
    /* what is kept must work */
    if (cli_get(cli, "/v1/status", &reply, &err) < 0)
        return cli_fail(cli, &err);
    if (cli_config_save(&cli->config, &err) < 0)
        return cli_fail(cli, &err);
    fprintf(cli->err, "logged in to %s; kept in %s\n", cli_safe(cli, cli->config.server),
            cli->config.path);
    return 0;
}

static const struct cli_option options[] = {
    {.name = "team",
     .letter = 't',
     .arg = "TEAM",
     .help = "default team of new workloads",
     .complete = CLI_COMPLETE_TEAM},
    {0},
};

const struct cli_command cli_login = {
    .name = "login",
    .group = CLI_SETUP,
    .summary = "keep the address of the server and your token",
    .usage = "[OPTIONS] [URL]",
    .description = "Checks the token against the server and keeps both in "
                   "~/.config/allot/config, readable by you alone. The token is asked for, or "
                   "read from standard input.",
    .examples = "allot login http://gpu-server:8080\n"
                "allot login --team research < token-file",
    .options = options,
    .max_operands = 1,
    .run = run,
};
