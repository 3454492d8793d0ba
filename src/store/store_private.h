/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store behind its handle, and the readers that the port's table lists. The readers are
 * described in core/store_port.h; STORE is a struct store.
 */
#ifndef ALLOT_STORE_STORE_PRIVATE_H
#define ALLOT_STORE_STORE_PRIVATE_H

#include "core/store_port.h"
#include "store/readers.h"
#include "store/writer.h"

struct store {
    char *folder;
    char *path;  /* of the database */
    char *vfs;   /* or NULL */
    int lock_fd; /* holds the folder's flock */
    struct writer writer;
    struct readers readers;
};

/* read_state.c: what core loads at start-up */
int read_each_shape(void *store, store_shape_fn *fn, void *user, struct err *err);
int read_each_team(void *store, store_team_fn *fn, void *user, struct err *err);
int read_each_node(void *store, store_node_fn *fn, void *user, struct err *err);
int read_each_user(void *store, store_user_fn *fn, void *user, struct err *err);
int read_each_token(void *store, const char *owner, store_token_fn *fn, void *user,
                    struct err *err);
int read_each_live_workload(void *store, store_workload_fn *fn, void *user, struct err *err);
int read_each_live_task(void *store, store_task_fn *fn, void *user, struct err *err);
int read_each_open_allocation(void *store, store_allocation_fn *fn, void *user, struct err *err);
int read_last_ids(void *store, uint64_t *ret_workload, uint64_t *ret_event, uint64_t *ret_other,
                  struct err *err);

/* read_list.c: lists with filters and pages */
int read_list_workloads(void *store, const struct store_workload_filter *filter,
                        store_workload_fn *fn, void *user, struct err *err);
int read_list_tasks(void *store, uint64_t workload, store_task_fn *fn, void *user, struct err *err);
int read_list_allocations(void *store, uint64_t workload, store_allocation_fn *fn, void *user,
                          struct err *err);
int read_list_events(void *store, const struct store_event_filter *filter, store_event_fn *fn,
                     void *user, struct err *err);

/* All rows of a query that has been begun and bound, of ROW_TASK_COLUMNS or
 * ROW_ALLOCATION_COLUMNS. */
int read_task_rows(struct query *q, store_task_fn *fn, void *user, struct err *err);
int read_allocation_rows(struct query *q, store_allocation_fn *fn, void *user, struct err *err);

/* read_one.c: single rows, copied into an arena */
int read_get_workload(void *store, uint64_t id, struct arena *arena,
                      struct model_workload *ret_workload, struct err *err);
int read_find_token(void *store, const uint8_t *hash, int64_t now_ms, struct arena *arena,
                    struct model_token *ret_token, struct model_user *ret_user, struct err *err);
int read_get_team(void *store, const char *name, struct arena *arena, struct model_team *ret_team,
                  struct err *err);
int read_get_meta(void *store, const char *key, struct arena *arena, const char **ret_value,
                  struct err *err);
int read_get_reply(void *store, const char *key, int64_t now_ms, struct arena *arena,
                   struct store_reply *ret_reply, struct err *err);

/* history.c */
int read_history(void *store, struct store_history_at *at, struct strbuf *out, struct err *err);

/* read_usage.c */
int read_usage(void *store, int64_t from_ms, int64_t to_ms, int64_t now_ms, store_usage_fn *fn,
               void *user, struct err *err);

#endif
