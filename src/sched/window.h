/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maintenance windows: a node says when it will not be there.
 *
 * Before a window work starts on the node only if it ends in time: by its declared limit, else
 * by its expected run time; work that says neither must have sched_config.window_lead_ms. At
 * the beginning preemptible work is evicted with its grace: the tasks on the node where enough
 * of the workload stays elsewhere, else all of it. What is not preemptible stays, it is for its
 * owner to stop. Inside the window the node takes nothing and counts as drained; at its end it
 * takes work again by itself. Disruption budgets do not hold a window up: the node goes anyhow.
 *
 * sched.windows lists the nodes whose window is not over; where it is empty, nothing here costs
 * anything. Beginning and end are events from outside (sched.outside_epoch).
 */
#ifndef ALLOT_SCHED_WINDOW_H
#define ALLOT_SCHED_WINDOW_H

#include "sched/world.h"

/* Does the window of N leave W (NULL: somebody who says nothing) time to run from AT_MS on? */
bool window_leaves_time(const struct sched *s, const struct node *n, const struct workload *w,
                        int64_t at_ms);

/* Likewise; cheap for a node without a window. */
static inline bool window_allows(const struct sched *s, const struct node *n,
                                 const struct workload *w, int64_t at_ms)
{
    return n->window_until_ms == 0 || window_leaves_time(s, n, w, at_ms);
}

/* How long W may run, as it says: its limit, its expectation, else what a window asks of those
 * who say nothing. */
int64_t window_span(const struct sched *s, const struct workload *w);

/* N has another window than before, or is new, or goes (GONE). */
void window_changed(struct sched *s, struct node *n, bool gone);
/* Begins and ends the windows that are due; one step of the turn. */
void window_step(struct sched *s);
/* When the next one is due; INT64_MAX if none is. */
int64_t window_next_ms(const struct sched *s);

/* The head of a ready line would not end before a window; is there one in its group that says
 * it ends sooner? Then that one is the head now. */
bool window_backfill(struct sched *s, struct line *line);

#endif
