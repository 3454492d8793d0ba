/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server's past, played again by the real scheduler in virtual time under other quotas, other
 * nodes or another policy.
 *
 * What is compared. The record itself, a replay of it as it was, and a replay of what is asked.
 * The second shows how far the model is off: it knows neither the server's pauses nor what people
 * would have done differently. Quotas are edited and nodes are lost, drained and back at the times
 * of the record. How long work takes: see past.h.
 *
 * Waits are from submit to the first start. Jobs that never start count under `waiting`, those
 * that can never start under `refused`, not in the waits. The window is from the first submit to
 * the end of the record; allocation is what was held within it.
 *
 * Units: milliseconds, milli-GPU, their product for GPU time. Percentiles are nearest rank.
 *
 *     whatif_recorded(&past, &was);
 *     r = whatif_replay(&past, &setup, &is, &err);
 *     whatif_outcome_done(&is);
 */
#ifndef ALLOT_SIM_WHATIF_H
#define ALLOT_SIM_WHATIF_H

#include "allot/sched.h"
#include "base/vec.h"
#include "sim/past.h"

/* In the beginning. */
struct whatif_team {
    struct model_team row;
    bool absent; /* made later, or never */
};

struct whatif_node {
    struct model_node row;
    bool absent;
};

struct whatif_setup {
    struct sched_config config;
    struct whatif_team *teams; /* one for each of the past, in its order */
    struct whatif_node *nodes;
    size_t node_count;
    struct past_change *changes; /* in the order of time; INDEX as in the past */
    size_t change_count;
    int64_t capacity_milli, capacity_milli_ms; /* at the end; of all the window */
    bool hard_quota;                           /* no team above what it is guaranteed */
    bool accepted;                             /* nothing is refused, as it was accepted once */
    int64_t checkpoint_ms;                     /* between saves of work that saves */
    int64_t stop_ms; /* how long an evicted task takes to stop, within its grace: the median... */
    size_t stops;    /* ...of so many recorded ones; 0 = it is assumed */
};

enum whatif_group_kind { WHATIF_ALL, WHATIF_TEAM, WHATIF_SIZE };

struct whatif_group {
    enum whatif_group_kind kind;
    const char *name; /* of the team or the size; the past's or static */
    uint64_t jobs, waiting, refused;
    int64_t mean_ms, p50_ms, p95_ms, p99_ms; /* of those that started */
    int64_t held_milli_ms;
    uint64_t evictions, retries, losses; /* starts after the first, and why */
};

struct whatif_outcome {
    int64_t capacity_milli;    /* GPUs at the end */
    int64_t capacity_milli_ms; /* what there was within the window, nodes out of order included */
    int64_t window_ms;
    int64_t window_milli_ms; /* held within the window */
    int64_t held_milli_ms;   /* held by all, to their ends */
    int64_t lost_milli_ms;   /* of that, work done again; unknown of the record: 0 */
    uint64_t evictions;      /* gave way, or were stopped with their gang */
    uint64_t retries;        /* failed or could not be launched, and were tried again */
    uint64_t losses;         /* went with their node */
    uint64_t skipped;        /* changes that could not be made at their time */
    int64_t end_ms;          /* of the last job */
    int64_t *start_ms;       /* of each job of the past; DRIVE_NEVER where there is none */
    VEC(struct whatif_group)
    groups; /* all, teams by name, sizes ascending; those without jobs are
               left out: the same for all outcomes of a past */
};

/* How far two outcomes are apart, job by job, over those that start in both. */
struct whatif_difference {
    uint64_t jobs;
    int64_t p50_ms, p95_ms, worst_ms; /* of the absolute difference of their waits */
    uint64_t order_milli; /* of neighbours by start in the first, so many per thousand start in that
                             order in the second */
};

/* As it was: teams, nodes, changes and configuration of the past, as copies in its arena. */
void whatif_setup_past(struct past *past, struct whatif_setup *ret_setup);

/* The figures of the record itself. */
void whatif_recorded(const struct past *past, struct whatif_outcome *ret_outcome);
/* -EINVAL: the scheduler refused the teams or nodes. */
int whatif_replay(const struct past *past, const struct whatif_setup *setup,
                  struct whatif_outcome *ret_outcome, struct err *err);
void whatif_outcome_done(struct whatif_outcome *o);

/* How far B is from A. */
void whatif_compare(const struct past *past, const struct whatif_outcome *a,
                    const struct whatif_outcome *b, struct whatif_difference *ret);

#endif
