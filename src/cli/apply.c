/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/apply.h"

#include <errno.h>
#include <json-c/json.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/session.h"
#include "model/json.h"
#include "model/team.h"
#include "model/workload.h"

/* The decoders of the server, on the very bodies that will be sent. */
static int check_body(struct cli *cli, struct cli_apply_item *item, struct err *err)
{
    _cleanup_json_ struct json_object *json = NULL;
    int r = model_json_parse(item->manifest.body, strlen(item->manifest.body), &json, err);

    if (r < 0)
        return r;
    if (item->manifest.kind == MODEL_MANIFEST_TEAM) {
        struct model_team *team = arena_new(&cli->arena, struct model_team);

        model_team_init(team);
        item->team = team;
        return model_team_decode(json, &cli->arena, team, err);
    }
    struct model_workload w = {0};

    r = model_workload_decode(json, &cli->arena, &w, err);
    item->workload_team = w.team;
    return r;
}

static int add(struct cli *cli, const struct cli_document *doc, struct cli_apply_plan *plan,
               struct err *err)
{
    struct cli_apply_item item = {.document = doc};
    int r = model_manifest_decode(doc->json, &cli->arena, &item.manifest, err);

    if (r == 0)
        r = check_body(cli, &item, err);
    if (r < 0)
        return r;
    for (size_t i = 0; item.team && i < plan->len; i++)
        if (plan->items[i].team && strcmp(plan->items[i].team->name, item.team->name) == 0)
            return err_set(err, -EINVAL, ERR_CONFLICT, NULL, "keep one of them",
                           "team '%.80s' stands in two documents", item.team->name);
    if (item.manifest.ignored)
        fprintf(cli->err, "warning: %s, document %zu: ignored: %s\n", cli_safe(cli, doc->path),
                doc->number, cli_safe(cli, item.manifest.ignored));
    vec_push(plan, item);
    return 0;
}

/* Is the parent of T among the items from AT on, that is, not applied yet? */
static bool parent_follows(const struct cli_apply_plan *plan, size_t at, const struct model_team *t)
{
    for (size_t i = at; t->parent && i < plan->len; i++)
        if (plan->items[i].team && strcmp(plan->items[i].team->name, t->parent) == 0)
            return true;
    return false;
}

static void move(struct cli_apply_plan *plan, size_t from, size_t to)
{
    struct cli_apply_item item = plan->items[from];

    memmove(&plan->items[to + 1], &plan->items[to], (from - to) * sizeof(item));
    plan->items[to] = item;
}

/* Selects, again and again, the first team whose parent does not follow. */
static int order(struct cli_apply_plan *plan, struct err *err)
{
    size_t teams = 0;

    for (size_t i = 0; i < plan->len; i++)
        if (plan->items[i].team)
            move(plan, i, teams++);
    for (size_t at = 0; at < teams; at++) {
        size_t next = at;

        while (next < teams && parent_follows(plan, at, plan->items[next].team))
            next++;
        if (next == teams) {
            int r = err_set(err, -EINVAL, ERR_CONFLICT, "parent", "break the circle",
                            "team '%.80s' is its own ancestor", plan->items[at].team->name);

            cli_documents_locate(plan->items[at].document, err);
            return r;
        }
        move(plan, next, at);
    }
    return 0;
}

int cli_apply_prepare(struct cli *cli, const struct cli_documents *docs,
                      struct cli_apply_plan *ret_plan, struct err *err)
{
    for (size_t i = 0; i < docs->len; i++) {
        int r = add(cli, &docs->items[i], ret_plan, err);

        if (r < 0) {
            cli_documents_locate(&docs->items[i], err);
            return r;
        }
    }
    return order(ret_plan, err);
}
