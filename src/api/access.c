/* SPDX-License-Identifier: Apache-2.0 */
#include "api/internal.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>
#include <strings.h>

#include "api/token.h"
#include "base/clock.h"
#include "base/qty.h"
#include "base/vec.h"

#define SCHEME "Bearer "
#define GUARD_MS 5000 /* how long a revoked token may keep an open stream */
#define STALE_MS 1000 /* how old what is known of a token may be when a request is acted on */

static int denied(struct err *err, const char *what)
{
    return err_set(err, -EACCES, ERR_UNAUTHENTICATED, NULL,
                   "send 'Authorization: Bearer TOKEN'; an administrator makes tokens", "%s", what);
}

int call_authenticate(struct api_call *call, struct err *err)
{
    const struct api_config *config = &call->api->config;
    const char *header = http_request_header(call->http, "Authorization");
    uint8_t *hash = call->token_hash;
    struct model_token token;
    int r;

    if (header == NULL)
        return denied(err, "no token was given");
    if (strncasecmp(header, SCHEME, strlen(SCHEME)) != 0)
        return denied(err, "the Authorization header is not a bearer token");
    header += strlen(SCHEME);
    header += strspn(header, " ");
    api_token_hash(header, hash);
    call->asked_ms = clock_boot_ms();
    r = config->store->find_token(config->store_ctx, hash, core_now_ms(config->core),
                                  call_arena(call), &token, &call->user, err);
    if (r == -ENOENT)
        return denied(err, "the token is unknown or has expired");
    if (r < 0)
        return r;
    if (sodium_memcmp(token.hash, hash, MODEL_TOKEN_HASH_BYTES) != 0)
        return denied(err, "the token is unknown or has expired");
    return 0;
}

/* ---- teams ---------------------------------------------------------------------------------- */

struct team_node {
    uint64_t id, parent_id;
    const char *name;
    bool visible;
};

struct team_tree {
    const struct model_user *user;
    struct arena *arena;
    VEC(struct team_node) nodes;
    struct map by_id; /* id -> index + 1 */
};

static bool is_own(const struct model_user *user, const char *name)
{
    for (int32_t i = 0; i < user->team_count; i++)
        if (strcmp(user->teams[i], name) == 0)
            return true;
    return false;
}

static int take_team(void *arg, const struct model_team *team)
{
    struct team_tree *t = arg;
    struct team_node node = {team->id, team->parent_id, arena_strdup(t->arena, team->name),
                             is_own(t->user, team->name)};

    vec_push(&t->nodes, node);
    map_put(&t->by_id, node.id, (void *)(uintptr_t)t->nodes.len);
    return 0;
}

/* A team is seen if it or one above it is the caller's. */
static bool seen_from(const struct team_tree *t, const struct team_node *n)
{
    for (int depth = 0; n && depth <= MODEL_TEAM_DEPTH_MAX; depth++) {
        uintptr_t index = (uintptr_t)map_get(&t->by_id, n->parent_id);

        if (n->visible)
            return true;
        n = n->parent_id && index ? &t->nodes.items[index - 1] : NULL;
    }
    return false;
}

static int visible_teams(struct api *api, const struct model_user *user, struct arena *arena,
                         const char *const **ret_teams, int32_t *ret_count, struct err *err)
{
    const struct api_config *config = &api->config;
    struct team_tree t = {.user = user, .arena = arena};
    const char **names;
    int32_t n = 0;
    int r;

    *ret_teams = NULL;
    *ret_count = 0;
    if (user->admin)
        return 0;
    r = config->store->each_team(config->store_ctx, take_team, &t, err);
    names = arena_new_array(arena, const char *, t.nodes.len + 1);
    for (size_t i = 0; i < t.nodes.len; i++)
        if (seen_from(&t, &t.nodes.items[i]))
            names[n++] = t.nodes.items[i].name;
    vec_done(&t.nodes);
    map_done(&t.by_id);
    if (r < 0)
        return r;
    *ret_teams = names;
    *ret_count = n;
    return 0;
}

int call_visible_teams(struct api_call *call, const char *const **ret_teams, int32_t *ret_count,
                       struct err *err)
{
    return visible_teams(call->api, &call->user, call_arena(call), ret_teams, ret_count, err);
}

int call_teams_below(struct api_call *call, const char *name, const char *const **ret_teams,
                     int32_t *ret_count, struct err *err)
{
    const struct model_user member = {.teams = &name, .team_count = 1};

    return visible_teams(call->api, &member, call_arena(call), ret_teams, ret_count, err);
}

int call_teams_asked(struct api_call *call, const char *name, const char *const **ret_teams,
                     int32_t *ret_count, struct err *err)
{
    const char *const *below, *const *seen;
    const char **both;
    int32_t below_count, seen_count = 0, n = 0;
    int r = call_teams_below(call, name, &below, &below_count, err);

    if (r == 0)
        r = call_visible_teams(call, &seen, &seen_count, err);
    if (r < 0)
        return r;
    both = arena_new_array(call_arena(call), const char *, (size_t)below_count + 1);
    for (int32_t i = 0; i < below_count; i++)
        if (api_teams_have(seen, seen_count, below[i]))
            both[n++] = below[i];
    if (below_count == 0 && api_teams_have(seen, seen_count, name))
        both[n++] = name;
    *ret_teams = both;
    *ret_count = n;
    return 0;
}

const char *const *api_teams_copy(const char *const *teams, int32_t count, struct arena *arena)
{
    const char **copy;

    if (teams == NULL)
        return NULL;
    copy = arena_new_array(arena, const char *, (size_t)count + 1);
    for (int32_t i = 0; i < count; i++)
        copy[i] = arena_strdup(arena, teams[i]);
    return copy;
}

bool api_teams_have(const char *const *teams, int32_t count, const char *name)
{
    for (int32_t i = 0; teams && i < count; i++)
        if (strcmp(teams[i], name) == 0)
            return true;
    return teams == NULL;
}

int call_sees_team(struct api_call *call, const char *name, struct err *err)
{
    const char *const *teams;
    int32_t count;
    int r;

    if (call->user.admin || (name && is_own(&call->user, name)))
        return 1;
    r = call_visible_teams(call, &teams, &count, err);
    return r < 0 ? r : name && api_teams_have(teams, count, name);
}

/* ---- long answers --------------------------------------------------------------------------- */

static uint64_t rights_of(const struct model_user *u)
{
    uint64_t h = map_hash(&u->admin, sizeof(u->admin));

    for (int32_t i = 0; i < u->team_count; i++)
        h = h * 31 + map_hash(u->teams[i], strlen(u->teams[i]));
    return h;
}

bool call_is_stale(const struct api_call *call)
{
    return clock_boot_ms() - call->asked_ms > STALE_MS;
}

void api_guard_init(struct api_guard *g, const struct api_call *call, const char *const *teams,
                    int32_t team_count)
{
    memcpy(g->hash, call->token_hash, sizeof(g->hash));
    g->rights = rights_of(&call->user);
    g->teams = teams;
    g->team_count = team_count;
    g->check_ms = clock_boot_ms() + GUARD_MS;
}

/* Both lists are in the order of the store. */
static bool still_sees(const struct api_guard *g, const char *const *teams, int32_t count)
{
    int32_t at = 0;

    for (int32_t i = 0; i < g->team_count; i++, at++) {
        while (at < count && strcmp(teams[at], g->teams[i]) != 0)
            at++;
        if (at >= count)
            return false;
    }
    return true;
}

static int guard_ask(const struct api_guard *g, struct api *api, struct arena *arena, bool *ret_ok)
{
    const struct api_config *config = &api->config;
    const char *const *teams;
    struct model_token token;
    struct model_user user;
    int32_t count;
    int r = config->store->find_token(config->store_ctx, g->hash, core_now_ms(config->core), arena,
                                      &token, &user, NULL);

    if (r < 0)
        return r;
    *ret_ok = rights_of(&user) == g->rights;
    if (!*ret_ok || user.admin || g->teams == NULL)
        return 0;
    r = visible_teams(api, &user, arena, &teams, &count, NULL);
    if (r == 0)
        *ret_ok = still_sees(g, teams, count);
    return r;
}

bool api_guard_check(struct api_guard *g, struct api *api)
{
    struct arena arena = ARENA_INIT;
    bool ok = false;
    int r;

    if (clock_boot_ms() < g->check_ms)
        return true;
    g->check_ms = clock_boot_ms() + GUARD_MS;
    r = guard_ask(g, api, &arena, &ok);
    arena_done(&arena);
    /* A store that cannot be read now is asked again. */
    return r < 0 ? r != -ENOENT : ok;
}

/* ---- workloads by id or name ---------------------------------------------------------------- */

static int unknown_workload(const char *text, struct err *err)
{
    return err_set(err, -ENOENT, ERR_NOT_FOUND, "id", "see 'allot ps --all'",
                   "there is no workload '%.100s'", text);
}

/* Newest first: the only live one, else the newest. */
struct by_name {
    uint64_t live, newest;
    int live_count;
};

static int take_named(void *arg, const struct store_workload_row *row)
{
    struct by_name *b = arg;

    if (b->newest == 0)
        b->newest = row->workload->id;
    if (model_workload_state_is_final(row->workload->state))
        return 0;
    b->live = row->workload->id;
    b->live_count++;
    return 0;
}

static int find_by_name(struct api_call *call, const char *text, uint64_t *ret_id, struct err *err)
{
    const struct api_config *config = &call->api->config;
    struct store_workload_filter filter = {.name = text, .limit = API_LIST_DEFAULT};
    const char *colon = strchr(text, ':');
    struct by_name found = {0};
    int r;

    if (colon) {
        filter.team = arena_strndup(call_arena(call), text, (size_t)(colon - text));
        filter.name = colon + 1;
    }
    r = call_visible_teams(call, &filter.teams, &filter.team_count, err);
    if (r == 0)
        r = config->store->list_workloads(config->store_ctx, &filter, take_named, &found, err);
    if (r < 0)
        return r;
    if (found.newest == 0)
        return unknown_workload(text, err);
    if (found.live_count > 1)
        return err_set(err, -EEXIST, ERR_CONFLICT, "id", "use its number, or TEAM:NAME",
                       "%d live workloads are called '%.100s'", found.live_count, text);
    *ret_id = found.live_count == 1 ? found.live : found.newest;
    return 0;
}

int call_find_workload(struct api_call *call, const char *text, struct model_workload *ret,
                       struct err *err)
{
    const struct api_config *config = &call->api->config;
    int64_t number;
    uint64_t id = 0;
    int r = 0;

    if (qty_parse_int(text, &number, NULL) == 0)
        id = (uint64_t)number;
    else
        r = find_by_name(call, text, &id, err);
    if (r < 0)
        return r;
    r = config->store->get_workload(config->store_ctx, id, call_arena(call), ret, err);
    if (r == -ENOENT)
        return unknown_workload(text, err);
    if (r < 0)
        return r;
    r = call_sees_team(call, ret->team, err);
    if (r < 0)
        return r;
    return r ? 0 : unknown_workload(text, err);
}

/* ---- tasks ---------------------------------------------------------------------------------- */

static int take_task(void *arg, const struct model_task *t)
{
    struct api_task *wanted = arg;

    if (t->index < wanted->index)
        return 0;
    if (t->index == wanted->index) {
        wanted->attempt = t->attempt;
        wanted->state = t->state;
        wanted->runs = t->state == MODEL_TASK_RUNNING || t->state == MODEL_TASK_SUSPENDED ||
                       (t->state == MODEL_TASK_STARTING && t->started_ms > 0);
    }
    return 1; /* they come in order */
}

int api_find_task(struct api *api, uint64_t workload, int32_t index, struct api_task *ret,
                  struct err *err)
{
    int r;

    *ret = (struct api_task){.index = index};
    r = api->config.store->list_tasks(api->config.store_ctx, workload, take_task, ret, err);
    return r < 0 ? r : 0;
}
