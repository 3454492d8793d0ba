/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parked lots: a long queue that is not looked at line by line.
 *
 * Purpose. In a full cluster a hundred thousand workloads may wait in tens of thousands of lots,
 * and one end of work is of use to a few. Whether a lot's workloads have a place is a question
 * of their shape, not of their team; so a waking asks it once for each shape that waits, and the
 * shapes that have one are open. A parked lot of an open shape counts as ready: the order
 * (order.h) finds it where it lies. When the place is taken and an open shape has none any more,
 * it is shut, and with it all lots of that shape, without being tried.
 *
 * Each leaf keeps its parked lots in the order of its queue (line_before()), with the number of
 * their shape beside them: finding the first open one is a walk through an array. What is woken
 * for another reason (wake.h) becomes a ready line, one by one.
 *
 * Invariants. A line with `calm` set is PARKED and in the array of its leaf; its head and group
 * do not change while it is there. A line that was parked since the last waking is not found
 * before the next one. Shapes are open inside a turn only.
 *
 * Ownership: the arrays belong to their teams, and refer to lines that are there as long as they
 * are parked. job_shape.number is given out by parked_number() and returned when the shape goes.
 */
#ifndef ALLOT_SCHED_PARKED_H
#define ALLOT_SCHED_PARKED_H

#include "sched/world.h"

/* The line enters its leaf's array; its state is the caller's business. */
void parked_add(struct sched *s, struct line *line);
/* The line leaves its leaf's array. */
void parked_remove(struct sched *s, struct line *line);

/* Lists T in sched.queues. */
void parked_note_team(struct sched *s, struct team *t);

/* The first of a leaf's parked lots that counts as ready, or NULL. */
struct line *parked_first(const struct sched *s, struct team *t, bool idle);

/* From here on lots of this shape count as ready, if they were parked before this waking. */
void parked_open(struct sched *s, struct job_shape *job);
/* Shuts the shapes that CLOSED says of that they have no place; NULL = all. */
void parked_shut(struct sched *s, bool (*closed)(struct sched *, struct job_shape *));

/* A number for a new shape; put gives it back. */
uint32_t parked_number(struct sched *s);
/* No lot of the shape is parked. */
void parked_number_put(struct sched *s, uint32_t number);

#endif
