/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Life of a scheduler, its defaults, and the words of its vocabulary.
 */
#include <stdlib.h>

#include "sched/hold.h"
#include "sched/index.h"
#include "sched/mix.h"
#include "sched/node.h"
#include "sched/place.h"
#include "sched/team.h"
#include "sched/trade.h"
#include "sched/units.h"
#include "sched/wake.h"
#include "sched/workload.h"

#define INDEX_FROM 8 /* nodes: fewer are scanned faster */

void sched_config_default(struct sched_config *ret_config)
{
    *ret_config = (struct sched_config){
        .classes =
            {
                [SCHED_CLASS_PRODUCTION] = {.may_preempt = true, .may_reclaim = true},
                [SCHED_CLASS_TRAINING] = {.preemptible = true,
                                          .may_preempt = true,
                                          .may_reclaim = true},
                [SCHED_CLASS_DEVELOPMENT] = {.preemptible = true,
                                             .may_preempt = true,
                                             .may_reclaim = true},
                [SCHED_CLASS_BATCH] = {.preemptible = true, .idle_only = true},
            },
        .hold_ms = 60 * 1000,
        .stale_gang_ms = 60 * 1000,
        .min_run_ms = 0,
        .backoff_ms = 5 * 1000,
        .moves_max = 16,
        .window_lead_ms = 60 * 60 * 1000,
    };
}

struct sched *sched_create(const struct sched_config *config)
{
    struct sched *s = mem_new(1, sizeof(*s));
    if (config != NULL)
        s->config = *config;
    else
        sched_config_default(&s->config);
    s->timers = (struct heap)HEAP_INIT(workload_timer_before);
    s->protected_until_ms = INT64_MAX;
    s->freed_epoch = s->outside_epoch = 1;
    s->search_quota = UINT16_MAX; /* all that a waking ever grants */
    s->placing = mem_new(1, sizeof(*s->placing));
    s->evicting = evicting_new();
    s->states = states_new();
    s->index = index_new();
    s->index_from = INDEX_FROM;
    s->lots_few = LOTS_FEW;
    s->nodes_epoch = 1;
    s->mix = mix_new();
    mix_refresh(s);
    team_root_init(s);
    return s;
}

/* Walks a map and releases all that hang on each slot. */
#define FREE_ALL(map_, type, release)                            \
    do {                                                         \
        size_t it_ = 0;                                          \
        for (type * x_; (x_ = map_next(&(map_), &it_)) != NULL;) \
            release(x_);                                         \
        map_done(&(map_));                                       \
    } while (0)

static void group_free(struct group *g)
{
    while (g != NULL) {
        struct group *next = g->next;
        free(g);
        g = next;
    }
}

static void lot_free(struct lot *lot)
{
    while (lot != NULL) {
        struct lot *next = lot->next;
        vec_done(&lot->groups);
        free(lot);
        lot = next;
    }
}

static void shape_free(struct shape *shape)
{
    while (shape != NULL) {
        struct shape *next = shape->next;
        free(shape->mig);
        free(shape->types);
        free(shape->labels);
        free(shape->only_devices);
        free(shape);
        shape = next;
    }
}

static void job_free(struct job_shape *job)
{
    while (job != NULL) {
        struct job_shape *next = job->next;
        free(job->tasks);
        free(job->order);
        free(job->pack);
        free(job->groups);
        free(job);
        job = next;
    }
}

void sched_destroy(struct sched *s)
{
    if (s == NULL)
        return;
    hold_claims_drop(s);
    for (size_t i = 0; i < s->moving.len; i++)
        free(s->moving.items[i].devices);
    vec_done(&s->moving);
    heap_done(&s->timers); /* heaps let go of their members first */
    FREE_ALL(s->teams, struct team, team_free);
    team_free(&s->root);
    FREE_ALL(s->workloads, struct workload, workload_free);
    FREE_ALL(s->groups, struct group, group_free);
    FREE_ALL(s->lots, struct lot, lot_free);
    FREE_ALL(s->job_shapes, struct job_shape, job_free);
    FREE_ALL(s->shapes, struct shape, shape_free);
    FREE_ALL(s->nodes, struct node, node_free);
    vec_done(&s->fresh);
    FREE_ALL(s->strings, char, free);
    vec_done(&s->node_list);
    vec_done(&s->levels);
    vec_done(&s->domains);
    vec_done(&s->holding);
    vec_done(&s->below);
    vec_done(&s->queues);
    vec_done(&s->near);
    vec_done(&s->parked_jobs);
    vec_done(&s->open_jobs);
    vec_done(&s->open);
    vec_done(&s->free_numbers);
    vec_done(&s->windows);
    vec_done(&s->decisions);
    vec_done(&s->taken_back);
    vec_done(&s->claims);
    vec_done(&s->touched);
    arena_done(&s->arena);
    trade_done(s);
    placing_free(s->placing);
    evicting_free(s->evicting);
    mix_free(s->mix);
    index_free(s->index);
    states_free(s->states);
    free(s);
}

const char *sched_reason_name(enum sched_reason reason)
{
    static const char *const names[SCHED_REASONS] = {
        [SCHED_REASON_NONE] = "none",
        [SCHED_REASON_NO_SUCH_DEVICE] = "no_such_device",
        [SCHED_REASON_TOO_LARGE] = "too_large",
        [SCHED_REASON_ABOVE_LIMIT] = "above_limit",
        [SCHED_REASON_ABOVE_GUARANTEE] = "above_guarantee",
        [SCHED_REASON_TEAM_LIMIT] = "team_limit",
        [SCHED_REASON_TEAM_GUARANTEE] = "team_guarantee",
        [SCHED_REASON_BACKOFF] = "backoff",
        [SCHED_REASON_STOPPING] = "stopping",
        [SCHED_REASON_HELD] = "held",
        [SCHED_REASON_RESERVED] = "reserved",
        [SCHED_REASON_TOPOLOGY] = "topology",
        [SCHED_REASON_FRAGMENTED] = "fragmented",
        [SCHED_REASON_NODES_DOWN] = "nodes_down",
        [SCHED_REASON_MAINTENANCE] = "maintenance",
        [SCHED_REASON_CPU] = "cpu",
        [SCHED_REASON_MEMORY] = "memory",
        [SCHED_REASON_PROTECTED] = "protected",
        [SCHED_REASON_BUDGET] = "budget",
        [SCHED_REASON_OVERCOMMITTED] = "overcommitted",
        [SCHED_REASON_NO_CAPACITY] = "no_capacity",
        [SCHED_REASON_PROMISED] = "promised",
        [SCHED_REASON_BEHIND] = "behind",
    };
    return (unsigned)reason < SCHED_REASONS ? names[reason] : "unknown";
}

const char *sched_cause_name(enum sched_cause cause)
{
    static const char *const names[SCHED_CAUSES] = {
        [SCHED_CAUSE_FITS] = "fits",
        [SCHED_CAUSE_PROMISED] = "promised",
        [SCHED_CAUSE_PREEMPT] = "preempt",
        [SCHED_CAUSE_RECLAIM] = "reclaim",
        [SCHED_CAUSE_IDLE_ONLY] = "idle_only",
        [SCHED_CAUSE_CONSOLIDATE] = "consolidate",
        [SCHED_CAUSE_STALE_GANG] = "stale_gang",
        [SCHED_CAUSE_MAINTENANCE] = "maintenance",
        [SCHED_CAUSE_EXPIRED] = "expired",
        [SCHED_CAUSE_OBSOLETE] = "obsolete",
    };
    return (unsigned)cause < SCHED_CAUSES ? names[cause] : "unknown";
}
