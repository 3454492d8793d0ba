/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler library: (state, events, now) -> decisions with reasons.
 *
 * Purpose. It decides which task runs on which devices of which node, who waits and why, and
 * who gives way. It is pure: no I/O, no clock, no randomness, no threads, no globals; the same
 * sequence of calls gives the same sequence of decisions on every machine. The caller owns the
 * world: it reports what happened (teams, nodes, workloads, tasks), asks for a turn, carries
 * the decisions out and reports the outcome. The library keeps its own incremental state and
 * applies each decision to it at once, so a decision is never given twice.
 *
 * Use.
 *
 *     struct sched *s = sched_create(NULL);
 *     sched_team_set(s, &team);
 *     sched_node_set(s, &node);
 *     sched_workload_add(s, &workload, NULL);
 *     const struct sched_decisions *d = sched_turn(s, now_ms);
 *     for (size_t i = 0; i < d->count; i++)
 *         carry_out(&d->items[i]);
 *     sched_task_stopped(s, workload.id, 0, SCHED_STOP_DONE, now_ms);
 *
 * Units. GPU compute in milli-GPU, CPU in millicores, memory in bytes, time in milliseconds on
 * one monotonic line chosen by the caller. All amounts are >= 0. SCHED_UNLIMITED means none.
 *
 * Identity. Teams, nodes and workloads carry the caller's nonzero 64-bit ids; a task is
 * (workload id, index); a device is its index on its node. `age` orders equals: smaller is
 * older. Strings are copied and interned.
 *
 * Life of a task:
 *
 *     PENDING --START--> RUNNING --sched_task_stopped(DONE)----> DONE
 *     PENDING --HOLD---> HELD --START--> RUNNING
 *     HELD --UNHOLD--> PENDING
 *     RUNNING --EVICT--> STOPPING --sched_task_stopped(REQUEUE)--> PENDING
 *     RUNNING | STOPPING --sched_task_stopped(...)--> PENDING or DONE
 *
 * RUNNING covers starting: devices are held from the decision to the confirmed stop. HELD is a
 * stored promise: victims are stopping and what they free belongs to this task; nobody else may
 * take it until it starts, is removed, or the hold expires.
 *
 * Invariants after every call: no device holds more than its compute or memory; no team or
 * ancestor is above a limit through a START; non-preemptible work is started within guarantees
 * only; a gang starts with its minimum or not at all; a hold belongs to a whole gang.
 *
 * Errors are 0 or a negative errno: -EINVAL, -ENOENT, -EEXIST, -EBUSY, -ENOMEM. One scheduler
 * belongs to one thread at a time.
 */
#ifndef ALLOT_SCHED_H
#define ALLOT_SCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCHED_UNLIMITED INT64_MAX

enum sched_resource { SCHED_GPU_MILLI, SCHED_CPU_MILLI, SCHED_MEMORY_BYTES, SCHED_RESOURCES };

/* Presets of (priority, preemptible, may evict); see sched_class_rule. Highest first. */
enum sched_class {
    SCHED_CLASS_PRODUCTION,
    SCHED_CLASS_TRAINING,
    SCHED_CLASS_DEVELOPMENT,
    SCHED_CLASS_BATCH,
    SCHED_CLASSES
};

/* The eviction matrix, one row a class. Configuration; sched_create(NULL) takes the defaults. */
struct sched_class_rule {
    bool preemptible;    /* default where the workload does not say */
    bool may_preempt;    /* may evict lower work of its own team */
    bool may_reclaim;    /* may take back what its team is entitled to */
    bool idle_only;      /* takes idle capacity only; gives way to any other work that its own
                            gates admit, while its team is above its guarantee */
};

struct sched_config {
    struct sched_class_rule classes[SCHED_CLASSES];
    int64_t hold_ms;          /* how long a promise lives after its last victim stopped */
    int64_t stale_gang_ms;    /* how long a gang may run below its minimum */
    int64_t min_run_ms;       /* protection from eviction after start; a workload may say more */
    int64_t backoff_ms;       /* first back-off after a failed launch; doubles up to 64 times */
    uint32_t moves_max;       /* workloads moved for one request, at most; 0 = nobody is moved */
    int64_t past_half_life_ms; /* of past use, which biases weights; 0 = it does not. At least 64
                                  milliseconds, a whole number of 64ths is exact */
    int64_t window_lead_ms;   /* before a maintenance window: what work that does not say how long
                                 it runs must have */
};

struct sched;

/* NULL config = defaults. NULL on out of memory. */
struct sched *sched_create(const struct sched_config *config);
void sched_destroy(struct sched *s);
void sched_config_default(struct sched_config *ret_config);

/* ---- teams ------------------------------------------------------------------------------ */

#define SCHED_TYPES_MAX 64 /* of one team */

/* What a team may use of one GPU type, in milli-GPU, charged to the type that work is placed on;
 * beside the amounts of all types together. */
struct sched_type_quota {
    const char *gpu_type;
    int64_t guarantee; /* bounds non-preemptible work, is not reclaimed; SCHED_UNLIMITED = not
                          stated: only the guarantee of all types counts */
    int64_t limit;     /* SCHED_UNLIMITED = none */
};

struct sched_team {
    uint64_t id;
    uint64_t parent; /* 0 = top of the tree */
    uint64_t age;
    int64_t guarantee[SCHED_RESOURCES]; /* SCHED_UNLIMITED = the whole capacity */
    int64_t limit[SCHED_RESOURCES];     /* SCHED_UNLIMITED = none */
    int64_t weight;                     /* share of what is left over; 0 = none of it */
    int32_t priority;                   /* among siblings; higher gets surplus first */
    const struct sched_type_quota *types; /* each type once */
    uint32_t type_count;
};

/* Creates or changes a team. -ENOENT: unknown parent; -EINVAL: a cycle, or a parent that holds
 * workloads. Running work stays whatever the new numbers say. */
int sched_team_set(struct sched *s, const struct sched_team *team);
/* -EBUSY while it has children or workloads. */
int sched_team_remove(struct sched *s, uint64_t id);

/* Per resource, now. share: fair share; entitled = min(limit, max(guarantee, share)). */
struct sched_team_usage {
    int64_t used[SCHED_RESOURCES];               /* charged: running, starting, stopping */
    int64_t used_nonpreemptible[SCHED_RESOURCES];
    int64_t demand[SCHED_RESOURCES];             /* running + pending */
    int64_t share[SCHED_RESOURCES];
    int64_t entitled[SCHED_RESOURCES];
    int64_t past[SCHED_RESOURCES];       /* amount (GiB of memory) x milliseconds, decayed */
    int64_t bias_milli[SCHED_RESOURCES]; /* of the weight, by past use; 1000 = as stated */
};
int sched_team_usage(struct sched *s, uint64_t id, struct sched_team_usage *ret_usage);
/* Restores what sched_team_usage() once said of the past, as of AT_MS, which is the same for all
 * teams and not before any time given so far. -ENOENT; -EINVAL. */
int sched_team_past_set(struct sched *s, uint64_t id, const int64_t *past, int64_t at_ms);
/* Milli-GPU of one type, now: running, starting, stopping. -ENOENT: no such team, or it states no
 * quota of that type and therefore does not count it. */
int sched_team_type_used(struct sched *s, uint64_t id, const char *gpu_type, int64_t *ret_used);

/* ---- nodes ------------------------------------------------------------------------------ */

struct sched_device {
    const char *mig_profile; /* NULL = a whole GPU; else one slice, "1g.10gb" */
    int64_t memory_bytes;    /* 0 = unknown: memory never binds */
    int32_t mig_milli;       /* charge of the slice: its compute slices over the device's */
};

struct sched_label {
    const char *key, *value;
};

struct sched_node {
    uint64_t id;
    uint64_t order;       /* ties between equal nodes go to the smaller */
    const char *gpu_type; /* "H100", or NULL */
    const struct sched_device *devices;
    uint32_t device_count;
    int64_t cpu_milli;    /* SCHED_UNLIMITED = never binding */
    int64_t memory_bytes; /* SCHED_UNLIMITED = never binding */
    const struct sched_label *labels;
    uint32_t label_count;
    bool up;              /* down: counts as inventory, takes nothing; its tasks are not running */
    bool schedulable;     /* false = drained: runs what it has, takes nothing new */
    int64_t window_from_ms, window_until_ms; /* maintenance; until 0 = none */
};

/* Creates or changes a node. Devices may be added or (when unused) removed: -EBUSY otherwise. */
int sched_node_set(struct sched *s, const struct sched_node *node);
/* -EBUSY while tasks hold it. */
int sched_node_remove(struct sched *s, uint64_t id);
/* Topology levels: node label keys, outermost first, at most 16. Replaces the former list. */
int sched_topology_set(struct sched *s, const char *const *levels, uint32_t count);

/* ---- workloads -------------------------------------------------------------------------- */

struct sched_mig_request {
    const char *profile;
    uint32_t count;
};

/* What one task asks for, all of it on one node. Exactly one GPU form, or none:
 *   whole     device_count N, device_milli 1000
 *   fraction  device_count k (usually 1), device_milli 1..999 of compute and memory of each
 *   memory    device_count k, device_milli 0, device_memory_bytes of each
 *   MIG       mig[], device_count 0 */
struct sched_request {
    uint32_t device_count;
    int32_t device_milli;
    int64_t device_memory_bytes;
    const struct sched_mig_request *mig;
    uint32_t mig_count;
    int64_t cpu_milli;
    int64_t memory_bytes;
    const char *const *gpu_types; /* acceptable, in order of preference; none = any */
    uint32_t gpu_type_count;
    bool gpu_types_equal; /* no order: all acceptable types are as good */
    const struct sched_label *labels; /* the node must carry all of them */
    uint32_t label_count;
    uint64_t only_node; /* 0 = any */
    const uint16_t *only_devices; /* NULL = any; else exactly these of only_node, as many as are
                                     asked for: where a suspended task has to come back */
};

struct sched_task {
    const struct sched_request *request; /* tasks that share a request share the pointer */
    uint32_t group;                      /* index into groups[]; 0 when there are none */
    int32_t rank;                        /* higher starts first and is evicted last */
};

struct sched_group {
    const char *name;
    uint32_t min_tasks;
    const char *required; /* topology level that holds the group, or NULL */
};

struct sched_workload {
    uint64_t id;
    uint64_t team; /* a leaf */
    uint64_t age;
    enum sched_class class_;
    int32_t priority; /* inside the class; higher first */
    bool preemptible;
    bool may_burst;   /* false: never above the team's guarantee */
    bool spread;      /* place the tasks on as many nodes as possible (services); else pack */
    const struct sched_task *tasks;
    uint32_t task_count;
    uint32_t min_tasks; /* the gang; fewer than task_count = elastic */
    const struct sched_group *groups;
    uint32_t group_count;
    const char *topology_required;  /* level, or NULL */
    const char *topology_preferred; /* level, or NULL */
    int64_t limit_ms;               /* declared run-time limit; 0 = none */
    int64_t expected_ms;            /* expected run time; 0 = unknown */
    int64_t min_run_ms;             /* protection from eviction; 0 = the configured one */
    uint32_t max_unavailable;       /* disruption budget: evictions and moves leave at most so many
                                       tasks without a place; 0 = none. Such work is sure of the
                                       rest, so give it may_burst = false */
    int64_t restart_cost_ms;        /* price of one restart, beside the work lost */
    bool accepted;                  /* accepted earlier: never refused, it waits */
};

/* Why a workload waits, or was refused. One dominant reason, most binding first. */
enum sched_reason {
    SCHED_REASON_NONE,            /* nothing in its way: it starts in the next turn */
    SCHED_REASON_NO_SUCH_DEVICE,  /* no node of the inventory, down ones included, has it */
    SCHED_REASON_TOO_LARGE,       /* larger than any node, or than the whole inventory */
    SCHED_REASON_ABOVE_LIMIT,     /* alone larger than a team's limit */
    SCHED_REASON_ABOVE_GUARANTEE, /* non-preemptible and alone larger than the guarantee */
    SCHED_REASON_TEAM_LIMIT,      /* the team (or an ancestor) is at its limit */
    SCHED_REASON_TEAM_GUARANTEE,  /* non-preemptible work fills the guarantee */
    SCHED_REASON_BACKOFF,         /* waits after failed launches */
    SCHED_REASON_STOPPING,        /* its own tasks of before have not all stopped yet, or those of
                                     others whose place it will have */
    SCHED_REASON_HELD,            /* promised: waits until the victims have stopped */
    SCHED_REASON_RESERVED,        /* backfilling it would delay the reserved workload */
    SCHED_REASON_TOPOLOGY,        /* enough in total, not in one domain */
    SCHED_REASON_FRAGMENTED,      /* enough in total, not on one node or device */
    SCHED_REASON_NODES_DOWN,      /* only nodes that are down or drained could hold it */
    SCHED_REASON_MAINTENANCE,     /* it would not end before a node's maintenance, or waits for
                                     the end of one */
    SCHED_REASON_CPU,             /* GPUs are free, but not with the CPU beside them */
    SCHED_REASON_MEMORY,          /* likewise host memory */
    SCHED_REASON_PROTECTED,       /* what it may evict has not had its minimum run time yet */
    SCHED_REASON_BUDGET,          /* what it may evict is kept by a disruption budget */
    SCHED_REASON_OVERCOMMITTED,   /* it is within its guarantee, but guarantees add up to more
                                     than there is, and who uses his loses nothing */
    SCHED_REASON_NO_CAPACITY,     /* everything that fits is in use by work it may not evict */
    SCHED_REASON_PROMISED,        /* what is free is promised to others that wait for stops */
    SCHED_REASON_BEHIND,          /* others come first */
    SCHED_REASONS
};
/* Stable lower-case word, "team_limit". */
const char *sched_reason_name(enum sched_reason reason);

struct sched_refusal {
    enum sched_reason reason;
    uint64_t team;      /* whose limit or guarantee, or 0 */
    uint64_t asked;     /* in the unit of `resource` */
    uint64_t available; /* the most there can ever be */
    enum sched_resource resource;
    uint32_t task;      /* the task that cannot be placed */
    const char *gpu_type; /* the limit or guarantee is that of this type; NULL = of all */
    const char *level;    /* TOPOLOGY: one domain of this level must hold it, and none can */
};

/*
 * Could it ever start on this inventory, under these limits? 0, or -E2BIG with RET_REFUSAL.
 * sched_workload_add() checks the same unless `accepted` and then enqueues. -EEXIST: id in use;
 * -ENOENT: unknown team; -EINVAL: not a leaf, a malformed request, or out of bounds: 1..100,000
 * tasks, at most 256 groups, 65,535 devices and 4 PiB of memory a task, 2^40 millicores, and sums
 * (of all that is known to the scheduler) below 2^61.
 */
int sched_workload_check(struct sched *s, const struct sched_workload *w,
                         struct sched_refusal *ret_refusal);
int sched_workload_add(struct sched *s, const struct sched_workload *w,
                       struct sched_refusal *ret_refusal);
/* Forgets it. Tasks that still hold devices keep them until sched_task_stopped(). Promises held
 * for it are dropped. */
int sched_workload_remove(struct sched *s, uint64_t id);

/* ---- tasks ------------------------------------------------------------------------------ */

enum sched_task_state {
    SCHED_TASK_PENDING,
    SCHED_TASK_HELD,
    SCHED_TASK_RUNNING,
    SCHED_TASK_STOPPING,
    SCHED_TASK_DONE
};

/*
 * Restores a task's hold on devices, when state is rebuilt: RUNNING, STOPPING or HELD. SINCE is
 * when it started (RUNNING, STOPPING) or when the hold expires (HELD; INT64_MAX = not yet
 * counting). DONE with no node marks a task that has ended. -EBUSY: the devices are taken, or the
 * node has too little CPU or memory beside them, which is not asked of what is STOPPING.
 */
int sched_task_restore(struct sched *s, uint64_t workload, uint32_t task,
                       enum sched_task_state state, uint64_t node, const uint16_t *devices,
                       uint32_t device_count, int64_t since_ms);

enum sched_stop {
    SCHED_STOP_DONE,    /* ended by itself; does not run again */
    SCHED_STOP_REQUEUE, /* evicted, lost or failed with a retry left: pending again */
    SCHED_STOP_REFUSED  /* the engine could not launch it: pending again, with back-off */
};

/* The stop is confirmed: devices are free from here on. */
int sched_task_stopped(struct sched *s, uint64_t workload, uint32_t task, enum sched_stop how,
                       int64_t now_ms);
/* The caller stops it for its own reasons (cancel, time limit, restart of a gang): devices stay
 * held, no longer a candidate for eviction; what it frees may be counted on. It will wait again,
 * and counts as demand, unless its workload is removed. */
int sched_task_stopping(struct sched *s, uint64_t workload, uint32_t task, int64_t now_ms);

/* ---- decisions -------------------------------------------------------------------------- */

enum sched_decision_kind { SCHED_START, SCHED_HOLD, SCHED_UNHOLD, SCHED_EVICT };

enum sched_cause {
    SCHED_CAUSE_FITS,        /* START: free capacity, gates open */
    SCHED_CAUSE_PROMISED,    /* START: what was held for it is free now */
    SCHED_CAUSE_PREEMPT,     /* EVICT, HOLD: higher work of the same team */
    SCHED_CAUSE_RECLAIM,     /* EVICT, HOLD: another team takes what it is entitled to */
    SCHED_CAUSE_IDLE_ONLY,   /* EVICT, HOLD: batch work gives way */
    SCHED_CAUSE_CONSOLIDATE, /* EVICT: moved to make room; HOLD: its new place, or the room */
    SCHED_CAUSE_STALE_GANG,  /* EVICT: ran below its minimum for too long */
    SCHED_CAUSE_MAINTENANCE, /* EVICT: the window of its node begins */
    SCHED_CAUSE_EXPIRED,     /* UNHOLD: the hold ran out */
    SCHED_CAUSE_OBSOLETE,    /* UNHOLD: the node is lost, or a better start was found */
    SCHED_CAUSES
};
const char *sched_cause_name(enum sched_cause cause);

struct sched_decision {
    enum sched_decision_kind kind;
    enum sched_cause cause;
    uint64_t workload;
    uint32_t task;
    uint64_t node;
    const uint16_t *devices; /* indices on the node; START and HOLD */
    uint32_t device_count;
    int32_t gpu_milli;       /* charge, per task in all */
    uint64_t on_behalf_of;   /* EVICT: the workload that profits, or 0 */
    uint64_t team;           /* EVICT: whose share made it due, or 0 */
    int64_t price_ms;        /* EVICT: GPU-milliseconds lost, as priced */
    int64_t until_ms;        /* HOLD: expiry, INT64_MAX while victims are still stopping */
};

struct sched_decisions {
    const struct sched_decision *items;
    size_t count;
};

/*
 * One turn: everything that can be decided now, in order. Valid until the next call on S. Never
 * NULL; empty when nothing changes. A turn after an event costs what the event can affect, not
 * the number of pending workloads. NOW must not go backwards.
 */
const struct sched_decisions *sched_turn(struct sched *s, int64_t now_ms);

/* When a turn is due although nothing happens (stale gang, expiring hold, back-off, end of a
 * protected run, maintenance, a step of past use); INT64_MAX if never. The time of the last turn
 * when another one may find more: what it decided itself may have given others a chance, or
 * searches were left to the next. */
int64_t sched_next_ms(struct sched *s);

/* ---- explain ---------------------------------------------------------------------------- */

enum sched_start_basis {
    SCHED_START_UNKNOWN,  /* running work declares no limit: no honest estimate */
    SCHED_START_NOW,      /* in the next turn */
    SCHED_START_VICTIMS,  /* when the victims have stopped (start_ms: at the latest) */
    SCHED_START_LIMITS,   /* from declared run-time limits of running work */
    SCHED_START_EXPECTED, /* from expected run times: may move */
    SCHED_START_BEHIND,   /* from declared limits, at the earliest: others come first */
    SCHED_START_BACKOFF,  /* when the back-off ends */
    SCHED_START_WINDOW,   /* when a maintenance window ends */
    SCHED_START_RESERVED, /* not before the reserved workload starts, which is planned for then */
    SCHED_START_PROTECTED /* when the minimum run time of what it may evict is over */
};

#define SCHED_EXPLAIN_HOLDERS 8
#define SCHED_EXPLAIN_NODES 8

struct sched_explanation {
    enum sched_reason reason;
    enum sched_resource resource; /* the binding one; amounts are of it and in its unit */
    int64_t asked;                /* by all that must start together */
    int64_t each;                 /* by one task, the first */
    int64_t free;    /* on nodes that could be used; at a limit or guarantee: the room under it */
    int64_t most;    /* of that, the most that one task could have: on one node, or on one device
                        where it asks for a part of one */
    int64_t missing; /* so much more must be free */
    int64_t less;    /* with so much less asked it would start now (tried out); 0 = nothing less
                        would do, or that is not known */
    uint32_t less_tasks;    /* of `less`: so many tasks fewer; 0 = its tasks ask for less */
    int64_t takes;          /* milli-GPU that it would then evict */
    uint32_t gang, fitting; /* tasks that must start together, and how many of them fit now */
    uint64_t team;          /* whose limit or guarantee binds; else its own team */
    bool firm;              /* TEAM_GUARANTEE: of work that cannot be preempted; else it may not
                               burst */
    const char *gpu_type;   /* it binds for this type, and so do the numbers; NULL = for all */
    int64_t used, guarantee, limit, share; /* of that team, binding resource */
    uint64_t over_team;           /* OVERCOMMITTED: the guarantees below it; 0 = all of them */
    int64_t guarantees, capacity; /* OVERCOMMITTED: their sum, and what there is */
    const char *level, *domain;   /* TOPOLOGY: the level, and its domain that holds the most ... */
    uint32_t domain_fitting;      /* ... tasks of the gang: that many */
    uint32_t position;            /* 1 = next of its team */
    uint32_t pending;             /* how many wait in its team */
    enum sched_start_basis basis;
    int64_t start_ms;             /* estimated start; 0 when unknown */
    uint64_t waits_for;           /* a workload whose end or stop would start it, or 0; PROMISED:
                                     who has the promise; BUDGET: whose budget; PROTECTED: who is
                                     protected last */
    uint64_t nodes[SCHED_EXPLAIN_NODES]; /* MAINTENANCE: whose windows are in the way, that with
                                            the first to matter first; NODES_DOWN: could hold it */
    uint32_t node_count;
    int64_t run_ms;               /* RESERVED, MAINTENANCE: with a limit of that much it would
                                     start now; 0 = it would not */
    /* Who holds most of what it needs, largest first; at a limit or guarantee: of that; HELD,
     * STOPPING: who has to stop; TOPOLOGY, MAINTENANCE, NODES_DOWN: nobody. */
    uint64_t holders[SCHED_EXPLAIN_HOLDERS];
    int64_t holder_amount[SCHED_EXPLAIN_HOLDERS];
    uint32_t holder_count;
};

/* -ENOENT: not known; -EINVAL: nothing of it is pending, nor stopping to be pending again. Bounded
 * work, changes nothing. */
int sched_explain(struct sched *s, uint64_t workload, int64_t now_ms,
                  struct sched_explanation *ret_explanation);
/* What would become of W, which is not known yet, if it were added now, accepted: what
 * sched_explain() would say after the next turn if it does not start in that; else NONE, with
 * basis VICTIMS, `takes` and, as holders, who gives way where others make room for it. -EEXIST,
 * -ENOENT and -EINVAL as of sched_workload_add(). Likewise bounded, and changes nothing. */
int sched_explain_new(struct sched *s, const struct sched_workload *w, int64_t now_ms,
                      struct sched_explanation *ret_explanation);
/* The reason and the position alone, for lists: a fraction of the cost. It does not look ahead:
 * where somebody else's end comes before a maintenance, or, in a large cluster, the end of a
 * protection, it says that there is no capacity. */
int sched_explain_brief(struct sched *s, uint64_t workload, int64_t now_ms,
                        enum sched_reason *ret_reason, uint32_t *ret_position);

/* State of one task; -ENOENT. RET_NODE may be NULL. For tests and checks. */
int sched_task_state(struct sched *s, uint64_t workload, uint32_t task,
                     enum sched_task_state *ret_state, uint64_t *ret_node);

/* Recomputes every sum from scratch and compares. 0, or -EUCLEAN with WHAT filled in. */
int sched_verify(struct sched *s, char *what, size_t size);

#endif
