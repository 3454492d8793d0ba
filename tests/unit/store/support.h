/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the store's tests and its benchmark: a store in a temporary folder, transactions
 * built in one line an operation, and a commit that waits.
 *
 * A txn from txn_new() lives until fixture_finish(). Workloads are made of real JSON, so that
 * their shapes and launches decode.
 */
#ifndef ALLOT_TESTS_STORE_SUPPORT_H
#define ALLOT_TESTS_STORE_SUPPORT_H

#include <stddef.h>
#include <stdint.h>

#include "core/store_port.h"
#include "store/store.h"

struct fixture {
    char folder[64];
    struct store *store;
    struct store_options options; /* for fixture_open(); zero = the defaults */
    struct arena arena;           /* for what tests read */
    struct store_txn *txns;       /* all made so far */
};

/* For cmocka's setup and teardown: *STATE is a struct fixture with an open store. */
int fixture_setup(void **state);
int fixture_teardown(void **state);

/* The parts of it: a fresh folder without a store; open; close; remove everything. */
void fixture_start(struct fixture *f);
int fixture_open(struct fixture *f, struct err *err);
void fixture_close(struct fixture *f);
void fixture_finish(struct fixture *f);

struct store_txn *txn_new(struct fixture *f);
void txn_add(struct store_txn *t, const struct store_op *op);
/* Commits and waits; the status of the (first) txn. */
int txn_commit(struct fixture *f, struct store_txn *t);
int txn_commit_group(struct fixture *f, struct store_txn *const *txns, size_t count);

void put_team(struct store_txn *t, uint64_t id, const char *name, uint64_t parent);
/* JSON as a person writes it; NULL = one GPU. The shape is interned under SHAPE_ID. */
void put_workload(struct store_txn *t, uint64_t id, const char *team, uint64_t team_id,
                  const char *owner, uint64_t shape_id, const char *json);
void update_workload(struct store_txn *t, uint64_t id, enum model_workload_state state,
                     int64_t ended_ms);
void put_task(struct store_txn *t, uint64_t workload, int32_t index, enum model_task_state state,
              uint64_t node);
/* With device 0 of node 1 unless GPU_MILLI is 0. */
void put_allocation(struct store_txn *t, uint64_t id, uint64_t workload, uint64_t team,
                    int32_t gpu_milli, int64_t start_ms, int64_t end_ms, int64_t busy_ns);
void put_user(struct store_txn *t, const char *name, const char *team);
void put_token(struct store_txn *t, uint64_t id, const char *user, uint8_t hash_byte,
               int64_t expires_ms);
void add_event(struct store_txn *t, uint64_t seq, uint64_t workload, const char *team,
               int64_t time_ms);
void put_reply(struct store_txn *t, const char *key, int64_t expires_ms);

/* Runs SQL on the closed or open database of F with a plain connection; asserts success. */
void run_sql(struct fixture *f, const char *sql);
int64_t query_sql(struct fixture *f, const char *sql);

/* Ids seen by a reader, in order. */
struct ids {
    uint64_t id[4096];
    size_t count;
};
int collect_workload(void *ids, const struct store_workload_row *row);
int collect_event(void *ids, const struct model_event *event);

#endif
