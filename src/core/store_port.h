/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store port: what core needs from durable storage.
 *
 * Writing. Core builds transactions: lists of row operations in one arena. It hands over a
 * group of them; the store applies the group in order, makes it durable with one commit, and
 * calls back. One group is under way at a time; core collects the next one meanwhile (group
 * commit). A transaction whose own rows are refused (a constraint) fails alone, with its status;
 * a failure of the disk fails all of the group, and nothing of it has happened. Core then
 * refuses what people asked for and hands in again, in order, what has already happened in the
 * world (an exit, a confirmed start).
 *
 * Reading. Readers are thread-safe, see committed state only, and never wait for a writer. They
 * serve the API directly, so that a large read does not touch core. Rows are passed one by one
 * to a callback; the strings live until it returns. A callback that returns nonzero ends the
 * walk with that value.
 *
 * Rows are whole: a PUT replaces by key. What is not stored is not there: a task without a row
 * is pending with attempt 0.
 */
#ifndef ALLOT_CORE_STORE_PORT_H
#define ALLOT_CORE_STORE_PORT_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "model/event.h"
#include "model/node.h"
#include "model/task.h"
#include "model/team.h"
#include "model/user.h"
#include "model/workload.h"

enum store_op_kind {
    STORE_PUT_TEAM,
    STORE_DELETE_TEAM,      /* by id */
    STORE_PUT_WORKLOAD,     /* a new one, with shape and launch */
    STORE_UPDATE_WORKLOAD,  /* its changing part only */
    STORE_PUT_TASK,
    STORE_PUT_NODE,
    STORE_PUT_ALLOCATION,
    STORE_PUT_USER,
    STORE_DELETE_USER,      /* by name; with its tokens */
    STORE_PUT_TOKEN,
    STORE_DELETE_TOKEN,     /* by id */
    STORE_PUT_META,         /* key = value */
    STORE_PUT_REPLY,        /* idempotency: key -> reply, with an expiry */
    STORE_ADD_EVENT
};

/* The shape and launch of a new workload as canonical JSON; shapes are interned by id. */
struct store_new_workload {
    const struct model_workload *row; /* identity and state */
    uint64_t shape_id;                /* assigned by core; a new id comes with its text */
    const char *shape_json;           /* NULL when the store has this shape already */
    const char *launch_json;
};

struct store_reply {
    const char *key;     /* actor + "\n" + Idempotency-Key */
    const char *digest;  /* of the request, to refuse another one under the same key */
    int status;          /* HTTP status of the reply */
    const char *body;
    int64_t expires_ms;
};

struct store_op {
    enum store_op_kind kind;
    struct store_op *next;
    union {
        const struct model_team *team;
        const struct store_new_workload *new_workload;
        const struct model_workload *workload;
        const struct model_task *task;
        const struct model_node *node;
        const struct model_allocation *allocation;
        const struct model_user *user;
        const struct model_token *token;
        const struct model_event *event;
        const struct store_reply *reply;
        struct {
            const char *key, *value;
        } meta;
        uint64_t id;
        const char *name;
    };
};

struct store_txn {
    struct arena arena; /* owns every operation and what it points to */
    struct store_op *first, *last;
    int status; /* set by the store: 0 or negative errno */
    struct err err;
    struct store_txn *next; /* core's own list */
};

/* Called by the store's thread when the group is durable or has failed. */
typedef void store_done_fn(void *host, struct store_txn *const *txns, size_t count);

/* ---- reading ---------------------------------------------------------------------------- */

struct store_workload_filter {
    const char *team;    /* name, or NULL */
    const char *owner;   /* or NULL */
    const char *name;    /* exact, or NULL */
    uint32_t states;     /* bit mask of enum model_workload_state; 0 = all */
    uint32_t kinds;      /* bit mask of enum model_kind; 0 = all */
    uint32_t classes;    /* bit mask; 0 = all */
    const char *const *teams; /* only these teams (what the caller may see); NULL = all */
    int32_t team_count;
    uint64_t before_id;  /* page: ids below this, newest first; 0 = from the newest */
    int32_t limit;       /* 1..1000 */
};

struct store_event_filter {
    uint64_t after_seq;
    uint64_t workload; /* 0 = all */
    const char *const *teams; /* visible teams; NULL = all */
    int32_t team_count;
    int32_t limit;     /* 1..1000 */
    int newest;        /* nonzero: the LIMIT newest ones, still in order of seq */
};

struct store_usage_row {
    const char *team;
    int64_t allocated_milli_ms; /* milli-GPU x milliseconds inside the window */
    int64_t busy_ns;            /* device busy time inside the window */
    int64_t unknown_ns;         /* GPU time of which it is not known whether it was busy */
    int64_t gpu_ms;             /* wall milliseconds with any device held */
    int64_t cpu_milli_ms;
    int64_t allocations;
    int64_t open;               /* of them still open */
};

struct store_workload_row {
    const struct model_workload *workload; /* shape decoded or NULL, launch NULL */
    uint64_t shape_id;
    const char *shape_json;
    int32_t gpu_milli; /* charge of all tasks, as stored */
};

typedef int store_workload_fn(void *user, const struct store_workload_row *row);
typedef int store_task_fn(void *user, const struct model_task *task);
typedef int store_team_fn(void *user, const struct model_team *team);
typedef int store_node_fn(void *user, const struct model_node *node);
typedef int store_event_fn(void *user, const struct model_event *event);
typedef int store_allocation_fn(void *user, const struct model_allocation *allocation);
typedef int store_user_fn(void *user, const struct model_user *row);
typedef int store_token_fn(void *user, const struct model_token *row);
typedef int store_usage_fn(void *user, const struct store_usage_row *row);
typedef int store_shape_fn(void *user, uint64_t id, const char *json);

/* Where a reading of the history stands; zeroed to begin. The first piece sets the end of what is
 * read: what happens later is left out, however long the reading takes. */
struct store_history_at {
    int section;            /* kind of the lines that come next */
    uint64_t after;         /* the last one of them that was read */
    int64_t now_ms;         /* later things are left out */
    uint64_t last_workload, last_event;
    uint64_t batch_last;             /* newest workload of those whose runs come next */
    uint64_t run_workload, run_last; /* the run that was read last, and its workload */
    int64_t workloads, runs; /* read so far */
};

struct store_ops {
    /* Takes the group; DONE is called once. TXNS must live until then. */
    void (*commit)(void *store, struct store_txn *const *txns, size_t count, store_done_fn *done,
                   void *host);

    /* All readers: 0, the callback's nonzero value, or a negative errno with ERR. */
    int (*each_shape)(void *store, store_shape_fn *fn, void *user, struct err *err);
    int (*each_team)(void *store, store_team_fn *fn, void *user, struct err *err);
    int (*each_node)(void *store, store_node_fn *fn, void *user, struct err *err);
    int (*each_user)(void *store, store_user_fn *fn, void *user, struct err *err);
    /* USER NULL = all. */
    int (*each_token)(void *store, const char *owner, store_token_fn *fn, void *user,
                      struct err *err);
    /* Every workload that has not ended, in order of id, for start-up; shape_json is NULL. */
    int (*each_live_workload)(void *store, store_workload_fn *fn, void *user, struct err *err);
    /* Every stored task of live workloads, and every open allocation, for start-up. */
    int (*each_live_task)(void *store, store_task_fn *fn, void *user, struct err *err);
    int (*each_open_allocation)(void *store, store_allocation_fn *fn, void *user,
                                struct err *err);

    int (*list_workloads)(void *store, const struct store_workload_filter *filter,
                          store_workload_fn *fn, void *user, struct err *err);
    /* One workload with shape and launch, into ARENA. -ENOENT. */
    int (*get_workload)(void *store, uint64_t id, struct arena *arena,
                        struct model_workload *ret_workload, struct err *err);
    int (*list_tasks)(void *store, uint64_t workload, store_task_fn *fn, void *user,
                      struct err *err);
    int (*list_allocations)(void *store, uint64_t workload, store_allocation_fn *fn, void *user,
                            struct err *err);
    int (*list_events)(void *store, const struct store_event_filter *filter, store_event_fn *fn,
                       void *user, struct err *err);
    /* Per team over [from, to): allocations cut to the window; open ones count until NOW. */
    int (*usage)(void *store, int64_t from_ms, int64_t to_ms, int64_t now_ms,
                 store_usage_fn *fn, void *user, struct err *err);
    /* -ENOENT where unknown or expired. Strings into ARENA. */
    int (*find_token)(void *store, const uint8_t *hash, int64_t now_ms, struct arena *arena,
                      struct model_token *ret_token, struct model_user *ret_user,
                      struct err *err);
    int (*get_team)(void *store, const char *name, struct arena *arena,
                    struct model_team *ret_team, struct err *err);
    int (*get_meta)(void *store, const char *key, struct arena *arena, const char **ret_value,
                    struct err *err);
    int (*get_reply)(void *store, const char *key, int64_t now_ms, struct arena *arena,
                     struct store_reply *ret_reply, struct err *err);
    /* Appends a piece of the history (store/history.h: lines of JSON) to OUT and moves AT on. 1
     * while there is more, 0 at the end. A piece takes milliseconds, whatever the store holds. */
    int (*history)(void *store, struct store_history_at *at, struct strbuf *out, struct err *err);
    /* Largest ids in use, for start-up. */
    int (*last_ids)(void *store, uint64_t *ret_workload, uint64_t *ret_event,
                    uint64_t *ret_other, struct err *err);
};

#endif
