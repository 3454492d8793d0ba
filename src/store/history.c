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

/* Parents first: a team may have been put below a younger one. */
#define TEAM_ORDER                                                                                 \
    "ORDER BY (WITH RECURSIVE up(id, n) AS (SELECT t.parent_id, 0 UNION ALL"                       \
    " SELECT x.parent_id, n + 1 FROM up JOIN teams x ON x.id = up.id WHERE n < 100)"               \
    " SELECT max(n) FROM up), t.id"

struct history {
    struct db db;
    FILE *out;
    struct arena arena; /* of one row */
    struct strbuf line;
};

static void history_done(struct history *h)
{
    db_close(&h->db);
    arena_done(&h->arena);
    strbuf_done(&h->line);
}

static void line_begin(struct history *h, struct json_writer *w)
{
    if (h->line.data)
        strbuf_truncate(&h->line, 0);
    json_writer_init(w, &h->line);
    json_begin_object(w);
}

static void line_end(struct history *h, struct json_writer *w)
{
    json_end_object(w);
    strbuf_addc(&h->line, '\n');
    (void)fwrite(h->line.data, 1, h->line.len, h->out); /* looked at in the end */
}

/* Calls WRITE for each row of SQL. */
static int each(struct history *h, const char *sql, const char *table,
                void (*write)(struct history *h, struct row *row), struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int r = db_prepare(&h->db, sql, &stmt, err), rc;

    if (r < 0)
        return r;
    while (r == 0 && (rc = sqlite3_step(stmt)) != SQLITE_DONE) {
        if (rc != SQLITE_ROW) {
            r = db_error(&h->db, rc, err);
            break;
        }
        struct row row = row_begin(stmt, table, err);
        write(h, &row);
        r = row.status;
        arena_reset(&h->arena);
    }
    db_release(stmt);
    return r;
}

static void write_team(struct history *h, struct row *row)
{
    struct model_team team;
    struct json_writer w;

    if (row_team(row, &h->arena, &team) < 0)
        return;
    int64_t deleted = row_int(row, "deleted", 0, 1);
    line_begin(h, &w);
    json_key_i64(&w, "team", (int64_t)team.id);
    json_key_i64(&w, "parent", (int64_t)team.parent_id);
    json_key_bool(&w, "deleted", deleted != 0);
    json_key(&w, "spec");
    model_team_encode(&team, &w);
    line_end(h, &w);
}

static void write_node(struct history *h, struct row *row)
{
    struct model_node node = {0};
    struct json_writer w;

    if (row_node(row, &h->arena, &node) < 0)
        return;
    line_begin(h, &w);
    json_key_i64(&w, "node", (int64_t)node.id);
    json_key(&w, "spec");
    model_node_encode(&node, &w);
    line_end(h, &w);
}

static void write_workload(struct history *h, struct row *row)
{
    struct row_workload v;
    struct json_writer w;

    if (row_workload(row, &v) < 0)
        return;
    const char *shape = row_text(row, "shape");
    if (row->status < 0)
        return;
    line_begin(h, &w);
    json_key_i64(&w, "workload", (int64_t)v.workload.id);
    json_key_string(&w, "name", v.workload.name);
    json_key_i64(&w, "team", (int64_t)v.workload.team_id);
    json_key_string(&w, "state", model_workload_state_name(v.workload.state));
    json_key_i64(&w, "submitted_ms", v.workload.submitted_ms);
    json_key_i64(&w, "started_ms", v.workload.started_ms);
    json_key_i64(&w, "ended_ms", v.workload.ended_ms);
    json_key_i64(&w, "restarts", v.workload.restarts);
    json_key(&w, "shape");
    json_raw(&w, shape, strlen(shape));
    line_end(h, &w);
}

static void write_run(struct history *h, struct row *row)
{
    uint16_t devices[MODEL_GPUS_MAX];
    struct model_allocation a;
    struct json_writer w;

    if (row_allocation(row, devices, &a) < 0)
        return;
    line_begin(h, &w);
    json_key(&w, "run");
    json_begin_array(&w);
    json_i64(&w, (int64_t)a.workload);
    json_i64(&w, a.task);
    json_i64(&w, a.attempt);
    json_i64(&w, a.gpu_milli);
    json_i64(&w, a.start_ms);
    json_i64(&w, a.end_ms);
    json_i64(&w, a.busy_ns / NS_PER_MS);
    json_end_array(&w);
    line_end(h, &w);
}

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

/* The last time at which anything was recorded. */
static const char newest[] =
    "SELECT max(coalesce((SELECT max(time_ms) FROM events), 0),"
    " coalesce((SELECT max(max(submitted_ms, started_ms, ended_ms)) FROM workloads), 0),"
    " coalesce((SELECT max(max(start_ms, end_ms, seen_ms)) FROM allocations), 0))";

static int write_all(struct history *h, struct err *err)
{
    struct json_writer w;
    sqlite3_int64 now_ms;
    int r = db_exec(&h->db, "BEGIN", err); /* one snapshot */

    if (r == 0)
        r = check_version(&h->db, err);
    if (r == 0)
        r = db_query_int(&h->db, newest, &now_ms, err);
    if (r < 0)
        return r;
    line_begin(h, &w);
    json_key_i64(&w, "history", 1);
    json_key_i64(&w, "now_ms", now_ms);
    line_end(h, &w);
    r = each(h, "SELECT " ROW_TEAM_COLUMNS ", t.deleted" ROW_TEAM_FROM TEAM_ORDER, "teams",
             write_team, err);
    if (r == 0)
        r = each(h, "SELECT " ROW_NODE_COLUMNS " FROM nodes ORDER BY id", "nodes", write_node, err);
    if (r == 0)
        r = each(h,
                 "SELECT " ROW_WORKLOAD_COLUMNS ", s.json FROM workloads w"
                 " JOIN shapes s ON s.id = w.shape_id ORDER BY w.id",
                 "workloads", write_workload, err);
    if (r == 0)
        r = each(h,
                 "SELECT " ROW_ALLOCATION_COLUMNS " FROM allocations"
                 " ORDER BY workload, start_ms, id",
                 "allocations", write_run, err);
    return r;
}

int store_history_write(const char *folder, FILE *out, struct err *err)
{
    _cleanup_(history_done) struct history h = {.out = out};
    char path[4096];
    int r;

    if (snprintf(path, sizeof(path), "%s/allot.db", folder) >= (int)sizeof(path))
        return err_set(err, -ENAMETOOLONG, ERR_OUT_OF_RANGE, NULL, NULL,
                       "the name of the data folder is too long");
    if (access(path, F_OK) < 0)
        return err_set(err, -errno, ERR_NOT_FOUND, NULL,
                       "name the data folder of a server: the --data that it was started with",
                       "there is no store '%s': %s", path, strerror(errno));
    r = db_open(&h.db, path, NULL, DB_ARCHIVE, err);
    if (r == 0)
        r = write_all(&h, err);
    if (r == 0 && (fflush(out) != 0 || ferror(out)))
        r = err_set(err, -EIO, ERR_UNAVAILABLE, NULL, "make room for it",
                    "writing the history failed: %s", strerror(errno));
    return r;
}
