/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random histories against the scheduler library: the world they happen in.
 *
 * Purpose. A world is made from a seed: teams, nodes, a stock of requests. It keeps books of its
 * own about every task and tells the scheduler what happens; what the scheduler decides is
 * checked against the books by code that was written from the rules alone and recomputes
 * everything from scratch (prop_naive.h, prop_judge.h).
 *
 * Now and then the scheduler is rebuilt from the books, as after a restart (prop_rebuild()): the
 * new one must have the same sums and, at rest, nothing to decide; the history may go on with it.
 *
 * Failures. The first one is kept as text; from there on the history stops.
 *
 * Ownership: the world owns all it points to; memory comes from its arena. Ids of the scheduler
 * are indices here plus one. Units as in allot/sched.h.
 */
#ifndef ALLOT_PROP_WORLD_H
#define ALLOT_PROP_WORLD_H

#include <stdbool.h>

#include "allot/sched.h"
#include "base/arena.h"
#include "base/rng.h"
#include "base/vec.h"
#include "sim/ledger.h"

#define PROP_TEAMS_MAX 12
#define PROP_NODES_MAX 5
#define PROP_REQUESTS 10
#define PROP_DEVICES_MAX 16
#define PROP_TASKS_MAX 5
#define PROP_NONE UINT32_MAX
#define PROP_TYPED (1ULL << 32) /* in a seed: many quotas per GPU type */

enum prop_phase {
    PROP_PENDING,
    PROP_HELD,
    PROP_RUNNING,
    PROP_LEAVING, /* evicted, stopping */
    PROP_ENDING,  /* cancelled, stopping */
    PROP_DONE
};

struct prop_task {
    enum prop_phase phase;
    uint32_t node;
    uint16_t devices[PROP_DEVICES_MAX];
    uint32_t device_count;
    int32_t gpu_milli; /* as charged on its devices */
    int64_t since_ms;  /* start */
    int64_t until_ms;  /* HELD: expiry */
    uint64_t epoch;    /* sched.outside_epoch at the start; 0 = of another scheduler */
    int64_t stop_ms;   /* LEAVING, ENDING: when the stop will be confirmed */
};

struct prop_workload {
    struct sched_workload decl;
    struct prop_task tasks[PROP_TASKS_MAX];
    bool known;             /* the scheduler has it */
    bool moved;             /* evicted to be moved, and nothing has happened since */
    bool backing_off;       /* a launch was refused and none has succeeded since */
    int64_t short_since_ms; /* since when it runs below its minimum; -1 = it does not */
};

struct prop_team {
    struct sched_team decl;
    uint32_t parent; /* PROP_NONE at the top */
    bool leaf;
};

struct prop_node {
    struct sched_node decl;
    struct sched_device devices[PROP_DEVICES_MAX];
};

struct prop_pair { /* VICTIM made way for WINNER since the last outside event */
    uint32_t victim, winner;
    uint32_t has;  /* tasks of the winner that ran already: one that grows may ask again */
    bool returned; /* the victim has started something since */
};

/* LOSER made way for WINNER, whose team stayed within its guarantee (prop_guard.c). */
struct prop_guard {
    uint32_t loser, winner;
    uint32_t has;         /* tasks of the winner then; one that has grown since is not guarded */
    uint32_t winner_team; /* where their paths part */
    int64_t loser_share[SCHED_RESOURCES], winner_share[SCHED_RESOURCES];
    int64_t winner_guarantee[SCHED_RESOURCES];
};

struct prop_world {
    uint64_t seed;
    uint32_t step;
    struct rng rng;
    struct arena arena;
    struct sched_config config;
    struct sched *s;
    int64_t now_ms;
    struct prop_team teams[PROP_TEAMS_MAX];
    uint32_t team_count;
    struct prop_node nodes[PROP_NODES_MAX];
    uint32_t node_count;
    struct sched_request requests[PROP_REQUESTS];
    VEC(struct prop_workload *) workloads;
    VEC(struct prop_pair) pairs;
    VEC(struct prop_guard) guards;
    struct sim_ledger now, then; /* what is held now; what is once the stopping are gone */
    bool windows;                /* nodes announce maintenance: one seed in eight */
    bool restarts;               /* gangs start anew where a task fails: another one in eight */
    bool refuses_launches;       /* this history has engines that refuse */
    bool launch_refused;         /* one was refused already */
    uint64_t hash;               /* of every decision and answer */
    uint64_t decisions, starts, evictions, holds, moves;
    struct brute_counts *brute; /* compare with a search through everything (prop_brute.h) */
    bool trace; /* print every report and decision as `# ` lines */
    char failure[400];
};

/* Makes teams, nodes and requests from SEED and tells the scheduler. BRUTE: NULL, or where to count
 * what is compared with a search through everything. */
struct prop_world *prop_create(uint64_t seed, bool trace, struct brute_counts *brute);
void prop_destroy(struct prop_world *w);

/* Something happened: whoever made way may do so again, and a move may have lost its aim. */
void prop_outside(struct prop_world *w);
/* Keeps the first failure; always false, for `return prop_fail(...)`. */
bool prop_fail(struct prop_world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A line of the trace, where it is asked for. */
void prop_trace(const struct prop_world *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static inline bool prop_ok(const struct prop_world *w)
{
    return w->failure[0] == '\0';
}

void prop_trace_decision(const struct prop_world *w, const char *who,
                         const struct sched_decision *d);

/* ---- draws ------------------------------------------------------------------------------- */

static inline uint64_t prop_below(struct prop_world *w, uint64_t n)
{
    return rng_below(&w->rng, n);
}
static inline bool prop_chance(struct prop_world *w, uint32_t percent)
{
    return rng_below(&w->rng, 100) < percent;
}
/* New numbers for a team, its parent unchanged (prop_make.c). */
void prop_team_numbers(struct prop_world *w, struct sched_team *team);
/* A fresh workload that is not known yet. */
struct prop_workload *prop_workload_make(struct prop_world *w);
/* Nodes carry a zone, and the zone is a level of the topology. */
int prop_topology_tell(struct sched *s);
/* Teams, nodes and requests of a new world. */
void prop_make(struct prop_world *w);

/* ---- reports: as the scheduler answers ---------------------------------------------------- */

int prop_report_team(struct prop_world *w, const struct sched_team *team);
int prop_report_node(struct prop_world *w, const struct sched_node *node);
int prop_report_add(struct prop_world *w, const struct sched_workload *decl);
int prop_report_remove(struct prop_world *w, uint64_t workload);
int prop_report_stopped(struct prop_world *w, uint64_t workload, uint32_t task,
                        enum sched_stop how);
int prop_report_stopping(struct prop_world *w, uint64_t workload, uint32_t task);

/* ---- books ------------------------------------------------------------------------------- */

/* Moves a task to PHASE; place it first if it gets devices. Keeps both ledgers. */
bool prop_task_move(struct prop_world *w, uint32_t workload, uint32_t task, enum prop_phase phase);
/* Notes whether it runs below its minimum now. */
void prop_short_update(struct prop_world *w, uint32_t workload);
uint32_t prop_count(const struct prop_workload *p, enum prop_phase phase);
/* Does what runs, is promised (HELD true) or has ended meet the minimum and the groups'? */
bool prop_minimum_met(const struct prop_workload *p, bool held);
bool prop_is_short(const struct prop_workload *p);

/* ---- history ----------------------------------------------------------------------------- */

/* Something random happens. */
bool prop_happen(struct prop_world *w);
/* Somebody ends, or is cancelled. */
bool prop_make_room(struct prop_world *w);
/* Confirms stops that are due. */
bool prop_stops_due(struct prop_world *w);
/* A report that is a repetition, too late or nonsense: refused, and nothing changes. */
bool prop_nonsense(struct prop_world *w);

/* Turns until nothing changes; every decision is judged (prop_turn.c). */
bool prop_turns(struct prop_world *w);
/* What must hold whenever nothing moves (prop_rest.c). */
bool prop_rest_check(struct prop_world *w);

/* Rebuilds a scheduler from the books, compares it, and may go on with it (prop_rebuild.c). */
bool prop_rebuild(struct prop_world *w);

#endif
