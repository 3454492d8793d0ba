/* SPDX-License-Identifier: Apache-2.0 */
/* allot ps: the list of workloads. */
#include <errno.h>
#include <json-c/json.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/render.h"
#include "cli/session.h"
#include "cli/table.h"
#include "cli/teams.h"

#define LIST_LIMIT "200"
#define ALIVE "live"

static const char *list_path(struct cli *cli, const struct cli_args *args)
{
    static const char *const filters[] = {"team", "owner", "kind", "class", "name", "limit"};
    const char *state = cli_option_value(args, "state");
    const char *path = "/v1/workloads?";

    if (state == NULL && !cli_option_given(args, "all"))
        state = ALIVE;
    if (state)
        path = arena_printf(&cli->arena, "%s%s&", path, cli_path(cli, "state=%s", state));
    for (size_t i = 0; i < ARRAY_LEN(filters); i++) {
        const char *v = cli_option_value(args, filters[i]);

        if (v == NULL && strcmp(filters[i], "limit") == 0)
            v = LIST_LIMIT;
        if (v)
            path = arena_printf(&cli->arena, "%s%s=%s&", path, filters[i], cli_path(cli, "%s", v));
    }
    return arena_strndup(&cli->arena, path, strlen(path) - 1);
}

static void print_row(struct cli *cli, struct cli_table *t, struct json_object *w, bool wide)
{
    const char *state = cli_workload_state(cli, w);

    cli_table_row(t, CLI_TABLE_TOP);
    cli_table_cell(t, cli_json_text(w, "id"), CLI_CYAN);
    cli_table_cell(t, cli_json_text(w, "name"), CLI_PLAIN);
    cli_table_cell(t, cli_json_text(w, "team"), CLI_PLAIN);
    if (wide) {
        cli_table_cell(t, cli_json_text(w, "owner"), CLI_PLAIN);
        cli_table_cell(t, cli_json_text(w, "kind"), CLI_PLAIN);
        cli_table_cell(t, cli_json_text(w, "class"), CLI_PLAIN);
    }
    cli_table_cell(t, state, cli_state_color(state));
    cli_table_cell(t, cli_request_text(cli, w), CLI_PLAIN);
    cli_table_cell(t, cli_age(cli_now_ms(cli) - cli_json_time(w, "submitted_at"), &cli->arena),
                   CLI_PLAIN);
    cli_table_cell(t, cli_workload_note(cli, w), CLI_PLAIN);
}

void cli_print_workloads(struct cli *cli, struct json_object *list, bool wide)
{
    static const struct cli_column narrow[] = {
        {"ID", CLI_COLUMN_RIGHT}, {"NAME", CLI_COLUMN_CUT},  {"TEAM", CLI_COLUMN_CUT}, {"STATE", 0},
        {"ASKS FOR", 0},          {"AGE", CLI_COLUMN_RIGHT}, {"NOTE", CLI_COLUMN_CUT},
    };
    static const struct cli_column all[] = {
        {"ID", CLI_COLUMN_RIGHT},
        {"NAME", CLI_COLUMN_CUT},
        {"TEAM", CLI_COLUMN_CUT},
        {"OWNER", CLI_COLUMN_CUT},
        {"KIND", 0},
        {"CLASS", 0},
        {"STATE", 0},
        {"ASKS FOR", 0},
        {"AGE", CLI_COLUMN_RIGHT},
        {"NOTE", CLI_COLUMN_CUT},
    };
    struct cli_table *t = wide ? cli_table_new(cli, all, ARRAY_LEN(all))
                               : cli_table_new(cli, narrow, ARRAY_LEN(narrow));

    for (size_t i = 0; i < cli_json_len(list, "workloads"); i++)
        print_row(cli, t, cli_json_at(list, "workloads", i), wide);
    cli_table_end(t);
}

static const char *nothing_text(const struct cli_args *args)
{
    static const char *const filters[] = {"team", "owner", "kind", "class", "name"};

    if (cli_option_given(args, "all") || cli_option_given(args, "state"))
        return "no such workloads";
    for (size_t i = 0; i < ARRAY_LEN(filters); i++)
        if (cli_option_given(args, filters[i]))
            return "nothing of that waits or runs (with --all also what has ended is shown)";
    return "nothing waits or runs ('allot ps --all' shows what has ended)";
}

/* An empty list for want of such a team or user is an error. */
static int check_filters(struct cli *cli, const struct cli_args *args, struct err *err)
{
    const char *team = cli_option_value(args, "team"), *owner = cli_option_value(args, "owner");
    int r = team ? cli_get_team(cli, team, NULL, err) : 0;

    if (r < 0)
        return r;
    r = owner ? cli_get(cli, cli_path(cli, "/v1/users/%s", owner), NULL, err) : 0;
    if (r == -EACCES) /* people are an administrator's business */
        return 0;
    return r;
}

static int run(struct cli *cli, const struct cli_args *args)
{
    _cleanup_json_ struct json_object *list = NULL;
    struct err err = ERR_INIT;
    int64_t number;
    size_t count;

    if (cli_option_number(args, "limit", 1, 1000, &number, &err) < 0)
        return cli_fail_usage(cli, &err);
    if (cli_get(cli, list_path(cli, args), &list, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json) {
        cli_print_json(cli, list);
        return 0;
    }
    count = cli_json_len(list, "workloads");
    if (count == 0 && check_filters(cli, args, &err) < 0)
        return cli_fail(cli, &err);
    if (count == 0) {
        fprintf(cli->err, "%s\n", nothing_text(args));
        return 0;
    }
    cli_print_workloads(cli, list, cli_option_given(args, "wide"));
    if (cli_json_get(list, "next"))
        fprintf(cli->err, "(the newest %zu; --limit shows more)\n", count);
    return 0;
}

static const struct cli_option options[] = {
    {.name = "all", .letter = 'a', .help = "also those that have ended"},
    {.name = "team",
     .letter = 't',
     .arg = "TEAM",
     .help = "only this team and those below it",
     .complete = CLI_COMPLETE_TEAM},
    {.name = "owner", .arg = "USER", .help = "only of this user", .complete = CLI_COMPLETE_USER},
    {.name = "state",
     .arg = "STATE",
     .help = "pending, running, suspended, stopping, succeeded, failed or cancelled; several "
             "joined by commas",
     .complete = CLI_COMPLETE_WORDS,
     .words = "pending running suspended stopping succeeded failed cancelled"},
    {.name = "kind",
     .arg = "KIND",
     .help = "job, notebook or service",
     .complete = CLI_COMPLETE_WORDS,
     .words = "job notebook service"},
    {.name = "class",
     .arg = "CLASS",
     .help = "production, training, development or batch",
     .complete = CLI_COMPLETE_WORDS,
     .words = "production training development batch"},
    {.name = "name", .arg = "NAME", .help = "only with this name"},
    {.name = "limit",
     .letter = 'n',
     .arg = "N",
     .help = "at most so many (default " LIST_LIMIT ")"},
    {.name = "wide", .letter = 'w', .help = "also owner, kind and class"},
    {0},
};

const struct cli_command cli_ps = {
    .name = "ps",
    .group = CLI_SEE,
    .summary = "list workloads: what runs, what waits and why",
    .usage = "[OPTIONS]",
    .description =
        "Lists workloads, newest first. Without options, those that wait or run.\n\n"
        "NOTE tells what matters now: for a waiting workload its place in the queue of its team "
        "and the reason ('allot why ID' tells the rest); for a running one how many tasks run; "
        "for an ended one how it ended.",
    .examples = "allot ps\nallot ps --team research --state pending\n"
                "# the ids of everything that runs\n"
                "allot ps --state running -o json | jq '.workloads[].id'",
    .options = options,
    .run = run,
};
