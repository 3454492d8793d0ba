/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queues: groups of equal pending workloads, lots of such groups, their lines, and the order
 * inside a leaf team.
 *
 * A leaf keeps two heaps of lines: work, and idle-only work. A line is READY (in the heap),
 * PARKED (it was tried and nothing has changed since that could help) or EMPTY. A parked lot is
 * calm (parked.h) unless its chances hang on more than its shape: how long its work runs, or the
 * types of its team. The order inside
 * a team is class, priority, workloads below their minimum first (then fewest surplus tasks, so
 * that elastic workloads grow in turn), age, id.
 *
 * workload_requeue() (workload.h) is the only place that moves a workload between queues.
 */
#ifndef ALLOT_SCHED_QUEUE_H
#define ALLOT_SCHED_QUEUE_H

#include "sched/tree.h"
#include "sched/world.h"

/* Empty lines and heaps. */
void queue_team_init(struct team *t);

/* The group for such workloads, counted; put gives it back. */
struct group *group_get(struct sched *s, struct team *team, struct job_shape *job,
                        const struct sched_workload *w);
/* Gives a reference back. */
void group_put(struct sched *s, struct group *g);

/* A pending workload enters or leaves its group. */
void group_add(struct sched *s, struct workload *w);
/* It leaves. */
void group_remove(struct sched *s, struct workload *w);

/* A line of its own for a workload that runs in part; NEED is what would start next. */
void line_own(struct sched *s, struct workload *w, uint32_t round, const struct amounts *need);
/* Ends that line. */
void line_disown(struct sched *s, struct workload *w);

/* Tried without success. */
void line_park(struct sched *s, struct line *line, enum sched_reason reason);
/* Which of the workloads that wait may be tried where the head of its line cannot start? */
typedef bool line_pick_fn(struct sched *s, const struct line *line, const struct workload *w);
/* Goes on with the first of the line's group, of DEPTH at most, that MAY be tried and has not kept
 * what is stopping for itself in this turn; false if there is none, or if the line is a workload's
 * own. */
bool line_go_on(struct sched *s, struct line *line, uint32_t depth, line_pick_fn *may);
/* A parked line is ready again. */
void line_wake(struct sched *s, struct line *line);
/* The first parked line of a leaf that was not tried in this turn yet is ready again; not idle-
 * only work. */
void queue_wake_first(struct sched *s, struct team *t);
/* All parked lines of a leaf are that are not calm; or all. */
void queue_wake(struct sched *s, struct team *t, bool all);

/* Order inside a team: does A come before B? */
bool line_before(const struct line *a, const struct line *b);
/* The first ready line of a leaf, or NULL. */
struct line *queue_first(const struct team *t, bool idle);

/* Preemptible running workloads of a leaf, in the order in which they would start. */
void running_add(struct sched *s, struct workload *w);
/* Nothing of it runs any more. */
void running_remove(struct sched *s, struct workload *w);

/* 1 = next of its team; and how many wait there. Not for workloads that wait for nothing. */
uint32_t queue_position(const struct sched *s, const struct workload *w, uint32_t *ret_pending);

#endif
