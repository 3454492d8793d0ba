/* SPDX-License-Identifier: Apache-2.0 */
#include "store/apply.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strbuf.h"
#include "model/team_types.h"

static const char *const sql_texts[APPLY_SQL_COUNT] = {
    [APPLY_PUT_TEAM] =
        "INSERT INTO teams(id, parent_id, version, name, guarantee_gpu_milli, guarantee_cpu_milli,"
        " guarantee_memory_bytes, limit_gpu_milli, limit_cpu_milli, limit_memory_bytes, weight,"
        " priority, volume_limit, quota, gpu_types, idle)"
        " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)"
        " ON CONFLICT(id) DO UPDATE SET parent_id = ?2, version = ?3, name = ?4, deleted = 0,"
        " guarantee_gpu_milli = ?5, guarantee_cpu_milli = ?6, guarantee_memory_bytes = ?7,"
        " limit_gpu_milli = ?8, limit_cpu_milli = ?9, limit_memory_bytes = ?10, weight = ?11,"
        " priority = ?12, volume_limit = ?13, quota = ?14, gpu_types = ?15, idle = ?16",
    [APPLY_DELETE_TEAM] = "UPDATE teams SET deleted = 1 WHERE id = ?1",
    [APPLY_FIND_SHAPE] = "SELECT json = ?2 FROM shapes WHERE id = ?1",
    [APPLY_ADD_SHAPE] = "INSERT INTO shapes(id, json) VALUES(?1, ?2)",
    [APPLY_ADD_WORKLOAD] =
        "INSERT INTO workloads(id, state, started_ms, ended_ms, restarts, failures, running_tasks,"
        " ended_tasks, exit_code, message, evicted_ms, name, team, team_id, owner, kind, class,"
        " submitted_ms, gpu_milli, shape_id) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11,"
        " ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)",
    [APPLY_ADD_LAUNCH] = "INSERT INTO launches(workload, json) VALUES(?1, ?2)",
    [APPLY_UPDATE_WORKLOAD] =
        "UPDATE workloads SET state = ?2, started_ms = ?3, ended_ms = ?4, restarts = ?5,"
        " failures = ?6, running_tasks = ?7, ended_tasks = ?8, exit_code = ?9, message = ?10,"
        " evicted_ms = ?11 WHERE id = ?1",
    [APPLY_PUT_TASK] =
        "INSERT INTO tasks(workload, idx, attempt, state, node, devices, gpu_milli, held_until_ms,"
        " started_ms, ended_ms, exit_code, exit_signal, message) VALUES(?1, ?2, ?3, ?4, ?5, ?6,"
        " ?7, ?8, ?9, ?10, ?11, ?12, ?13)"
        " ON CONFLICT(workload, idx) DO UPDATE SET attempt = ?3, state = ?4, node = ?5,"
        " devices = ?6, gpu_milli = ?7, held_until_ms = ?8, started_ms = ?9, ended_ms = ?10,"
        " exit_code = ?11, exit_signal = ?12, message = ?13",
    [APPLY_PUT_NODE] = "INSERT INTO nodes(id, name, json) VALUES(?1, ?2, ?3)"
                       " ON CONFLICT(id) DO UPDATE SET name = ?2, json = ?3",
    [APPLY_PUT_ALLOCATION] =
        "INSERT INTO allocations(id, workload, task, attempt, team, node, devices, gpu_milli,"
        " cpu_milli, memory_bytes, start_ms, end_ms, busy_ns, seen_ms, release,"
        " stopping_ms, known_ns)"
        " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)"
        " ON CONFLICT(id) DO UPDATE SET workload = ?2, task = ?3, attempt = ?4, team = ?5,"
        " node = ?6, devices = ?7, gpu_milli = ?8, cpu_milli = ?9, memory_bytes = ?10,"
        " start_ms = ?11, end_ms = ?12, busy_ns = ?13, seen_ms = ?14, release = ?15,"
        " stopping_ms = ?16, known_ns = ?17",
    [APPLY_PUT_USER] = "INSERT INTO users(name, admin, teams) VALUES(?1, ?2, ?3)"
                       " ON CONFLICT(name) DO UPDATE SET admin = ?2, teams = ?3",
    [APPLY_DELETE_USER] = "DELETE FROM users WHERE name = ?1",
    [APPLY_PUT_TOKEN] =
        "INSERT INTO tokens(id, user, label, hash, created_ms, expires_ms)"
        " VALUES(?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT(id) DO UPDATE SET user = ?2, label = ?3,"
        " hash = ?4, created_ms = ?5, expires_ms = ?6",
    [APPLY_DELETE_TOKEN] = "DELETE FROM tokens WHERE id = ?1",
    [APPLY_PUT_META] = "INSERT INTO meta(key, value) VALUES(?1, ?2)"
                       " ON CONFLICT(key) DO UPDATE SET value = ?2",
    [APPLY_PUT_REPLY] =
        "INSERT INTO replies(key, digest, status, body, expires_ms) VALUES(?1, ?2, ?3, ?4, ?5)"
        " ON CONFLICT(key) DO UPDATE SET digest = ?2, status = ?3, body = ?4, expires_ms = ?5",
    [APPLY_ADD_EVENT] =
        "INSERT INTO events(seq, time_ms, type, workload, task, workload_name, team, node, actor,"
        " message, data) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    [APPLY_SAVEPOINT] = "SAVEPOINT txn",
    [APPLY_RELEASE] = "RELEASE txn",
    [APPLY_ROLLBACK_TO] = "ROLLBACK TO txn",
    [APPLY_BEGIN] = "BEGIN IMMEDIATE",
    [APPLY_COMMIT] = "COMMIT",
    [APPLY_ROLLBACK] = "ROLLBACK",
    [APPLY_TRIM_EVENTS] = "DELETE FROM events WHERE seq <= ?1",
    [APPLY_TRIM_REPLIES] = "DELETE FROM replies WHERE id IN"
                           " (SELECT id FROM replies WHERE expires_ms <= ?1 LIMIT ?2)",
};

/* A statement under construction: parameters in order, the first problem kept. */
struct binder {
    sqlite3_stmt *stmt;
    int next;
    int rc;
    bool overflow; /* an unsigned value above INT64_MAX */
};

static void bind_i64(struct binder *b, int64_t v)
{
    int rc = sqlite3_bind_int64(b->stmt, b->next++, v);
    if (b->rc == SQLITE_OK)
        b->rc = rc;
}

static void bind_id(struct binder *b, uint64_t v)
{
    if (v > INT64_MAX)
        b->overflow = true;
    bind_i64(b, (int64_t)v);
}

/* 0 = refers to nothing. */
static void bind_id_or_null(struct binder *b, uint64_t v)
{
    if (v != 0) {
        bind_id(b, v);
        return;
    }
    int rc = sqlite3_bind_null(b->stmt, b->next++);
    if (b->rc == SQLITE_OK)
        b->rc = rc;
}

static void bind_text(struct binder *b, const char *s)
{
    int rc = sqlite3_bind_text(b->stmt, b->next++, s, -1, SQLITE_STATIC);
    if (b->rc == SQLITE_OK)
        b->rc = rc;
}

void apply_done(struct apply *a)
{
    for (size_t i = 0; i < ARRAY_LEN(a->stmts); i++)
        sqlite3_finalize(a->stmts[i]);
    memset(a->stmts, 0, sizeof(a->stmts));
}

sqlite3_stmt *apply_stmt(struct apply *a, enum apply_sql sql, int *ret_rc)
{
    if (!a->stmts[sql]) {
        int rc = sqlite3_prepare_v3(a->db->handle, sql_texts[sql], -1, SQLITE_PREPARE_PERSISTENT,
                                    &a->stmts[sql], NULL);
        if (rc != SQLITE_OK) {
            *ret_rc = rc;
            return NULL;
        }
    }
    return a->stmts[sql];
}

/* Runs and resets; the reset gives the extended code of what failed. */
static int finish(sqlite3_stmt *stmt)
{
    int rc = sqlite3_step(stmt);
    int reset = sqlite3_reset(stmt);
    return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : reset;
}

int apply_run(struct apply *a, enum apply_sql sql)
{
    int rc = SQLITE_OK;
    sqlite3_stmt *stmt = apply_stmt(a, sql, &rc);
    return stmt ? finish(stmt) : rc;
}

static int refuse(struct err *err, int errnum, const char *code, const char *what, uint64_t id)
{
    err_set(err, errnum, code, NULL, NULL, "%s (id %llu)", what, (unsigned long long)id);
    return -1;
}

static int begin(struct apply *a, enum apply_sql sql, struct binder *ret_binder)
{
    int rc = SQLITE_OK;
    sqlite3_stmt *stmt = apply_stmt(a, sql, &rc);
    *ret_binder = (struct binder){.stmt = stmt, .next = 1, .rc = SQLITE_OK};
    return rc;
}

static int end(struct binder *b, uint64_t id, struct err *err)
{
    if (b->overflow)
        return refuse(err, -ERANGE, ERR_OUT_OF_RANGE, "a number of the row is above 2^63 - 1", id);
    return b->rc != SQLITE_OK ? b->rc : finish(b->stmt);
}

static int put_team(struct apply *a, const struct model_team *t, struct err *err)
{
    _cleanup_strbuf_ struct strbuf types = STRBUF_INIT, idle = STRBUF_INIT;
    struct binder b;
    int rc = begin(a, APPLY_PUT_TEAM, &b);
    if (rc != SQLITE_OK)
        return rc;
    if (t->type_count > 0)
        model_team_types_text(t, &types);
    bind_id(&b, t->id);
    bind_id_or_null(&b, t->parent_id);
    bind_id(&b, t->version);
    bind_text(&b, t->name);
    for (int i = 0; i < MODEL_RESOURCE_COUNT; i++)
        bind_i64(&b, t->guarantee[i]);
    for (int i = 0; i < MODEL_RESOURCE_COUNT; i++)
        bind_i64(&b, t->limit[i]);
    bind_i64(&b, t->weight);
    bind_i64(&b, t->priority);
    bind_i64(&b, t->volume_limit);
    bind_text(&b, model_quota_name(t->quota));
    bind_text(&b, strbuf_str(&types));
    model_idle_text(t->idle, &idle);
    bind_text(&b, strbuf_str(&idle));
    return end(&b, t->id, err);
}

/* Core sends a shape's text until it knows it stored: the same text again is a repeat. */
static int find_shape(struct apply *a, uint64_t id, const char *json, bool *ret_found,
                      struct err *err)
{
    struct binder b;
    int rc = begin(a, APPLY_FIND_SHAPE, &b);
    if (rc != SQLITE_OK)
        return rc;
    bind_id(&b, id);
    bind_text(&b, json);
    rc = sqlite3_step(b.stmt);
    bool same = rc == SQLITE_ROW && sqlite3_column_int(b.stmt, 0) == 1;
    int reset = sqlite3_reset(b.stmt);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return reset;
    if (rc == SQLITE_ROW && !same)
        return refuse(err, -EEXIST, ERR_CONFLICT, "another shape has this id", id);
    *ret_found = same;
    return SQLITE_OK;
}

static int add_shape(struct apply *a, uint64_t id, const char *json, struct err *err)
{
    bool found = false;
    int rc = find_shape(a, id, json, &found, err);
    if (rc != SQLITE_OK || found)
        return rc;
    struct binder b;
    rc = begin(a, APPLY_ADD_SHAPE, &b);
    if (rc != SQLITE_OK)
        return rc;
    bind_id(&b, id);
    bind_text(&b, json);
    return end(&b, id, err);
}

/* The part of a workload that changes: parameters 1..11 of both statements. */
static void bind_workload_state(struct binder *b, const struct model_workload *w)
{
    bind_id(b, w->id);
    bind_text(b, model_workload_state_name(w->state));
    bind_i64(b, w->started_ms);
    bind_i64(b, w->ended_ms);
    bind_i64(b, w->restarts);
    bind_i64(b, w->failures);
    bind_i64(b, w->running_tasks);
    bind_i64(b, w->ended_tasks);
    bind_i64(b, w->exit_code);
    bind_text(b, w->message);
    bind_i64(b, w->evicted_ms);
}

/* Charge of all tasks while they wait; saturates, being a figure for lists. */
static int64_t shape_gpu_milli(const struct model_shape *s)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < s->group_count; i++)
        sum += (int64_t)s->groups[i].tasks * model_request_gpu_milli(&s->groups[i].request, 0);
    return sum < INT32_MAX ? sum : INT32_MAX;
}

static int put_workload(struct apply *a, const struct store_new_workload *n, struct err *err)
{
    const struct model_workload *w = n->row;
    if (!w->shape || !n->launch_json)
        return refuse(err, -EINVAL, ERR_INTERNAL, "a new workload lacks its shape or launch",
                      w->id);
    int rc = n->shape_json ? add_shape(a, n->shape_id, n->shape_json, err) : SQLITE_OK;
    if (rc != SQLITE_OK)
        return rc;
    struct binder b;
    rc = begin(a, APPLY_ADD_WORKLOAD, &b);
    if (rc != SQLITE_OK)
        return rc;
    bind_workload_state(&b, w);
    bind_text(&b, w->name);
    bind_text(&b, w->team);
    bind_id(&b, w->team_id);
    bind_text(&b, w->owner);
    bind_text(&b, model_kind_name(w->shape->kind));
    bind_text(&b, model_class_name(w->shape->class_));
    bind_i64(&b, w->submitted_ms);
    bind_i64(&b, shape_gpu_milli(w->shape));
    bind_id(&b, n->shape_id);
    rc = end(&b, w->id, err);
    if (rc != SQLITE_OK)
        return rc;
    rc = begin(a, APPLY_ADD_LAUNCH, &b);
    if (rc != SQLITE_OK)
        return rc;
    bind_id(&b, w->id);
    bind_text(&b, n->launch_json);
    return end(&b, w->id, err);
}

/* A change of what was never stored must not vanish silently. */
static int update_workload(struct apply *a, const struct model_workload *w, struct err *err)
{
    struct binder b;
    int rc = begin(a, APPLY_UPDATE_WORKLOAD, &b);
    if (rc != SQLITE_OK)
        return rc;
    bind_workload_state(&b, w);
    rc = end(&b, w->id, err);
    if (rc == SQLITE_OK && sqlite3_changes(a->db->handle) == 0)
        return refuse(err, -ENOENT, ERR_NOT_FOUND, "no such workload is stored", w->id);
    return rc;
}

static int put_task(struct apply *a, const struct model_task *t, struct err *err)
{
    struct binder b;
    int rc = begin(a, APPLY_PUT_TASK, &b);
    if (rc != SQLITE_OK)
        return rc;
    _cleanup_strbuf_ struct strbuf devices = STRBUF_INIT;
    model_devices_format(t->devices, t->device_count, &devices);
    bind_id(&b, t->workload);
    bind_i64(&b, t->index);
    bind_i64(&b, t->attempt);
    bind_text(&b, model_task_state_name(t->state));
    bind_id(&b, t->node);
    bind_text(&b, strbuf_str(&devices));
    bind_i64(&b, t->gpu_milli);
    bind_i64(&b, t->held_until_ms);
    bind_i64(&b, t->started_ms);
    bind_i64(&b, t->ended_ms);
    bind_i64(&b, t->exit_code);
    bind_i64(&b, t->exit_signal);
    bind_text(&b, t->message);
    return end(&b, t->workload, err);
}

static int put_node(struct apply *a, const struct model_node *n, struct err *err)
{
    struct binder b;
    int rc = begin(a, APPLY_PUT_NODE, &b);
    if (rc != SQLITE_OK)
        return rc;
    _cleanup_strbuf_ struct strbuf json = STRBUF_INIT;
    struct json_writer w;
    json_writer_init(&w, &json);
    model_node_encode(n, &w);
    bind_id(&b, n->id);
    bind_text(&b, n->name);
    bind_text(&b, strbuf_str(&json));
    return end(&b, n->id, err);
}

static int put_allocation(struct apply *a, const struct model_allocation *l, struct err *err)
{
    struct binder b;
    int rc = begin(a, APPLY_PUT_ALLOCATION, &b);
    if (rc != SQLITE_OK)
        return rc;
    _cleanup_strbuf_ struct strbuf devices = STRBUF_INIT;
    model_devices_format(l->devices, l->device_count, &devices);
    bind_id(&b, l->id);
    bind_id(&b, l->workload);
    bind_i64(&b, l->task);
    bind_i64(&b, l->attempt);
    bind_id(&b, l->team);
    bind_id(&b, l->node);
    bind_text(&b, strbuf_str(&devices));
    bind_i64(&b, l->gpu_milli);
    bind_i64(&b, l->cpu_milli);
    bind_i64(&b, l->memory_bytes);
    bind_i64(&b, l->start_ms);
    bind_i64(&b, l->end_ms);
    bind_i64(&b, l->busy_ns);
    bind_i64(&b, l->seen_ms);
    bind_text(&b, model_release_name(l->release));
    bind_i64(&b, l->stopping_ms);
    bind_i64(&b, l->known_ns);
    return end(&b, l->id, err);
}

static int put_user(struct apply *a, const struct model_user *u, struct err *err)
{
    _cleanup_strbuf_ struct strbuf teams = STRBUF_INIT;
    for (int32_t i = 0; i < u->team_count; i++) {
        if (strchr(u->teams[i], '\n'))
            return refuse(err, -EINVAL, ERR_INVALID, "the name of a user's team holds a newline",
                          (uint64_t)i);
        strbuf_adds(&teams, u->teams[i]);
        strbuf_addc(&teams, '\n');
    }
    struct binder b;
    int rc = begin(a, APPLY_PUT_USER, &b);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(&b, u->name);
    bind_i64(&b, u->admin);
    bind_text(&b, strbuf_str(&teams));
    return end(&b, 0, err);
}

static int put_token(struct apply *a, const struct model_token *t, struct err *err)
{
    struct binder b;
    int rc = begin(a, APPLY_PUT_TOKEN, &b);
    if (rc != SQLITE_OK)
        return rc;
    bind_id(&b, t->id);
    bind_text(&b, t->user);
    bind_text(&b, t->label);
    rc = sqlite3_bind_blob(b.stmt, b.next++, t->hash, sizeof(t->hash), SQLITE_STATIC);
    if (rc != SQLITE_OK)
        return rc;
    bind_i64(&b, t->created_ms);
    bind_i64(&b, t->expires_ms);
    return end(&b, t->id, err);
}

static int put_meta(struct apply *a, const char *key, const char *value, struct err *err)
{
    struct binder b;
    int rc = begin(a, APPLY_PUT_META, &b);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(&b, key);
    bind_text(&b, value);
    return end(&b, 0, err);
}

static int put_reply(struct apply *a, const struct store_reply *reply, struct err *err)
{
    struct binder b;
    int rc = begin(a, APPLY_PUT_REPLY, &b);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(&b, reply->key);
    bind_text(&b, reply->digest);
    bind_i64(&b, reply->status);
    bind_text(&b, reply->body);
    bind_i64(&b, reply->expires_ms);
    return end(&b, 0, err);
}

static int add_event(struct apply *a, const struct model_event *e, struct err *err)
{
    struct binder b;
    int rc = begin(a, APPLY_ADD_EVENT, &b);
    if (rc != SQLITE_OK)
        return rc;
    bind_id(&b, e->seq);
    bind_i64(&b, e->time_ms);
    bind_text(&b, e->type);
    bind_id_or_null(&b, e->workload);
    bind_i64(&b, e->task);
    bind_text(&b, e->workload_name);
    bind_text(&b, e->team);
    bind_text(&b, e->node);
    bind_text(&b, e->actor);
    bind_text(&b, e->message);
    bind_text(&b, e->data);
    return end(&b, e->seq, err);
}

/* Deleting what is not there is done already. */
static int delete_by_id(struct apply *a, enum apply_sql sql, uint64_t id, struct err *err)
{
    struct binder b;
    int rc = begin(a, sql, &b);
    if (rc != SQLITE_OK)
        return rc;
    bind_id(&b, id);
    return end(&b, id, err);
}

static int delete_user(struct apply *a, const char *name, struct err *err)
{
    struct binder b;
    int rc = begin(a, APPLY_DELETE_USER, &b);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(&b, name);
    return end(&b, 0, err);
}

int apply_op(struct apply *a, const struct store_op *op, struct err *err)
{
    switch (op->kind) {
    case STORE_PUT_TEAM:
        return put_team(a, op->team, err);
    case STORE_DELETE_TEAM:
        return delete_by_id(a, APPLY_DELETE_TEAM, op->id, err);
    case STORE_PUT_WORKLOAD:
        return put_workload(a, op->new_workload, err);
    case STORE_UPDATE_WORKLOAD:
        return update_workload(a, op->workload, err);
    case STORE_PUT_TASK:
        return put_task(a, op->task, err);
    case STORE_PUT_NODE:
        return put_node(a, op->node, err);
    case STORE_PUT_ALLOCATION:
        return put_allocation(a, op->allocation, err);
    case STORE_PUT_USER:
        return put_user(a, op->user, err);
    case STORE_DELETE_USER:
        return delete_user(a, op->name, err);
    case STORE_PUT_TOKEN:
        return put_token(a, op->token, err);
    case STORE_DELETE_TOKEN:
        return delete_by_id(a, APPLY_DELETE_TOKEN, op->id, err);
    case STORE_PUT_META:
        return put_meta(a, op->meta.key, op->meta.value, err);
    case STORE_PUT_REPLY:
        return put_reply(a, op->reply, err);
    case STORE_ADD_EVENT:
        return add_event(a, op->event, err);
    }
    return refuse(err, -EINVAL, ERR_INTERNAL, "an unknown operation", (uint64_t)op->kind);
}
