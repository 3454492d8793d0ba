/* SPDX-License-Identifier: Apache-2.0 */
/* allot node: machines and their devices. */
#include <json-c/json.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/maintenance.h"
#include "cli/options.h"
#include "cli/render.h"
#include "cli/session.h"
#include "cli/table.h"
#include "model/team.h"

static bool is_simulated(struct json_object *node)
{
    for (size_t i = 0; i < cli_json_len(node, "devices"); i++)
        if (cli_json_bool(cli_json_at(node, "devices", i), "simulated"))
            return true;
    return false;
}

/* "8 x H100", "4 x H100/1g.10gb" (slices), with what people must know about them. */
static const char *gpus_text(struct cli *cli, struct json_object *node)
{
    size_t count = cli_json_len(node, "devices");

    if (count == 0)
        return "none";
    return arena_printf(&cli->arena, "%zu x %s%s", count, cli_node_type(cli, node),
                        is_simulated(node) ? " (simulated)" : "");
}

/* Devices that nobody holds anything of, where the node takes work: "3". */
static const char *free_text(struct cli *cli, struct json_object *node, const char *state)
{
    size_t count = cli_json_len(node, "use"), n = 0;

    if (cli_json_len(node, "devices") == 0)
        return NULL;
    if (strcmp(state, "up") != 0)
        return "0";
    for (size_t i = 0; i < count; i++)
        n += cli_json_milli(cli_json_at(node, "use", i), "gpu_used", 0) == 0;
    return arena_printf(&cli->arena, "%zu", n);
}

static int run_list(struct cli *cli, const struct cli_args *args)
{
    static const struct cli_column columns[] = {
        {"NODE", CLI_COLUMN_CUT},
        {"STATE", 0},
        {"GPUS", 0},
        {"USED", CLI_COLUMN_RIGHT},
        {"FREE", CLI_COLUMN_RIGHT},
        {"CPU", CLI_COLUMN_RIGHT},
        {"MEMORY", CLI_COLUMN_RIGHT},
        {"SHARING", 0},
        {"LIMITS", 0},
    };
    _cleanup_json_ struct json_object *reply = NULL;
    struct err err = ERR_INIT;
    struct cli_table *t;

    if (cli_get(cli, "/v1/nodes", &reply, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json) {
        cli_print_json(cli, reply);
        return 0;
    }
    if (cli_json_len(reply, "nodes") == 0) {
        fprintf(cli->err, "no nodes yet\n");
        return 0;
    }
    t = cli_table_new(cli, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < cli_json_len(reply, "nodes"); i++) {
        struct json_object *n = cli_json_at(reply, "nodes", i);
        const char *state = cli_node_state(cli, n);

        cli_table_row(t, CLI_TABLE_TOP);
        cli_table_cell(t, cli_json_text(n, "name"), CLI_CYAN);
        cli_table_cell(t, state, cli_state_color(state));
        cli_table_cell(t, gpus_text(cli, n), CLI_PLAIN);
        cli_table_cell(t, cli_milli_text(cli, cli_json_milli(n, "gpu_used", MODEL_UNLIMITED)),
                       CLI_PLAIN);
        cli_table_cell(t, free_text(cli, n, state), CLI_PLAIN);
        cli_table_cell(t, cli_json_text(n, "cpu"), CLI_PLAIN);
        cli_table_cell(t, cli_memory_text(cli, n, "memory"), CLI_PLAIN);
        cli_table_cell(t, cli_json_text(n, "sharing"), CLI_PLAIN);
        cli_table_cell(t, cli_json_text(n, "limits"), CLI_PLAIN);
    }
    cli_table_end(t);
    cli_print_windows(cli, reply);
    return 0;
}

/* "digits.3 (81), nb (9)": whose tasks hold a device. What is not ours to see is counted. */
static const char *holders_text(struct cli *cli, struct json_object *use)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
    size_t others = 0;

    for (size_t i = 0; i < cli_json_len(use, "holders"); i++) {
        struct json_object *h = cli_json_at(use, "holders", i);
        const char *name = cli_json_text(h, "name");

        if (name == NULL) {
            others++;
            continue;
        }
        strbuf_addf(&b, "%s%s.%lld (%lld)", b.len ? ", " : "", name,
                    (long long)cli_json_int(h, "task", 0),
                    (long long)cli_json_int(h, "workload", 0));
    }
    if (others > 0)
        strbuf_addf(&b, "%s%zu of other teams", b.len ? ", " : "", others);
    return cli_safe(cli, strbuf_str(&b));
}

static void print_devices(struct cli *cli, struct json_object *node)
{
    static const struct cli_column columns[] = {
        {"GPU", CLI_COLUMN_RIGHT},    {"TYPE", 0},
        {"MEMORY", CLI_COLUMN_RIGHT}, {"", 0},
        {"USED", CLI_COLUMN_RIGHT},   {"HELD BY", CLI_COLUMN_CUT},
    };
    size_t count = cli_json_len(node, "devices");
    struct cli_table *t;

    if (count == 0)
        return;
    cli_heading(cli, "Devices");
    t = cli_table_new(cli, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < count; i++) {
        struct json_object *d = cli_json_at(node, "devices", i), *use = cli_json_at(node, "use", i);
        const char *profile = cli_json_text(d, "mig_profile"), *type = cli_json_text(d, "type");
        int64_t used = cli_json_milli(use, "gpu_used", 0);

        cli_table_row(t, CLI_TABLE_TOP);
        cli_table_cell(t, arena_printf(&cli->arena, "%zu", i), CLI_PLAIN);
        cli_table_cell(t,
                       profile && type ? arena_printf(&cli->arena, "%s %s", type, profile) : type,
                       CLI_PLAIN);
        cli_table_cell(t, cli_memory_text(cli, d, "memory"), CLI_PLAIN);
        cli_table_cell(t, cli_bar(&cli->style, used, 1000, 8, &cli->arena), CLI_GREEN);
        cli_table_cell(t, cli_milli_text(cli, used), CLI_PLAIN);
        cli_table_cell(t, holders_text(cli, use), CLI_PLAIN);
    }
    cli_table_end(t);
}

static const char *labels_text(struct cli *cli, struct json_object *node)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
    struct json_object *labels = cli_json_get(node, "labels");

    if (!json_object_is_type(labels, json_type_object))
        return "";
    json_object_object_foreach(labels, key, value)
        strbuf_addf(&b, "%s%s=%s", b.len ? ", " : "", key, json_object_get_string(value));
    return cli_safe(cli, strbuf_str(&b));
}

/* What the backend of sharing enforces of a part of a GPU. */
static const char *sharing_text(struct cli *cli, const char *backend)
{
    if (backend && strcmp(backend, "none") == 0)
        return "none: parts of a GPU are counted, not enforced";
    if (backend && strcmp(backend, "refused") == 0)
        return "refused: nothing would enforce parts of a GPU, so there are none";
    if (backend && strcmp(backend, "shim") == 0)
        return "shim: memory of a part is capped, computing is shared by parts";
    return cli_safe(cli, backend);
}

/* What could enforce it, and why it does not. */
static void print_backends(struct cli *cli, struct json_object *node)
{
    static const struct cli_column columns[] = {
        {"SHARING BY", 0}, {"STATE", 0}, {"WHY", CLI_COLUMN_CUT}};
    size_t count = cli_json_len(node, "sharing_backends");
    struct cli_table *t;

    if (count == 0)
        return;
    cli_heading(cli, "Parts of GPUs");
    t = cli_table_new(cli, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < count; i++) {
        struct json_object *b = cli_json_at(node, "sharing_backends", i);
        const char *state = cli_json_text(b, "state");

        cli_table_row(t, CLI_TABLE_TOP);
        cli_table_cell(t, cli_json_text(b, "name"), CLI_PLAIN);
        cli_table_cell(t, state, state && strcmp(state, "used") == 0 ? CLI_GREEN : CLI_PLAIN);
        cli_table_cell(t, cli_json_text(b, "reason"), CLI_PLAIN);
    }
    cli_table_end(t);
}

static int run_show(struct cli *cli, const struct cli_args *args)
{
    _cleanup_json_ struct json_object *n = NULL;
    struct err err = ERR_INIT;
    const char *state, *window;

    if (cli_get(cli, cli_path(cli, "/v1/nodes/%s", args->operands.items[0]), &n, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json) {
        cli_print_json(cli, n);
        return 0;
    }
    state = cli_node_state(cli, n);
    fprintf(cli->out, "%s  %s\n",
            cli_colored(cli, cli_safe(cli, cli_json_text(n, "name")), CLI_BOLD),
            cli_colored(cli, state, cli_state_color(state)));
    cli_field(cli, "cluster", cli_safe(cli, cli_json_text(n, "cluster")));
    cli_field(cli, "gpus", gpus_text(cli, n));
    cli_field(cli, "used", cli_milli_text(cli, cli_json_milli(n, "gpu_used", MODEL_UNLIMITED)));
    cli_field(cli, "cpu", cli_safe(cli, cli_json_text(n, "cpu")));
    cli_field(cli, "memory", cli_memory_text(cli, n, "memory"));
    cli_field(cli, "sharing", sharing_text(cli, cli_json_text(n, "sharing")));
    cli_field(cli, "limits", cli_safe(cli, cli_json_text(n, "limits")));
    cli_field(cli, "isolation", cli_safe(cli, cli_json_text(n, "isolation")));
    cli_field(cli, "labels", labels_text(cli, n));
    window = cli_window_text(cli, n);
    if (window) {
        cli_field_phrase(cli, "maintenance",
                         arena_printf(&cli->arena, "%s: from %s until %s", window,
                                      cli_minute_text(cli, n, "maintenance.from"),
                                      cli_minute_text(cli, n, "maintenance.until")));
        cli_print_touched(cli, n, args->operands.items[0]);
    }
    print_devices(cli, n);
    print_backends(cli, n);
    return 0;
}

/* Whose tasks hold devices of the node: "2 workloads hold GPUs there and go on". */
static const char *remaining_text(struct cli *cli, const char *name)
{
    _cleanup_json_ struct json_object *n = NULL;
    VEC(int64_t) seen = {0};
    struct err err = ERR_INIT;
    size_t count, devices;

    if (cli_get(cli, cli_path(cli, "/v1/nodes/%s", name), &n, &err) < 0)
        return "what runs goes on";
    devices = cli_json_len(n, "use");
    for (size_t d = 0; d < devices; d++) {
        struct json_object *use = cli_json_at(n, "use", d);

        for (size_t h = 0; h < cli_json_len(use, "holders"); h++) {
            int64_t id = cli_json_int(cli_json_at(use, "holders", h), "workload", 0);
            size_t at = 0;

            while (at < seen.len && seen.items[at] != id)
                at++;
            if (at == seen.len)
                vec_push(&seen, id);
        }
    }
    count = seen.len;
    vec_done(&seen);
    if (count == 0)
        return devices > 0 ? "nothing holds its GPUs" : "what runs goes on";
    return arena_printf(&cli->arena, "%zu workload%s hold%s GPUs there and go%s on", count,
                        count == 1 ? "" : "s", count == 1 ? "s" : "", count == 1 ? "es" : "");
}

/* DONE NULL = tell what still runs there. */
static int set_drained(struct cli *cli, const struct cli_args *args, const char *verb,
                       const char *done)
{
    struct err err = ERR_INIT;
    int code = 0;

    for (size_t i = 0; i < args->operands.len; i++) {
        const char *name = args->operands.items[i];
        struct cli_call call = {.method = "POST", .body = "{}"};
        _cleanup_json_ struct json_object *node = NULL;

        call.path = arena_printf(&cli->arena, "%s/%s", cli_path(cli, "/v1/nodes/%s", name), verb);
        if (cli_call(cli, &call, &node, &err) < 0)
            code = cli_fail(cli, &err);
        else if (cli->json)
            cli_print_json(cli, node);
        else
            fprintf(cli->out, "node %s %s\n", cli_safe(cli, name),
                    done ? done
                         : arena_printf(&cli->arena, "takes nothing new; %s",
                                        remaining_text(cli, name)));
    }
    return code;
}

static int run_drain(struct cli *cli, const struct cli_args *args)
{
    return set_drained(cli, args, "drain", NULL);
}

static int run_undrain(struct cli *cli, const struct cli_args *args)
{
    return set_drained(cli, args, "undrain", "takes work again");
}

static const struct cli_command list = {
    .name = "node list",
    .summary = "list nodes with their GPUs",
    .run = run_list,
};
static const struct cli_command show = {
    .name = "node show",
    .summary = "show one node and its devices",
    .usage = "NAME",
    .min_operands = 1,
    .max_operands = 1,
    .operand = CLI_COMPLETE_NODE,
    .run = run_show,
};
static const struct cli_command drain = {
    .name = "node drain",
    .summary = "start nothing new there; what runs goes on",
    .usage = "NAME...",
    .min_operands = 1,
    .max_operands = CLI_MANY,
    .operand = CLI_COMPLETE_NODE,
    .run = run_drain,
};
static const struct cli_command undrain = {
    .name = "node undrain",
    .summary = "let it take work again",
    .usage = "NAME...",
    .min_operands = 1,
    .max_operands = CLI_MANY,
    .operand = CLI_COMPLETE_NODE,
    .run = run_undrain,
};
static const struct cli_command *const subcommands[] = {
    &list, &show, &drain, &undrain, &cli_node_maintain, NULL};

const struct cli_command cli_node = {
    .name = "node",
    .group = CLI_MANAGE,
    .summary = "nodes: list, drain, announce maintenance",
    .usage = "[list|show|drain|undrain|maintain]",
    .description = "A drained node keeps what runs on it and starts nothing new, until it is "
                   "undrained. Maintenance has a beginning and an end, and work that ends before "
                   "it still starts. SHARING tells what enforces parts of a GPU, LIMITS what "
                   "enforces cpu and memory.",
    .examples = "allot node\nallot node drain gpu-07\n"
                "allot node show gpu-07\nallot node undrain gpu-07\n"
                "allot node maintain gpu-07 --from 2026-12-24T22:00Z --for 4h",
    .subcommands = subcommands,
};
