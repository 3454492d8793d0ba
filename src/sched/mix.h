/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The observed mix of requests: what tasks of this cluster ask for, and how often.
 *
 * Purpose. Whether a hole in a node is good or bad depends on who will come. The scheduler
 * learns it from what is submitted, so that nobody has to configure it.
 *
 * Learning. Each workload that is added counts its tasks' shapes. At most MIX_SHAPES_MAX shapes
 * are counted; a new one takes the place of the rarest and inherits its count (the space-saving
 * rule of Metwally, Agrawal and El Abbadi, ICDT 2005: a shape more frequent than 1 in
 * MIX_SHAPES_MAX is never lost). When MIX_WINDOW tasks have been counted, all counts are halved,
 * so that old habits fade. After a restart the mix is learned from the workloads that are known
 * then.
 *
 * Use. score.h needs the mix in a form made for fast questions: struct score_mix. It is made
 * anew when the inventory is another one, or when the counts have moved away by more than
 * MIX_DRIFT of their weight: a steady mix keeps its generation, and with it every score that is
 * cached. A request for k devices weighs 1 + 2.5 (k - 1) times its number: large holes take long
 * to come back. One GPU and a whole node are always in the mix, so that such holes are kept
 * before anything has been seen. The heaviest requests come first; what the tables do not hold is
 * left out. Requests for parts of devices give the worth of holes (worth.h); it is made of the
 * mix alone, as if there were many devices, and counts N / (N + 16) on N of them.
 *
 * CPU. A GPU should keep as much CPU as its tasks take along. Tasks without GPU do not count: they
 * go where CPU is left over. Only where all tasks together ask for nearly all CPU of the inventory
 * nothing will be left over, and they count too.
 *
 * Kinds. Nodes of the same type, CPU, memory and number of devices are of one kind; kind 0 stands
 * for all beyond SCORE_KINDS_MAX.
 *
 * Ownership: struct sched owns both; the mix holds references to the shapes it counts.
 */
#ifndef ALLOT_SCHED_MIX_H
#define ALLOT_SCHED_MIX_H

#include "sched/score.h"
#include "sched/world.h"

#define MIX_SHAPES_MAX 512
#define MIX_WINDOW 65536 /* tasks */
#define MIX_DRIFT 32     /* 1 / MIX_DRIFT of all weight may move unnoticed */

/* An empty mix. Aborts when out of memory. */
struct mix *mix_new(void);
/* Frees it; NULL is fine. The shapes are left to their owner. */
void mix_free(struct mix *m);

/* TASKS tasks of SHAPE were submitted. */
void mix_learn(struct sched *s, struct shape *shape, uint64_t tasks);
/* Likewise for all tasks of a workload. */
void mix_learn_job(struct sched *s, const struct job_shape *job);

/* Sets the kind of a node that is new or has changed. */
void mix_kind_set(struct sched *s, struct node *n);

/* What scores are made with; stays as it is until the next call of mix_refresh(). */
const struct score_mix *mix_current(const struct sched *s);
/* Makes it anew if that is due: at the beginning of a turn. */
void mix_refresh(struct sched *s);

#endif
