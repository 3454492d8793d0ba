/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Node states: nodes that are equal for every question are one state, and every question is asked
 * once a state.
 *
 * Purpose. A cluster of twenty thousand nodes has a few dozen kinds of machines and, while it
 * fills, a few hundred different ways in which they are in use. What a placement costs depends on
 * the state of a node and not on which node it is; so costs are kept by state (index.h), and a
 * node that returns to a state it, or any other, had before costs nothing to judge.
 *
 * What makes a state, for one mask of views: type and kind (mix.h); whether the node takes work, is
 * avoided, has a maintenance window ahead; tasks of the workload being placed (mark); free CPU and
 * memory, idle devices; and of each device its memory, what is free of it and of its compute,
 * whether it is idle, its MIG profile. Devices are compared as a multiset: which of them it is does
 * not matter to any request but one for parts of several devices, and such requests do not come
 * here (states_serve()). Labels, topology domains and the order of nodes are no part of it; the
 * index sees to them.
 *
 * Slots. The nodes are numbered anew, by type and then in node order, each type from a multiple of
 * SLOT_BLOCK on; so what looks for one type looks at a range.
 *
 * Change log. Who changes a node says so (states_note(): fit_take() does). For each mask that is in
 * use the noted nodes are looked at before the next question; only those whose state is another one
 * enter the slot log, from which each index learns what to look at, with the state before: a trial
 * that is undone costs a reader nothing. Both logs are rings; who is too far behind starts anew.
 *
 * Invariants. After states_sync() slot_state[] is the state of every node. A state without members
 * is kept for a while, because states come back; its number is not reused before its serial has
 * changed.
 *
 * Ownership: struct sched owns it, created and freed with it. Nothing here decides anything.
 */
#ifndef ALLOT_SCHED_STATES_H
#define ALLOT_SCHED_STATES_H

#include "sched/world.h"

#define SLOT_BLOCK 64
#define STATE_NONE UINT32_MAX

struct state {
    uint64_t *key; /* NULL: the number is free */
    uint64_t hash;
    uint32_t words;
    uint32_t members;
    uint32_t next;   /* same bucket */
    uint32_t serial; /* differs whenever the number stands for another state */
};

struct log { /* the last CAP entries of a sequence */
    uint64_t *ring;
    size_t cap; /* a power of two */
    uint64_t end;
};

struct states { /* for one mask of views */
    unsigned mask;
    uint64_t seen;     /* of the change log */
    uint64_t layout;   /* of the numbering of slots */
    uint32_t *slot_state;
    struct log moved;  /* slots whose state changed, and the serial of the state before */
    uint32_t *caught, catching; /* by slot: the last catching up that has met it */
    VEC(struct state) items;
    VEC(uint32_t) free; /* numbers */
    uint32_t *buckets;
    size_t bucket_count;
    uint32_t live, dead; /* states with and without members */
    uint32_t serial;
    uint64_t *key; /* scratch */
    size_t key_cap;
};

struct slots { /* one type's range */
    const char *type;
    uint32_t from, to;
};

struct layout {
    uint64_t epoch; /* of sched.nodes_epoch */
    uint32_t slot_count;
    struct node **nodes; /* by slot; NULL where nothing is */
    VEC(struct slots) types;
    /* Nodes of each topology domain, in node order: domain d of any level has
     * members[first[d]] to members[first[d + 1]]. */
    uint64_t domain_epoch;
    uint32_t *first;
    struct node **members;
    uint32_t domain_count;
    VEC(uint32_t) domains; /* level by level, each in the order of its first node */
    VEC(uint32_t) levels;  /* where each level's begin, and the end */
};

#define STATES_MASKS 8

struct state_world {
    struct log changed; /* positions of nodes */
    uint64_t read;      /* of it, by whoever is furthest */
    int64_t milli_used[VIEWS]; /* of all nodes, devices that are not slices */
    int64_t avoid_ms;   /* when the next avoided node is avoided no more */
    struct layout layout;
    struct states masks[STATES_MASKS];
    uint32_t mask_count;
};

/* Empty; aborts when out of memory. */
struct state_world *states_new(void);
/* NULL is fine. */
void states_free(struct state_world *sw);

/* N is not what it was, in any view. */
void states_note(struct node *n);
/* N is avoided until UNTIL_MS. */
void states_avoided(struct sched *s, struct node *n, int64_t until_ms);

/* Can a request of that shape be judged by state? */
bool states_serve(const struct shape *shape);
/* The states of all nodes in the views of MASK (views alone), up to date; NULL where too
 * many different masks are in use. Valid until the next call that changes a node. */
struct states *states_sync(struct sched *s, unsigned mask);
/* Catching up with the slot log from entry SEEN on: the slots whose state is another one than it
 * was there, each once. False at the end. */
bool states_next_moved(struct states *st, uint64_t *seen, uint32_t *ret_slot);
/* The numbering of slots, up to date. */
const struct layout *states_layout(struct sched *s);
/* The domains of a topology level, in the order of their first nodes. */
const uint32_t *states_domains(struct sched *s, int level, uint32_t *ret_count);
/* The nodes of a topology domain, in node order. */
struct node *const *states_domain(struct sched *s, uint32_t domain, uint32_t *ret_count);

/* Appends to a log. */
static inline void log_add(struct log *l, uint64_t x)
{
    l->ring[l->end++ & (l->cap - 1)] = x;
}

#endif
