/* SPDX-License-Identifier: Apache-2.0 */
#include "store/history.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json_writer.h"
#include "store/row.h"
#include "store/schema.h"
#include "store/store_private.h"

#define HISTORY_VERSION 2
#define ROWS_PIECE 200
#define RUNS_PIECE 1000 /* one workload may have thousands, and many times over */

/* Parents first: a team may have been put below a younger one. */
#define TEAM_ORDER                                                                   \
    "ORDER BY (WITH RECURSIVE up(id, n) AS (SELECT t.parent_id, 0 UNION ALL"         \
    " SELECT x.parent_id, n + 1 FROM up JOIN teams x ON x.id = up.id WHERE n < 100)" \
    " SELECT max(n) FROM up), t.id"

enum section {
    SECTION_HEAD,
    SECTION_NODES,
    SECTION_EVENTS,
    SECTION_WORKLOADS, /* some of them, then their runs, and so on */
    SECTION_RUNS,
    SECTION_END
};

/* One piece in the making. */
struct piece {
    struct db *db;
    struct store_history_at *at;
    struct strbuf *out;
    struct arena arena; /* of one row */
    uint64_t last;      /* id of the row written last */
    int rows;
};

static void line_end(struct piece *p, struct json_writer *w)
{
    json_end_object(w);
    strbuf_addc(p->out, '\n');
}

static void line_begin(struct piece *p, struct json_writer *w)
{
    json_writer_init(w, p->out);
    json_begin_object(w);
}

/* Calls WRITE for each row of STMT, which it releases. */
static int each_row(struct piece *p, sqlite3_stmt *stmt, const char *table,
                    void (*write)(struct piece *p, struct row *row), struct err *err)
{
    int r = 0, rc;

    p->rows = 0;
    while (r == 0 && (rc = sqlite3_step(stmt)) != SQLITE_DONE) {
        if (rc != SQLITE_ROW) {
            r = db_error(p->db, rc, err);
            break;
        }
        struct row row = row_begin(stmt, table, err);
        write(p, &row);
        r = row.status;
        p->rows++;
        arena_reset(&p->arena);
    }
    db_release(stmt);
    return r;
}

/* Calls WRITE for each row of SQL; its parameters are FROM, TO and ROWS_PIECE. */
static int each(struct piece *p, const char *sql, const char *table, uint64_t from, uint64_t to,
                void (*write)(struct piece *p, struct row *row), struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int r = db_prepare(p->db, sql, &stmt, err);

    if (r < 0)
        return r;
    sqlite3_bind_int64(stmt, 1, (sqlite3_int64)from);
    sqlite3_bind_int64(stmt, 2, (sqlite3_int64)to);
    sqlite3_bind_int64(stmt, 3, ROWS_PIECE);
    return each_row(p, stmt, table, write, err);
}

/* ---- lines -------------------------------------------------------------------------------- */

static void write_team(struct piece *p, struct row *row)
{
    struct model_team team;
    struct json_writer w;

    if (row_team(row, &p->arena, &team) < 0)
        return;
    int64_t deleted = row_int(row, "deleted", 0, 1);
    line_begin(p, &w);
    json_key_i64(&w, "team", (int64_t)team.id);
    json_key_i64(&w, "parent", (int64_t)team.parent_id);
    json_key_bool(&w, "deleted", deleted != 0);
    json_key(&w, "spec");
    model_team_encode(&team, &w);
    line_end(p, &w);
}

static void write_node(struct piece *p, struct row *row)
{
    struct model_node node = {0};
    struct json_writer w;

    if (row_node(row, &p->arena, &node) < 0)
        return;
    p->last = node.id;
    line_begin(p, &w);
    json_key_i64(&w, "node", (int64_t)node.id);
    json_key(&w, "spec");
    model_node_encode(&node, &w);
    line_end(p, &w);
}

/* Those without data were recorded before there was any. */
static void write_change(struct piece *p, struct row *row)
{
    struct model_event e;
    struct json_writer w;

    if (row_event(row, &e) < 0)
        return;
    p->last = e.seq;
    if (e.data == NULL)
        return;
    line_begin(p, &w);
    json_key_string(&w, "change", e.team ? "team" : e.node ? "node" : "server");
    json_key_i64(&w, "time_ms", e.time_ms);
    json_key(&w, "data");
    json_raw(&w, e.data, strlen(e.data));
    line_end(p, &w);
}

/* A time that is still to come has not happened. */
static int64_t happened(const struct piece *p, int64_t ms)
{
    return ms > p->at->now_ms ? 0 : ms;
}

static void write_workload(struct piece *p, struct row *row)
{
    struct row_workload v;
    struct json_writer w;

    if (row_workload(row, &v) < 0)
        return;
    const char *shape = row_text(row, "shape");
    if (row->status < 0)
        return;
    p->last = v.workload.id;
    p->at->workloads++;
    line_begin(p, &w);
    json_key_i64(&w, "workload", (int64_t)v.workload.id);
    json_key_string(&w, "name", v.workload.name);
    json_key_i64(&w, "team", (int64_t)v.workload.team_id);
    json_key_string(&w, "state", model_workload_state_name(v.workload.state));
    json_key_i64(&w, "submitted_ms", v.workload.submitted_ms);
    json_key_i64(&w, "started_ms", happened(p, v.workload.started_ms));
    json_key_i64(&w, "ended_ms", happened(p, v.workload.ended_ms));
    json_key_i64(&w, "restarts", v.workload.restarts);
    json_key_i64(&w, "failures", v.workload.failures);
    json_key(&w, "shape");
    json_raw(&w, shape, strlen(shape));
    line_end(p, &w);
}

static void write_run(struct piece *p, struct row *row)
{
    uint16_t devices[MODEL_GPUS_MAX];
    struct model_allocation a;
    struct json_writer w;

    if (row_allocation(row, devices, &a) < 0)
        return;
    p->at->run_workload = a.workload;
    p->at->run_last = a.id;
    if (a.start_ms > p->at->now_ms)
        return;
    bool open = happened(p, a.end_ms) == 0;
    p->at->runs++;
    line_begin(p, &w);
    json_key(&w, "run");
    json_begin_array(&w);
    json_i64(&w, (int64_t)a.workload);
    json_i64(&w, a.task);
    json_i64(&w, a.attempt);
    json_i64(&w, a.gpu_milli);
    json_i64(&w, a.start_ms);
    json_i64(&w, open ? 0 : a.end_ms);
    json_i64(&w, a.busy_ns / NS_PER_MS);
    json_i64(&w, (int64_t)a.node);
    json_i64(&w, happened(p, a.stopping_ms));
    json_end_array(&w);
    json_key_string(&w, "how", model_release_name(open ? MODEL_RELEASE_NONE : a.release));
    line_end(p, &w);
}

/* ---- pieces ------------------------------------------------------------------------------- */

/* The last time at which anything was recorded: there is an event of everything but usage. */
static const char newest[] =
    "SELECT max(coalesce((SELECT time_ms FROM events ORDER BY seq DESC LIMIT 1), 0),"
    " coalesce((SELECT max(end_ms) FROM allocations), 0),"
    " coalesce((SELECT max(seen_ms) FROM allocations WHERE end_ms = 0), 0))";

/* Time of the first event that is left where earlier ones were dropped, or of the last change of a
 * team or node that was written down without what it changed. */
static const char oldest[] = "SELECT max(coalesce((SELECT CASE WHEN seq > 1 THEN time_ms ELSE 0 END"
                             " FROM events ORDER BY seq LIMIT 1), 0),"
                             " coalesce((SELECT max(time_ms) FROM events INDEXED BY events_changes"
                             " WHERE type IN (" SCHEMA_CHANGES ") AND type <> '" MODEL_EVENT_SERVER
                             "' AND data IS NULL), 0))";

/* Sets the end of what is read; teams come with it, so that it names those of all workloads. */
static int write_head(struct piece *p, struct err *err)
{
    sqlite3_int64 now_ms, from_ms, workload, event;
    struct json_writer w;
    int r = db_query_int(p->db, newest, &now_ms, err);

    if (r == 0)
        r = db_query_int(p->db, oldest, &from_ms, err);
    if (r == 0)
        r = db_query_int(p->db, "SELECT coalesce(max(id), 0) FROM workloads", &workload, err);
    if (r == 0)
        r = db_query_int(p->db, "SELECT coalesce(max(seq), 0) FROM events", &event, err);
    if (r < 0)
        return r;
    p->at->now_ms = now_ms;
    p->at->last_workload = (uint64_t)workload;
    p->at->last_event = (uint64_t)event;
    line_begin(p, &w);
    json_key_i64(&w, "history", HISTORY_VERSION);
    json_key_i64(&w, "now_ms", now_ms);
    json_key_i64(&w, "events_from_ms", from_ms);
    line_end(p, &w);
    p->at->section = SECTION_NODES;
    return each(p, "SELECT " ROW_TEAM_COLUMNS ", t.deleted" ROW_TEAM_FROM TEAM_ORDER, "teams", 0, 0,
                write_team, err);
}

static void next_section(struct piece *p, enum section section)
{
    p->at->section = section;
    p->at->after = 0;
}

static int write_nodes(struct piece *p, struct err *err)
{
    int r = each(p,
                 "SELECT " ROW_NODE_COLUMNS " FROM nodes WHERE id > ?1 AND id <= ?2"
                 " ORDER BY id LIMIT ?3",
                 "nodes", p->at->after, INT64_MAX, write_node, err);

    p->at->after = p->last;
    if (p->rows < ROWS_PIECE)
        next_section(p, SECTION_EVENTS);
    return r;
}

static int write_changes(struct piece *p, struct err *err)
{
    int r = each(p,
                 "SELECT " ROW_EVENT_COLUMNS " FROM events INDEXED BY events_changes"
                 " WHERE type IN (" SCHEMA_CHANGES ") AND seq > ?1 AND seq <= ?2"
                 " ORDER BY seq LIMIT ?3",
                 "events", p->at->after, p->at->last_event, write_change, err);

    p->at->after = p->last;
    if (p->rows < ROWS_PIECE)
        next_section(p, SECTION_WORKLOADS);
    return r;
}

static int write_workloads(struct piece *p, struct err *err)
{
    uint64_t first = p->at->after;
    int r = each(p,
                 "SELECT " ROW_WORKLOAD_COLUMNS ", s.json FROM workloads w"
                 " JOIN shapes s ON s.id = w.shape_id WHERE w.id > ?1 AND w.id <= ?2"
                 " ORDER BY w.id LIMIT ?3",
                 "workloads", first, p->at->last_workload, write_workload, err);

    p->at->after = p->at->batch_last = p->last;
    p->at->run_workload = first;
    p->at->run_last = INT64_MAX;
    p->at->section = p->rows > 0 ? SECTION_RUNS : SECTION_END;
    return r;
}

/* Runs of the workloads that were written last, in the order in which they began. */
static int write_runs(struct piece *p, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int r = db_prepare(p->db,
                       "SELECT " ROW_ALLOCATION_COLUMNS " FROM allocations"
                       " WHERE (workload, id) > (?1, ?2) AND workload <= ?3"
                       " ORDER BY workload, id LIMIT ?4",
                       &stmt, err);

    if (r < 0)
        return r;
    sqlite3_bind_int64(stmt, 1, (sqlite3_int64)p->at->run_workload);
    sqlite3_bind_int64(stmt, 2, (sqlite3_int64)p->at->run_last);
    sqlite3_bind_int64(stmt, 3, (sqlite3_int64)p->at->batch_last);
    sqlite3_bind_int64(stmt, 4, RUNS_PIECE);
    r = each_row(p, stmt, "allocations", write_run, err);
    if (p->rows < RUNS_PIECE)
        p->at->section = SECTION_WORKLOADS;
    return r;
}

static void write_end(struct piece *p)
{
    struct json_writer w;

    line_begin(p, &w);
    json_key(&w, "end");
    json_begin_object(&w);
    json_key_i64(&w, "workloads", p->at->workloads);
    json_key_i64(&w, "runs", p->at->runs);
    json_end_object(&w);
    line_end(p, &w);
}

/* One piece, within a transaction. 1 while there is more. */
static int write_piece(struct db *db, struct store_history_at *at, struct strbuf *out,
                       struct err *err)
{
    struct piece p = {.db = db, .at = at, .out = out, .last = at->after};
    int r = 0, more = 1;

    switch ((enum section)at->section) {
    case SECTION_HEAD:
        r = write_head(&p, err);
        break;
    case SECTION_NODES:
        r = write_nodes(&p, err);
        break;
    case SECTION_EVENTS:
        r = write_changes(&p, err);
        break;
    case SECTION_WORKLOADS:
        r = write_workloads(&p, err);
        break;
    case SECTION_RUNS:
        r = write_runs(&p, err);
        break;
    case SECTION_END:
        write_end(&p);
        more = 0;
        break;
    }
    arena_done(&p.arena);
    return r < 0 ? r : more;
}

int read_history(void *store, struct store_history_at *at, struct strbuf *out, struct err *err)
{
    _cleanup_query_ struct query q = QUERY_INIT;
    struct store *s = store;
    int r = query_begin(&s->readers, "BEGIN", &q, err);

    if (r == 0)
        r = query_step(&q, err);
    if (r < 0)
        return r;
    r = write_piece(&q.reader->db, at, out, err);
    (void)db_exec(&q.reader->db, "ROLLBACK", NULL); /* it only read */
    return r;
}

/* ---- from the data folder ----------------------------------------------------------------- */

static int check_version(struct db *db, struct err *err)
{
    sqlite3_int64 version = 0;
    int r = db_query_int(db, "PRAGMA user_version", &version, err);

    if (r < 0 || version == schema_step_count)
        return r;
    return err_set(err, -EPROTONOSUPPORT, ERR_UNSUPPORTED, NULL,
                   "use the release that runs the server; a server brings the store up to date",
                   "store '%s' has schema version %lld, this program reads %d", db->path,
                   (long long)version, schema_step_count);
}

static int write_all(struct db *db, FILE *out, struct err *err)
{
    _cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
    struct store_history_at at = {0};
    int r = db_exec(db, "BEGIN", err); /* one snapshot */

    if (r == 0)
        r = check_version(db, err);
    if (r < 0)
        return r;
    do {
        strbuf_truncate(&text, 0);
        r = write_piece(db, &at, &text, err);
        if (r >= 0 && text.len > 0 && fwrite(text.data, 1, text.len, out) != text.len)
            break; /* looked at in the end */
    } while (r > 0);
    return r < 0 ? r : 0;
}

int store_history_write(const char *folder, FILE *out, struct err *err)
{
    struct db db = {0};
    char path[4096];
    int r;

    if (snprintf(path, sizeof(path), "%s/allot.db", folder) >= (int)sizeof(path))
        return err_set(err, -ENAMETOOLONG, ERR_OUT_OF_RANGE, NULL, NULL,
                       "the name of the data folder is too long");
    if (access(path, F_OK) < 0)
        return err_set(err, -errno, ERR_NOT_FOUND, NULL,
                       "name the data folder of a server: the --data that it was started with",
                       "there is no store '%s': %s", path, strerror(errno));
    r = db_open(&db, path, NULL, DB_ARCHIVE, err);
    if (r == 0)
        r = write_all(&db, out, err);
    if (r == 0 && (fflush(out) != 0 || ferror(out)))
        r = err_set(err, -EIO, ERR_UNAVAILABLE, NULL, "make room for it",
                    "writing the history failed: %s", strerror(errno));
    db_close(&db);
    return r;
}
