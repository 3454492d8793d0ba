/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/render.h"

#include <json-c/json.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/qty.h"
#include "base/strbuf.h"
#include "cli/json.h"
#include "model/state.h"
#include "model/team.h"

#define LABEL_WIDTH 13

const char *cli_milli_text(struct cli *cli, int64_t milli)
{
    char text[QTY_TEXT_MAX];

    if (milli == MODEL_UNLIMITED)
        return "-";
    return arena_strdup(&cli->arena, qty_format_milli(milli, text));
}

const char *cli_bytes_text(struct cli *cli, int64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t unit = 0;
    int64_t one = 1, tenths;

    if (bytes == MODEL_UNLIMITED)
        return "-";
    while (unit + 1 < ARRAY_LEN(units) && bytes / one >= 1024) {
        one *= 1024;
        unit++;
    }
    tenths = bytes / one * 10 + bytes % one * 10 / one;
    if (tenths % 10 == 0)
        return arena_printf(&cli->arena, "%lld%s", (long long)(tenths / 10), units[unit]);
    return arena_printf(&cli->arena, "%lld.%lld%s", (long long)(tenths / 10),
                        (long long)(tenths % 10), units[unit]);
}

const char *cli_memory_text(struct cli *cli, struct json_object *json, const char *path)
{
    int64_t bytes = cli_json_bytes(json, path, 0);

    return bytes > 0 ? cli_bytes_text(cli, bytes) : "-";
}

const char *cli_when_text(struct cli *cli, struct json_object *json, const char *path)
{
    return cli_when(cli_json_time(json, path), cli_now_ms(cli), &cli->arena);
}

const char *cli_minute_text(struct cli *cli, struct json_object *json, const char *path)
{
    int64_t ms = cli_json_time(json, path);
    char text[CLOCK_TEXT_MAX];

    if (ms == 0)
        return "-";
    clock_format_utc(ms, text);
    text[10] = ' ';
    return arena_printf(&cli->arena, "%.16sZ", text);
}

const char *cli_join_text(struct cli *cli, struct json_object *json, const char *path,
                          const char *separator)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

    for (size_t i = 0; i < cli_json_len(json, path); i++) {
        const char *text = json_object_get_string(cli_json_at(json, path, i));

        strbuf_addf(&b, "%s%s", i ? separator : "", text ? text : "");
    }
    return cli_safe(cli, strbuf_str(&b));
}

struct json_object *cli_task_of(struct json_object *workload, int64_t index)
{
    for (size_t i = 0; i < cli_json_len(workload, CLI_TASKS); i++) {
        struct json_object *task = cli_json_at(workload, CLI_TASKS, i);

        if (cli_json_int(task, "index", -1) == index)
            return task;
    }
    return NULL;
}

bool cli_is_final(const char *state)
{
    enum model_workload_state v;

    return state && model_workload_state_parse(state, &v) == 0 && model_workload_state_is_final(v);
}

const char *cli_node_state(struct cli *cli, struct json_object *node)
{
    const char *state = cli_safe(cli, cli_json_text(node, "state"));

    int64_t from = cli_json_time(node, "maintenance.from");
    int64_t until = cli_json_time(node, "maintenance.until"), now = cli_now_ms(cli);

    if (strcmp(state, "up") != 0)
        return state;
    if (cli_json_bool(node, "drained"))
        return "drained";
    return until > 0 && from <= now && now < until ? "maintenance" : state;
}

const char *cli_node_type(struct cli *cli, struct json_object *node)
{
    const char *type = cli_json_text(node, "gpu_type"), *slice = NULL;

    for (size_t i = 0; i < cli_json_len(node, "devices") && slice == NULL; i++)
        slice = cli_json_text(cli_json_at(node, "devices", i), "mig_profile");
    if (slice == NULL)
        return type ? cli_safe(cli, type) : "GPU";
    return arena_printf(&cli->arena, "%s/%s", type ? cli_safe(cli, type) : "GPU",
                        cli_safe(cli, slice));
}

int64_t cli_node_milli(struct json_object *node)
{
    int64_t sum = 0;

    for (size_t i = 0; i < cli_json_len(node, "devices"); i++) {
        struct json_object *d = cli_json_at(node, "devices", i);

        sum += cli_json_text(d, "mig_profile") ? cli_json_int(d, "mig_milli", 0) : 1000;
    }
    return sum;
}

/* Milli-GPU in all, on nodes that take no work, and free; whole devices that are free, on all nodes
 * and the most on one; the largest part that is left of one. */
struct room {
    int64_t total, away, milli, whole, most, part;
};

static void add_room(struct cli *cli, struct json_object *node, struct room *r)
{
    bool up = strcmp(cli_node_state(cli, node), "up") == 0;
    int64_t whole = 0;

    r->total += cli_node_milli(node);
    r->away += up ? 0 : cli_node_milli(node);
    for (size_t i = 0; up && i < cli_json_len(node, "devices"); i++) {
        struct json_object *d = cli_json_at(node, "devices", i);
        bool slice = cli_json_text(d, "mig_profile") != NULL;
        int64_t size = slice ? cli_json_int(d, "mig_milli", 0) : 1000;
        int64_t used = cli_json_milli(cli_json_at(node, "use", i), "gpu_used", 0);
        int64_t left = used < size ? size - used : 0;

        r->milli += left;
        whole += left == 1000;
        if (left < 1000 && left > r->part)
            r->part = left;
    }
    r->whole += whole;
    if (whole > r->most)
        r->most = whole;
}

const char *cli_free_text(struct cli *cli, struct json_object *nodes)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
    struct room r = {0};

    for (size_t i = 0; i < cli_json_len(nodes, "nodes"); i++)
        add_room(cli, cli_json_at(nodes, "nodes", i), &r);
    if (r.total == 0)
        return NULL;
    strbuf_addf(&b, "%s of %s GPU%s free", cli_milli_text(cli, r.milli),
                cli_milli_text(cli, r.total), r.total == 1000 ? " is" : "s are");
    if (r.part > 0 && r.whole > 0)
        strbuf_addf(&b, ": %lld whole", (long long)r.whole);
    if (r.most < r.whole)
        strbuf_addf(&b, ", at most %lld on one node", (long long)r.most);
    if (r.part > 0)
        strbuf_addf(&b, "%s the largest part is %s", r.whole > 0 ? "," : ":",
                    cli_milli_text(cli, r.part));
    if (r.away > 0)
        strbuf_addf(&b, "; %s on nodes that take no work now", cli_milli_text(cli, r.away));
    return arena_strdup(&cli->arena, strbuf_str(&b));
}

static const char *mig_text(struct cli *cli, struct json_object *group)
{
    struct json_object *mig = cli_json_get(group, "mig");
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

    if (json_object_is_type(mig, json_type_string))
        return cli_safe(cli, json_object_get_string(mig));
    if (!json_object_is_type(mig, json_type_object))
        return NULL;
    json_object_object_foreach(mig, profile, count)
    {
        if (b.len)
            strbuf_adds(&b, " + ");
        if (json_object_get_int64(count) > 1)
            strbuf_addf(&b, "%lld x ", (long long)json_object_get_int64(count));
        strbuf_adds(&b, profile);
    }
    return cli_safe(cli, strbuf_str(&b));
}

/* "A100|H100": any of them; NULL where all will do. */
static const char *types_text(struct cli *cli, struct json_object *group)
{
    const char *text = NULL;

    for (size_t i = 0; i < cli_json_len(group, "gpu_type"); i++) {
        const char *type = cli_safe(cli, cli_json_text(cli_json_at(group, "gpu_type", i), ""));

        text = text ? arena_printf(&cli->arena, "%s|%s", text, type) : type;
    }
    return text;
}

/* What one task of a group asks for. */
static const char *task_request(struct cli *cli, struct json_object *group)
{
    int64_t whole = cli_json_int(group, "gpus", 0), milli = cli_json_milli(group, "gpu", 0);
    const char *memory = cli_json_text(group, "gpu_memory");
    int64_t count = cli_json_int(group, "gpu_count", 1);
    const char *type = types_text(cli, group);
    const char *unit = type ? type : "GPU";
    const char *units = type ? unit : "GPUs";

    if (cli_json_get(group, "mig"))
        return mig_text(cli, group);
    if (memory)
        return count > 1 ? arena_printf(&cli->arena, "%s of %lld %s", cli_safe(cli, memory),
                                        (long long)count, units)
                         : arena_printf(&cli->arena, "%s of a %s", cli_safe(cli, memory), unit);
    if (milli > 0 && count > 1)
        return arena_printf(&cli->arena, "%s of %lld %s", cli_milli_text(cli, milli),
                            (long long)count, units);
    if (milli > 0)
        return arena_printf(&cli->arena, "%s %s", cli_milli_text(cli, milli), unit);
    if (whole > 0)
        return arena_printf(&cli->arena, "%lld %s", (long long)whole, whole == 1 ? unit : units);
    return "cpu only";
}

const char *cli_request_text(struct cli *cli, struct json_object *workload)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
    size_t groups = cli_json_len(workload, "groups");

    for (size_t i = 0; i < (groups ? groups : 1); i++) {
        struct json_object *group = groups ? cli_json_at(workload, "groups", i) : workload;
        int64_t tasks = cli_json_int(group, "tasks", 1);

        if (i)
            strbuf_adds(&b, " + ");
        if (tasks != 1)
            strbuf_addf(&b, "%lld x ", (long long)tasks);
        strbuf_adds(&b, task_request(cli, group));
    }
    return arena_strdup(&cli->arena, strbuf_str(&b));
}

const char *cli_reason_text(struct cli *cli, const char *reason)
{
    static const struct {
        const char *reason, *text;
    } texts[] = {
        {"none", "starts next"},
        {"no_such_device", "no such device here"},
        {"too_large", "larger than any node"},
        {"above_limit", "above the team's limit"},
        {"above_guarantee", "above the team's guarantee"},
        {"team_limit", "team at its limit"},
        {"team_guarantee", "guarantee is in use"},
        {"backoff", "launch failed, waits to retry"},
        {"held", "room is being made"},
        {"reserved", "would delay a reserved start"},
        {"topology", "not enough room in one domain"},
        {"fragmented", "what is free is scattered"},
        {"nodes_down", "nodes down or drained"},
        {"maintenance", "maintenance of a node"},
        {"cpu", "not enough CPU where it could run"},
        {"memory", "not enough memory where it could run"},
        {"stopping", "waits for others to stop"},
        {"protected", "others have not run long enough"},
        {"budget", "a service has too few tasks to spare"},
        {"overcommitted", "guarantees exceed what there is"},
        {"promised", "what is free is promised"},
        {"no_capacity", "not enough is free"},
        {"behind", "others come first"},
    };

    for (size_t i = 0; reason && i < ARRAY_LEN(texts); i++)
        if (strcmp(texts[i].reason, reason) == 0)
            return texts[i].text;
    return cli_safe(cli, reason);
}

static const char *pending_note(struct cli *cli, struct json_object *w)
{
    const char *reason = cli_json_text(w, "reason");
    int64_t position = cli_json_int(w, "position", 0), restarts = cli_json_int(w, "restarts", 0);
    const char *again = restarts > 0 ? ", again" : "";

    if (reason == NULL)
        return restarts > 0 ? "waits again" : "waits";
    if (position > 0)
        return arena_printf(&cli->arena, "#%lld%s: %s", (long long)position, again,
                            cli_reason_text(cli, reason));
    return cli_reason_text(cli, reason);
}

/* All of what runs of it has been asked to stop, and not by a person. */
static bool gives_way(struct json_object *w)
{
    int64_t stopping = cli_json_int(w, "stopping_tasks", 0);

    return stopping > 0 && stopping >= cli_json_int(w, "running_tasks", 0);
}

const char *cli_workload_state(struct cli *cli, struct json_object *w)
{
    const char *state = cli_safe(cli, cli_json_text(w, "state"));

    return strcmp(state, "running") == 0 && gives_way(w) ? "stopping" : state;
}

static const char *running_note(struct cli *cli, struct json_object *w)
{
    int64_t tasks = cli_json_int(w, "tasks", 1), running = cli_json_int(w, "running_tasks", 0);
    int64_t restarts = cli_json_int(w, "restarts", 0);
    int64_t stopping = cli_json_int(w, "stopping_tasks", 0);
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

    if (gives_way(w))
        return cli_json_time(w, "evicted_at") >= cli_json_time(w, "started_at")
                   ? "evicted, will wait again"
                   : "will start again";
    if (tasks > 1)
        strbuf_addf(&b, "%lld of %lld tasks", (long long)running, (long long)tasks);
    if (stopping > 0)
        strbuf_addf(&b, "%s%lld stopping", b.len ? ", " : "", (long long)stopping);
    if (restarts > 0)
        strbuf_addf(&b, "%s%lld restart%s", b.len ? ", " : "", (long long)restarts,
                    restarts == 1 ? "" : "s");
    return arena_strdup(&cli->arena, strbuf_str(&b));
}

static const char *ended_note(struct cli *cli, struct json_object *w)
{
    const char *message = cli_json_text(w, "message");
    int64_t code = cli_json_int(w, "exit_code", 0);

    if (code != 0 && message && *message && strstr(message, "exit code") == NULL &&
        strstr(message, "killed by") == NULL)
        return arena_printf(&cli->arena, "exit %lld: %s", (long long)code, cli_safe(cli, message));
    if (code != 0 && (message == NULL || *message == '\0'))
        return arena_printf(&cli->arena, "exit %lld", (long long)code);
    return cli_safe(cli, message);
}

const char *cli_workload_note(struct cli *cli, struct json_object *w)
{
    const char *state = cli_json_text(w, "state");

    if (state == NULL)
        return "";
    if (strcmp(state, "pending") == 0)
        return pending_note(cli, w);
    if (strcmp(state, "running") == 0)
        return running_note(cli, w);
    return ended_note(cli, w);
}

const char *cli_devices_text(struct cli *cli, struct json_object *task)
{
    const char *list = cli_join_text(cli, task, "devices", ",");

    return *list ? arena_printf(&cli->arena, "gpu %s", list) : "";
}

static void field(struct cli *cli, const char *label, const char *value, int width)
{
    if (value == NULL || *value == '\0' || strcmp(value, "-") == 0)
        return;
    cli_wrap_after(cli->out,
                   arena_printf(&cli->arena, "  %s%-*s%s ", cli_style_begin(&cli->style, CLI_DIM),
                                LABEL_WIDTH, label, cli_style_end(&cli->style)),
                   LABEL_WIDTH + 3, value, width);
}

void cli_field(struct cli *cli, const char *label, const char *value)
{
    field(cli, label, value, 0);
}

void cli_field_phrase(struct cli *cli, const char *label, const char *value)
{
    field(cli, label, value, cli->style.tty ? cli->style.width : 0);
}

void cli_heading(struct cli *cli, const char *text)
{
    fprintf(cli->out, "\n%s%s%s\n", cli_style_begin(&cli->style, CLI_BOLD), text,
            cli_style_end(&cli->style));
}

const char *cli_colored(struct cli *cli, const char *text, enum cli_color color)
{
    if (!cli->style.color || color == CLI_PLAIN)
        return text;
    return arena_printf(&cli->arena, "%s%s%s", cli_style_begin(&cli->style, color), text,
                        cli_style_end(&cli->style));
}
