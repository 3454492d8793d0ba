/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler's own state: teams, nodes, workloads, tasks and the queues between them.
 *
 * Definitions.
 *
 *   view    What is in use depends on when one asks. Every sum that can be exhausted (device,
 *           node, team) is kept once per view:
 *             VIEW_NOW    what holds devices at this instant: running and stopping tasks
 *             VIEW_THEN   once the stopping ones are gone and the promises are kept: running
 *                         and held tasks (inside a turn also what waits for others' stops)
 *             VIEW_PLAN   at the instant of the reservation of this turn
 *             VIEW_EMPTY  nothing is in use; answers "could it ever"
 *           A start must be possible in VIEW_NOW and VIEW_THEN; a promise in VIEW_THEN alone.
 *   shape   What a request, or a whole workload, asks for; interned, so that equal ones share
 *           one record, one charge and one memory of failure.
 *   group   Pending workloads that differ in nothing but id, age and how long they run.
 *   lot     Groups of one team and shape that differ in class and priority only. What stops the
 *           first of them stops the rest: they have no more rights, and ask for the same.
 *   line    One place in the queue of a leaf team. A lot's line stands for its first workload;
 *           a workload that runs in part has a line of its own.
 *   unit    What is evicted at once: one surplus task of an elastic workload, or all of it.
 *
 * Invariants (sched_verify() recomputes all of them).
 *   1. A team's sums are the sums over its tasks by state (task_count() is the only writer),
 *      and a parent's are the sums of its children's.
 *   2. A device's and node's use is the sum over the tasks on it, per view.
 *   3. A workload is in exactly one of: its group's tree, its own line, back-off, none; which
 *      one follows from its task counts (workload_requeue()).
 *   4. VIEW_PLAN and the claims of waiting work are live inside a turn only.
 *
 * Ownership: struct sched owns everything. Pointers between records are never dangling because
 * records are freed only when their counts say that nobody refers to them.
 * Units as in allot/sched.h. One thread at a time.
 */
#ifndef ALLOT_SCHED_WORLD_H
#define ALLOT_SCHED_WORLD_H

#include "allot/sched.h"
#include "base/arena.h"
#include "base/heap.h"
#include "base/map.h"
#include "base/vec.h"

enum view { VIEW_NOW, VIEW_THEN, VIEW_PLAN, VIEW_EMPTY, VIEWS };

#define MASK(view) (1U << (view))
#define MASK_START (MASK(VIEW_NOW) | MASK(VIEW_THEN))
/* Further questions that a mask can ask; for explanations. */
#define MASK_USABLE (1U << 16)      /* with VIEW_EMPTY: only nodes that take work now */
#define MASK_NO_CPU (1U << 17)      /* as if the request asked for no CPU */
#define MASK_NO_MEMORY (1U << 18)   /* ... no host memory */
#define MASK_NO_TOPOLOGY (1U << 19) /* ... no topology level */
#define MASK_NO_TYPES (1U << 22)    /* as if no team had a quota per GPU type */
#define MASK_LOOSE (1U << 23)       /* share the emptiest devices instead of the fullest */
#define MASK_PLAIN (1U << 25)       /* take devices as they fill up, not as the score has it */
#define MASK_CHEAP (1U << 26)       /* where it is charged least, before where it is best */
#define MASK_NO_WINDOW (1U << 21)   /* as if no node had a maintenance window */
#define MASK_NEAR (1U << 24)        /* a gang that is bound to a domain: those in sched.near only */
#define MASK_MOVING (1U << 20)      /* place the running tasks that are out on trial instead */

#define WHOLE_MILLI 1000
#define DEVICES_MAX 1024      /* of one node */
#define GROUPS_MAX 256        /* of one workload */
#define TASKS_MAX 100000      /* of one workload */
#define CPU_MAX (1LL << 40)   /* millicores of one task */
#define BYTES_MAX (1LL << 52) /* bytes of one task, or of one device */
#define SUM_MAX (INT64_MAX / 4)

struct amounts {
    int64_t v[SCHED_RESOURCES];
};

/* ---- shapes ------------------------------------------------------------------------------ */

struct mig_need {
    const char *profile; /* interned */
    uint32_t count;
};

struct label {
    const char *key, *value; /* interned */
};

struct shape {          /* of one task's request */
    struct shape *next; /* same hash */
    uint64_t hash;
    uint32_t refs;
    uint32_t device_count;
    int32_t device_milli;
    uint32_t mig_count, type_count, label_count;
    int64_t device_memory, cpu, memory;
    uint64_t only_node;
    bool types_equal; /* no order of preference */
    uint32_t counted; /* of mix.c: its place there + 1 */
    struct mig_need *mig;
    const char **types;
    struct label *labels;
    uint16_t *only_devices; /* NULL = any; else shape_devices() of them */
    struct amounts charge; /* while pending; follows the inventory */
};

struct job_task {
    struct shape *shape;
    uint32_t group;
    int32_t rank;
};

struct job_group {
    const char *name, *required; /* interned */
    uint32_t min_tasks;
};

struct job_shape { /* of a whole workload */
    struct job_shape *next;
    uint64_t hash;
    uint32_t refs;
    uint32_t task_count, min_tasks, group_count;
    bool uniform; /* all tasks equal: tasks[] has one element */
    bool spread;
    struct job_task *tasks;
    uint32_t *order; /* start order: higher rank first; NULL = by index */
    uint32_t *pack;  /* packing order: hardest to place first; NULL = by index */
    struct job_group *groups;
    const char *required, *preferred; /* topology levels, interned, or NULL */
    uint32_t max_unavailable;         /* disruption budget, 0 = none; see units_budget() */
    int64_t min_run_ms, restart_cost_ms;
    struct amounts least, total; /* charges of the minimum and of all tasks, while pending */
    uint64_t possible_epoch;     /* of sched.inventory_epoch: an empty inventory could hold it */
    uint64_t no_place_epoch;     /* of sched.freed_epoch: the minimum had no place then */
    uint64_t no_later_epoch;     /* likewise in VIEW_THEN */
    uint32_t alone;              /* so many more searches look at nodes alone; see evict.c */
    uint32_t alone_gen;          /* of sched.all_gen then */
    uint32_t look_from;          /* where the last of them ended */
    uint32_t number;             /* see parked.h */
    uint32_t parked, parked_at;  /* lots of it that are parked; where in sched.parked_jobs */
};

/* ---- tasks and workloads ----------------------------------------------------------------- */

enum task_phase {
    TASK_PENDING,
    TASK_HELD,
    TASK_RUNNING,
    TASK_LEAVING, /* evicted, or stopped by the caller; stopping, will be pending again */
    TASK_ENDING,  /* of a removed workload; stopping, will not run again */
    TASK_DONE,
    TASK_PHASES
};

#define DEVICES_INLINE 4
#define BEHALF_UNKNOWN UINT64_MAX /* restored while stopping */

struct task { /* exists once anything of the workload is not pending */
    struct workload *workload;
    struct node *node;        /* HELD, RUNNING, LEAVING, ENDING */
    struct task *prev, *next; /* on the node */
    int64_t since_ms;         /* start */
    uint64_t behalf;          /* stopping: who profits; 0 = nobody, or BEHALF_UNKNOWN */
    int32_t gpu_milli;        /* charge of this placement */
    uint16_t device_count;
    uint8_t phase;    /* enum task_phase */
    uint8_t imagined; /* scratch of evict.c: taken out of VIEW_THEN on trial */
    union {
        uint16_t small[DEVICES_INLINE];
        uint16_t *large;
    } devices;
};

/* Ordered tree (treap) with subtree sizes; see queue.h. */
struct tree_node {
    struct tree_node *left, *right;
    uint32_t size;
    uint32_t weight;
};

enum workload_place {
    PLACE_NONE,   /* nothing of it can be started */
    PLACE_GROUP,  /* waits in its group, nothing runs */
    PLACE_LINE,   /* waits in a line of its own, something runs or ran */
    PLACE_BACKOFF /* waits for a time */
};

struct workload {
    uint64_t id, age;
    int64_t limit_ms, expected_ms; /* run time: declared limit, expectation; 0 = none */
    struct group *group;
    union { /* never in both: what waits in its group has nothing that runs */
        struct tree_node wait; /* in group->waiting, PLACE_GROUP */
        struct tree_node run;  /* in team->running, in_running */
    };
    struct task *tasks;     /* NULL while all are pending */
    struct line *own;       /* PLACE_LINE */
    struct heap_node timer; /* in sched.timers */
    int64_t timer_ms;       /* back-off or expiry of the hold */
    uint64_t started_turn; /* sched.turn of its last start */
    size_t started_at;     /* so many decisions of that turn came before its first one */
    uint64_t claimed_turn; /* sched.turn when it last kept what is stopping for itself */
    uint64_t placed_epoch; /* sched.outside_epoch when it last started, or was to move */
    int64_t placed_ms;     /* sched.now_ms when it first did so in that epoch */
    uint64_t held_epoch;   /* sched.freed_epoch when a better start was last looked for */
    uint64_t won_epoch;    /* sched.outside_epoch when it last won its place by reclaim */
    uint32_t count[TASK_PHASES];
    uint32_t lost;    /* RUNNING tasks on nodes that are down */
    uint32_t moving;  /* its tasks in sched.moving */
    uint32_t victims; /* LEAVING tasks that stop on its behalf */
    uint32_t holding; /* 1 + its index in sched.holding; 0 = holds nothing */
    uint8_t place;    /* enum workload_place */
    uint8_t failures; /* launches refused in a row */
    bool stands;      /* its starts of that turn are not taken back */
    bool removed;     /* forgotten by the caller, tasks still stopping */
    bool in_running;
    uint8_t hold_cause;   /* enum sched_cause of its promise */
    uint32_t short_index; /* 1 + its index in sched.below; 0 = is no gang below its minimum */
};

struct short_gang { /* below its minimum */
    struct workload *workload;
    int64_t since_ms;
};

enum line_state { LINE_EMPTY, LINE_READY, LINE_PARKED };

/* How far a search for victims that looks at one node after the other has come; it goes on in the
 * next turn where it was cut short. */
struct look {
    uint32_t from, done; /* position of the first node; so many were looked at from there */
};

struct line {
    union {
        struct heap_node node;        /* in team->ready[idle], when LINE_READY */
        struct {
            struct line *prev, *next; /* in team->parked, when LINE_PARKED and not calm */
        };
    };
    struct lot *lot;          /* NULL: a workload's own line */
    struct group *group;      /* of the head; a parked lot: which was tried */
    struct workload *head;    /* who is next */
    struct amounts need;      /* charge of what would start next */
    uint64_t tried;           /* sched.turn when it was last parked */
    uint64_t searched;        /* sched.change_gen when it was last woken for its rights */
    uint64_t look_gen;        /* sched.change_gen when it last looked at nodes; see struct look */
    struct look look;
    uint32_t round;           /* 0 = below its minimum; else 1 + surplus tasks it has */
    uint8_t state;            /* enum line_state */
    uint8_t reason;           /* enum sched_reason of the last failure */
    bool searches;            /* it may have others make way for it; see wake.h */
    bool calm;                /* in team->lots, when LINE_PARKED */
    uint64_t parked_gen;      /* of sched.wake_gen when it was last parked */
};

struct lot {
    struct lot *next; /* same hash */
    uint64_t hash;
    VEC(struct group *) groups; /* by class, priority */
    uint32_t passed;            /* that many first groups were tried in this turn */
    struct line line;
};

struct group {          /* workloads that differ in id, age and run time only */
    struct group *next; /* same hash */
    uint64_t hash;
    uint32_t refs;
    struct team *team;
    struct job_shape *job;
    enum sched_class class_;
    int32_t priority;
    bool preemptible, may_burst;
    struct tree_node *waiting; /* by age, id */
    struct lot *lot;
};

/* ---- teams ------------------------------------------------------------------------------- */

struct type_quota {   /* see types.h */
    const char *type; /* interned */
    int64_t guarantee, limit;
    int64_t used[VIEWS], firm[VIEWS];
};

#define QUIET_NEVER UINT64_MAX

struct parked_lot {
    struct line *line;
    uint32_t shape; /* number of its job_shape */
};

/* In the order of the leaf's queue; see parked.h. */
struct parked_lots VEC_BODY(struct parked_lot);

struct type_room {
    const char *type;
    int64_t milli; /* negative: more is used than allowed */
};

/* What is left of each type that is bounded; see types.h. */
struct type_rooms VEC_BODY(struct type_room);

struct team {
    uint64_t id, age;
    struct team *parent;         /* NULL for the root of all only */
    VEC(struct team *) children; /* by age, id */
    int64_t guarantee[SCHED_RESOURCES], limit[SCHED_RESOURCES];
    int64_t weight;
    int32_t priority;
    uint32_t depth;
    struct amounts used[VIEWS], firm[VIEWS]; /* firm: of non-preemptible work */
    struct amounts moving;                   /* of used[VIEW_THEN]: on its way to a new place */
    VEC(struct type_quota) types;            /* that it states a quota of */
    int64_t past[SCHED_RESOURCES];           /* see past.h */
    uint8_t bias[SCHED_RESOURCES];           /* of the weight, in eighths */
    bool typed_path;                         /* it or an ancestor states any */
    struct amounts claimed;                  /* in this turn, of what is stopping; see claim.h */
    struct amounts demand;                   /* running and pending, not ending */
    struct amounts want, share, entitled;    /* made by share_refresh() */
    bool demand_changed;                     /* since then, of it or a team below */
    bool share_due;                          /* its children's shares are to be made anew */
    uint32_t workloads;                      /* of this leaf */
    /* HELD tasks of this leaf that ask for the resource and may not burst. */
    uint32_t held_within[SCHED_RESOURCES];
    uint32_t ready_count[2];                 /* ready lines of the subtree; [1] = idle only */
    struct heap ready[2];
    struct line *next_line[2]; /* of the subtree, see order.h */
    uint64_t next_epoch[2];    /* of sched.order_epoch when it was found; 0 = to be found */
    struct line *parked;             /* those that each waking wakes */
    struct parked_lots lots[2];      /* the others; see parked.h */
    uint32_t looked[2];              /* no lot before that one is open */
    uint64_t looked_gen[2];          /* of sched.wake_gen when that was found */
    uint32_t limited;                /* of the lots, such as a gate keeps waiting */
    uint64_t eased;                  /* counts what may give it more room or right; team_eased() */
    uint64_t eased_seen;             /* of the whole path, when its gates were last looked at */
    uint64_t searched_gen;           /* of sched.change_gen when all its lots had their search */
    uint64_t quiet;                  /* team_eased() when none of its lots had a right to evict */
    int64_t least_milli;             /* least need of its lots then */
    bool in_queues;                  /* listed in sched.queues */
    struct tree_node *running;       /* preemptible workloads, last victim first */
    uint32_t elastic_running;        /* of these, such as may have surplus tasks */
    uint32_t idle_running;           /* of these, idle-only ones, in the subtree */
    uint32_t first_unit, unit_count; /* scratch of evict.c: its candidates, in a leaf */
    uint32_t next_unit;              /* before it, all are out or passed over */
    uint32_t units_below;            /* likewise, candidates of the subtree */
    bool clipped;                    /* likewise, it has more than were collected */
    uint64_t gives;                  /* likewise, evicting.searches when it had something to give */
};

/* ---- nodes ------------------------------------------------------------------------------- */

struct use {
    int64_t memory;
    int32_t milli;
    int32_t tenants;
};

struct device {
    const char *mig; /* interned profile, or NULL */
    int64_t memory;
    int32_t mig_milli;
    struct use use[VIEWS];
};

struct node {
    uint64_t id, order;
    const char *gpu_type;
    struct device *devices;
    uint32_t device_count;
    uint32_t whole_count; /* devices that are not slices */
    struct label *labels;
    uint32_t label_count;
    bool up, schedulable;
    bool in_window;                          /* of maintenance, since window_step() */
    bool windowed;                           /* listed in sched.windows */
    int64_t window_from_ms, window_until_ms; /* until 0 = none */
    int64_t cpu, memory;
    int64_t cpu_used[VIEWS], memory_used[VIEWS];
    int64_t milli_used[VIEWS]; /* of devices that are not slices */
    uint32_t idle[VIEWS];      /* whole devices without tenants */
    struct task *tasks;        /* all that are HELD, RUNNING, LEAVING or ENDING here */
    uint32_t *domain;          /* per topology level; see place.h */
    uint64_t refused_by;       /* the last workload whose launch failed here */
    uint32_t refusals;         /* in a row by different workloads */
    int64_t avoid_until_ms;    /* not used before then where another node fits */
    uint32_t kind;             /* of mix.c: same type, CPU, memory and number of devices */
    bool touched;              /* in sched.touched */
    uint32_t mark;             /* scratch of place.c: tasks of the workload being placed */
    struct state_world *states; /* see states.h; NULL = nobody follows it */
    uint64_t noted;             /* where its last entry in the change log ends */
    uint32_t position, slot;    /* in node_list, and in the numbering by type */
};

/* ---- the whole --------------------------------------------------------------------------- */

struct claim { /* a place that is kept in VIEW_THEN for a task that is not there yet */
    struct workload *workload;
    uint32_t task;
    struct shape *shape;
    struct node *node;
    uint16_t *devices;
    uint32_t device_count;
    int32_t gpu_milli;
};

struct reservation {
    struct workload *workload; /* who waits for it; NULL = none */
    uint64_t last;             /* id of who has it, or had it last: tried in every turn */
    uint64_t before;           /* who had it in the turn before */
    int64_t start_ms, before_ms; /* when; of this turn, and of the turn before */
    uint64_t wake_gen;         /* of the scheduler, before this turn */
    unsigned attempts; /* plans made in this turn */
};

struct taken_back { /* a start, for the sake of WINNER */
    uint64_t workload, winner;
};

struct sched {
    struct sched_config config;
    int64_t now_ms;
    struct map strings;                          /* interned */
    bool checking;                               /* what is interned now is listed in `fresh` */
    VEC(char *) fresh;
    struct map shapes, job_shapes, groups, lots; /* chains by hash */
    struct map teams, nodes, workloads;          /* by id */
    struct team root;                            /* above the top teams; no gates */
    VEC(struct node *) node_list;                /* by order, id */
    VEC(const char *) levels;                    /* topology */
    VEC(const char *) domains;  /* paths of labels, interned; a domain is its index + 1 */
    uint64_t outside_epoch;     /* counts what the caller reports, but for awaited stops */
    uint64_t inventory_epoch;   /* counts changes of nodes and topology */
    uint64_t nodes_epoch;       /* counts changes of which nodes there are, and in what order */
    uint64_t freed_epoch;       /* counts events after which something may fit that did not */
    struct amounts capacity;    /* what shares are made of; see node_capacity() */
    bool capacity_stale;        /* nodes changed, or the use of a drained one */
    bool shares_stale;          /* demand, quota or capacity changed */
    bool quotas_stale;          /* quota, teams or capacity did: no share can be kept */
    bool retry;                 /* some parked lines may have a chance again */
    bool retry_all;             /* all may: quota or inventory changed */
    VEC(struct node *) touched; /* nodes that something left since lines were last woken */
    uint64_t wake_gen;          /* counts wakings */
    uint64_t change_gen;        /* counts wakings that had a cause */
    bool retry_parts;           /* the coming waking only goes on with the last */
    VEC(struct team *) queues;  /* leaves with parked lines, and some that had such */
    size_t search_team, search_lot;     /* where the coming waking begins to look for rights */
    unsigned search_quota;              /* searches that the coming waking grants */
    bool search_cut;                    /* some had no time */
    VEC(uint64_t) near; /* by domain: sched.wake_gen when something had left it at a waking */
    VEC(struct job_shape *) parked_jobs; /* shapes of parked lots; see parked.h */
    VEC(struct job_shape *) open_jobs;  /* of these, such as have a place */
    VEC(bool) open;                     /* by number of the shape */
    VEC(uint32_t) free_numbers;
    size_t lots_parked;
    size_t lots_few; /* so many parked ones are few, see wake.h; tests set it */
    uint64_t turn;              /* counts turns */
    uint64_t order_epoch;       /* counts turns and changes of shares */
    unsigned place_searches;    /* of evict.c, in this turn */
    unsigned set_searches;      /* of search.c, in this turn */
    unsigned leaf_looks;        /* of evict.c, in this turn */
    bool search_denied;         /* by evict.c: enough was looked at in this turn */
    struct look look;           /* of evict.c: of the line that is tried */
    uint32_t all_gen;           /* counts changes after which all are tried anew */
    uint32_t running_count;     /* preemptible workloads that run */
    VEC(struct taken_back) taken_back; /* starts of this turn; see decide_take_back() */
    size_t evicted_at;          /* decisions of this turn up to its last eviction */
    bool put_off;               /* a victim that has just started was passed over */
    bool wake_soon;             /* something was put off to the next turn */
    VEC(struct short_gang) below; /* gangs below their minimum */
    VEC(struct workload *) holding; /* NULL where one holds nothing any more; in order of holding */
    size_t holding_gaps;
    struct heap timers;         /* back-off and holds */
    VEC(struct node *) windows; /* nodes whose maintenance is not over; see window.h */
    int64_t past_at_ms;         /* up to when past use is counted; 0 = never was */
    int64_t plan_ms;            /* the instant that VIEW_PLAN alone stands for */
    int64_t protected_until_ms; /* when a victim that was passed over loses protection */
    uint32_t stopping;          /* LEAVING and ENDING tasks */
    uint32_t ending_running;    /* RUNNING and HELD tasks that say when they end */
    uint32_t stopping_unknown;  /* restored stopping tasks: whom they stop for is unknown */
    VEC(struct sched_decision) decisions;
    struct sched_decisions result; /* of the last turn */
    struct arena arena;            /* device lists of the decisions */
    VEC(struct claim) claims;      /* of waiting work, inside a turn; see hold.h */
    VEC(struct claim) moving;      /* of work that is being moved; see move.h */
    unsigned move_searches;        /* of move.c, in this turn, or too many before */
    size_t move_cursor;            /* of move.c: where the next look at nodes begins */
    int64_t move_room;             /* less what is in use: at least what is free, in milli-GPU */
    bool move_room_stale;
    struct reservation reserved;   /* of this turn, see reserve.h */
    struct map trades;             /* who made way for whom; see trade.h */
    struct arena trade_arena;      /* likewise */
    uint64_t trades_epoch;         /* outside_epoch of what is in them */
    struct map guards;             /* who won what within its guarantee; likewise */
    struct arena guard_arena;      /* likewise */
    uint64_t passed_epoch;         /* outside_epoch when a victim was passed over for it; or 0 */
    struct placing *placing;       /* scratch, see place.h */
    struct state_world *states;    /* of nodes, see states.h */
    struct index *index;           /* of places, see index.h */
    size_t index_from;             /* so many nodes are worth an index; tests set it */
    struct evicting *evicting;     /* scratch, see evict.h */
    struct mix *mix;               /* of requests, see mix.h */
};

/* Zeroed memory for COUNT elements, exactly; free() it. Out of memory aborts, as in base/vec.h. */
static inline void *mem_new(size_t count, size_t size)
{
    size_t cap = count > 0 ? count : 1;
    void *p = vec_grow(NULL, &cap, cap, size);
    return __builtin_memset(p, 0, cap * size);
}

/* a + sign * b, element by element. */
static inline void amounts_add(struct amounts *a, const struct amounts *b, int sign)
{
    for (int r = 0; r < SCHED_RESOURCES; r++)
        a->v[r] += sign * b->v[r];
}

static inline bool amounts_zero(const struct amounts *a)
{
    for (int r = 0; r < SCHED_RESOURCES; r++)
        if (a->v[r] != 0)
            return false;
    return true;
}

/* The task T of a workload's shape. */
static inline const struct job_task *job_task(const struct job_shape *job, uint32_t t)
{
    return &job->tasks[job->uniform ? 0 : t];
}

/* The class rule of a group. */
static inline const struct sched_class_rule *group_rule(const struct sched *s,
                                                        const struct group *g)
{
    return &s->config.classes[g->class_];
}

static inline bool group_idle(const struct sched *s, const struct group *g)
{
    return group_rule(s, g)->idle_only;
}

#endif
