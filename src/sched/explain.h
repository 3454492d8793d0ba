/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explain: the parts of an answer to "why does it wait?".
 *
 * explain.c asks the questions in order and settles the reason. explain_room.c says what is free
 * and who has the rest. explain_trial.c tries what would be: less asked, a shorter run, victims
 * without protection. Each trial uses the very functions that decide in a turn and is undone, so
 * what it promises comes true if nothing else happens meanwhile.
 *
 * All of it leaves the scheduler as it was (but for scratch), and fills `struct asking`.e. One
 * thread, between turns. Units as in allot/sched.h.
 *
 *     struct asking a = {.s = s, .w = w, .e = &e};
 *     explain_free(&a);
 *     explain_less(&a);
 */
#ifndef ALLOT_SCHED_EXPLAIN_H
#define ALLOT_SCHED_EXPLAIN_H

#include "sched/gang.h"
#include "sched/world.h"

struct victims;

struct asking {
    struct sched *s;
    struct workload *w;
    struct gang gang;         /* what would start together */
    struct amounts need;      /* its charge */
    const struct team *scope; /* a gate is closed there: its work is in the way; NULL = all work */
    bool brief;               /* the reason is wanted and nothing else */
    bool fresh;               /* no turn has seen it: it may yet evict */
    struct sched_explanation *e;
};

static inline int64_t explain_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- explain.c --------------------------------------------------------------------------- */

/* What has happened since is part of what is asked about: time, past use, shares. */
void explain_catch_up(struct sched *s, int64_t now_ms);
/* sched_explain() of what no turn has seen yet. */
int explain_fresh(struct sched *s, uint64_t workload, int64_t now_ms,
                  struct sched_explanation *ret_explanation);

/* ---- explain_room.c ---------------------------------------------------------------------- */

/* Could the node hold any of its tasks, by type, labels and name? */
bool explain_serves(const struct asking *a, const struct node *n);
/* Do all tasks ask for the same, and count for one minimum? Their ranks may differ. */
bool explain_alike(const struct job_shape *job);
/* What is free of e->resource where it could run, and the most for one task. */
void explain_free(const struct asking *a);
/* Who holds most of e->resource: where it could run, or under the gate of a->scope. */
void explain_holders(const struct asking *a);
/* For a promise: who has to stop for it. Without one: who stops where it could run. */
void explain_leavers(const struct asking *a);
/* Who would give way, with what each would lose of GPUs. */
void explain_victims(const struct asking *a, const struct victims *v);
/* How many tasks of the gang fit now, without evicting anybody. */
void explain_fitting(const struct asking *a);
/* The level that is in the way, and its domain that holds most of the gang. */
void explain_domain(const struct asking *a);
/* Lists nodes that could hold it and take nothing now: down or drained. */
void explain_away(const struct asking *a);
/* Lists nodes whose maintenance leaves it no time, the one that matters first in front. */
void explain_windows(const struct asking *a);

/* ---- explain_trial.c --------------------------------------------------------------------- */

/* How much less would start it now: e->less, less_tasks, takes. */
void explain_less(struct asking *a);
/* Would it start by evicting or moving others? e->takes, and who would give way in e->holders. */
bool explain_force(struct asking *a);
/* Is maintenance in the way: would it start now if only its run were short enough? */
bool explain_shorter(struct asking *a);
/* The longest run up to MOST_MS (INT64_MAX = any) with which it would start now: e->run_ms. */
void explain_longest(struct asking *a, int64_t most_ms);
/* Would a start at START_MS, with what is planned to end by then gone, be in the way of the
 * reserved workload? */
bool explain_delays_reserved(struct asking *a, int64_t start_ms);
/* Would it start if what it may evict were not protected? 0 = no, else PROTECTED (with its end in
 * e->start_ms) or BUDGET, and whose it is in e->waits_for. */
enum sched_reason explain_protection(struct asking *a);

#endif
