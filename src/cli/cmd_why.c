/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allot why: the explanation of a wait, or what happened.
 *
 * The sentence and the remedy come from the server (model/explanation.h), so that every surface
 * says the same; here they are laid out with the numbers behind them.
 */
#include <json-c/json.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/render.h"
#include "cli/session.h"
#include "cli/table.h"
#include "model/amount.h"

#define EVENTS_SHOWN 8

/* The sentence as people begin one. */
static const char *sentence(struct cli *cli, const char *text)
{
    char *s = arena_printf(&cli->arena, "%s", cli_safe(cli, text));

    if (s[0] >= 'a' && s[0] <= 'z')
        s[0] = (char)(s[0] - 'a' + 'A');
    return s[0] && s[strlen(s) - 1] != '.' ? arena_printf(&cli->arena, "%s.", s) : s;
}

static const char *basis_text(const char *basis)
{
    static const struct {
        const char *basis, *text;
    } texts[] = {
        {"now", "in the next turn"},
        {"victims", "when those that give way have stopped"},
        {"limits", "from the run-time limits of what runs"},
        {"expected", "from expected run times; may move"},
        {"behind", "at the earliest: others come first"},
        {"maintenance", "when the maintenance of a node is over"},
        {"reserved", "at the earliest: not before that one starts"},
        {"protected", "when the minimum run time of what gives way is over"},
        {"backoff", "when the pause after a failed launch ends"},
    };

    for (size_t i = 0; basis && i < ARRAY_LEN(texts); i++)
        if (strcmp(texts[i].basis, basis) == 0)
            return texts[i].text;
    return NULL;
}

/* Is that the reason of its wait? */
static bool waits_for(struct json_object *x, const char *reason)
{
    const char *r = cli_json_text(x, "reason");

    return r && strcmp(r, reason) == 0;
}

static bool waits_for_any(struct json_object *x, const char *const *reasons, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (waits_for(x, reasons[i]))
            return true;
    return false;
}

/* By the server's clock: start_in_ms is relative. */
static const char *start_text(struct cli *cli, struct json_object *x)
{
    static const char *const never[] = {"no_such_device", "too_large", "above_limit",
                                        "above_guarantee"};
    const char *basis = basis_text(cli_json_text(x, "start_basis"));
    int64_t in_s = (cli_json_int(x, "start_in_ms", 0) + 999) / 1000;
    bool latest = waits_for(x, "held") || waits_for(x, "stopping");
    const char *when = in_s > 0 ? arena_printf(&cli->arena, "in about %s%s",
                                               cli_duration(in_s * 1000, &cli->arena),
                                               latest ? " at the latest" : "")
                                : "now";

    if (waits_for(x, "nodes_down"))
        return "when a node comes back ('allot node undrain')";
    if (waits_for_any(x, never, ARRAY_LEN(never)))
        return "not before that is changed";
    if (cli_json_time(x, "start_at") == 0 && basis == NULL)
        return "unknown: what it waits for declares no time limit (--max-run-time)";
    if (cli_json_time(x, "start_at") == 0)
        return basis;
    return arena_printf(&cli->arena, "%s%s%s", when, basis ? ", " : "", basis ? basis : "");
}

/* "research uses 4, guarantee 4, limit 8, fair share 4"; "vis uses 2 of type H100, limit 2" of a
 * QUOTA that is of one type. */
static const char *team_text(struct cli *cli, struct json_object *quota)
{
    static const struct {
        const char *path, *label;
    } parts[] = {{"guarantee", "guarantee"}, {"limit", "limit"}, {"share", "fair share"}};
    const char *type = cli_json_text(quota, "gpu_type");
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

    strbuf_addf(&b, "%s uses %s", cli_safe(cli, cli_json_text(quota, "team")),
                cli_safe(cli, cli_json_text(quota, "used")));
    if (type)
        strbuf_addf(&b, " of type %s", cli_safe(cli, type));
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (cli_json_text(quota, parts[i].path))
            strbuf_addf(&b, ", %s %s", parts[i].label,
                        cli_safe(cli, cli_json_text(quota, parts[i].path)));
    return arena_strdup(&cli->arena, strbuf_str(&b));
}

static const char *holders_heading(struct json_object *x)
{
    if (waits_for(x, "team_limit"))
        return "Who uses that limit";
    if (waits_for(x, "team_guarantee"))
        return "Who uses that guarantee";
    if (waits_for(x, "held") || waits_for(x, "stopping"))
        return "Who has to stop";
    if (waits_for(x, "none"))
        return "Who would give way";
    return "Who holds what it needs";
}

/* What may not be seen has no name: how many they are, of which team. */
static const char *holder_name(struct cli *cli, struct json_object *h)
{
    int64_t count = cli_json_int(h, "workloads", 0);

    if (cli_json_text(h, "name"))
        return cli_json_text(h, "name");
    return arena_printf(&cli->arena, "(%lld workload%s)", (long long)count, count == 1 ? "" : "s");
}

static void print_holders(struct cli *cli, struct json_object *x)
{
    const char *resource = cli_json_text(x, "resource");
    bool cpu = resource && strcmp(resource, "cpu") == 0;
    bool memory = resource && strcmp(resource, "memory") == 0;
    const struct cli_column columns[] = {
        {"ID", CLI_COLUMN_RIGHT},
        {"NAME", CLI_COLUMN_CUT},
        {"TEAM", CLI_COLUMN_CUT},
        {cpu      ? "CORES"
         : memory ? "MEMORY"
                  : "GPU",
         CLI_COLUMN_RIGHT},
    };
    size_t count = cli_json_len(x, "holders");
    struct cli_table *t;

    if (count == 0)
        return;
    cli_heading(cli, holders_heading(x));
    t = cli_table_new(cli, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < count; i++) {
        struct json_object *h = cli_json_at(x, "holders", i);

        cli_table_row(t, CLI_TABLE_TOP);
        cli_table_cell(t, cli_json_text(h, "id"), CLI_CYAN);
        cli_table_cell(t, holder_name(cli, h), CLI_PLAIN);
        cli_table_cell(t, cli_json_text(h, "team"), CLI_PLAIN);
        cli_table_cell(t, cli_json_text(h, cpu ? "cpu" : memory ? "memory" : "gpu"), CLI_PLAIN);
    }
    cli_table_end(t);
}

/* The amount at PATH of what it waits for: "6 GPUs", "1 core", "10GiB". */
static const char *amount_text(struct cli *cli, struct json_object *x, const char *path)
{
    const char *resource = cli_json_text(x, "resource");
    enum model_resource r = MODEL_MEMORY_BYTES;
    int64_t milli = cli_json_milli(x, path, -1);

    if (resource && strcmp(resource, "gpu") == 0)
        r = MODEL_GPU_MILLI;
    else if (resource && strcmp(resource, "cpu") == 0)
        r = MODEL_CPU_MILLI;
    if (r == MODEL_MEMORY_BYTES || milli < 0)
        return cli_safe(cli, cli_json_text(x, path));
    return model_amount_describe(r, milli, &cli->arena);
}

/* "6 GPUs (6 x 1 GPU)"; the second only where it says more. */
static const char *asked_text(struct cli *cli, struct json_object *x)
{
    const char *asked = amount_text(cli, x, "asked");
    const char *request = cli_safe(cli, cli_json_text(x, "request"));
    int64_t tasks = cli_json_int(x, "tasks", 0);

    if (*request == '\0' || (tasks <= 1 && text_starts_with(request, asked)))
        return asked;
    if (tasks > 1)
        return arena_printf(&cli->arena, "%s (%lld x %s)", asked, (long long)tasks, request);
    return arena_printf(&cli->arena, "%s (%s)", asked, request);
}

/* Where room on nodes is what matters; under a limit, the limit is. */
static void print_room(struct cli *cli, struct json_object *x)
{
    static const char *const room[] = {"no_capacity",   "fragmented", "topology", "cpu",
                                       "memory",        "protected",  "budget",   "promised",
                                       "overcommitted", "behind",     "reserved"};
    const char *free = amount_text(cli, x, "free");

    if (cli_json_text(x, "free") == NULL || !waits_for_any(x, room, ARRAY_LEN(room)))
        return;
    cli_field(cli, "free now", free);
    if (cli_json_int(x, "gang_tasks", 0) > 1)
        cli_field(cli, "fit now",
                  arena_printf(&cli->arena, "%lld of %lld tasks",
                               (long long)cli_json_int(x, "fitting_tasks", 0),
                               (long long)cli_json_int(x, "gang_tasks", 0)));
}

static bool same_text(struct json_object *a, struct json_object *b, const char *path)
{
    const char *one = cli_json_text(a, path), *other = cli_json_text(b, path);

    return one && other && strcmp(one, other) == 0;
}

/* What its team has of all GPUs, or of the type that binds, and of each other type that it accepts
 * and something is stated of, by its team or one above. */
static void print_teams(struct cli *cli, struct json_object *x)
{
    struct json_object *quota = cli_json_get(x, "quota");

    if (cli_json_text(quota, "used"))
        cli_field_phrase(cli, "team", team_text(cli, quota));
    for (size_t i = 0; i < cli_json_len(x, "quota_types"); i++) {
        struct json_object *of = cli_json_at(x, "quota_types", i);

        if (!same_text(quota, of, "team") || !same_text(quota, of, "gpu_type"))
            cli_field_phrase(cli, "by type", team_text(cli, of));
    }
}

static void print_numbers(struct cli *cli, struct json_object *x)
{
    if (cli_json_text(x, "asked"))
        cli_field(cli, "asks for", asked_text(cli, x));
    print_room(cli, x);
    print_teams(cli, x);
    if (cli_json_int(x, "position", 0) > 0)
        cli_field(cli, "position",
                  arena_printf(&cli->arena, "%lld of %lld that wait in its team",
                               (long long)cli_json_int(x, "position", 0),
                               (long long)cli_json_int(x, "pending", 0)));
    cli_field_phrase(cli, "start", start_text(cli, x));
}

static void print_title(struct cli *cli, struct json_object *o)
{
    const char *state = cli_safe(cli, cli_json_text(o, "state"));

    fprintf(cli->out, "%s (%s) of team %s: %s\n",
            cli_colored(cli, cli_safe(cli, cli_json_text(o, "name")), CLI_BOLD),
            cli_safe(cli, cli_json_text(o, "id")), cli_safe(cli, cli_json_text(o, "team")),
            cli_colored(cli, state, cli_state_color(state)));
}

/* The sentences and the numbers behind them. */
static void print_reason(struct cli *cli, struct json_object *x)
{
    const char *remedy = cli_json_text(x, "remedy");

    fputc('\n', cli->out);
    cli_wrap(cli->out, sentence(cli, cli_json_text(x, "sentence")), 2, cli->style.width - 2);
    if (remedy)
        cli_wrap(cli->out, sentence(cli, remedy), 2, cli->style.width - 2);
    fputc('\n', cli->out);
    print_numbers(cli, x);
}

static void print_waiting(struct cli *cli, struct json_object *x)
{
    const char *evicted = cli_json_text(x, "last_eviction");

    print_title(cli, x);
    print_reason(cli, x);
    if (evicted)
        cli_field_phrase(cli, "last evicted",
                         arena_printf(&cli->arena, "%s: %s",
                                      cli_when_text(cli, x, "last_eviction_at"),
                                      cli_safe(cli, evicted)));
    print_holders(cli, x);
}

void cli_print_dry_run(struct cli *cli, struct json_object *reply)
{
    if (cli->json) {
        cli_print_json(cli, reply);
        return;
    }
    for (size_t i = 0; i < cli_json_len(reply, "workloads"); i++) {
        struct json_object *x = cli_json_at(reply, "workloads", i);
        const char *name = cli_json_text(x, "name"), *basis = cli_json_text(x, "start_basis");
        bool now = waits_for(x, "none") && basis && strcmp(basis, "now") == 0;

        fprintf(cli->out, "%s%s of team %s: would %s (dry run)\n", i ? "\n" : "",
                cli_colored(cli, name ? cli_safe(cli, name) : "workload", CLI_BOLD),
                cli_safe(cli, cli_json_text(x, "team")),
                now                    ? "start now"
                : waits_for(x, "none") ? "start by eviction"
                                       : "wait");
        if (now)
            continue;
        print_reason(cli, x);
        print_holders(cli, x);
    }
}

/* The last of its events, oldest first. */
static void print_history(struct cli *cli, uint64_t id)
{
    static const struct cli_column columns[] = {{"WHEN", CLI_COLUMN_RIGHT},
                                                {"WHAT HAPPENED", CLI_COLUMN_CUT}};
    _cleanup_json_ struct json_object *reply = NULL;
    struct err err = ERR_INIT;
    struct cli_table *t;
    size_t count;

    if (cli_get(cli, cli_path(cli, "/v1/workloads/%llu/events", (unsigned long long)id), &reply,
                &err) < 0)
        return;
    count = cli_json_len(reply, "events");
    if (count == 0)
        return;
    fputc('\n', cli->out);
    t = cli_table_new(cli, columns, ARRAY_LEN(columns));
    for (size_t i = count > EVENTS_SHOWN ? count - EVENTS_SHOWN : 0; i < count; i++) {
        struct json_object *e = cli_json_at(reply, "events", i);
        const char *message = cli_json_text(e, "message");

        cli_table_row(t, CLI_TABLE_TOP);
        cli_table_cell(t, cli_when_text(cli, e, "time"), CLI_PLAIN);
        cli_table_cell(t, message ? message : cli_json_text(e, "type"), CLI_PLAIN);
    }
    cli_table_end(t);
}

/* X: its explanation; an elastic workload may run and wait at once. */
static void print_past(struct cli *cli, struct json_object *w, struct json_object *x, uint64_t id)
{
    const char *state = cli_json_text(w, "state"), *message = cli_json_text(w, "message");
    int64_t code = cli_json_int(w, "exit_code", 0), start = cli_json_time(w, "started_at");
    int64_t end = cli_json_time(w, "ended_at");

    print_title(cli, w);
    fputc('\n', cli->out);
    if (waits_for(x, "stopping") && cli_json_int(x, "waits_for.id", 0) == (int64_t)id)
        fprintf(cli->out, "  It gives way: it is stopping, and will wait to start again.\n");
    else if (state && strcmp(state, "running") == 0)
        fprintf(cli->out, "  It runs: %lld of %lld tasks, started %s.\n",
                (long long)cli_json_int(w, "running_tasks", 0),
                (long long)cli_json_int(w, "tasks", 1), cli_when_text(cli, w, "started_at"));
    else if (state && strcmp(state, "suspended") == 0)
        fprintf(cli->out,
                "  It lives, and has given its GPUs back; 'allot resume' asks for them.\n");
    else if (state && strcmp(state, "stopping") == 0)
        fprintf(cli->out, "  It is being stopped and has its grace to end.\n");
    else if (start == 0)
        fprintf(cli->out, "  It never ran; it ended %s.\n", cli_when_text(cli, w, "ended_at"));
    else
        fprintf(cli->out, "  It ended %s with exit code %lld after %s.\n",
                cli_when_text(cli, w, "ended_at"), (long long)code,
                cli_duration(end - start, &cli->arena));
    if (message)
        cli_wrap(cli->out, sentence(cli, message), 2, cli->style.width - 2);
    if (cli_json_text(x, "reason") && !waits_for(x, "stopping"))
        cli_wrap(cli->out,
                 arena_printf(&cli->arena, "Its other tasks wait: %s",
                              cli_safe(cli, cli_json_text(x, "sentence"))),
                 2, cli->style.width - 2);
    print_history(cli, id);
}

static int run(struct cli *cli, const struct cli_args *args)
{
    _cleanup_json_ struct json_object *x = NULL, *w = NULL;
    struct err err = ERR_INIT;
    const char *path, *state;
    uint64_t id;

    if (cli_find_workload(cli, args->operands.items[0], &id, &err) < 0)
        return cli_fail(cli, &err);
    path = cli_path(cli, "/v1/workloads/%llu", (unsigned long long)id);
    if (cli_get(cli, arena_printf(&cli->arena, "%s/explain", path), &x, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json) {
        cli_print_json(cli, x);
        return 0;
    }
    state = cli_json_text(x, "state");
    if (cli_json_text(x, "reason") && state && strcmp(state, "pending") == 0) {
        print_waiting(cli, x);
        return 0;
    }
    if (cli_get(cli, path, &w, &err) < 0)
        return cli_fail(cli, &err);
    print_past(cli, w, x, id);
    return 0;
}

const struct cli_command cli_why = {
    .name = "why",
    .group = CLI_SEE,
    .summary = "why does it wait, and when will it start? What happened to it?",
    .usage = "ID",
    .description =
        "For a workload that waits: the one dominant reason, the numbers behind it, its place in "
        "the queue, the estimated start and what the estimate rests on, what would make it start, "
        "and who holds what it needs. For one that runs or has ended: what happened to it.",
    .examples = "allot why 81\nallot why digits\nallot why 81 -o json | jq -r .reason",
    .min_operands = 1,
    .max_operands = 1,
    .operand = CLI_COMPLETE_WORKLOAD,
    .run = run,
};
