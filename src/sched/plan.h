/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The near future: when could a blocked workload start, if running work ends when it said?
 *
 * plan_earliest() takes running tasks out of VIEW_PLAN in the order of their ends (declared
 * run-time limits, else expected run times) until the gates are open and the gang has a place.
 * A maintenance window takes its node out until its end; preemptible work on the node ends then at
 * the latest, being evicted when it begins. Work that declares neither never ends here: an answer
 * that leans on hope is no answer. Lower work that the blocked one may evict whatever the shares
 * are (its own team's, and batch work of teams above their guarantee) is taken out first: alone it
 * was not enough, or the gang would have started.
 */
#ifndef ALLOT_SCHED_PLAN_H
#define ALLOT_SCHED_PLAN_H

#include "sched/gang.h"
#include "sched/world.h"

struct plan {
    int64_t start_ms;
    bool declared;      /* rests on declared limits alone */
    uint64_t waits_for; /* the workload whose end comes last; 0 = none, or a window's end does */
};

/* True with the plan, whose start lies ahead or needs nothing; VIEW_PLAN then stands at its start,
 * without the planned gang, whose spots are in s->placing. */
bool plan_earliest(struct sched *s, const struct workload *w, const struct gang *gang,
                   const struct amounts *need, struct plan *ret_plan);

/* Does a disruption budget keep some of it running whatever happens? */
static inline bool plan_keeps_some(const struct job_shape *job)
{
    return job->max_unavailable > 0 && job->max_unavailable < job->task_count;
}

/* May W evict running work of group G whatever the shares are? */
bool plan_gives_way(const struct sched *s, const struct group *w, const struct group *g);

/* When the task ends as it said; INT64_MAX if it did not say. */
int64_t plan_task_end(const struct sched *s, const struct task *t, bool *ret_declared);

#endif
