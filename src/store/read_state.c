/* SPDX-License-Identifier: Apache-2.0 */
#include "store/row.h"
#include "store/schema.h"
#include "store/store_private.h"

#define LIVE "w.state IN (" SCHEMA_LIVE ")"

int read_each_shape(void *store, store_shape_fn *fn, void *user, struct err *err)
{
    struct store *s = store;
    _cleanup_query_ struct query q = QUERY_INIT;
    int r = query_begin(&s->readers, "SELECT id, json FROM shapes ORDER BY id", &q, err);
    while (r == 0 && (r = query_step(&q, err)) > 0) {
        struct row row = row_begin(q.stmt, "shapes", err);
        uint64_t id = row_id(&row, "id");
        const char *json = row_text(&row, "json");
        r = row.status < 0 ? row.status : fn(user, id, json);
    }
    return r;
}

int read_each_team(void *store, store_team_fn *fn, void *user, struct err *err)
{
    struct store *s = store;
    struct arena arena __attribute__((cleanup(arena_done))) = ARENA_INIT;
    _cleanup_query_ struct query q = QUERY_INIT;
    int r = query_begin(
        &s->readers, "SELECT " ROW_TEAM_COLUMNS ROW_TEAM_FROM "WHERE t.deleted = 0 ORDER BY t.id",
        &q, err);
    while (r == 0 && (r = query_step(&q, err)) > 0) {
        struct row row = row_begin(q.stmt, "teams", err);
        struct model_team team;
        r = row_team(&row, &arena, &team);
        if (r == 0)
            r = fn(user, &team);
        arena_reset(&arena);
    }
    return r;
}

int read_each_node(void *store, store_node_fn *fn, void *user, struct err *err)
{
    struct store *s = store;
    struct arena arena __attribute__((cleanup(arena_done))) = ARENA_INIT;
    _cleanup_query_ struct query q = QUERY_INIT;
    int r = query_begin(&s->readers, "SELECT " ROW_NODE_COLUMNS " FROM nodes ORDER BY id", &q, err);
    while (r == 0 && (r = query_step(&q, err)) > 0) {
        struct row row = row_begin(q.stmt, "nodes", err);
        struct model_node node;
        arena_reset(&arena);
        r = row_node(&row, &arena, &node);
        if (r == 0)
            r = fn(user, &node);
    }
    return r;
}

int read_each_user(void *store, store_user_fn *fn, void *user, struct err *err)
{
    struct store *s = store;
    struct arena arena __attribute__((cleanup(arena_done))) = ARENA_INIT;
    _cleanup_query_ struct query q = QUERY_INIT;
    int r = query_begin(&s->readers, "SELECT " ROW_USER_COLUMNS " FROM users u ORDER BY u.name", &q,
                        err);
    while (r == 0 && (r = query_step(&q, err)) > 0) {
        struct row row = row_begin(q.stmt, "users", err);
        struct model_user u;
        arena_reset(&arena);
        r = row_user(&row, &arena, &u);
        if (r == 0)
            r = fn(user, &u);
    }
    return r;
}

int read_each_token(void *store, const char *owner, store_token_fn *fn, void *user, struct err *err)
{
    struct store *s = store;
    _cleanup_query_ struct query q = QUERY_INIT;
    int r = query_begin(&s->readers,
                        owner ? "SELECT " ROW_TOKEN_COLUMNS " FROM tokens k WHERE k.user = ?1"
                                " ORDER BY k.id"
                              : "SELECT " ROW_TOKEN_COLUMNS " FROM tokens k ORDER BY k.id",
                        &q, err);
    if (r == 0 && owner)
        sqlite3_bind_text(q.stmt, 1, owner, -1, SQLITE_STATIC);
    while (r == 0 && (r = query_step(&q, err)) > 0) {
        struct row row = row_begin(q.stmt, "tokens", err);
        struct model_token token;
        r = row_token(&row, &token);
        if (r == 0)
            r = fn(user, &token);
    }
    return r;
}

int read_each_live_workload(void *store, store_workload_fn *fn, void *user, struct err *err)
{
    struct store *s = store;
    _cleanup_query_ struct query q = QUERY_INIT;
    int r = query_begin(&s->readers,
                        "SELECT " ROW_WORKLOAD_COLUMNS
                        " FROM workloads w INDEXED BY workloads_live WHERE " LIVE " ORDER BY w.id",
                        &q, err);
    while (r == 0 && (r = query_step(&q, err)) > 0) {
        struct row row = row_begin(q.stmt, "workloads", err);
        struct row_workload w;
        r = row_workload(&row, &w);
        if (r < 0)
            break;
        struct store_workload_row out = {
            .workload = &w.workload, .shape_id = w.shape_id, .gpu_milli = w.gpu_milli};
        r = fn(user, &out);
    }
    return r;
}

int read_each_live_task(void *store, store_task_fn *fn, void *user, struct err *err)
{
    struct store *s = store;
    _cleanup_query_ struct query q = QUERY_INIT;
    /* CROSS JOIN fixes the order of the loops: tasks of ended workloads are never visited. */
    int r = query_begin(&s->readers,
                        "SELECT " ROW_TASK_COLUMNS " FROM workloads w INDEXED BY workloads_live"
                        " CROSS JOIN tasks t ON t.workload = w.id"
                        " LEFT JOIN nodes n ON n.id = t.node WHERE " LIVE " ORDER BY w.id, t.idx",
                        &q, err);
    return r < 0 ? r : read_task_rows(&q, fn, user, err);
}

int read_each_open_allocation(void *store, store_allocation_fn *fn, void *user, struct err *err)
{
    struct store *s = store;
    _cleanup_query_ struct query q = QUERY_INIT;
    int r = query_begin(
        &s->readers,
        "SELECT " ROW_ALLOCATION_COLUMNS " FROM allocations WHERE end_ms = 0 ORDER BY id", &q, err);
    return r < 0 ? r : read_allocation_rows(&q, fn, user, err);
}

int read_last_ids(void *store, uint64_t *ret_workload, uint64_t *ret_event, uint64_t *ret_other,
                  struct err *err)
{
    struct store *s = store;
    _cleanup_query_ struct query q = QUERY_INIT;
    int r = query_begin(&s->readers,
                        "SELECT (SELECT max(id) FROM workloads), (SELECT max(seq) FROM events),"
                        " max((SELECT coalesce(max(id), 0) FROM teams),"
                        " (SELECT coalesce(max(id), 0) FROM nodes),"
                        " (SELECT coalesce(max(id), 0) FROM allocations),"
                        " (SELECT coalesce(max(id), 0) FROM shapes),"
                        " (SELECT coalesce(max(seq), 0) FROM sqlite_sequence"
                        "  WHERE name = 'tokens'))",
                        &q, err);
    if (r == 0)
        r = query_step(&q, err);
    if (r < 0)
        return r;
    struct row row = row_begin(q.stmt, "the largest ids", err);
    uint64_t workload = row_id(&row, "workload");
    uint64_t event = row_id(&row, "event");
    uint64_t other = row_id(&row, "other");
    if (row.status < 0)
        return row.status;
    *ret_workload = workload;
    *ret_event = event;
    *ret_other = other;
    return 0;
}
