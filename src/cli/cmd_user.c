/* SPDX-License-Identifier: Apache-2.0 */
/* allot user: who may do what. */
#include <errno.h>
#include <json-c/json.h>
#include <string.h>

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
        {"USER", CLI_COLUMN_CUT},
        {"ROLE", 0},
        {"TEAMS", CLI_COLUMN_CUT},
    };
    _cleanup_json_ struct json_object *reply = NULL;
    struct err err = ERR_INIT;
    struct cli_table *t;

    if (cli_get(cli, "/v1/users", &reply, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json) {
        cli_print_json(cli, reply);
        return 0;
    }
    t = cli_table_new(cli, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < cli_json_len(reply, "users"); i++) {
        struct json_object *u = cli_json_at(reply, "users", i);

        cli_table_row(t, CLI_TABLE_TOP);
        cli_table_cell(t, cli_json_text(u, "name"), CLI_CYAN);
        cli_table_cell(t, cli_json_text(u, "role"), CLI_PLAIN);
        cli_table_cell(t, cli_join_text(cli, u, "teams", ", "), CLI_PLAIN);
    }
    cli_table_end(t);
    return 0;
}

/* The teams of --team where given, else those that the user has. */
static void write_teams(const struct cli_args *args, struct json_object *found,
                        struct json_writer *w)
{
    const char *team;
    size_t it = 0;

    json_key(w, "teams");
    json_begin_array(w);
    while ((team = cli_option_each(args, "team", &it)))
        json_string(w, team);
    for (size_t i = 0; !cli_option_given(args, "team") && i < cli_json_len(found, "teams"); i++)
        json_string(w, json_object_get_string(cli_json_at(found, "teams", i)));
    json_end_array(w);
}

static int run_set(struct cli *cli, const struct cli_args *args)
{
    const char *name = args->operands.items[0], *role = cli_option_value(args, "role");
    _cleanup_json_ struct json_object *found = NULL, *reply = NULL;
    _cleanup_strbuf_ struct strbuf body = STRBUF_INIT;
    struct cli_call call = {.method = "PUT", .path = cli_path(cli, "/v1/users/%s", name)};
    struct err err = ERR_INIT;
    struct json_writer w;
    int r = cli_get(cli, call.path, &found, &err);

    if (r < 0 && r != -ENOENT)
        return cli_fail(cli, &err);
    if (role == NULL)
        role = cli_json_text(found, "role");
    json_writer_init(&w, &body);
    json_begin_object(&w);
    json_key_string(&w, "name", name);
    json_key_string(&w, "role", role ? role : "member");
    write_teams(args, found, &w);
    json_end_object(&w);
    call.body = body.data;
    if (cli_call(cli, &call, &reply, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json && reply)
        cli_print_json(cli, reply);
    else if (!cli->json)
        fprintf(cli->out, "user %s %s\n", cli_safe(cli, name), found ? "changed" : "created");
    return 0;
}

static int run_delete(struct cli *cli, const struct cli_args *args)
{
    struct err err = ERR_INIT;
    int code = 0;

    for (size_t i = 0; i < args->operands.len; i++) {
        const char *name = args->operands.items[i];
        struct cli_call call = {.method = "DELETE", .path = cli_path(cli, "/v1/users/%s", name)};

        if (cli_call(cli, &call, NULL, &err) < 0)
            code = cli_fail(cli, &err);
        else if (!cli->json)
            fprintf(cli->out, "user %s deleted\n", cli_safe(cli, name));
    }
    return code;
}

static const struct cli_option set_options[] = {
    {.name = "role",
     .arg = "ROLE",
     .help = "admin (everything) or member (default)",
     .complete = CLI_COMPLETE_WORDS,
     .words = "admin member"},
    {.name = "team",
     .letter = 't',
     .arg = "TEAM",
     .help = "works in this team and those below it; may be repeated",
     .complete = CLI_COMPLETE_TEAM},
    {0},
};

static const struct cli_command list = {
    .name = "user list",
    .summary = "list users with roles and teams",
    .run = run_list,
};
static const struct cli_command set = {
    .name = "user set",
    .summary = "create a user, or change what is named",
    .usage = "[OPTIONS] NAME",
    .options = set_options,
    .min_operands = 1,
    .max_operands = 1,
    .operand = CLI_COMPLETE_USER,
    .run = run_set,
};
static const struct cli_command delete = {
    .name = "user delete",
    .summary = "delete users and their tokens",
    .usage = "NAME...",
    .min_operands = 1,
    .max_operands = CLI_MANY,
    .operand = CLI_COMPLETE_USER,
    .run = run_delete,
};
static const struct cli_command *const subcommands[] = {&list, &set, &delete, NULL};

const struct cli_command cli_user = {
    .name = "user",
    .group = CLI_MANAGE,
    .summary = "people: roles and teams",
    .usage = "[list|set|delete]",
    .examples = "allot user set ada --team research\nallot token create ada\n"
                "allot user set grace --role admin",
    .subcommands = subcommands,
};
