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

/* A workload that holds some of what is asked for, or that is waited for. id 0 = none. */
struct model_explanation_holder {
    uint64_t id;
    const char *name, *team;
    int64_t gpu_milli;
};

/* The last time it had to give way. cause NULL = never. */
struct model_eviction {
    const char *cause;    /* the scheduler's word: "preempt", "reclaim", "idle_only", ... */
    uint64_t for_id;      /* the workload that profits, or 0 */
    const char *for_name; /* or NULL */
    const char *for_team; /* whose entitlement made it due, or NULL */
    int64_t gpu_milli;    /* what the one who profits asks for; 0 = unknown */
};

struct model_explanation {
    uint64_t id;
    const char *name;
    const char *own_team; /* the workload's */
    enum model_workload_state state;
    const char *reason;            /* the scheduler's word; NULL = nothing of it is pending */
    const char *sentence, *remedy; /* made by the functions below; remedy may be NULL */

    enum model_resource resource; /* the binding one */
    int64_t asked, free, missing; /* asked by the whole gang; missing: that much less starts */
    const char *team;             /* whose limit or guarantee binds; else its own */
    const char *gpu_type;         /* it binds for that type, as do the numbers; NULL = all types */
    int64_t used, guarantee, limit, share; /* of `team`; MODEL_UNLIMITED = none */
    const char *request;                   /* model_request_describe() of its task, or NULL */
    int32_t tasks;                         /* of the gang; 0 = unknown */

    int32_t position, pending; /* 1 = next of its team; how many wait in its team */
    int64_t now_ms;            /* when this was true */
    int64_t start_ms;          /* estimated start, 0 = unknown */
    const char *basis;         /* where the estimate comes from: "limits", "expected",
                                  "victims", "backoff", "maintenance", "reserved" (not
                                  before), "now", "unknown" */
    struct model_explanation_holder waits_for;      /* its end or stop would start it */
    const char *node;                               /* whose maintenance is in the way, or NULL */
    int64_t window_from_ms, window_until_ms;        /* of that */
    int64_t run_ms; /* with a maximum run time of that it would start now; 0 = it would not */
    const struct model_explanation_holder *holders; /* largest holders of what it needs */
    int32_t holder_count;

    const char *last_eviction; /* a sentence, or NULL */
    int64_t last_eviction_ms;
};

/* "team research is at its limit of 4 GPUs: it uses 4 and this asks for 2"; into ARENA, never
 * NULL. Says so too when nothing of it is pending. */
const char *model_explanation_sentence(const struct model_explanation *x, struct arena *arena);
/* What would make it start: "it starts when 'train' (81) ends or gives way"; into ARENA, or NULL
 * when nothing in particular would. */
const char *model_explanation_remedy(const struct model_explanation *x, struct arena *arena);
/* "reclaimed: team product takes back 2 GPUs it is entitled to, for 'train' (83)"; into ARENA. */
const char *model_eviction_describe(const struct model_eviction *e, struct arena *arena);

/* The object that API, command line and portal show. Amounts: GPUs and cores as exact numbers
 * (0.25), memory as text ("10GiB"), no limit as null. */
void model_explanation_encode(const struct model_explanation *x, struct json_writer *w);

#endif
