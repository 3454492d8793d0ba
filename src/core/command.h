/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands: everything that a person (through the API) may ask of core.
 *
 * The caller fills a command, hands it to core_submit() from any thread and gets it back in
 * done(), called on core's thread after what it did is durable (or it was refused). done() must
 * not block: it encodes and passes the reply on. The caller owns the command; its inputs must
 * live until done(). Results live in the command's arena.
 *
 * status: 0 or a negative errno, with err filled in. -EACCES, -ENOENT, -EEXIST, -EINVAL, -E2BIG
 * (never satisfiable, or over a limit for ever), -EBUSY (wrong state), -ESTALE (If-Match),
 * -ENOSPC / -EROFS / -EIO (the store refuses; nothing happened).
 *
 * Authorisation of the subject is core's: the actor carries role and teams, and core checks them
 * against the subtree of the team concerned, because only core knows the tree of this instant.
 */
#ifndef ALLOT_CORE_COMMAND_H
#define ALLOT_CORE_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "core/store_port.h"
#include "model/explanation.h"
#include "model/node.h"
#include "model/reading.h"
#include "model/team.h"
#include "model/user.h"
#include "model/workload.h"

enum core_command_kind {
    CORE_TEAM_PUT,         /* create or change; in: team; out: team */
    CORE_TEAM_DELETE,      /* in: name */
    CORE_WORKLOADS_SUBMIT, /* in: workloads, all or nothing; out: ids and names filled in */
    CORE_WORKLOADS_DRY,    /* in: likewise; changes nothing; out: an explanation of each, as if it
                              were submitted alone; id 0, no name but a given one */
    CORE_WORKLOAD_STOP,    /* in: id; grace_ms -1 = its own */
    CORE_WORKLOAD_SUSPEND, /* in: id; out: state, RUNNING until the engine has done it */
    CORE_WORKLOAD_RESUME,  /* in: id; out: state, PENDING until it has its devices */
    CORE_WORKLOAD_EXTEND,  /* in: id; grace_ms: how long it may be idle, -1 = as its policy says */
    CORE_EXPLAIN,          /* in: id; out: explanation */
    CORE_EXPLAIN_BRIEF,    /* in: ids; out: reasons[], positions[] for a page of a list */
    CORE_NODE_DRAIN,       /* in: name, flag */
    CORE_NODE_MAINTENANCE, /* in: name, window_from_ms, window_until_ms (0 = none) */
    CORE_USER_PUT,         /* in: user */
    CORE_USER_DELETE,      /* in: name */
    CORE_TOKEN_CREATE,     /* in: token (hash, user, label, expires); out: token.id */
    CORE_TOKEN_DELETE,     /* in: id */
    CORE_TEAM_USAGE,       /* out: team_usage[] of every team */
    CORE_METRICS,          /* out: team_usage[] of every team, nodes[] with what drivers say */
    CORE_STATUS            /* out: status_report: is the store writable, counts, ... */
};

struct core_actor {
    const char *name; /* user */
    bool admin;
    const char *const *teams;
    int32_t team_count;
};

struct core_type_usage {
    const char *type;
    int64_t used; /* milli-GPU */
};

/* Live figures of a team, from the scheduler. */
struct core_team_usage {
    const char *name;
    int64_t used[MODEL_RESOURCE_COUNT], demand[MODEL_RESOURCE_COUNT];
    int64_t share[MODEL_RESOURCE_COUNT], entitled[MODEL_RESOURCE_COUNT];
    int64_t guarantee[MODEL_RESOURCE_COUNT], limit[MODEL_RESOURCE_COUNT]; /* as stated */
    uint32_t pending, running;                                            /* workloads */
    uint32_t workloads[MODEL_WORKLOAD_STATE_COUNT][MODEL_CLASS_COUNT];    /* its own, live ones */
    int64_t past_gpu_ms;                 /* decayed use, in GPUs x milliseconds */
    int32_t bias_milli;                  /* of its weight for GPUs, by past use; 1000 = as stated */
    const struct core_type_usage *types; /* that it states a quota of */
    int32_t type_count;
};

struct core_node_metrics {
    uint64_t id;
    const char *name;
    enum model_node_state state;
    bool drained;
    const struct model_reading *readings; /* by device; of those that the driver tells of */
    int32_t reading_count;                /* 0: nothing recent is known */
};

struct core_status {
    bool store_ok; /* false: writes fail; refusing new work */
    const char *store_message;
    uint64_t pending, running; /* workloads, of teams that the caller sees */
    uint64_t last_event;
    int64_t started_ms, now_ms;
    bool reconciled; /* the engine has answered for every task */
};

struct core_command {
    enum core_command_kind kind;
    struct core_actor actor;
    void (*done)(struct core_command *command);
    void *user; /* the caller's */

    /* in, by kind */
    const char *name;
    uint64_t id;
    int64_t grace_ms;
    bool flag;
    int64_t window_from_ms, window_until_ms;
    uint64_t if_match; /* version, 0 = any */
    const struct model_team *team;
    struct model_workload *workloads; /* id, name, owner, submitted_ms are filled in */
    size_t workload_count;
    const struct model_user *user_row;
    struct model_token token;
    const uint64_t *ids;
    size_t id_count;
    /* With an Idempotency-Key: stored in the same transaction as the effect. Core calls
     * make_reply (on its thread, before the commit) to get the body that will be stored. */
    const char *reply_key, *reply_digest;
    int (*make_reply)(struct core_command *command, int *ret_status, const char **ret_body);

    /* out */
    int status;
    struct err err;
    struct arena arena;
    struct model_team *ret_team;
    struct model_explanation *ret_explanation; /* DRY: an array, one a workload. Without sentences:
                                                  the API makes them when it has taken out what
                                                  its reader may not see */
    const char **ret_reasons;                  /* NULL entries: not pending */
    uint32_t *ret_positions;
    enum model_workload_state ret_state; /* SUSPEND, RESUME */
    int32_t *ret_stopping; /* tasks of what runs that have been asked to stop, to start again */
    struct core_team_usage *ret_team_usage;
    size_t ret_team_count;
    struct core_node_metrics *ret_nodes; /* by name */
    size_t ret_node_count;
    struct core_status ret_status;
};

#endif
