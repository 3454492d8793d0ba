/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading rows: columns to the model's plain structs, with every value checked.
 *
 * The file may have been damaged or edited by hand, so nothing in a row is believed: numbers
 * are checked against the field's range, words against their table, text for UTF-8 validity of
 * its end (no NUL inside). The first problem of a row stays in row->status with an error that
 * names table, row and column; the readers after it do nothing, so that a decoder checks once.
 *
 * Text belongs to the statement and lives until its next step.
 */
#ifndef ALLOT_STORE_ROW_H
#define ALLOT_STORE_ROW_H

#include <sqlite3.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "core/store_port.h"

struct row {
    sqlite3_stmt *stmt;
    const char *table;
    int64_t key; /* for messages; taken from the first column where that is a number */
    int column;  /* the next one to read */
    int status;  /* 0, or -EUCLEAN once a value was refused */
    struct err *err;
};

/* Starts on the current row of STMT. */
struct row row_begin(sqlite3_stmt *stmt, const char *table, struct err *err);
/* Refuses the row: COLUMN holds something that it must not. Returns row->status. */
int row_refuse(struct row *row, const char *column, const char *expected);

/* The next column. NAME is for the message. Values outside MIN..MAX are refused. */
int64_t row_int(struct row *row, const char *name, int64_t min, int64_t max);
int32_t row_i32(struct row *row, const char *name);   /* INT32_MIN..INT32_MAX */
int32_t row_count(struct row *row, const char *name); /* 0..INT32_MAX */
int64_t row_i64(struct row *row, const char *name);   /* 0..INT64_MAX */
uint64_t row_id(struct row *row, const char *name);   /* 0..INT64_MAX; NULL reads as 0 */
/* Never NULL, except after a refusal. */
const char *row_text(struct row *row, const char *name);
const char *row_text_or_null(struct row *row, const char *name);

/* ---- whole rows: the columns of the SELECT lists below, in this order ---------------------- */

#define ROW_TEAM_COLUMNS                                                                      \
    "t.id, t.parent_id, t.version, t.name, p.name, t.guarantee_gpu_milli,"                    \
    " t.guarantee_cpu_milli, t.guarantee_memory_bytes, t.limit_gpu_milli, t.limit_cpu_milli," \
    " t.limit_memory_bytes, t.weight, t.priority, t.volume_limit, t.quota,"                   \
    " t.gpu_types, t.idle"
#define ROW_TEAM_FROM " FROM teams t LEFT JOIN teams p ON p.id = t.parent_id "
/* These return row->status and write on success only. The list of GPU types into ARENA. */
int row_team(struct row *row, struct arena *arena, struct model_team *ret_team);

/* What a workload's row holds beside the model's struct. */
struct row_workload {
    struct model_workload workload; /* shape and launch NULL */
    enum model_kind kind;
    enum model_class class_;
    int32_t gpu_milli;
    uint64_t shape_id;
};

#define ROW_WORKLOAD_COLUMNS                                                              \
    "w.id, w.name, w.team, w.team_id, w.owner, w.kind, w.class, w.state, w.submitted_ms," \
    " w.started_ms, w.ended_ms, w.evicted_ms, w.restarts, w.failures, w.running_tasks,"   \
    " w.ended_tasks, w.exit_code, w.message, w.gpu_milli, w.shape_id"
/* As stored, without the parts that other tables hold. */
int row_workload(struct row *row, struct row_workload *ret_workload);

#define ROW_TASK_COLUMNS                                                             \
    "t.workload, t.idx, t.attempt, t.state, t.node, n.name, t.devices, t.gpu_milli," \
    " t.held_until_ms, t.started_ms, t.ended_ms, t.exit_code, t.exit_signal, t.message"
/* DEVICES has room for MODEL_GPUS_MAX and is pointed to by the task. */
int row_task(struct row *row, uint16_t *devices, struct model_task *ret_task);

#define ROW_ALLOCATION_COLUMNS                                                              \
    "id, workload, task, attempt, team, node, devices, gpu_milli, cpu_milli, memory_bytes," \
    " start_ms, end_ms, busy_ns, seen_ms, release, stopping_ms, known_ns"
/* DEVICES as for row_task(). */
int row_allocation(struct row *row, uint16_t *devices, struct model_allocation *ret_allocation);

#define ROW_EVENT_COLUMNS \
    "seq, time_ms, type, workload, task, workload_name, team, node, actor, message, data"
/* Absent names are NULL, an absent workload is 0. */
int row_event(struct row *row, struct model_event *ret_event);

#define ROW_NODE_COLUMNS "id, name, json"
/* Strings and arrays into ARENA. */
int row_node(struct row *row, struct arena *arena, struct model_node *ret_node);

#define ROW_USER_COLUMNS "u.name, u.admin, u.teams"
/* The list of teams into ARENA. */
int row_user(struct row *row, struct arena *arena, struct model_user *ret_user);

#define ROW_TOKEN_COLUMNS "k.id, k.user, k.label, k.hash, k.created_ms, k.expires_ms"
/* With the hash; user and label belong to the statement. */
int row_token(struct row *row, struct model_token *ret_token);

#endif
