/* SPDX-License-Identifier: Apache-2.0 */
/* allot show: everything about one workload. */
#include <json-c/json.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strbuf.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/render.h"
#include "cli/session.h"
#include "cli/table.h"

#define TASKS_SHOWN 20

/* A command line as it could be typed. */
static const char *command_text(struct cli *cli, struct json_object *command)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

    for (size_t i = 0; i < cli_json_len(command, ""); i++) {
        const char *word = json_object_get_string(cli_json_at(command, "", i));

        if (word == NULL)
            continue;
        if (i)
            strbuf_addc(&b, ' ');
        if (*word && word[strcspn(word, " \t\n\"'\\$&|;<>()*?`#~{}[]!")] == '\0') {
            strbuf_adds(&b, word);
            continue;
        }
        strbuf_addc(&b, '\'');
        for (const char *c = word; *c; c++) {
            if (*c == '\'')
                strbuf_adds(&b, "'\\''");
            else
                strbuf_addc(&b, *c);
        }
        strbuf_addc(&b, '\'');
    }
    return cli_safe(cli, strbuf_str(&b));
}

static const char *policy_text(struct cli *cli, struct json_object *w)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
    int64_t priority = cli_json_int(w, "priority", 0);

    strbuf_adds(&b, cli_safe(cli, cli_json_text(w, "class")));
    if (priority != 0)
        strbuf_addf(&b, ", priority %lld", (long long)priority);
    if (cli_json_get(w, "preemptible"))
        strbuf_adds(&b, cli_json_bool(w, "preemptible") ? ", preemptible" : ", not preemptible");
    if (cli_json_get(w, "burst") && !cli_json_bool(w, "burst"))
        strbuf_adds(&b, ", no burst");
    return arena_strdup(&cli->arena, strbuf_str(&b));
}

static void print_times(struct cli *cli, struct json_object *w)
{
    static const struct {
        const char *label, *path;
    } times[] = {{"submitted", "submitted_at"}, {"started", "started_at"}, {"ended", "ended_at"}};

    for (size_t i = 0; i < ARRAY_LEN(times); i++)
        if (cli_json_time(w, times[i].path))
            cli_field(cli, times[i].label,
                      arena_printf(&cli->arena, "%s (%s)", cli_when_text(cli, w, times[i].path),
                                   cli_safe(cli, cli_json_text(w, times[i].path))));
}

static void print_head(struct cli *cli, struct json_object *w)
{
    const char *state = cli_workload_state(cli, w);
    const char *note = cli_workload_note(cli, w);
    const char *handling = cli_json_text(w, "preemption.handling");

    fprintf(cli->out, "%s (%s)  %s%s%s\n",
            cli_colored(cli, cli_safe(cli, cli_json_text(w, "name")), CLI_BOLD),
            cli_safe(cli, cli_json_text(w, "id")), cli_colored(cli, state, cli_state_color(state)),
            *note ? "  " : "", note);
    cli_field(cli, "team", cli_safe(cli, cli_json_text(w, "team")));
    cli_field(cli, "owner", cli_safe(cli, cli_json_text(w, "owner")));
    cli_field(cli, "kind", cli_safe(cli, cli_json_text(w, "kind")));
    cli_field(cli, "class", policy_text(cli, w));
    cli_field(cli, "asks for", cli_request_text(cli, w));
    if (cli_json_int(w, "min_tasks", 0) != cli_json_int(w, "tasks", 0))
        cli_field(
            cli, "starts with",
            arena_printf(&cli->arena, "%lld tasks", (long long)cli_json_int(w, "min_tasks", 0)));
    if (cli_json_milli(w, "cpu", 0) > 0)
        cli_field(cli, "cpu", cli_safe(cli, cli_json_text(w, "cpu")));
    cli_field(cli, "memory", cli_memory_text(cli, w, "memory"));
    print_times(cli, w);
    cli_field(cli, "max run time", cli_safe(cli, cli_json_text(w, "max_run_time")));
    cli_field(cli, "expected", cli_safe(cli, cli_json_text(w, "expected_run_time")));
    if (handling)
        cli_field(cli, "when evicted",
                  arena_printf(&cli->arena, "%s, grace %s", cli_safe(cli, handling),
                               cli_safe(cli, cli_json_text(w, "preemption.grace"))));
    if (cli_json_int(w, "restarts", 0) > 0)
        cli_field(cli, "restarts", cli_json_text(w, "restarts"));
    cli_field_phrase(cli, "message", cli_safe(cli, cli_json_text(w, "message")));
    cli_field(cli, "image", cli_safe(cli, cli_json_text(w, "image")));
    cli_field(cli, "workdir", cli_safe(cli, cli_json_text(w, "workdir")));
    cli_field(cli, "checkpoints", cli_safe(cli, cli_json_text(w, "checkpoint_dir")));
    cli_field(cli, "command", command_text(cli, cli_json_get(w, "command")));
}

static const char *task_note(struct cli *cli, struct json_object *t)
{
    const char *message = cli_safe(cli, cli_json_text(t, "message"));

    if (cli_json_get(t, "exit_code") == NULL || strstr(message, "exit code"))
        return message;
    return arena_printf(&cli->arena, "exit %lld%s%s", (long long)cli_json_int(t, "exit_code", 0),
                        *message ? ": " : "", message);
}

static void print_tasks(struct cli *cli, struct json_object *w, bool all)
{
    static const struct cli_column columns[] = {
        {"TASK", CLI_COLUMN_RIGHT},    {"STATE", 0},
        {"NODE", CLI_COLUMN_CUT},      {"DEVICES", CLI_COLUMN_CUT},
        {"ATTEMPT", CLI_COLUMN_RIGHT}, {"STARTED", 0},
        {"NOTE", CLI_COLUMN_CUT},
    };
    size_t count = cli_json_len(w, CLI_TASKS);
    struct cli_table *table;

    if (count == 0)
        return;
    cli_heading(cli, "Tasks");
    table = cli_table_new(cli, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < count && (all || i < TASKS_SHOWN); i++) {
        struct json_object *t = cli_json_at(w, CLI_TASKS, i);
        const char *state = cli_safe(cli, cli_json_text(t, "state"));

        cli_table_row(table, CLI_TABLE_TOP);
        cli_table_cell(table, cli_json_text(t, "index"), CLI_PLAIN);
        cli_table_cell(table, state, cli_state_color(state));
        cli_table_cell(table, cli_json_text(t, "node"), CLI_PLAIN);
        cli_table_cell(table, cli_devices_text(cli, t), CLI_PLAIN);
        cli_table_cell(table, cli_json_text(t, "attempt"), CLI_PLAIN);
        cli_table_cell(table, cli_when_text(cli, t, "started_at"), CLI_PLAIN);
        cli_table_cell(table, task_note(cli, t), CLI_PLAIN);
    }
    cli_table_end(table);
    if (!all && count > TASKS_SHOWN)
        fprintf(cli->out, "(%zu more; --all shows them)\n", count - TASKS_SHOWN);
}

static int run(struct cli *cli, const struct cli_args *args)
{
    _cleanup_json_ struct json_object *w = NULL;
    struct err err = ERR_INIT;
    uint64_t id;
    int r = cli_find_workload(cli, args->operands.items[0], &id, &err);

    if (r == 0)
        r = cli_get(cli, cli_path(cli, "/v1/workloads/%llu", (unsigned long long)id), &w, &err);
    if (r < 0)
        return cli_fail(cli, &err);
    if (cli->json) {
        cli_print_json(cli, w);
        return 0;
    }
    print_head(cli, w);
    print_tasks(cli, w, cli_option_given(args, "all"));
    return 0;
}

static const struct cli_option options[] = {
    {.name = "all", .letter = 'a', .help = "all tasks, not only the first 20"},
    {0},
};

const struct cli_command cli_show = {
    .name = "show",
    .group = CLI_SEE,
    .summary = "show everything about one workload",
    .usage = "[OPTIONS] ID",
    .description = "Shows what a workload asked for, where its tasks run, and how they ended. "
                   "ID is a number or a name; a name means the newest workload that has not "
                   "ended.",
    .examples = "allot show 81\nallot show digits\nallot show 81 -o json | jq .exit_code",
    .options = options,
    .min_operands = 1,
    .max_operands = 1,
    .operand = CLI_COMPLETE_WORKLOAD,
    .run = run,
};
