/* SPDX-License-Identifier: Apache-2.0 */
/* allot quota: the tree of teams with what they use of what they have. */
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
#include "model/team.h"

#define BAR_WIDTH 12
#define DEPTH_MAX 64 /* the server refuses deeper trees; a hostile one must not recurse us */

enum resource_unit { UNIT_MILLI, UNIT_BYTES };

struct quota {
    struct cli *cli;
    struct json_object *list;
    struct cli_table *table;
    const char *resource;
    enum resource_unit unit;
};

static int64_t amount(const struct quota *q, struct json_object *team, const char *what,
                      int64_t otherwise)
{
    const char *path = arena_printf(&q->cli->arena, "%s.%s", what, q->resource);

    return q->unit == UNIT_BYTES ? cli_json_bytes(team, path, otherwise)
                                 : cli_json_milli(team, path, otherwise);
}

/* Types are keys of an object, dots and all. */
static int64_t type_milli(struct json_object *types, const char *type)
{
    struct json_object *milli = NULL;

    if (json_object_is_type(types, json_type_object))
        json_object_object_get_ex(types, type, &milli);
    return cli_json_milli(milli, "", MODEL_UNLIMITED);
}

static const char *text(const struct quota *q, int64_t v)
{
    return q->unit == UNIT_BYTES ? cli_bytes_text(q->cli, v) : cli_milli_text(q->cli, v);
}

/* What the bar is measured against: the most that the team could have. */
static int64_t full(int64_t guarantee, int64_t limit, int64_t entitled, int64_t used)
{
    int64_t whole = limit != MODEL_UNLIMITED ? limit : entitled;

    if (whole == MODEL_UNLIMITED || whole < guarantee)
        whole = guarantee;
    return whole > used ? whole : used;
}

/* Above the guarantee is fine but can be taken back; above the entitlement it will be. */
static enum cli_color bar_color(int64_t used, int64_t guarantee, int64_t entitled)
{
    if (used <= guarantee)
        return CLI_GREEN;
    return used <= entitled ? CLI_YELLOW : CLI_RED;
}

/* Of one team, in the unit of the table. */
struct figures {
    int64_t used, guarantee, limit, entitled;
};

/* A row up to the limit; what it could have and asks for is not known of everything. */
static size_t begin_row(const struct quota *q, const char *name, const struct figures *f,
                        size_t parent)
{
    struct cli *cli = q->cli;
    size_t line = cli_table_row(q->table, parent);
    int64_t guarantee = f->guarantee != MODEL_UNLIMITED ? f->guarantee : 0;
    int64_t most = full(guarantee, f->limit, f->entitled, f->used);

    cli_table_cell(q->table, name, CLI_PLAIN);
    cli_table_cell(q->table, cli_bar(&cli->style, f->used, most, BAR_WIDTH, &cli->arena),
                   bar_color(f->used, guarantee, f->entitled));
    cli_table_cell(q->table, text(q, f->used), CLI_BOLD);
    cli_table_cell(q->table, text(q, f->guarantee), CLI_PLAIN);
    cli_table_cell(q->table, text(q, f->limit), CLI_PLAIN);
    return line;
}

/* "[H100]" below its team: what is stated of one GPU type. A type's part of the fair share is
 * not a figure: what is above its guarantee is lent. */
static void add_types(const struct quota *q, struct json_object *team, size_t line)
{
    struct json_object *used = cli_json_get(team, "used_gpu_types");
    struct json_object *guarantees = cli_json_get(team, "guarantee.gpu_types");
    struct json_object *limits = cli_json_get(team, "limit.gpu_types");

    if (!json_object_is_type(used, json_type_object))
        return;
    json_object_object_foreach(used, type, milli)
    {
        struct figures f = {
            .used = cli_json_milli(milli, "", 0),
            .guarantee = type_milli(guarantees, type),
            .limit = type_milli(limits, type),
            .entitled = MODEL_UNLIMITED,
        };

        begin_row(q, arena_printf(&q->cli->arena, "[%s]", type), &f, line);
    }
}

static size_t add_row(const struct quota *q, struct json_object *team, size_t parent)
{
    int64_t guarantee = amount(q, team, "guarantee", 0);
    struct figures f = {
        .used = amount(q, team, "used", 0),
        .guarantee = guarantee,
        .limit = amount(q, team, "limit", MODEL_UNLIMITED),
        .entitled = amount(q, team, "entitled", guarantee),
    };
    size_t line = begin_row(q, cli_json_text(team, "name"), &f, parent);

    cli_table_cell(q->table, text(q, amount(q, team, "share", MODEL_UNLIMITED)), CLI_PLAIN);
    cli_table_cell(q->table, text(q, amount(q, team, "demand", f.used)), CLI_PLAIN);
    if (strcmp(q->resource, "gpu") == 0)
        add_types(q, team, line);
    return line;
}

static void add_children(const struct quota *q, const char *parent, size_t line, int depth)
{
    for (size_t i = 0; depth < DEPTH_MAX && i < cli_json_len(q->list, "teams"); i++) {
        struct json_object *team = cli_json_at(q->list, "teams", i);
        const char *p = cli_json_text(team, "parent"), *name = cli_json_text(team, "name");

        if (name && (p == NULL ? parent == NULL : parent && strcmp(p, parent) == 0))
            add_children(q, name, add_row(q, team, line), depth + 1);
    }
}

static struct json_object *find_team(struct json_object *list, const char *name)
{
    for (size_t i = 0; i < cli_json_len(list, "teams"); i++) {
        struct json_object *team = cli_json_at(list, "teams", i);
        const char *n = cli_json_text(team, "name");

        if (n && strcmp(n, name) == 0)
            return team;
    }
    return NULL;
}

/* Teams whose parent is not in the list (members see part of the tree) stand at the top. */
static void add_top(const struct quota *q)
{
    for (size_t i = 0; i < cli_json_len(q->list, "teams"); i++) {
        struct json_object *team = cli_json_at(q->list, "teams", i);
        const char *parent = cli_json_text(team, "parent"), *name = cli_json_text(team, "name");

        if (name && (parent == NULL || find_team(q->list, parent) == NULL))
            add_children(q, name, add_row(q, team, CLI_TABLE_TOP), 1);
    }
}

static void print_resource(struct cli *cli, struct json_object *list, const char *team,
                           const char *resource, enum resource_unit unit)
{
    static const struct cli_column columns[] = {
        {"TEAM", CLI_COLUMN_TREE | CLI_COLUMN_CUT},
        {"", 0},
        {"USED", CLI_COLUMN_RIGHT},
        {"GUARANTEE", CLI_COLUMN_RIGHT},
        {"LIMIT", CLI_COLUMN_RIGHT},
        {"SHARE", CLI_COLUMN_RIGHT},
        {"DEMAND", CLI_COLUMN_RIGHT},
    };
    struct quota q = {.cli = cli,
                      .list = list,
                      .resource = resource,
                      .unit = unit,
                      .table = cli_table_new(cli, columns, ARRAY_LEN(columns))};
    struct json_object *top = team ? find_team(list, team) : NULL;

    if (top)
        add_children(&q, team, add_row(&q, top, CLI_TABLE_TOP), 1);
    else
        add_top(&q);
    cli_table_end(q.table);
}

void cli_print_quota(struct cli *cli, struct json_object *list, const char *team)
{
    print_resource(cli, list, team, "gpu", UNIT_MILLI);
}

/* TEAM and what is below it, for programs. */
static void print_json_of(struct cli *cli, struct json_object *list, const char *team)
{
    _cleanup_json_ struct json_object *part = json_object_new_object();
    struct json_object *teams = json_object_new_array();

    json_object_object_add(part, "teams", teams);
    for (size_t i = 0; i < cli_json_len(list, "teams"); i++) {
        struct json_object *t = cli_json_at(list, "teams", i), *up = t;

        for (int depth = 0; up && depth < DEPTH_MAX; depth++) {
            const char *name = cli_json_text(up, "name"), *parent = cli_json_text(up, "parent");

            if (name && strcmp(name, team) == 0) {
                json_object_array_add(teams, json_object_get(t));
                break;
            }
            up = parent ? find_team(list, parent) : NULL;
        }
    }
    cli_print_json(cli, part);
}

/* What is there for all of them. */
static void print_notes(struct cli *cli, struct json_object *list)
{
    const char *note = cli_guarantee_note(cli, list), *free;
    _cleanup_json_ struct json_object *nodes = NULL;
    struct err err = ERR_INIT;

    free = cli_get(cli, "/v1/nodes", &nodes, &err) == 0 ? cli_free_text(cli, nodes) : NULL;
    if (free)
        fprintf(cli->out, "\n%s\n", free);
    if (note)
        fprintf(cli->out, "\n%s\n", cli_colored(cli, note, CLI_YELLOW));
}

static int run(struct cli *cli, const struct cli_args *args)
{
    const char *team = args->operands.len > 1 ? args->operands.items[1] : NULL;
    _cleanup_json_ struct json_object *list = NULL;
    struct err err = ERR_INIT;

    /* `allot quota show TEAM` and `allot quota TEAM` are the same */
    if (args->operands.len == 1 && strcmp(args->operands.items[0], "show") != 0)
        team = args->operands.items[0];
    if (cli_get(cli, "/v1/teams", &list, &err) < 0)
        return cli_fail(cli, &err);
    if (team && find_team(list, team) == NULL) {
        cli_no_team(cli, team, list, &err);
        return cli_fail(cli, &err);
    }
    if (cli->json) {
        if (team)
            print_json_of(cli, list, team);
        else
            cli_print_json(cli, list);
        return 0;
    }
    if (cli_json_len(list, "teams") == 0) {
        fprintf(cli->err, "no teams yet; add one: allot team set NAME --guarantee gpu=N\n");
        return 0;
    }
    cli_print_quota(cli, list, team);
    print_notes(cli, list);
    if (!cli_option_given(args, "all"))
        return 0;
    cli_heading(cli, "CPU");
    print_resource(cli, list, team, "cpu", UNIT_MILLI);
    cli_heading(cli, "Memory");
    print_resource(cli, list, team, "memory", UNIT_BYTES);
    return 0;
}

static const struct cli_option options[] = {
    CLI_QUOTA_ALL,
    {0},
};

const struct cli_command cli_quota = {
    .name = "quota",
    .group = CLI_SEE,
    .summary = "what every team has and uses, as a tree with bars",
    .usage = "[OPTIONS] [show] [TEAM]",
    .description = CLI_QUOTA_ABOUT,
    .examples = "allot quota\nallot quota research --all",
    .options = options,
    .max_operands = 2,
    .operand = CLI_COMPLETE_TEAM,
    .run = run,
};
