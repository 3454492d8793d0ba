/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/maintenance.h"

#include <errno.h>
#include <json-c/json.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/qty.h"
#include "base/strbuf.h"
#include "cli/cli.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/render.h"
#include "cli/session.h"
#include "cli/table.h"

#define WAITING_ASKED 20 /* workloads whose explanation is looked at */

const char *cli_window_text(struct cli *cli, struct json_object *n)
{
    int64_t from = cli_json_time(n, "maintenance.from");
    int64_t until = cli_json_time(n, "maintenance.until"), now = cli_now_ms(cli);

    if (until <= now)
        return NULL;
    if (from <= now)
        return arena_printf(&cli->arena, "now, %s left", cli_duration(until - now, &cli->arena));
    return arena_printf(&cli->arena, "in %s, for %s", cli_duration(from - now, &cli->arena),
                        cli_duration(until - from, &cli->arena));
}

void cli_print_windows(struct cli *cli, struct json_object *list)
{
    static const struct cli_column columns[] = {
        {"NODE", CLI_COLUMN_CUT}, {"MAINTENANCE", 0}, {"FROM", 0}, {"UNTIL", 0}};
    struct cli_table *t = NULL;

    for (size_t i = 0; i < cli_json_len(list, "nodes"); i++) {
        struct json_object *n = cli_json_at(list, "nodes", i);
        const char *text = cli_window_text(cli, n);

        if (text == NULL)
            continue;
        if (t == NULL) {
            fputc('\n', cli->out);
            t = cli_table_new(cli, columns, ARRAY_LEN(columns));
        }
        cli_table_row(t, CLI_TABLE_TOP);
        cli_table_cell(t, cli_json_text(n, "name"), CLI_CYAN);
        cli_table_cell(t, text, CLI_YELLOW);
        cli_table_cell(t, cli_minute_text(cli, n, "maintenance.from"), CLI_PLAIN);
        cli_table_cell(t, cli_minute_text(cli, n, "maintenance.until"), CLI_PLAIN);
    }
    if (t)
        cli_table_end(t);
}

/* ---- whom a maintenance touches ----------------------------------------------------------- */

/* "big (3), nb (9)": what the server says comes to OUTCOME; "" where nothing does. */
static const char *touched_text(struct cli *cli, struct json_object *n, const char *outcome)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

    for (size_t i = 0; i < cli_json_len(n, "maintenance_work"); i++) {
        struct json_object *w = cli_json_at(n, "maintenance_work", i);
        const char *said = cli_json_text(w, "outcome");

        if (said && strcmp(said, outcome) == 0)
            strbuf_addf(&b, "%s%s (%lld)", b.len ? ", " : "", cli_json_text(w, "name"),
                        (long long)cli_json_int(w, "workload", 0));
    }
    return cli_safe(cli, strbuf_str(&b));
}

/* Does the pending workload ID wait for the maintenance of node NAME? */
static bool waits_for(struct cli *cli, int64_t id, const char *name)
{
    _cleanup_json_ struct json_object *why = NULL;
    struct err err = ERR_INIT;
    const char *node;

    if (cli_get(cli, arena_printf(&cli->arena, "/v1/workloads/%lld/explain", (long long)id), &why,
                &err) < 0)
        return false;
    node = cli_json_text(why, "maintenance.node");
    return node && strcmp(node, name) == 0;
}

/* What waits for the end of it, of the newest that wait; "" where nothing does, as far as is
 * known. */
static const char *waiting_text(struct cli *cli, const char *name)
{
    _cleanup_json_ struct json_object *list = NULL;
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
    struct err err = ERR_INIT;
    int asked = 0;

    if (cli_get(cli, "/v1/workloads?state=pending&limit=1000", &list, &err) < 0)
        return "";
    for (size_t i = 0; i < cli_json_len(list, "workloads"); i++) {
        struct json_object *w = cli_json_at(list, "workloads", i);
        const char *reason = cli_json_text(w, "reason");
        int64_t id = cli_json_int(w, "id", 0);

        if (reason == NULL || strcmp(reason, "maintenance") != 0)
            continue;
        if (++asked > WAITING_ASKED) {
            strbuf_adds(&b, b.len ? ", perhaps more" : "perhaps some");
            break;
        }
        if (waits_for(cli, id, name))
            strbuf_addf(&b, "%s%s (%lld)", b.len ? ", " : "", cli_json_text(w, "name"),
                        (long long)id);
    }
    return cli_safe(cli, strbuf_str(&b));
}

bool cli_print_touched(struct cli *cli, struct json_object *n, const char *name)
{
    const char *evicted = touched_text(cli, n, "evicted"), *stays = touched_text(cli, n, "stays");
    const char *ends = touched_text(cli, n, "ends"), *waits = waiting_text(cli, name);

    cli_field_phrase(cli, "evicts", evicted);
    cli_field_phrase(
        cli, "stays",
        *stays
            ? arena_printf(&cli->arena, "%s: not preemptible, stop it before ('allot stop')", stays)
            : "");
    cli_field_phrase(cli, "ends before", ends);
    cli_field_phrase(cli, "waits for it", waits);
    return *evicted || *stays || *ends || *waits;
}

/* ---- maintenance ------------------------------------------------------------------------ */

/* From --from (now), until --until or for --for. */
static int read_window(struct cli *cli, const struct cli_args *args, int64_t *ret_from,
                       int64_t *ret_until, struct err *err)
{
    const char *length = cli_option_value(args, "for");
    int64_t ms = 0;
    int r;

    *ret_from = cli_now_ms(cli);
    *ret_until = 0;
    r = cli_option_time(args, "from", ret_from, err);
    if (r == 0)
        r = cli_option_time(args, "until", ret_until, err);
    if (r == 0)
        r = cli_option_duration(args, "for", &ms, err);
    if (r == 0 && (length != NULL) == (*ret_until != 0))
        r = err_set(err, -EINVAL, ERR_MISSING, NULL, "add --for 4h, --until TIME or --cancel",
                    "say how long the maintenance takes, once");
    if (r == 0 && length)
        *ret_until = qty_add_sat(*ret_from, ms);
    return r;
}

static void print_planned(struct cli *cli, const char *name, struct json_object *node)
{
    fprintf(cli->out, "node %s has maintenance from %s until %s\n", cli_safe(cli, name),
            cli_minute_text(cli, node, "maintenance.from"),
            cli_minute_text(cli, node, "maintenance.until"));
    if (!cli_print_touched(cli, node, name))
        fprintf(cli->out, "  nothing that runs there now is touched\n");
}

/* Of a maintenance that is taken away nothing more can be said. */
static int check_cancel(const struct cli_args *args, struct err *err)
{
    static const char *const options[] = {"from", "until", "for"};

    for (size_t i = 0; i < ARRAY_LEN(options); i++)
        if (cli_option_given(args, options[i]))
            return err_set(err, -EINVAL, ERR_CONFLICT, NULL, "give one of them",
                           "options '--cancel' and '--%s' exclude each other", options[i]);
    return 0;
}

static int run_maintain(struct cli *cli, const struct cli_args *args)
{
    char from_text[CLOCK_TEXT_MAX], until_text[CLOCK_TEXT_MAX];
    bool cancel = cli_option_given(args, "cancel");
    struct cli_call call = {.method = cancel ? "DELETE" : "POST"};
    struct err err = ERR_INIT;
    int64_t from, until;
    int code = 0;

    if (cancel && check_cancel(args, &err) < 0)
        return cli_fail_usage(cli, &err);
    if (!cancel) {
        if (read_window(cli, args, &from, &until, &err) < 0)
            return cli_fail_usage(cli, &err);
        clock_format_utc(from, from_text);
        clock_format_utc(until, until_text);
        call.body =
            arena_printf(&cli->arena, "{\"from\":\"%s\",\"until\":\"%s\"}", from_text, until_text);
    }
    for (size_t i = 0; i < args->operands.len; i++) {
        _cleanup_json_ struct json_object *node = NULL;
        const char *name = args->operands.items[i];

        call.path = cli_path(cli, "/v1/nodes/%s/maintenance", name);
        if (cli_call(cli, &call, &node, &err) < 0)
            code = cli_fail(cli, &err);
        else if (cli->json)
            cli_print_json(cli, node);
        else if (cancel)
            fprintf(cli->out, "node %s has no maintenance any more\n", cli_safe(cli, name));
        else
            print_planned(cli, name, node);
    }
    return code;
}

static const struct cli_option maintain_options[] = {
    {.name = "from", .arg = "TIME", .help = "when it begins: 2026-11-30T21:00Z (default: now)"},
    {.name = "until", .arg = "TIME", .help = "when it ends"},
    {.name = "for", .arg = "TIME", .help = "instead: how long it takes, 4h"},
    {.name = "cancel", .help = "no maintenance any more"},
    {0},
};

const struct cli_command cli_node_maintain = {
    .name = "node maintain",
    .summary = "announce when it will not be there",
    .usage = "[OPTIONS] NAME...",
    .description =
        "Before the maintenance only work starts on the node that ends in time by its own limit "
        "or expectation, or, where it says neither, with the lead of 'allot server "
        "--maintenance-lead'. When it begins, preemptible work is evicted with its grace; at its "
        "end the node takes work again by itself.",
    .options = maintain_options,
    .min_operands = 1,
    .max_operands = CLI_MANY,
    .operand = CLI_COMPLETE_NODE,
    .run = run_maintain,
};
