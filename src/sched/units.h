/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Units: what could be evicted at once, collected per leaf in the order in which it would go.
 *
 * Used by search.c and evict.c only. The candidates of a leaf lie together (team.first_unit,
 * unit_count): lowest class, then lowest priority, then surplus tasks (who has most gives first),
 * then whole workloads, youngest first. Collection passes over branches that have nothing to give,
 * and is bounded: past UNITS_MAX candidates the rest is left for another turn. Of a workload with a
 * disruption budget no more is a candidate than the budget has left.
 */
#ifndef ALLOT_SCHED_UNITS_H
#define ALLOT_SCHED_UNITS_H

#include "sched/gang.h"
#include "sched/world.h"

#define UNITS_MAX 4096

struct unit {
    struct workload *w;
    struct team *leaf;
    int64_t task;      /* a surplus task; -1 = all that runs */
    uint32_t round;    /* surplus: how many of them the workload would have with it */
    uint8_t cause;     /* enum sched_cause: the right by which it may go */
    bool out;          /* taken out of VIEW_THEN on trial */
    bool skipped;      /* may not go as things stand */
    bool by_guarantee; /* goes by the second clause of reclaim */
    const char *by_type; /* goes by a guarantee of this GPU type; NULL = it does not */
};

struct evicting {
    struct workload *w; /* the requester */
    const struct gang *gang;
    struct amounts need;
    struct amounts lower; /* of its own team, that it may have go as well */
    bool may_reclaim; /* its class may, and its team could end within its share */
    bool no_reclaim, surplus_only;
    uint32_t most;     /* units to be collected */
    bool uncut;        /* whatever their team is above its bound by */
    bool cut;          /* more units exist than could go while a team is above its share */
    uint32_t depth;    /* of a leaf that many units are collected; 0 = all */
    uint32_t leaf_looks; /* leaves that were looked through for this requester */
    uint32_t looked;   /* at that many of the leaf */
    size_t running;    /* preemptible workloads of the leaves that were looked at */
    uint32_t takes;    /* that many units are taken at most; 0 = as many as it takes */
    bool clipped;      /* some leaf has more */
    bool ran_out;      /* and the search would have asked for them: it has to be made again */
    bool gates_closed; /* a gate is in the way: victims on any node may help */
    const struct team *beyond; /* its share or guarantee; what is below may help. NULL = none */
    uint64_t searches; /* counts requesters; see team.gives */
    VEC(struct unit) units;
    const struct node *at;        /* collected on this node only; NULL = anywhere */
    VEC(struct workload *) found; /* scratch */
    VEC(uint32_t) passed;         /* scratch */
    VEC(struct team *) leaves;    /* that have units */
    VEC(uint32_t) taken;          /* indices of units, in the order of taking */
};

/* Could work of group G that needs that much have a right over anybody? A first, cheap look. */
bool units_may_exist(const struct sched *s, const struct group *g, const struct amounts *need);
/* May V make way for W, whatever the right: it holds no promise, is not protected, has not made way
 * for W before (trade.h), and what of it has started in this turn may be taken back? */
bool units_may_leave(struct sched *s, const struct workload *v, const struct workload *w);
/* How many of its running tasks may evictions and moves take from V, as things stand? What does
 * not run already, for whatever reason, counts against its disruption budget. UINT32_MAX where it
 * has none. */
uint32_t units_budget(const struct workload *v);
/* Is there any right to use and anybody to use it on? Cheap; also sets may_reclaim. */
bool units_worth(struct sched *s, struct evicting *e);
/* Fills e->units for the requester; of each leaf the first DEPTH only, where that is not 0. A
 * search that did not run out of them finds what it would have found among all. */
void units_collect(struct sched *s, struct evicting *e, uint32_t depth);
/* Collects nothing, and marks the leaves that have something to give (team.gives). */
void units_mark(struct sched *s, struct evicting *e);
/* The collected units of T are used up for that cause: does it have more that were left out? */
void units_ran_out(const struct sched *s, struct evicting *e, const struct team *t,
                   enum sched_cause cause);
/* Likewise MOST of them, and such that come when their team is no longer above its bound. */
void units_collect_all(struct sched *s, struct evicting *e, uint32_t most);
/* Likewise, with what runs on one node only (N), or in one domain of a topology level. */
void units_collect_on(struct sched *s, struct evicting *e, int level, uint32_t domain,
                      const struct node *n);
/* Leaves no unit behind, here or in the teams: the search for this requester is over. */
void units_forget(struct evicting *e);

/* Is work of group G strictly lower than that of THAN, by class, then priority? */
bool units_strictly_lower(const struct group *g, const struct group *than);

/* Scratch of the victim searches; aborts when out of memory. */
struct evicting *evicting_new(void);
/* NULL is fine. */
void evicting_free(struct evicting *e);

/* What the unit is charged with, all its tasks together. */
struct amounts unit_charge(const struct unit *u);
/* What task.imagined says of its tasks while it is out. */
uint8_t unit_mark(const struct unit *u);
/* Takes the unit out of VIEW_THEN on trial, or puts it back. */
void unit_imagine(struct sched *s, struct unit *u, bool out);

#endif
