/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a workload waits: one dominant reason, the numbers behind it, and what would make it start.
 *
 * Core fills one of these from the scheduler's explanation, with ids resolved to names; the API
 * encodes it; `allot why` and the portal show the same object. The main sentence and the remedy
 * are made here from the numbers, so that every surface says the same.
 *
 * Amounts are in the unit of `resource` (milli-GPU, millicores, bytes); times are on the server's
 * timeline. Nothing is owned: strings live as long as whatever filled them in (an arena).
 *
 *     struct model_explanation x = {.reason = "team_limit", .team = "nlp", ...};
 *     x.sentence = model_explanation_sentence(&x, &arena);
 *     x.remedy = model_explanation_remedy(&x, &arena);
 *     model_explanation_encode(&x, &w);
 */
#ifndef ALLOT_MODEL_EXPLANATION_H
#define ALLOT_MODEL_EXPLANATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/json_writer.h"
#include "model/state.h"
#include "model/team.h"

/* A workload that holds some of what is asked for, or that is waited for: id and name are given.
 * Of work that the reader may not see the team alone is told, of all of it together: id 0. Nobody:
 * id 0 and no team. */
struct model_explanation_holder {
    uint64_t id;
    const char *name, *team;
    int64_t amount; /* of the explanation's resource; 0 = it does not matter */
    int32_t count;  /* workloads, where id is 0 */
};

/* The last time it had to give way. cause NULL = never. */
struct model_eviction {
    const char *cause;    /* the scheduler's word: "preempt", "reclaim", "idle_only", ... */
    uint64_t for_id;      /* the workload that profits; 0 = not to be named */
    const char *for_name; /* or NULL */
    const char *for_team; /* whose it is, or NULL */
    int64_t gpu_milli;    /* what the one who profits asks for; 0 = unknown */
    const char *gpu_type; /* the only type that it accepts, or NULL */
};

/* What a team, its own or one above it, states of a GPU type that the workload accepts. */
struct model_explanation_type {
    const char *team, *type;
    int64_t used, guarantee, limit; /* milli-GPU; MODEL_UNLIMITED = not stated */
};

struct model_explanation_node {
    const char *name;
    const char *state; /* "down", "drained", "maintenance" */
};

struct model_explanation {
    uint64_t id;
    const char *name;
    const char *own_team; /* the workload's */
    enum model_workload_state state;
    const char *reason;            /* the scheduler's word; NULL = nothing of it is pending */
    const char *sentence, *remedy; /* made by the functions below; remedy may be NULL */
    const char *message;           /* what it was last told: why a launch failed; or NULL */

    enum model_resource resource; /* the binding one */
    int64_t asked, each;          /* by all that must start together; by one task */
    int64_t free, most;           /* where it could run, or under a limit; for one task at most */
    int64_t missing;              /* so much more must be free */
    int64_t less;                 /* with so much less asked it would start now; 0 = unknown */
    int32_t less_tasks;           /* of that: so many tasks fewer; 0 = its tasks ask for less */
    int64_t takes;                /* milli-GPU that it would then take from others */
    int32_t gang, fitting;        /* tasks that must start together, and that fit now */
    const char *team;             /* whose limit or guarantee binds; else its own */
    bool hard_quota;              /* its limit is its guarantee */
    bool firm;                    /* the guarantee binds work that cannot be preempted */
    const char *gpu_type;         /* it binds for that type, as do the numbers; NULL = all types */
    int64_t used, guarantee, limit, share; /* of `team`; MODEL_UNLIMITED = none. There is no share
                                              of one type */
    const struct model_explanation_type *types; /* by team from its own upwards */
    int32_t type_count;
    const char *over_team;                 /* overcommitted: the guarantees below it; NULL = all */
    int64_t guarantees, capacity;          /* their sum, and what there is; 0 = not so */
    const char *level, *domain;            /* topology: the level and its best domain, or NULL */

    const char *request; /* model_request_describe() of its task, or NULL */
    const char *type;    /* the only GPU type that it accepts, or NULL */
    int32_t tasks;       /* in all; 0 = unknown */
    bool asks_gpu;
    bool idle_only; /* batch: it never takes a place from anybody */

    int32_t position, pending; /* 1 = next of its team; how many wait in its team */
    int64_t now_ms;            /* when this was true */
    int64_t start_ms;          /* estimated start, 0 = unknown */
    const char *basis;         /* where the estimate comes from: "limits", "expected",
                                  "victims", "backoff", "maintenance", "reserved" (not
                                  before), "behind" (others first), "protected", "now", "unknown" */
    struct model_explanation_holder waits_for;  /* its end or stop would start it */
    int32_t budget;                             /* of that one: tasks that may be missing */
    const struct model_explanation_node *nodes; /* that are away; the first matters most */
    int32_t node_count;
    int64_t window_from_ms, window_until_ms; /* of the first, if that is in the way; or 0 */
    int64_t run_ms; /* with a maximum run time of that it would start now; 0 = it would not */
    struct model_explanation_holder *holders; /* largest holders of what it needs */
    int32_t holder_count;

    const char *last_eviction; /* a sentence, or NULL */
    int64_t last_eviction_ms;
};

/* Takes the names away of all holders whose team SEES says no of: what is left of them is summed
 * up by team. Before the sentences are made. */
void model_explanation_redact(struct model_explanation *x,
                              bool (*sees)(const void *ctx, const char *team), const void *ctx);
/* "team research is at its limit of 4 GPUs: it uses 4 and this asks for 2"; into ARENA, never
 * NULL. Says so too when nothing of it is pending. */
const char *model_explanation_sentence(const struct model_explanation *x, struct arena *arena);
/* What would make it start: "it starts when 'train' (81) ends or gives way"; into ARENA, or NULL
 * when nothing in particular would. */
const char *model_explanation_remedy(const struct model_explanation *x, struct arena *arena);
/* "reclaimed: team product takes back 2 GPUs of type H100 it is entitled to, for 'train' (83)";
 * into ARENA. Says "work of team product" where no workload is named. */
const char *model_eviction_describe(const struct model_eviction *e, struct arena *arena);

/* The object that API, command line and portal show. Amounts: GPUs and cores as exact numbers
 * (0.25), memory as text ("10GiB"), no limit as null. */
void model_explanation_encode(const struct model_explanation *x, struct json_writer *w);

#endif
