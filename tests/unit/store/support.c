/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <json-c/json.h>
#include <sqlite3.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "model/json.h"

/* Set-up that fails is not a result of a test: say so and stop. */
#define REQUIRE(condition)                                                                 \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            fprintf(stderr, "%s:%d: set-up failed: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                       \
        }                                                                                  \
    } while (0)

void fixture_start(struct fixture *f)
{
    *f = (struct fixture){.folder = "/tmp/allot-store-XXXXXX"};
    REQUIRE(mkdtemp(f->folder) != NULL);
}

int fixture_open(struct fixture *f, struct err *err)
{
    return store_open(f->folder, &f->options, &f->store, err);
}

void fixture_close(struct fixture *f)
{
    store_close(f->store);
    f->store = NULL;
}

void fixture_finish(struct fixture *f)
{
    fixture_close(f);
    while (f->txns) {
        struct store_txn *t = f->txns;
        f->txns = t->next;
        arena_done(&t->arena);
        free(t);
    }
    arena_done(&f->arena);
    REQUIRE(io_remove_tree(AT_FDCWD, f->folder) == 0);
}

int fixture_setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct err err = ERR_INIT;
    REQUIRE(f != NULL);
    fixture_start(f);
    if (fixture_open(f, &err) < 0) {
        fprintf(stderr, "cannot open: %s\n", err.text);
        return -1;
    }
    *state = f;
    return 0;
}

int fixture_teardown(void **state)
{
    fixture_finish(*state);
    free(*state);
    return 0;
}

struct store_txn *txn_new(struct fixture *f)
{
    struct store_txn *t = calloc(1, sizeof(*t));
    REQUIRE(t != NULL);
    t->next = f->txns;
    f->txns = t;
    return t;
}

void txn_add(struct store_txn *t, const struct store_op *op)
{
    struct store_op *copy = arena_memdup(&t->arena, op, sizeof(*op));
    copy->next = NULL;
    if (t->last)
        t->last->next = copy;
    else
        t->first = copy;
    t->last = copy;
}

struct waiting {
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool is_done;
};

static void group_done(void *host, struct store_txn *const *txns, size_t count)
{
    struct waiting *w = host;
    pthread_mutex_lock(&w->lock);
    w->is_done = true;
    pthread_cond_signal(&w->done);
    pthread_mutex_unlock(&w->lock);
}

int txn_commit_group(struct fixture *f, struct store_txn *const *txns, size_t count)
{
    struct waiting w = {.lock = PTHREAD_MUTEX_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};
    store_sqlite_ops.commit(f->store, txns, count, group_done, &w);
    pthread_mutex_lock(&w.lock);
    while (!w.is_done)
        pthread_cond_wait(&w.done, &w.lock);
    pthread_mutex_unlock(&w.lock);
    return count ? txns[0]->status : 0;
}

int txn_commit(struct fixture *f, struct store_txn *t)
{
    return txn_commit_group(f, &t, 1);
}

void put_team(struct store_txn *t, uint64_t id, const char *name, uint64_t parent)
{
    struct model_team *team = arena_new(&t->arena, struct model_team);
    model_team_init(team);
    team->id = id;
    team->name = arena_strdup(&t->arena, name);
    team->parent_id = parent;
    team->version = 1;
    txn_add(t, &(struct store_op){.kind = STORE_PUT_TEAM, .team = team});
}

void put_workload(struct store_txn *t, uint64_t id, const char *team, uint64_t team_id,
                  const char *owner, uint64_t shape_id, const char *json)
{
    struct model_workload *w = arena_new(&t->arena, struct model_workload);
    struct store_new_workload *n = arena_new(&t->arena, struct store_new_workload);
    struct json_object *parsed = NULL;
    struct err err = ERR_INIT;
    if (!json)
        json = "{\"gpus\": 1, \"command\": [\"true\"]}";
    w->team = arena_strdup(&t->arena, team);
    REQUIRE(model_json_parse(json, strlen(json), &parsed, &err) == 0);
    REQUIRE(model_workload_decode(parsed, &t->arena, w, &err) == 0);
    json_object_put(parsed);
    w->id = id;
    w->team_id = team_id;
    w->owner = arena_strdup(&t->arena, owner);
    if (!w->name)
        w->name = arena_printf(&t->arena, "w%llu", (unsigned long long)id);
    w->submitted_ms = 1000 + (int64_t)id;

    _cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
    struct json_writer out;
    json_writer_init(&out, &text);
    model_shape_encode(w->shape, &out);
    n->shape_json = arena_strdup(&t->arena, strbuf_str(&text));
    strbuf_truncate(&text, 0);
    json_writer_init(&out, &text);
    model_launch_encode(w->launch, &out);
    n->launch_json = arena_strdup(&t->arena, strbuf_str(&text));
    n->shape_id = shape_id;
    n->row = w;
    txn_add(t, &(struct store_op){.kind = STORE_PUT_WORKLOAD, .new_workload = n});
}

void update_workload(struct store_txn *t, uint64_t id, enum model_workload_state state,
                     int64_t ended_ms)
{
    struct model_workload *w = arena_new(&t->arena, struct model_workload);
    w->id = id;
    w->state = state;
    w->ended_ms = ended_ms;
    txn_add(t, &(struct store_op){.kind = STORE_UPDATE_WORKLOAD, .workload = w});
}

void put_task(struct store_txn *t, uint64_t workload, int32_t index, enum model_task_state state,
              uint64_t node)
{
    struct model_task *task = arena_new(&t->arena, struct model_task);
    task->workload = workload;
    task->index = index;
    task->state = state;
    task->node = node;
    txn_add(t, &(struct store_op){.kind = STORE_PUT_TASK, .task = task});
}

void put_allocation(struct store_txn *t, uint64_t id, uint64_t workload, uint64_t team,
                    int32_t gpu_milli, int64_t start_ms, int64_t end_ms, int64_t busy_ns)
{
    static const uint16_t devices[] = {0};
    struct model_allocation *a = arena_new(&t->arena, struct model_allocation);
    a->id = id;
    a->workload = workload;
    a->team = team;
    a->node = 1;
    a->devices = devices;
    a->device_count = gpu_milli > 0;
    a->gpu_milli = gpu_milli;
    a->cpu_milli = 500;
    a->start_ms = start_ms;
    a->end_ms = end_ms;
    a->busy_ns = busy_ns;
    txn_add(t, &(struct store_op){.kind = STORE_PUT_ALLOCATION, .allocation = a});
}

void put_user(struct store_txn *t, const char *name, const char *team)
{
    struct model_user *u = arena_new(&t->arena, struct model_user);
    const char **teams = arena_new_array(&t->arena, const char *, 1);
    teams[0] = arena_strdup(&t->arena, team);
    u->name = arena_strdup(&t->arena, name);
    u->teams = teams;
    u->team_count = team != NULL;
    txn_add(t, &(struct store_op){.kind = STORE_PUT_USER, .user = u});
}

void put_token(struct store_txn *t, uint64_t id, const char *user, uint8_t hash_byte,
               int64_t expires_ms)
{
    struct model_token *k = arena_new(&t->arena, struct model_token);
    k->id = id;
    k->user = arena_strdup(&t->arena, user);
    memset(k->hash, hash_byte, sizeof(k->hash));
    k->created_ms = 5;
    k->expires_ms = expires_ms;
    txn_add(t, &(struct store_op){.kind = STORE_PUT_TOKEN, .token = k});
}

void add_event(struct store_txn *t, uint64_t seq, uint64_t workload, const char *team,
               int64_t time_ms)
{
    struct model_event *e = arena_new(&t->arena, struct model_event);
    e->seq = seq;
    e->time_ms = time_ms;
    e->type = MODEL_EVENT_SUBMITTED;
    e->workload = workload;
    e->task = -1;
    e->team = arena_strdup(&t->arena, team);
    e->actor = "ada";
    txn_add(t, &(struct store_op){.kind = STORE_ADD_EVENT, .event = e});
}

void put_reply(struct store_txn *t, const char *key, int64_t expires_ms)
{
    struct store_reply *r = arena_new(&t->arena, struct store_reply);
    *r = (struct store_reply){.key = arena_strdup(&t->arena, key),
                              .digest = "d1",
                              .status = 201,
                              .body = "{\"id\":1}",
                              .expires_ms = expires_ms};
    txn_add(t, &(struct store_op){.kind = STORE_PUT_REPLY, .reply = r});
}

static sqlite3 *plain_connection(struct fixture *f)
{
    sqlite3 *db = NULL;
    char path[96];
    snprintf(path, sizeof(path), "%s/allot.db", f->folder);
    REQUIRE(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) ==
            SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    return db;
}

void run_sql(struct fixture *f, const char *sql)
{
    sqlite3 *db = plain_connection(f);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(db));
        abort();
    }
    sqlite3_close(db);
}

int64_t query_sql(struct fixture *f, const char *sql)
{
    sqlite3 *db = plain_connection(f);
    sqlite3_stmt *stmt = NULL;
    REQUIRE(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK);
    REQUIRE(sqlite3_step(stmt) == SQLITE_ROW);
    int64_t value = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return value;
}

static int collect(struct ids *ids, uint64_t id)
{
    REQUIRE(ids->count < ARRAY_LEN(ids->id));
    ids->id[ids->count++] = id;
    return 0;
}

int collect_workload(void *ids, const struct store_workload_row *row)
{
    return collect(ids, row->workload->id);
}

int collect_event(void *ids, const struct model_event *event)
{
    return collect(ids, event->seq);
}
