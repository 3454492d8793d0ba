/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists. The text of a statement depends on the filter's form only, its values are bound, so
 * that statements are reused.
 *
 * A page of workloads walks down by id and stops when it is full, on the narrowest of three
 * paths: live workloads, one team's workloads, or all of them. A list of teams is one bound JSON
 * array, whatever its length.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json_writer.h"
#include "base/strbuf.h"
#include "store/row.h"
#include "store/schema.h"
#include "store/store_private.h"

#define PAGE_MAX 1000

#define STATE_BIT(s) (1u << (s))
#define LIVE_MASK                                                            \
    (STATE_BIT(MODEL_WORKLOAD_PENDING) | STATE_BIT(MODEL_WORKLOAD_RUNNING) | \
     STATE_BIT(MODEL_WORKLOAD_SUSPENDED) | STATE_BIT(MODEL_WORKLOAD_STOPPING))

static int check_limit(int32_t limit, struct err *err)
{
    if (limit >= 1 && limit <= PAGE_MAX)
        return 0;
    return err_set(err, -EINVAL, ERR_OUT_OF_RANGE, "limit", "use 1 to 1000",
                   "limit %d is out of range", limit);
}

/* ["a","b"] for json_each(). */
static void teams_json(const char *const *teams, int32_t count, struct strbuf *out)
{
    struct json_writer w;
    json_writer_init(&w, out);
    json_begin_array(&w);
    for (int32_t i = 0; i < count; i++)
        json_string(&w, teams[i]);
    json_end_array(&w);
}

static void bind_named_text(sqlite3_stmt *stmt, const char *name, const char *text)
{
    int i = sqlite3_bind_parameter_index(stmt, name);
    if (i > 0)
        sqlite3_bind_text(stmt, i, text, -1, SQLITE_STATIC);
}

static void bind_named_id(sqlite3_stmt *stmt, const char *name, uint64_t id)
{
    int i = sqlite3_bind_parameter_index(stmt, name);
    /* Ids end at INT64_MAX: anything above it is behind all of them. */
    if (i > 0)
        sqlite3_bind_int64(stmt, i, id > INT64_MAX ? INT64_MAX : (sqlite3_int64)id);
}

/* ---- workloads ----------------------------------------------------------------------------- */

typedef const char *name_fn(int value);

static const char *state_name(int v)
{
    return model_workload_state_name((enum model_workload_state)v);
}

static const char *kind_name(int v)
{
    return model_kind_name((enum model_kind)v);
}

static const char *class_name(int v)
{
    return model_class_name((enum model_class)v);
}

/* " AND COLUMN IN ('a', 'b')"; the words are the model's own, never input. */
static void add_mask(struct strbuf *sql, const char *column, uint32_t mask, int count,
                     name_fn *name)
{
    if (mask == 0)
        return;
    strbuf_addf(sql, " AND %s IN (", column);
    const char *comma = "";
    for (int v = 0; v < count; v++) {
        if (!(mask & (1u << v)))
            continue;
        strbuf_addf(sql, "%s'%s'", comma, name(v));
        comma = ", ";
    }
    strbuf_addc(sql, ')');
}

/* The path and, for the live one, the condition that SQLite wants to see for its index. */
static const char *workload_path(const struct store_workload_filter *f)
{
    if (f->states != 0 && (f->states & ~LIVE_MASK) == 0)
        return " INDEXED BY workloads_live"
               " WHERE w.state IN (" SCHEMA_LIVE ") AND w.id < :before";
    if (f->team)
        return " INDEXED BY workloads_team WHERE w.id < :before";
    return " NOT INDEXED WHERE w.id < :before";
}

static void workload_sql(const struct store_workload_filter *f, struct strbuf *sql)
{
    strbuf_adds(sql, "SELECT " ROW_WORKLOAD_COLUMNS
                     ", (SELECT json FROM shapes WHERE id = w.shape_id) FROM workloads w");
    strbuf_adds(sql, workload_path(f));
    if (f->team)
        strbuf_adds(sql, " AND w.team = :team");
    if (f->owner)
        strbuf_adds(sql, " AND w.owner = :owner");
    if (f->name)
        strbuf_adds(sql, " AND w.name = :name");
    if (f->teams)
        strbuf_adds(sql, " AND w.team IN (SELECT value FROM json_each(:teams))");
    add_mask(sql, "w.state", f->states, MODEL_WORKLOAD_STATE_COUNT, state_name);
    add_mask(sql, "w.kind", f->kinds, MODEL_KIND_COUNT, kind_name);
    add_mask(sql, "w.class", f->classes, MODEL_CLASS_COUNT, class_name);
    strbuf_adds(sql, " ORDER BY w.id DESC LIMIT :limit");
}

/* Shapes decoded for one page: many workloads share few. */
struct shape_cache {
    struct arena arena;
    struct map by_id;
};

static void shape_cache_done(struct shape_cache *c)
{
    map_done(&c->by_id);
    arena_done(&c->arena);
}

static int decode_shape(struct shape_cache *c, struct row *row, uint64_t id, const char *json,
                        const struct model_shape **ret_shape)
{
    const struct model_shape *shape = map_get(&c->by_id, id);
    if (!shape) {
        struct err cause = ERR_INIT;
        if (!json || model_shape_decode(json, strlen(json), &c->arena, &shape, &cause) < 0)
            return row_refuse(row, "shape", arena_printf(&c->arena, "a shape (%s)", cause.text));
        map_put(&c->by_id, id, (void *)(uintptr_t)shape);
    }
    *ret_shape = shape;
    return 0;
}

static int emit_workload(struct query *q, struct shape_cache *cache, store_workload_fn *fn,
                         void *user, struct err *err)
{
    struct row row = row_begin(q->stmt, "workloads", err);
    struct row_workload w;
    int r = row_workload(&row, &w);
    if (r < 0)
        return r;
    const char *json = row_text(&row, "shape");
    r = row.status < 0 ? row.status
                       : decode_shape(cache, &row, w.shape_id, json, &w.workload.shape);
    if (r < 0)
        return r;
    struct store_workload_row out = {.workload = &w.workload,
                                     .shape_id = w.shape_id,
                                     .shape_json = json,
                                     .gpu_milli = w.gpu_milli};
    return fn(user, &out);
}

int read_list_workloads(void *store, const struct store_workload_filter *filter,
                        store_workload_fn *fn, void *user, struct err *err)
{
    struct store *s = store;
    int r = check_limit(filter->limit, err);
    if (r < 0)
        return r;
    _cleanup_strbuf_ struct strbuf sql = STRBUF_INIT;
    _cleanup_strbuf_ struct strbuf teams = STRBUF_INIT;
    workload_sql(filter, &sql);
    if (filter->teams)
        teams_json(filter->teams, filter->team_count, &teams);

    struct shape_cache cache __attribute__((cleanup(shape_cache_done))) = {0};
    _cleanup_query_ struct query q = QUERY_INIT;
    r = query_begin(&s->readers, strbuf_str(&sql), &q, err);
    if (r < 0)
        return r;
    bind_named_id(q.stmt, ":before", filter->before_id ? filter->before_id : INT64_MAX);
    bind_named_id(q.stmt, ":limit", (uint64_t)filter->limit);
    bind_named_text(q.stmt, ":team", filter->team);
    bind_named_text(q.stmt, ":owner", filter->owner);
    bind_named_text(q.stmt, ":name", filter->name);
    bind_named_text(q.stmt, ":teams", strbuf_str(&teams));
    while (r == 0 && (r = query_step(&q, err)) > 0)
        r = emit_workload(&q, &cache, fn, user, err);
    return r;
}

/* ---- tasks and allocations ------------------------------------------------------------------ */

int read_task_rows(struct query *q, store_task_fn *fn, void *user, struct err *err)
{
    uint16_t devices[MODEL_GPUS_MAX];
    int r = 0;
    while (r == 0 && (r = query_step(q, err)) > 0) {
        struct row row = row_begin(q->stmt, "tasks", err);
        struct model_task task;
        r = row_task(&row, devices, &task);
        if (r == 0)
            r = fn(user, &task);
    }
    return r;
}

int read_allocation_rows(struct query *q, store_allocation_fn *fn, void *user, struct err *err)
{
    uint16_t devices[MODEL_GPUS_MAX];
    int r = 0;
    while (r == 0 && (r = query_step(q, err)) > 0) {
        struct row row = row_begin(q->stmt, "allocations", err);
        struct model_allocation allocation;
        r = row_allocation(&row, devices, &allocation);
        if (r == 0)
            r = fn(user, &allocation);
    }
    return r;
}

int read_list_tasks(void *store, uint64_t workload, store_task_fn *fn, void *user, struct err *err)
{
    struct store *s = store;
    _cleanup_query_ struct query q = QUERY_INIT;
    int r =
        query_begin(&s->readers,
                    "SELECT " ROW_TASK_COLUMNS " FROM tasks t LEFT JOIN nodes n ON n.id = t.node"
                    " WHERE t.workload = :workload ORDER BY t.idx",
                    &q, err);
    if (r < 0)
        return r;
    bind_named_id(q.stmt, ":workload", workload);
    return read_task_rows(&q, fn, user, err);
}

int read_list_allocations(void *store, uint64_t workload, store_allocation_fn *fn, void *user,
                          struct err *err)
{
    struct store *s = store;
    _cleanup_query_ struct query q = QUERY_INIT;
    int r = query_begin(&s->readers,
                        "SELECT " ROW_ALLOCATION_COLUMNS
                        " FROM allocations WHERE workload = :workload ORDER BY id",
                        &q, err);
    if (r < 0)
        return r;
    bind_named_id(q.stmt, ":workload", workload);
    return read_allocation_rows(&q, fn, user, err);
}

/* ---- events -------------------------------------------------------------------------------- */

static void event_sql(const struct store_event_filter *f, struct strbuf *sql)
{
    if (f->newest)
        strbuf_adds(sql, "SELECT * FROM (");
    strbuf_adds(sql, "SELECT " ROW_EVENT_COLUMNS " FROM events WHERE seq > :after");
    if (f->workload)
        strbuf_adds(sql, " AND workload = :workload");
    if (f->teams)
        strbuf_adds(sql, " AND team IN (SELECT value FROM json_each(:teams))");
    strbuf_adds(sql, f->newest ? " ORDER BY seq DESC LIMIT :limit) ORDER BY seq"
                               : " ORDER BY seq LIMIT :limit");
}

int read_list_events(void *store, const struct store_event_filter *filter, store_event_fn *fn,
                     void *user, struct err *err)
{
    struct store *s = store;
    int r = check_limit(filter->limit, err);
    if (r < 0)
        return r;
    _cleanup_strbuf_ struct strbuf sql = STRBUF_INIT;
    _cleanup_strbuf_ struct strbuf teams = STRBUF_INIT;
    event_sql(filter, &sql);
    if (filter->teams)
        teams_json(filter->teams, filter->team_count, &teams);
    _cleanup_query_ struct query q = QUERY_INIT;
    r = query_begin(&s->readers, strbuf_str(&sql), &q, err);
    if (r < 0)
        return r;
    bind_named_id(q.stmt, ":after", filter->after_seq);
    bind_named_id(q.stmt, ":workload", filter->workload);
    bind_named_id(q.stmt, ":limit", (uint64_t)filter->limit);
    bind_named_text(q.stmt, ":teams", strbuf_str(&teams));
    while (r == 0 && (r = query_step(&q, err)) > 0) {
        struct row row = row_begin(q.stmt, "events", err);
        struct model_event event;
        r = row_event(&row, &event);
        if (r == 0)
            r = fn(user, &event);
    }
    return r;
}
