/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "store/row.h"
#include "store/store_private.h"

static int not_found(struct err *err, const char *what, const char *name)
{
    return err_set(err, -ENOENT, ERR_NOT_FOUND, NULL, NULL, "%s '%s' does not exist", what, name);
}

/* Positions on the one row that SQL yields: 1, 0 where there is none, or a negative errno. */
static int one_by_text(struct store *s, const char *sql, const char *key, struct query *q,
                       struct err *err)
{
    int r = query_begin(&s->readers, sql, q, err);
    if (r < 0)
        return r;
    sqlite3_bind_text(q->stmt, 1, key, -1, SQLITE_STATIC);
    return query_step(q, err);
}

/* Shape and launch, the two columns behind the workload's own. */
static int decode_parts(struct row *row, struct arena *arena, struct model_workload *w)
{
    const char *shape = row_text(row, "shape");
    const char *launch = row_text(row, "launch");
    if (row->status < 0)
        return row->status;
    struct err cause = ERR_INIT;
    if (model_shape_decode(shape, strlen(shape), arena, &w->shape, &cause) < 0)
        return row_refuse(row, "shape", arena_printf(arena, "a shape (%s)", cause.text));
    if (model_launch_decode(launch, strlen(launch), arena, &w->launch, &cause) < 0)
        return row_refuse(row, "launch", arena_printf(arena, "a launch (%s)", cause.text));
    return 0;
}

int read_get_workload(void *store, uint64_t id, struct arena *arena,
                      struct model_workload *ret_workload, struct err *err)
{
    struct store *s = store;
    _cleanup_query_ struct query q = QUERY_INIT;
    int r = query_begin(&s->readers,
                        "SELECT " ROW_WORKLOAD_COLUMNS ", s.json, l.json FROM workloads w"
                        " LEFT JOIN shapes s ON s.id = w.shape_id"
                        " LEFT JOIN launches l ON l.workload = w.id WHERE w.id = ?1",
                        &q, err);
    if (r < 0)
        return r;
    sqlite3_bind_int64(q.stmt, 1, (sqlite3_int64)id);
    r = query_step(&q, err);
    if (r < 0)
        return r;
    if (r == 0)
        return err_set(err, -ENOENT, ERR_NOT_FOUND, NULL, NULL, "workload %llu does not exist",
                       (unsigned long long)id);
    struct row row = row_begin(q.stmt, "workloads", err);
    struct row_workload found;
    r = row_workload(&row, &found);
    if (r == 0)
        r = decode_parts(&row, arena, &found.workload);
    if (r < 0)
        return r;
    struct model_workload *w = &found.workload;
    w->name = arena_strdup(arena, w->name);
    w->team = arena_strdup(arena, w->team);
    w->owner = arena_strdup(arena, w->owner);
    w->message = arena_strdup(arena, w->message);
    *ret_workload = *w;
    return 0;
}

int read_find_token(void *store, const uint8_t *hash, int64_t now_ms, struct arena *arena,
                    struct model_token *ret_token, struct model_user *ret_user, struct err *err)
{
    struct store *s = store;
    _cleanup_query_ struct query q = QUERY_INIT;
    int r = query_begin(&s->readers,
                        "SELECT " ROW_TOKEN_COLUMNS ", " ROW_USER_COLUMNS
                        " FROM tokens k JOIN users u ON u.name = k.user WHERE k.hash = ?1",
                        &q, err);
    if (r < 0)
        return r;
    sqlite3_bind_blob(q.stmt, 1, hash, MODEL_TOKEN_HASH_BYTES, SQLITE_STATIC);
    r = query_step(&q, err);
    if (r < 0)
        return r;
    if (r == 0)
        return err_set(err, -ENOENT, ERR_UNAUTHENTICATED, NULL, "log in with a valid token",
                       "the token is unknown");
    struct row row = row_begin(q.stmt, "tokens", err);
    struct model_token token;
    struct model_user user;
    r = row_token(&row, &token);
    if (r == 0)
        r = row_user(&row, arena, &user);
    if (r < 0)
        return r;
    if (token.expires_ms != 0 && token.expires_ms <= now_ms)
        return err_set(err, -ENOENT, ERR_UNAUTHENTICATED, NULL, "ask for a new token",
                       "the token has expired");
    token.user = arena_strdup(arena, token.user);
    token.label = arena_strdup(arena, token.label);
    user.name = arena_strdup(arena, user.name);
    *ret_token = token;
    *ret_user = user;
    return 0;
}

int read_get_team(void *store, const char *name, struct arena *arena, struct model_team *ret_team,
                  struct err *err)
{
    _cleanup_query_ struct query q = QUERY_INIT;
    int r = one_by_text(
        store, "SELECT " ROW_TEAM_COLUMNS ROW_TEAM_FROM "WHERE t.name = ?1 AND t.deleted = 0", name,
        &q, err);
    if (r <= 0)
        return r < 0 ? r : not_found(err, "team", name);
    struct row row = row_begin(q.stmt, "teams", err);
    struct model_team team;
    r = row_team(&row, arena, &team);
    if (r < 0)
        return r;
    team.name = arena_strdup(arena, team.name);
    team.parent = arena_strdup(arena, team.parent);
    *ret_team = team;
    return 0;
}

int read_get_meta(void *store, const char *key, struct arena *arena, const char **ret_value,
                  struct err *err)
{
    _cleanup_query_ struct query q = QUERY_INIT;
    int r = one_by_text(store, "SELECT value FROM meta WHERE key = ?1", key, &q, err);
    if (r <= 0)
        return r < 0 ? r : not_found(err, "stored key", key);
    struct row row = row_begin(q.stmt, "meta", err);
    const char *value = row_text(&row, "value");
    if (row.status == 0)
        *ret_value = arena_strdup(arena, value);
    return row.status;
}

int read_get_reply(void *store, const char *key, int64_t now_ms, struct arena *arena,
                   struct store_reply *ret_reply, struct err *err)
{
    _cleanup_query_ struct query q = QUERY_INIT;
    int r = one_by_text(
        store, "SELECT status, digest, body, expires_ms FROM replies WHERE key = ?1", key, &q, err);
    if (r < 0)
        return r;
    if (r > 0) {
        struct row row = row_begin(q.stmt, "replies", err);
        struct store_reply reply = {.key = key};
        reply.status = row_i32(&row, "status");
        reply.digest = row_text(&row, "digest");
        reply.body = row_text(&row, "body");
        reply.expires_ms = row_i64(&row, "expires_ms");
        if (row.status < 0)
            return row.status;
        if (reply.expires_ms > now_ms) {
            reply.key = arena_strdup(arena, key);
            reply.digest = arena_strdup(arena, reply.digest);
            reply.body = arena_strdup(arena, reply.body);
            *ret_reply = reply;
            return 0;
        }
    }
    return err_set(err, -ENOENT, ERR_NOT_FOUND, NULL, NULL, "no reply is kept under this key");
}
