/* SPDX-License-Identifier: Apache-2.0 */
/* allot team: the quota tree. */
#include <errno.h>
#include <json-c/json.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/render.h"
#include "cli/session.h"
#include "cli/table.h"
#include "cli/teams.h"
#include "model/team.h"

/* "8 gpu, 64 cpu, 512GiB": the amounts of a guarantee or limit. */
static const char *amounts_text(struct cli *cli, struct json_object *team, const char *which)
{
    static const char *const names[] = {"gpu", "cpu", "memory", "volumes"};
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
    struct json_object *amounts = cli_json_get(team, which), *types;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *v = cli_json_text(amounts, names[i]);

        if (v && strcmp(v, "0") != 0)
            strbuf_addf(&b, "%s%s %s", b.len ? ", " : "", v, names[i]);
    }
    types = cli_json_get(amounts, "gpu_types");
    if (json_object_is_type(types, json_type_object)) {
        json_object_object_foreach(types, type, milli)
            strbuf_addf(&b, "%s%s %s", b.len ? ", " : "", json_object_get_string(milli), type);
    }
    return cli_safe(cli, strbuf_str(&b));
}

static int run_list(struct cli *cli, const struct cli_args *args)
{
    static const struct cli_column columns[] = {
        {"TEAM", CLI_COLUMN_CUT},  {"PARENT", CLI_COLUMN_CUT},   {"GUARANTEE", CLI_COLUMN_CUT},
        {"LIMIT", CLI_COLUMN_CUT}, {"WEIGHT", CLI_COLUMN_RIGHT}, {"PRIORITY", CLI_COLUMN_RIGHT},
    };
    _cleanup_json_ struct json_object *list = NULL;
    struct err err = ERR_INIT;
    struct cli_table *t;

    if (cli_get(cli, "/v1/teams", &list, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json) {
        cli_print_json(cli, list);
        return 0;
    }
    if (cli_json_len(list, "teams") == 0) {
        fprintf(cli->err, "no teams yet; add one: allot team set NAME --guarantee gpu=N\n");
        return 0;
    }
    t = cli_table_new(cli, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < cli_json_len(list, "teams"); i++) {
        struct json_object *team = cli_json_at(list, "teams", i);

        cli_table_row(t, CLI_TABLE_TOP);
        cli_table_cell(t, cli_json_text(team, "name"), CLI_CYAN);
        cli_table_cell(t, cli_json_text(team, "parent"), CLI_PLAIN);
        cli_table_cell(t, amounts_text(cli, team, "guarantee"), CLI_PLAIN);
        cli_table_cell(t, amounts_text(cli, team, "limit"), CLI_PLAIN);
        cli_table_cell(t, cli_json_text(team, "weight"), CLI_PLAIN);
        cli_table_cell(t, cli_json_text(team, "priority"), CLI_PLAIN);
    }
    cli_table_end(t);
    return 0;
}

/* "2 (counts as 0.5 of that, by past use)" */
static const char *weight_text(struct cli *cli, struct json_object *team)
{
    const char *weight = cli_safe(cli, cli_json_text(team, "weight"));
    const char *bias = cli_json_text(team, "weight_bias");

    if (bias == NULL || strcmp(bias, "1") == 0)
        return weight;
    return arena_printf(&cli->arena, "%s (counts %s times, by past use)", weight,
                        cli_safe(cli, bias));
}

/* "idle  notebook 1h: suspend" */
static void print_idle(struct cli *cli, struct json_object *team)
{
    struct json_object *rules = cli_json_get(team, "idle");

    if (!json_object_is_type(rules, json_type_object))
        return;
    json_object_object_foreach(rules, kind, rule)
    {
        const char *signal = cli_json_text(rule, "signal");

        cli_field(cli, "when idle",
                  arena_printf(&cli->arena, "%s %s: %s%s", cli_safe(cli, kind),
                               cli_safe(cli, cli_json_text(rule, "after")),
                               cli_safe(cli, cli_json_text(rule, "action")),
                               signal && strcmp(signal, "gpu") == 0 ? ", by use of the GPU alone"
                                                                    : ""));
    }
}

static int run_show(struct cli *cli, const struct cli_args *args)
{
    _cleanup_json_ struct json_object *team = NULL;
    struct err err = ERR_INIT;

    if (cli_get_team(cli, args->operands.items[0], &team, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json) {
        cli_print_json(cli, team);
        return 0;
    }
    fprintf(cli->out, "%s\n",
            cli_colored(cli, cli_safe(cli, cli_json_text(team, "name")), CLI_BOLD));
    cli_field(cli, "parent", cli_safe(cli, cli_json_text(team, "parent")));
    cli_field(cli, "quota", cli_safe(cli, cli_json_text(team, "quota")));
    cli_field(cli, "guarantee", amounts_text(cli, team, "guarantee"));
    cli_field(cli, "limit", amounts_text(cli, team, "limit"));
    cli_field(cli, "weight", weight_text(cli, team));
    cli_field(cli, "priority", cli_json_text(team, "priority"));
    print_idle(cli, team);
    return 0;
}

/* ---- set -------------------------------------------------------------------------------- */

static struct json_object *child(struct json_object *team, const char *name)
{
    struct json_object *object = cli_json_get(team, name);

    if (json_object_is_type(object, json_type_object))
        return object;
    object = json_object_new_object();
    json_object_object_add(team, name, object);
    return object;
}

/* "gpu=8,cpu=64,gpu:H100=4" into TEAM's guarantee or limit; "none" takes an amount away. */
static int set_amounts(struct json_object *team, const char *which, const char *text,
                       struct err *err)
{
    struct json_object *amounts = child(team, which);

    while (*text) {
        size_t n = strcspn(text, ","), key = strcspn(text, "=");
        struct json_object *into = amounts;
        char name[128], value[64];
        const char *field = name;

        if (key >= n || key >= sizeof(name) || n - key > sizeof(value))
            return err_set(err, -EINVAL, ERR_INVALID, NULL,
                           "write RESOURCE=AMOUNT, for example gpu=8,memory=512GiB",
                           "option '--%s' does not understand '%.80s'", which, text);
        snprintf(name, sizeof(name), "%.*s", (int)key, text);
        snprintf(value, sizeof(value), "%.*s", (int)(n - key - 1), text + key + 1);
        if (text_starts_with(name, "gpu:")) {
            into = child(amounts, "gpu_types");
            field = name + strlen("gpu:");
        }
        if (strcmp(value, "none") == 0)
            json_object_object_del(into, field);
        else
            json_object_object_add(into, field, json_object_new_string(value));
        text += n;
        if (*text == ',')
            text++;
    }
    return 0;
}

/* "notebook=1h:suspend" or "job=4h:notify:gpu" into TEAM's rules; "none" takes one away. */
static int set_idle(struct json_object *team, const char *text, struct err *err)
{
    struct json_object *rules = child(team, "idle"), *rule;
    char kind[16], after[32], action[16], signal[8];
    int n = sscanf(text, "%15[^=]=%31[^:]:%15[^:]:%7s", kind, after, action, signal);

    if (n == 2 && strcmp(after, "none") == 0) {
        json_object_object_add(rules, kind, NULL);
        return 0;
    }
    if (n < 3)
        return err_set(err, -EINVAL, ERR_INVALID, NULL,
                       "write KIND=TIME:ACTION, for example notebook=1h:suspend, or KIND=none",
                       "option '--idle' does not understand '%.60s'", text);
    rule = json_object_new_object();
    json_object_object_add(rule, "after", json_object_new_string(after));
    json_object_object_add(rule, "action", json_object_new_string(action));
    if (n == 4)
        json_object_object_add(rule, "signal", json_object_new_string(signal));
    json_object_object_add(rules, kind, rule);
    return 0;
}

static int apply_options(struct json_object *team, const struct cli_args *args, struct err *err)
{
    static const char *const numbers[] = {"weight", "priority"};
    static const char *const amounts[] = {"guarantee", "limit"};
    const char *parent = cli_option_value(args, "parent"), *v;
    int r = 0;

    if (parent)
        json_object_object_add(team, "parent", *parent ? json_object_new_string(parent) : NULL);
    v = cli_option_value(args, "quota");
    if (v)
        json_object_object_add(team, "quota", json_object_new_string(v));
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        char *end;

        v = cli_option_value(args, numbers[i]);
        if (v == NULL)
            continue;
        errno = 0;
        json_object_object_add(team, numbers[i], json_object_new_int64(strtoll(v, &end, 10)));
        if (errno || end == v || *end)
            return err_set(err, -EINVAL, ERR_INVALID, NULL, "give a whole number",
                           "option '--%s' does not understand '%.60s'", numbers[i], v);
    }
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(amounts); i++) {
        size_t it = 0;

        while (r == 0 && (v = cli_option_each(args, amounts[i], &it)))
            r = set_amounts(team, amounts[i], v, err);
    }
    for (size_t it = 0; r == 0 && (v = cli_option_each(args, "idle", &it));)
        r = set_idle(team, v, err);
    return r;
}

static int check_team(struct cli *cli, struct json_object *team, struct err *err)
{
    struct model_team decoded;

    model_team_init(&decoded);
    return model_team_decode(team, &cli->arena, &decoded, err);
}

static int run_set(struct cli *cli, const struct cli_args *args)
{
    const char *name = args->operands.items[0];
    _cleanup_json_ struct json_object *found = NULL, *team = NULL, *reply = NULL;
    struct cli_call get = {.method = "GET", .path = cli_path(cli, "/v1/teams/%s", name)};
    struct cli_call put = {.method = "PUT", .path = get.path};
    struct err err = ERR_INIT;
    const char *note;
    int r = cli_call(cli, &get, &found, &err);

    if (r < 0 && r != -ENOENT)
        return cli_fail(cli, &err);
    team = cli_team_settings(found, name);
    r = apply_options(team, args, &err);
    if (r == 0)
        r = check_team(cli, team, &err);
    if (r < 0)
        return cli_fail_usage(cli, &err);
    put.body = json_object_to_json_string_ext(team, JSON_C_TO_STRING_PLAIN);
    put.if_match = found && get.ret_etag[0] ? get.ret_etag : NULL;
    if (cli_call(cli, &put, &reply, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json && reply)
        cli_print_json(cli, reply);
    else if (!cli->json)
        fprintf(cli->out, "team %s %s\n", cli_safe(cli, name), found ? "changed" : "created");
    cli_print_warnings(cli, reply);
    note = cli_option_given(args, "guarantee") ? cli_guarantee_note(cli, NULL) : NULL;
    if (note)
        cli_say(cli, arena_printf(&cli->arena, "warning: %s", note));
    return 0;
}

static int run_delete(struct cli *cli, const struct cli_args *args)
{
    struct cli_call call = {.method = "DELETE"};
    struct err err = ERR_INIT;
    int code = 0;

    for (size_t i = 0; i < args->operands.len; i++) {
        const char *name = args->operands.items[i];
        int r;

        call.path = cli_path(cli, "/v1/teams/%s", name);
        r = cli_call(cli, &call, NULL, &err);
        if (r == -ENOENT)
            r = cli_no_team(cli, name, NULL, &err);
        if (r < 0)
            code = cli_fail(cli, &err);
        else if (!cli->json)
            fprintf(cli->out, "team %s deleted\n", cli_safe(cli, name));
    }
    return code;
}

static const struct cli_option set_options[] = {
    {.name = "parent",
     .arg = "TEAM",
     .help = "the team above it ('' = top)",
     .complete = CLI_COMPLETE_TEAM},
    {.name = "guarantee",
     .arg = "R=N,...",
     .help = "assured: gpu=8,gpu:H100=4,cpu=64,memory=512GiB; N may be none"},
    {.name = "limit",
     .arg = "R=N,...",
     .help = "never more than this: gpu=16,gpu:H100=8,volumes=50; N may be none"},
    {.name = "quota",
     .arg = "MODEL",
     .help = "fair (may use what others leave idle) or hard (the limit is the guarantee)",
     .complete = CLI_COMPLETE_WORDS,
     .words = "fair hard"},
    {.name = "idle",
     .arg = "K=TIME:DO",
     .help = "what becomes of idle work of a kind: notebook=1h:suspend, job=4h:notify:gpu "
             "(goes by the GPU alone), service=none"},
    {.name = "weight", .arg = "N", .help = "share of what is left over (default 1; 0 = nothing)"},
    {.name = "priority",
     .arg = "N",
     .help = "among siblings; higher gets surplus first (default "
             "100)"},
    {0},
};

static const struct cli_command list = {
    .name = "team list",
    .summary = "list teams with guarantees, limits and weights",
    .run = run_list,
};
static const struct cli_command show = {
    .name = "team show",
    .summary = "show one team",
    .usage = "NAME",
    .min_operands = 1,
    .max_operands = 1,
    .operand = CLI_COMPLETE_TEAM,
    .run = run_show,
};
static const struct cli_command set = {
    .name = "team set",
    .summary = "create a team, or change what is named",
    .usage = "[OPTIONS] NAME",
    .options = set_options,
    .min_operands = 1,
    .max_operands = 1,
    .operand = CLI_COMPLETE_TEAM,
    .run = run_set,
};
static const struct cli_command delete = {
    .name = "team delete",
    .summary = "delete teams that have no workloads and no teams below",
    .usage = "NAME...",
    .min_operands = 1,
    .max_operands = CLI_MANY,
    .operand = CLI_COMPLETE_TEAM,
    .run = run_delete,
};
static const struct cli_command *const subcommands[] = {&list, &show, &set, &delete, NULL};

const struct cli_command cli_team = {
    .name = "team",
    .group = CLI_MANAGE,
    .summary = "teams: who is guaranteed what",
    .usage = "[list|show|set|delete]",
    .description =
        "Teams form a tree; workloads live in its leaves. A guarantee is assured to the team, a "
        "limit is never exceeded, and what others leave idle is shared by weight. "
        "'allot quota' shows how much of it is in use.",
    .examples = "allot team set research --guarantee gpu=4 --limit gpu=8\n"
                "allot team set nlp --parent research --weight 2\n"
                "# a hard quota: nothing above the guarantee\n"
                "allot team set product --guarantee gpu=4 --quota hard",
    .subcommands = subcommands,
};
