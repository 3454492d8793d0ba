/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allot apply: make it so.
 *
 * In order: read every document; decode and check every one, and that the teams they name are
 * there; then call. Teams go first, parents
 * before children, whatever the order of the files; workloads follow in their order. A team is
 * changed only where it differs. A workload whose name is taken by one of its team that waits,
 * runs or has succeeded is left alone; otherwise it is submitted.
 */
#include <errno.h>
#include <json-c/json.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json_writer.h"
#include "cli/apply.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/documents.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/session.h"
#include "cli/teams.h"
#include "cli/workload_options.h"
#include "model/json.h"
#include "model/team.h"
#include "model/workload.h"

enum outcome { CREATED, CONFIGURED, UNCHANGED };

static const char *const outcome_names[] = {"created", "configured", "unchanged"};

/* For -o json: what was done, as one array. */
struct report {
    struct cli *cli;
    struct json_writer w;
    struct strbuf text;
    bool dry;
};

/* ID: of a workload, or NULL. X: what would become of it, or NULL. */
static void report(struct report *rep, const struct cli_apply_item *item, enum outcome outcome,
                   const char *id, struct json_object *x)
{
    struct cli *cli = rep->cli;
    const char *name = item->manifest.name;
    const char *noun = item->manifest.kind == MODEL_MANIFEST_TEAM ? "team" : "workload";

    if (cli->json) {
        json_begin_object(&rep->w);
        json_key_string(&rep->w, "kind", noun);
        json_key_string(&rep->w, "name", name);
        if (id)
            json_key_i64(&rep->w, "id", strtoll(id, NULL, 10));
        json_key_string(&rep->w, "outcome", outcome_names[outcome]);
        if (x)
            json_key_string(&rep->w, "reason", cli_json_text(x, "reason"));
        if (x)
            json_key_string(&rep->w, "sentence", cli_json_text(x, "sentence"));
        json_end_object(&rep->w);
        return;
    }
    fprintf(cli->out, "%s%s%s%s%s%s %s%s\n", noun, name ? " " : "", cli_safe(cli, name),
            id ? " (" : "", id ? cli_safe(cli, id) : "", id ? ")" : "", outcome_names[outcome],
            rep->dry ? " (dry run)" : "");
}

/* T as it is now, without what the server counts by itself. */
static const char *team_text(struct cli *cli, struct model_team t)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
    struct json_writer w;

    t.id = t.version = 0;
    json_writer_init(&w, &b);
    model_team_encode(&t, &w);
    return arena_strdup(&cli->arena, strbuf_str(&b));
}

static int decode_found(struct cli *cli, struct json_object *found, const char *name,
                        struct model_team *t, struct err *err)
{
    _cleanup_json_ struct json_object *settings = cli_team_settings(found, name);

    model_team_init(t);
    return model_team_decode(settings, &cli->arena, t, err);
}

static int apply_team(struct report *rep, const struct cli_apply_item *item, struct err *err)
{
    struct cli *cli = rep->cli;
    struct cli_call get = {.method = "GET",
                           .path = cli_path(cli, "/v1/teams/%s", item->manifest.name)};
    struct cli_call put = {.method = "PUT", .path = get.path, .body = item->manifest.body};
    _cleanup_json_ struct json_object *found = NULL, *reply = NULL;
    enum outcome outcome = CREATED;
    int r = cli_call(cli, &get, &found, err);

    if (r < 0 && r != -ENOENT)
        return r;
    if (r == 0) {
        struct model_team before;

        r = decode_found(cli, found, item->manifest.name, &before, err);
        if (r < 0)
            return r;
        outcome = strcmp(team_text(cli, before), team_text(cli, *item->team)) == 0 ? UNCHANGED
                                                                                   : CONFIGURED;
        put.if_match = get.ret_etag[0] ? get.ret_etag : NULL;
    }
    if (outcome != UNCHANGED && !rep->dry) {
        r = cli_call(cli, &put, &reply, err);
        if (r < 0)
            return r;
    }
    report(rep, item, outcome, NULL, NULL);
    cli_print_warnings(cli, reply);
    return 0;
}

/* The workload of that name and team that stands for the document already, or 0. */
static int find_standing(struct cli *cli, const struct cli_apply_item *item, const char **ret_id,
                         struct err *err)
{
    _cleanup_json_ struct json_object *list = NULL;
    int r;

    *ret_id = NULL;
    if (item->manifest.name == NULL)
        return 0;
    r = cli_get(cli,
                cli_path(cli, "/v1/workloads?name=%s&team=%s&limit=100", item->manifest.name,
                         item->workload_team),
                &list, err);
    if (r == -ENOENT) /* the team is yet to be made */
        return 0;
    if (r < 0)
        return r;
    for (size_t i = 0; i < cli_json_len(list, "workloads"); i++) {
        struct json_object *w = cli_json_at(list, "workloads", i);
        const char *state = cli_json_text(w, "state"), *id = cli_json_text(w, "id");

        if (state && id && strcmp(state, "failed") != 0 && strcmp(state, "cancelled") != 0)
            *ret_id = arena_strdup(&cli->arena, id);
    }
    return 0;
}

static bool is_there(struct cli *cli, const char *team)
{
    struct err err = ERR_INIT;

    return cli_get(cli, cli_path(cli, "/v1/teams/%s", team), NULL, &err) != -ENOENT;
}

/* What would become of it, as things are now; a team that is yet to be made cannot be asked for. */
static int try_workload(struct report *rep, const struct cli_apply_item *item, struct err *err)
{
    struct cli *cli = rep->cli;
    _cleanup_json_ struct json_object *reply = NULL;
    struct json_object *x;
    const char *reason;
    int r = cli_dry_run_body(cli, item->manifest.body, &reply, err);

    if (r < 0 && (strcmp(err->field, "team") != 0 || is_there(cli, item->workload_team)))
        return r;
    x = r < 0 ? NULL : cli_json_at(reply, "workloads", 0);
    reason = cli_json_text(x, "reason");
    report(rep, item, CREATED, NULL, x);
    if (reason && strcmp(reason, "none") != 0)
        cli_say(cli, arena_printf(&cli->arena, "warning: it would wait: %s",
                                  cli_safe(cli, cli_json_text(x, "sentence"))));
    else if (reason == NULL)
        cli_say(cli, arena_printf(&cli->arena,
                                  "warning: whether it would start is not known before team '%s' "
                                  "is there",
                                  item->workload_team));
    return 0;
}

static int apply_workload(struct report *rep, const struct cli_apply_item *item, struct err *err)
{
    _cleanup_json_ struct json_object *reply = NULL;
    const char *id;
    int r = find_standing(rep->cli, item, &id, err);

    if (r < 0)
        return r;
    if (id) {
        report(rep, item, UNCHANGED, id, NULL);
        return 0;
    }
    if (rep->dry)
        return try_workload(rep, item, err);
    r = cli_submit_body(rep->cli, item->manifest.body, &reply, err);
    if (r < 0)
        return r;
    id = cli_json_text(reply, "id");
    report(rep, item, CREATED, id, NULL);
    return 0;
}

static bool is_planned(const struct cli_apply_plan *plan, const char *team)
{
    for (size_t i = 0; i < plan->len; i++)
        if (plan->items[i].team && strcmp(plan->items[i].team->name, team) == 0)
            return true;
    return false;
}

/* Every team that a document names is there, or among the documents. */
static int check_teams(struct cli *cli, const struct cli_apply_plan *plan, struct err *err)
{
    const char *last = "";

    for (size_t i = 0; i < plan->len; i++) {
        const struct cli_apply_item *item = &plan->items[i];
        const char *team = item->team ? item->team->parent : item->workload_team;
        int r;

        if (team == NULL || strcmp(team, last) == 0 || is_planned(plan, team))
            continue;
        r = cli_get_team(cli, team, NULL, err);
        if (r < 0) {
            cli_documents_locate(item->document, err);
            return r;
        }
        last = team;
    }
    return 0;
}

/* The teams as they would be: what the server has, and in its place what is planned. */
static struct json_object *planned_teams(struct cli *cli, const struct cli_apply_plan *plan)
{
    _cleanup_json_ struct json_object *now = NULL;
    struct json_object *list = json_object_new_object(), *teams = json_object_new_array();
    struct err err = ERR_INIT;

    json_object_object_add(list, "teams", teams);
    if (cli_get(cli, "/v1/teams", &now, &err) < 0)
        return list;
    for (size_t i = 0; i < cli_json_len(now, "teams"); i++) {
        struct json_object *t = cli_json_at(now, "teams", i);
        const char *name = cli_json_text(t, "name");

        if (name && !is_planned(plan, name))
            json_object_array_add(teams, json_object_get(t));
    }
    for (size_t i = 0; i < plan->len && plan->items[i].team; i++)
        json_object_array_add(teams, json_tokener_parse(team_text(cli, *plan->items[i].team)));
    return list;
}

/* Does a change of a team leave more promised than there is? */
static void note_guarantees(struct report *rep, const struct cli_apply_plan *plan)
{
    _cleanup_json_ struct json_object *list = NULL;
    const char *note;

    if (plan->len == 0 || plan->items[0].team == NULL)
        return;
    list = rep->dry ? planned_teams(rep->cli, plan) : NULL;
    note = cli_guarantee_note(rep->cli, list);
    if (note)
        cli_say(rep->cli, arena_printf(&rep->cli->arena, "warning: %s", note));
}

static int apply_all(struct report *rep, const struct cli_apply_plan *plan)
{
    for (size_t i = 0; i < plan->len; i++) {
        const struct cli_apply_item *item = &plan->items[i];
        struct err err = ERR_INIT;
        int r = item->manifest.kind == MODEL_MANIFEST_TEAM ? apply_team(rep, item, &err)
                                                           : apply_workload(rep, item, &err);

        if (r < 0) {
            cli_documents_locate(item->document, &err);
            return cli_fail(rep->cli, &err);
        }
    }
    note_guarantees(rep, plan);
    return 0;
}

static int run(struct cli *cli, const struct cli_args *args)
{
    struct report rep = {.cli = cli, .dry = cli_option_given(args, "dry-run")};
    struct cli_documents docs = {0};
    struct cli_apply_plan plan = {0};
    struct err err = ERR_INIT;
    int code = 0, r;

    if (!cli_option_given(args, "file")) {
        err_set(&err, -EINVAL, ERR_MISSING, NULL, "allot apply -f FILE", "what is to be applied?");
        return cli_fail_usage(cli, &err);
    }
    r = cli_documents_read(cli, args, "file", &docs, &err);
    if (r == 0)
        r = cli_apply_prepare(cli, &docs, &plan, &err);
    if (r == 0)
        r = check_teams(cli, &plan, &err);
    if (r < 0) {
        code = cli_fail(cli, &err);
    } else {
        json_writer_init(&rep.w, &rep.text);
        json_begin_array(&rep.w);
        code = apply_all(&rep, &plan);
        json_end_array(&rep.w);
        if (cli->json)
            fprintf(cli->out, "%s\n", strbuf_str(&rep.text));
    }
    strbuf_done(&rep.text);
    vec_done(&plan);
    cli_documents_done(&docs);
    return code;
}

static const struct cli_option options[] = {
    {.name = "file",
     .letter = 'f',
     .arg = "PATH",
     .help = "YAML or JSON, one or many documents; a folder; or - for standard input. May be "
             "repeated",
     .complete = CLI_COMPLETE_FILE},
    {.name = "dry-run",
     .help = "change nothing; say what would be done, and what would wait or be refused"},
    {0},
};

const struct cli_command cli_apply = {
    .name = "apply",
    .group = CLI_WORK,
    .summary = "create or change teams and workloads from files",
    .usage = "[OPTIONS] -f PATH",
    .description =
        "Takes Kubernetes ResourceQuota manifests as they are, and documents of kind Team and "
        "Workload (apiVersion: allot/v1). The form of every document, and the teams it names, are "
        "checked before the first change. Whether you may make a change, and whether it fits "
        "what is there, the server decides at each: what was changed before a refusal stays, and "
        "the same files can be applied again. Teams come first, parents before children.\n\n"
        "A ResourceQuota becomes the team named after its namespace: requests.nvidia.com/gpu is "
        "the guarantee, limits.nvidia.com/gpu the limit, persistentvolumeclaims the number of "
        "volumes. Keys without a meaning here are named in a warning.\n\n"
        "A workload whose name is taken by one of its team that waits, runs or has succeeded is "
        "left unchanged.",
    .examples = "allot apply -f quota.yaml\nallot apply -f teams/ --dry-run\n"
                "# what the cluster has today\n"
                "kubectl get resourcequota -A -o json | jq '.items[]' | allot apply -f -",
    .options = options,
    .run = run,
};
