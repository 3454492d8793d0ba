/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notes on the first step.
 *
 * Every index costs each submit, so there is one for each question that must not scan, and no
 * other. Workloads: those that live (start-up, and lists of live states), and by team. Events:
 * by workload. Allocations: by end, which serves both the open ones (end 0) and a window of
 * usage, and by workload.
 *
 * A workload's launch (up to 128 KiB of command line) has a table of its own: its row changes
 * often and SQLite rewrites a row as a whole. Shapes are interned. The team's name stands in the
 * workload beside the id, so that lists and filters need no join, and outlives the team.
 *
 * States, kinds and classes are their API text, which never changes, rather than the number of
 * an enum, which may. Zero means none for times and ids; a column is NULL only where the model
 * says NULL, or where a key must not match.
 *
 * Node ids have no foreign key: a task keeps the node's id whatever happens to the node.
 */
#include "store/schema.h"

#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"

static const char step_1[] =
    "CREATE TABLE teams("
    " id INTEGER PRIMARY KEY,"
    " parent_id INTEGER REFERENCES teams(id),"
    " version INTEGER NOT NULL,"
    " name TEXT NOT NULL,"
    " deleted INTEGER NOT NULL DEFAULT 0,"
    " guarantee_gpu_milli INTEGER NOT NULL, guarantee_cpu_milli INTEGER NOT NULL,"
    " guarantee_memory_bytes INTEGER NOT NULL,"
    " limit_gpu_milli INTEGER NOT NULL, limit_cpu_milli INTEGER NOT NULL,"
    " limit_memory_bytes INTEGER NOT NULL,"
    " weight INTEGER NOT NULL, priority INTEGER NOT NULL, volume_limit INTEGER NOT NULL"
    ") STRICT;"
    "CREATE UNIQUE INDEX teams_name ON teams(name) WHERE deleted = 0;"

    "CREATE TABLE shapes(id INTEGER PRIMARY KEY, json TEXT NOT NULL UNIQUE) STRICT;"

    "CREATE TABLE workloads("
    " id INTEGER PRIMARY KEY,"
    " name TEXT NOT NULL, team TEXT NOT NULL, team_id INTEGER NOT NULL REFERENCES teams(id),"
    " owner TEXT NOT NULL, kind TEXT NOT NULL, class TEXT NOT NULL, state TEXT NOT NULL,"
    " submitted_ms INTEGER NOT NULL, started_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL,"
    " evicted_ms INTEGER NOT NULL, restarts INTEGER NOT NULL, failures INTEGER NOT NULL,"
    " running_tasks INTEGER NOT NULL, ended_tasks INTEGER NOT NULL,"
    " exit_code INTEGER NOT NULL, message TEXT,"
    " gpu_milli INTEGER NOT NULL, shape_id INTEGER NOT NULL REFERENCES shapes(id)"
    ") STRICT;"
    "CREATE INDEX workloads_live ON workloads(id)"
    " WHERE state IN ('pending', 'running', 'stopping');"
    "CREATE INDEX workloads_team ON workloads(team);"
    "CREATE TABLE launches("
    " workload INTEGER PRIMARY KEY REFERENCES workloads(id), json TEXT NOT NULL) STRICT;"

    "CREATE TABLE tasks("
    " workload INTEGER NOT NULL REFERENCES workloads(id), idx INTEGER NOT NULL,"
    " attempt INTEGER NOT NULL, state TEXT NOT NULL, node INTEGER NOT NULL,"
    " devices TEXT NOT NULL, gpu_milli INTEGER NOT NULL, held_until_ms INTEGER NOT NULL,"
    " started_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL,"
    " exit_code INTEGER NOT NULL, exit_signal INTEGER NOT NULL, message TEXT,"
    " PRIMARY KEY(workload, idx)) STRICT, WITHOUT ROWID;"

    "CREATE TABLE nodes("
    " id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, json TEXT NOT NULL) STRICT;"

    "CREATE TABLE allocations("
    " id INTEGER PRIMARY KEY, workload INTEGER NOT NULL REFERENCES workloads(id),"
    " task INTEGER NOT NULL, attempt INTEGER NOT NULL,"
    " team INTEGER NOT NULL REFERENCES teams(id), node INTEGER NOT NULL,"
    " devices TEXT NOT NULL, gpu_milli INTEGER NOT NULL, cpu_milli INTEGER NOT NULL,"
    " memory_bytes INTEGER NOT NULL, start_ms INTEGER NOT NULL, end_ms INTEGER NOT NULL,"
    " busy_ns INTEGER NOT NULL, seen_ms INTEGER NOT NULL) STRICT;"
    "CREATE INDEX allocations_end ON allocations(end_ms);"
    "CREATE INDEX allocations_workload ON allocations(workload);"

    "CREATE TABLE users("
    " name TEXT NOT NULL PRIMARY KEY, admin INTEGER NOT NULL, teams TEXT NOT NULL"
    ") STRICT, WITHOUT ROWID;"
    /* AUTOINCREMENT: the id of a deleted token is never given out again. */
    "CREATE TABLE tokens("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " user TEXT NOT NULL REFERENCES users(name) ON DELETE CASCADE, label TEXT,"
    " hash BLOB NOT NULL UNIQUE CHECK(length(hash) = 32),"
    " created_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL) STRICT;"
    "CREATE INDEX tokens_user ON tokens(user);"

    "CREATE TABLE events("
    " seq INTEGER PRIMARY KEY, time_ms INTEGER NOT NULL, type TEXT NOT NULL,"
    " workload INTEGER, task INTEGER NOT NULL, workload_name TEXT, team TEXT, node TEXT,"
    " actor TEXT, message TEXT, data TEXT) STRICT;"
    "CREATE INDEX events_workload ON events(workload) WHERE workload IS NOT NULL;"

    "CREATE TABLE replies("
    " id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, digest TEXT NOT NULL,"
    " status INTEGER NOT NULL, body TEXT NOT NULL, expires_ms INTEGER NOT NULL) STRICT;"
    "CREATE INDEX replies_expires ON replies(expires_ms);"

    "CREATE TABLE meta(key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;";

static const char step_2[] = "ALTER TABLE teams ADD COLUMN quota TEXT NOT NULL DEFAULT 'fair';";

/* A list that is read and written as a whole: one text, '' where nothing is stated. */
static const char step_3[] = "ALTER TABLE teams ADD COLUMN gpu_types TEXT NOT NULL DEFAULT '';";

/* '' where it goes on, and of what ended before there was this column. */
static const char step_4[] = "ALTER TABLE allocations ADD COLUMN release TEXT NOT NULL DEFAULT '';";

static const char step_5[] =
    "ALTER TABLE allocations ADD COLUMN stopping_ms INTEGER NOT NULL DEFAULT 0;";

/* The few among a million events that a history must find without reading all. */
static const char step_6[] =
    "CREATE INDEX events_changes ON events(seq) WHERE type IN (" SCHEMA_CHANGES ");";

/*
 * Messages once named the work that others made way for, which not everybody may see. What names
 * it in these sentences goes; the team and the reason stay.
 */
#define UNNAMED                                                                             \
    "CASE WHEN instr(message, ' it is entitled to, for ''') > 0"                            \
    " THEN substr(message, 1, instr(message, ', for ''') - 1)"                              \
    " WHEN instr(message, 'gave way: it runs on idle capacity only, and ''') > 0"           \
    " THEN substr(message, 1, instr(message, 'only, and ''') + 9) || 'other work needs it'" \
    " WHEN instr(message, 'moved: ''') > 0 AND instr(message, 'needs the room in one') > 0" \
    " THEN substr(message, 1, instr(message, 'moved: ''') + 6)"                             \
    " || 'other work needs the room in one piece' ELSE message END"

static const char step_7[] =
    "UPDATE workloads SET message = " UNNAMED " WHERE message LIKE '%: %''%';"
    "UPDATE tasks SET message = " UNNAMED " WHERE message LIKE '%: %''%';"
    "UPDATE events SET message = " UNNAMED
    " WHERE type IN ('workload.evicted', 'task.stopping') AND message LIKE '%: %''%';";

/*
 * Of real devices nothing was measured before, of simulated ones all was: who was ever busy was
 * on those. Milli-GPU x ms x 1000 = ns of GPU time.
 */
static const char step_8[] =
    "ALTER TABLE allocations ADD COLUMN known_ns INTEGER NOT NULL DEFAULT 0;"
    "UPDATE allocations SET known_ns = max(busy_ns, gpu_milli * 1000 *"
    " (CASE end_ms WHEN 0 THEN seen_ms ELSE end_ms END - start_ms)) WHERE busy_ns > 0;";

static const char step_9[] =
    "DROP INDEX workloads_live;"
    "CREATE INDEX workloads_live ON workloads(id) WHERE state IN (" SCHEMA_LIVE ");";

static const char step_10[] = "ALTER TABLE teams ADD COLUMN idle TEXT NOT NULL DEFAULT '';";

const struct schema_step schema_steps[] = {
    {"create the tables", step_1},
    {"let a team have a hard quota", step_2},
    {"let a team have quotas per GPU type", step_3},
    {"note how allocations end", step_4},
    {"note when tasks are asked to stop", step_5},
    {"find changes of teams and nodes", step_6},
    {"name no work of others in messages", step_7},
    {"note of how much time it is known how busy devices were", step_8},
    {"let a workload be suspended", step_9},
    {"let a team say what becomes of idle work", step_10},
};
const int schema_step_count = ARRAY_LEN(schema_steps);

static int run_steps(struct db *db, const struct schema_step *steps, int from, int to,
                     struct err *err)
{
    for (int i = from; i < to; i++) {
        struct err cause = ERR_INIT;
        int r = db_exec(db, steps[i].sql, &cause);
        if (r < 0)
            return err_set(err, r, cause.code, NULL, cause.remedy, "schema step %d (%s) failed: %s",
                           i + 1, steps[i].what, cause.text);
    }
    char sql[64];
    snprintf(sql, sizeof(sql), "PRAGMA user_version=%d", to);
    int r = db_exec(db, sql, err);
    return r < 0 ? r : db_exec(db, "COMMIT", err);
}

int schema_migrate(struct db *db, const struct schema_step *steps, int count, struct err *err)
{
    sqlite3_int64 version = 0;
    int r = db_query_int(db, "PRAGMA user_version", &version, err);
    if (r < 0)
        return r;
    if (version > count || version < 0)
        return err_set(err, -EPROTONOSUPPORT, ERR_UNSUPPORTED, NULL,
                       "start the release that made it, or a newer one",
                       "store '%s' has schema version %lld, this program knows up to %d", db->path,
                       (long long)version, count);
    if (version == count)
        return 0;
    r = db_exec(db, "BEGIN IMMEDIATE", err);
    if (r < 0)
        return r;
    r = run_steps(db, steps, (int)version, count, err);
    if (r < 0)
        db_exec(db, "ROLLBACK", NULL);
    return r;
}
