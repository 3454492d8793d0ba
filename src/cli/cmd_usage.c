/* SPDX-License-Identifier: Apache-2.0 */
/* allot usage: what every team was given, used and left idle. */
#include <errno.h>
#include <json-c/json.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/qty.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/render.h"
#include "cli/session.h"
#include "cli/table.h"
#include "cli/teams.h"

#define MS_PER_HOUR (3600 * MS_PER_S)
#define BAR_WIDTH 12

/* A total below this is shown in GPU-seconds, above it in GPU-hours. */
#define HOURS_FROM_MS (10 * MS_PER_HOUR)

static int read_window(struct cli *cli, const struct cli_args *args, int64_t *ret_from,
                       int64_t *ret_to, struct err *err)
{
    int64_t ms = 24 * MS_PER_HOUR;
    int r = cli_option_duration(args, "since", &ms, err);

    *ret_to = cli_now_ms(cli);
    if (r == 0)
        r = cli_option_time(args, "to", ret_to, err);
    *ret_from = *ret_to - (r == 0 ? ms : 0);
    if (r == 0)
        r = cli_option_time(args, "from", ret_from, err);
    if (r == 0 && *ret_from >= *ret_to)
        return err_set(err, -EINVAL, ERR_OUT_OF_RANGE, NULL, "give a '--from' before '--to'",
                       "the window is empty");
    return r;
}

/* GPU-milliseconds (of whole GPUs) as GPU-hours or GPU-seconds with one digit. */
static const char *amount_text(struct cli *cli, int64_t gpu_ms, bool hours)
{
    int64_t tenth = hours ? MS_PER_HOUR / 10 : MS_PER_S / 10;
    int64_t tenths = gpu_ms / tenth + (gpu_ms % tenth * 2 >= tenth);

    return arena_printf(&cli->arena, "%lld.%lld", (long long)(tenths / 10),
                        (long long)(tenths % 10));
}

/* GPU-milliseconds of a team, or of all. */
struct amounts {
    int64_t allocated, busy, unknown;
};

static struct amounts amounts_of(struct json_object *usage)
{
    return (struct amounts){cli_json_int(usage, "allocated_gpu_ms", 0),
                            cli_json_int(usage, "busy_gpu_ms", 0),
                            cli_json_int(usage, "unknown_gpu_ms", 0)};
}

static struct amounts sum(struct json_object *reply)
{
    struct amounts sum = {0};

    for (size_t i = 0; i < cli_json_len(reply, "teams"); i++) {
        struct amounts a = amounts_of(cli_json_at(reply, "teams", i));

        sum.allocated = qty_add_sat(sum.allocated, a.allocated);
        sum.busy = qty_add_sat(sum.busy, a.busy);
        sum.unknown = qty_add_sat(sum.unknown, a.unknown);
    }
    return sum;
}

struct look {
    bool hours;
    bool unknown; /* is there any to show? */
};

/* Busy and idle are parts of what is known. */
static void add_row(struct cli *cli, struct cli_table *t, const char *name, struct amounts a,
                    struct look look)
{
    bool hours = look.hours;
    int64_t known = a.allocated > a.unknown ? a.allocated - a.unknown : 0;
    int64_t percent = known > 0 ? (qty_mul_div(a.busy, 200, known) + 1) / 2 : 0;

    cli_table_row(t, CLI_TABLE_TOP);
    cli_table_cell(t, name, CLI_PLAIN);
    cli_table_cell(t, amount_text(cli, a.allocated, hours), CLI_BOLD);
    cli_table_cell(t, amount_text(cli, a.busy, hours), CLI_PLAIN);
    cli_table_cell(t, amount_text(cli, known > a.busy ? known - a.busy : 0, hours), CLI_PLAIN);
    /* nothing stands beside 0% */
    cli_table_cell(t, cli_bar(&cli->style, percent ? a.busy : 0, known, BAR_WIDTH, &cli->arena),
                   CLI_GREEN);
    cli_table_cell(t, arena_printf(&cli->arena, "%lld%%", (long long)percent), CLI_PLAIN);
    if (look.unknown)
        cli_table_cell(t, amount_text(cli, a.unknown, hours), CLI_PLAIN);
}

static void print_usage(struct cli *cli, struct json_object *reply)
{
    const struct amounts all = sum(reply);
    struct look look = {.hours = all.allocated >= HOURS_FROM_MS};
    const struct cli_column columns[] = {
        {"TEAM", CLI_COLUMN_CUT},
        {look.hours ? "GPU-HOURS" : "GPU-SECONDS", CLI_COLUMN_RIGHT},
        {"BUSY", CLI_COLUMN_RIGHT},
        {"IDLE", CLI_COLUMN_RIGHT},
        {"", 0},
        {"BUSY %", CLI_COLUMN_RIGHT},
        {"NOT KNOWN", CLI_COLUMN_RIGHT},
    };
    size_t count = cli_json_len(reply, "teams");
    struct cli_table *t;

    look.unknown = strcmp(amount_text(cli, all.unknown, look.hours), "0.0") != 0;
    t = cli_table_new(cli, columns, ARRAY_LEN(columns) - (look.unknown ? 0 : 1));

    for (size_t i = 0; i < count; i++) {
        struct json_object *u = cli_json_at(reply, "teams", i);

        add_row(cli, t, cli_json_text(u, "team"), amounts_of(u), look);
    }
    if (count > 1)
        add_row(cli, t, "all", all, look);
    cli_table_end(t);
}

static int run(struct cli *cli, const struct cli_args *args)
{
    const char *team = cli_option_value(args, "team"), *path;
    char from_text[CLOCK_TEXT_MAX], to_text[CLOCK_TEXT_MAX];
    _cleanup_json_ struct json_object *reply = NULL;
    struct err err = ERR_INIT;
    int64_t from, to;

    if (read_window(cli, args, &from, &to, &err) < 0)
        return cli_fail_usage(cli, &err);
    clock_format_utc(from, from_text);
    clock_format_utc(to, to_text);
    path = cli_path(cli, "/v1/usage?from=%s&to=%s", from_text, to_text);
    if (team)
        path = arena_printf(&cli->arena, "%s%s", path, cli_path(cli, "&team=%s", team));
    if (cli_get(cli, path, &reply, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json) {
        cli_print_json(cli, reply);
        return 0;
    }
    if (cli_json_len(reply, "teams") == 0 && team && cli_get_team(cli, team, NULL, &err) < 0)
        return cli_fail(cli, &err);
    if (cli_json_len(reply, "teams") == 0) {
        fprintf(cli->err, "nothing ran in this time\n");
        return 0;
    }
    print_usage(cli, reply);
    return 0;
}

static const struct cli_option options[] = {
    {.name = "since", .arg = "TIME", .help = "the last 24h (default), 7d, 30m"},
    {.name = "from", .arg = "WHEN", .help = "2026-11-01 or 2026-11-01T08:00Z (UTC)"},
    {.name = "to", .arg = "WHEN", .help = "likewise (default: now)"},
    {.name = "team",
     .letter = 't',
     .arg = "TEAM",
     .help = "only this team and those below it",
     .complete = CLI_COMPLETE_TEAM},
    {0},
};

const struct cli_command cli_usage = {
    .name = "usage",
    .group = CLI_SEE,
    .summary = "GPU time per team: allocated, busy, idle",
    .usage = "[OPTIONS]",
    .description =
        "What each team held (GPUs times time, parts counted as parts), how much of that the GPUs "
        "were busy, and what stood idle. Metering runs from the start of a task to its confirmed "
        "end and survives crashes of the server. Small amounts are shown in GPU-seconds.",
    .examples = "allot usage\nallot usage --since 30m\n"
                "allot usage --from 2026-11-01 --to 2026-12-01 -o json",
    .options = options,
    .run = run,
};
