/* SPDX-License-Identifier: Apache-2.0 */
/* allot token: credentials for people and programs. */
#include <json-c/json.h>

#include "base/cleanup.h"
#include "base/json_writer.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/render.h"
#include "cli/session.h"
#include "cli/table.h"

static int run_list(struct cli *cli, const struct cli_args *args)
{
    static const struct cli_column columns[] = {
        {"ID", CLI_COLUMN_RIGHT}, {"USER", CLI_COLUMN_CUT}, {"LABEL", CLI_COLUMN_CUT},
        {"CREATED", 0},           {"EXPIRES", 0},
    };
    _cleanup_json_ struct json_object *reply = NULL;
    struct err err = ERR_INIT;
    struct cli_table *t;

    if (cli_get(cli, "/v1/tokens", &reply, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json) {
        cli_print_json(cli, reply);
        return 0;
    }
    if (cli_json_len(reply, "tokens") == 0) {
        fprintf(cli->err, "no tokens\n");
        return 0;
    }
    t = cli_table_new(cli, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < cli_json_len(reply, "tokens"); i++) {
        struct json_object *token = cli_json_at(reply, "tokens", i);

        cli_table_row(t, CLI_TABLE_TOP);
        cli_table_cell(t, cli_json_text(token, "id"), CLI_CYAN);
        cli_table_cell(t, cli_json_text(token, "user"), CLI_PLAIN);
        cli_table_cell(t, cli_json_text(token, "label"), CLI_PLAIN);
        cli_table_cell(t, cli_when_text(cli, token, "created_at"), CLI_PLAIN);
        cli_table_cell(t,
                       cli_json_time(token, "expires_at") ? cli_when_text(cli, token, "expires_at")
                                                          : "never",
                       CLI_PLAIN);
    }
    cli_table_end(t);
    return 0;
}

static int run_create(struct cli *cli, const struct cli_args *args)
{
    const char *expires = cli_option_value(args, "expires"),
               *label = cli_option_value(args, "label");
    _cleanup_json_ struct json_object *reply = NULL;
    _cleanup_strbuf_ struct strbuf body = STRBUF_INIT;
    struct cli_call call = {.method = "POST", .path = "/v1/tokens"};
    struct err err = ERR_INIT;
    struct json_writer w;
    int64_t ms;

    if (cli_option_duration(args, "expires", &ms, &err) < 0)
        return cli_fail_usage(cli, &err);
    json_writer_init(&w, &body);
    json_begin_object(&w);
    if (args->operands.len > 0)
        json_key_string(&w, "user", args->operands.items[0]);
    if (label)
        json_key_string(&w, "label", label);
    if (expires)
        json_key_string(&w, "expires_in", expires);
    json_end_object(&w);
    call.body = body.data;
    if (cli_call(cli, &call, &reply, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json) {
        cli_print_json(cli, reply);
        return 0;
    }
    fprintf(cli->out, "%s\n", cli_safe(cli, cli_json_text(reply, "token")));
    fprintf(cli->err, "shown once; keep it safe. To use it: allot login, or ALLOT_TOKEN=...\n");
    return 0;
}

static int run_revoke(struct cli *cli, const struct cli_args *args)
{
    struct err err = ERR_INIT;
    int code = 0;

    for (size_t i = 0; i < args->operands.len; i++) {
        const char *id = args->operands.items[i];
        struct cli_call call = {.method = "DELETE", .path = cli_path(cli, "/v1/tokens/%s", id)};

        if (cli_call(cli, &call, NULL, &err) < 0)
            code = cli_fail(cli, &err);
        else if (!cli->json)
            fprintf(cli->out, "token %s revoked\n", cli_safe(cli, id));
    }
    return code;
}

static const struct cli_option create_options[] = {
    {.name = "label", .letter = 'l', .arg = "TEXT", .help = "what it is for"},
    {.name = "expires", .arg = "TIME", .help = "valid so long: 90d (default: until revoked)"},
    {0},
};

static const struct cli_command list = {
    .name = "token list",
    .summary = "list tokens (never their secrets)",
    .run = run_list,
};
static const struct cli_command create = {
    .name = "token create",
    .summary = "create a token and print it, once",
    .usage = "[OPTIONS] [USER]",
    .options = create_options,
    .max_operands = 1,
    .operand = CLI_COMPLETE_USER,
    .run = run_create,
};
static const struct cli_command revoke_token = {
    .name = "token revoke",
    .summary = "revoke tokens, at once",
    .usage = "ID...",
    .min_operands = 1,
    .max_operands = CLI_MANY,
    .run = run_revoke,
};
static const struct cli_command *const subcommands[] = {&list, &create, &revoke_token, NULL};

const struct cli_command cli_token = {
    .name = "token",
    .group = CLI_MANAGE,
    .summary = "access tokens: create, list, revoke",
    .usage = "[list|create|revoke]",
    .description = "A token is how a person or a program proves who it is. It is shown once and "
                   "kept only as a hash. Without USER it is for yourself.",
    .examples = "allot token create ada --label laptop --expires 90d\n"
                "allot token\nallot token revoke 3",
    .subcommands = subcommands,
};
