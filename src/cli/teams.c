/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/teams.h"

#include <errno.h>
#include <json-c/json.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/qty.h"
#include "cli/cli.h"
#include "cli/json.h"
#include "cli/render.h"
#include "cli/session.h"
#include "cli/suggest.h"
#include "model/amount.h"

/* LIST, or what the server says, which OWN keeps alive; NULL when it says nothing. */
static struct json_object *team_list(struct cli *cli, struct json_object *list,
                                     struct json_object **own)
{
    struct err err = ERR_INIT;

    if (list == NULL && cli_get(cli, "/v1/teams", own, &err) == 0)
        list = *own;
    return list;
}

int cli_no_team(struct cli *cli, const char *name, struct json_object *list, struct err *err)
{
    _cleanup_json_ struct json_object *own = NULL;
    struct cli_suggestion s = {.word = name};
    const char *remedy = "'allot team' lists them";

    list = team_list(cli, list, &own);
    for (size_t i = 0; i < cli_json_len(list, "teams"); i++) {
        const char *known = cli_json_text(cli_json_at(list, "teams", i), "name");

        if (known)
            cli_suggestion_offer(&s, known);
    }
    if (s.best)
        remedy = arena_printf(&cli->arena, "did you mean '%s'?", cli_safe(cli, s.best));
    return err_set(err, -ENOENT, ERR_NOT_FOUND, NULL, remedy,
                   "team '%.80s' does not exist or is not yours", name);
}

int cli_get_team(struct cli *cli, const char *name, struct json_object **ret_team, struct err *err)
{
    _cleanup_json_ struct json_object *team = NULL;
    int r = cli_get(cli, cli_path(cli, "/v1/teams/%s", name), &team, err);

    if (r == -ENOENT)
        return cli_no_team(cli, name, NULL, err);
    if (r == 0 && ret_team)
        *ret_team = steal_ptr(&team);
    return r;
}

static bool is_listed(struct json_object *list, const char *name)
{
    for (size_t i = 0; i < cli_json_len(list, "teams"); i++) {
        const char *known = cli_json_text(cli_json_at(list, "teams", i), "name");

        if (known && strcmp(known, name) == 0)
            return true;
    }
    return false;
}

/* Of the teams at the top of what can be seen: what is below them shares theirs. */
static int64_t guaranteed_milli(struct json_object *list)
{
    int64_t sum = 0;

    for (size_t i = 0; i < cli_json_len(list, "teams"); i++) {
        struct json_object *team = cli_json_at(list, "teams", i);
        const char *parent = cli_json_text(team, "parent");

        if (parent == NULL || !is_listed(list, parent))
            sum = qty_add_sat(sum, cli_json_milli(team, "guarantee.gpu", 0));
    }
    return sum;
}

/* Whole GPUs; -1 when some are parts of one, whose charge the server alone knows. */
static int64_t gpu_milli(struct cli *cli)
{
    _cleanup_json_ struct json_object *reply = NULL;
    struct err err = ERR_INIT;
    int64_t sum = 0;

    if (cli_get(cli, "/v1/nodes", &reply, &err) < 0)
        return -1;
    for (size_t i = 0; i < cli_json_len(reply, "nodes"); i++) {
        struct json_object *node = cli_json_at(reply, "nodes", i);

        for (size_t d = 0; d < cli_json_len(node, "devices"); d++) {
            if (cli_json_text(cli_json_at(node, "devices", d), "mig_profile"))
                return -1;
            sum += 1000;
        }
    }
    return sum;
}

const char *cli_guarantee_note(struct cli *cli, struct json_object *list)
{
    _cleanup_json_ struct json_object *own = NULL;
    int64_t guaranteed, there;

    list = team_list(cli, list, &own);
    guaranteed = guaranteed_milli(list);
    if (guaranteed == 0)
        return NULL;
    there = gpu_milli(cli);
    if (there < 0 || guaranteed <= there)
        return NULL;
    return arena_printf(&cli->arena, "guarantees add up to %s; there %s %s",
                        model_amount_describe(MODEL_GPU_MILLI, guaranteed, &cli->arena),
                        there == 1000 ? "is" : "are", cli_milli_text(cli, there));
}

void cli_print_warnings(struct cli *cli, struct json_object *reply)
{
    for (size_t i = 0; i < cli_json_len(reply, "warnings"); i++)
        cli_say(cli, arena_printf(
                         &cli->arena, "warning: %s",
                         cli_safe(cli, json_object_get_string(cli_json_at(reply, "warnings", i)))));
}

struct json_object *cli_team_settings(struct json_object *found, const char *name)
{
    static const char *const fields[] = {"parent", "weight", "priority", "guarantee",
                                         "limit",  "quota",  "idle"};
    static const char *const derived[] = {"gpu", "cpu", "memory", "gpu_types"};
    struct json_object *team = json_object_new_object();
    const char *quota = cli_json_text(found, "quota");

    json_object_object_add(team, "name", json_object_new_string(name));
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        struct json_object *v = cli_json_get(found, fields[i]);

        if (v)
            json_object_object_add(team, fields[i], json_object_get(v));
    }
    /* the limit of a hard quota follows the guarantee */
    for (size_t i = 0; quota && strcmp(quota, "hard") == 0 && i < ARRAY_LEN(derived); i++)
        json_object_object_del(cli_json_get(team, "limit"), derived[i]);
    return team;
}
