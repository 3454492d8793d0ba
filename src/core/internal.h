/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Core's own structures. Nothing outside src/core includes this.
 *
 * Ownership. `struct core` owns every team, node, shape and live workload; a workload that has
 * ended leaves memory once its last row is durable (the store keeps it). Strings belong to their
 * struct unless the comment says interned: those live as long as core.
 *
 * Trust. `state` of workloads and tasks is ahead of the store by what is in the journal; the
 * scheduler's copy changes together with ours, in the same function, so that sched_verify() and
 * the maps here agree after every message.
 *
 * Files: core.c life and loop; queue.c messages from other threads; journal.c transactions,
 * group commit, effects; record.c rows and events; shape.c interning and the scheduler's view;
 * load.c start-up; past.c past use over a restart; access.c who may; team.c, user.c, node.c,
 * submit.c, stop.c, status.c commands; suspend.c workloads that sleep; idle.c such as do nothing;
 * note.c numbers of few that are kept; task.c transitions of tasks; workload.c what follows for the
 * workload; report.c engine events; reading.c what drivers say of devices; decide.c scheduler
 * decisions; explain.c; verify.c; describe.c.
 */
#ifndef ALLOT_CORE_INTERNAL_H
#define ALLOT_CORE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <allot/sched.h>

#include "base/arena.h"
#include "base/heap.h"
#include "base/map.h"
#include "base/vec.h"
#include "core/core.h"
#include "core/shape.h"

/* ---- state ------------------------------------------------------------------------------ */

struct core_team {
    struct model_team row; /* name and parent owned, types in arena */
    struct arena arena;
    struct core_team *parent;
    int64_t assured[MODEL_RESOURCE_COUNT]; /* what the scheduler is told; see team.c */
    int64_t below[MODEL_RESOURCE_COUNT];   /* sum of the children's, finite ones */
    struct map names;                      /* live workloads by name */
    uint32_t children, live, running;
};

/* Who exists, and who may administer; the rest is the store's. */
struct core_user {
    const char *name; /* interned */
    bool admin;
};

struct core_node {
    struct model_node row; /* in arena */
    struct arena arena;
    char *json;    /* of the machine alone, to see changes */
    bool outdated; /* it reports other devices, which cannot be taken over yet: it stays drained */
    struct model_reading *readings; /* the last; owned. See reading.c */
    int32_t reading_count;
    int64_t readings_ms; /* when */
};

struct core_task {
    enum model_task_state state;
    int32_t attempt;
    struct core_node *node;
    uint16_t *devices; /* owned */
    int32_t device_count;
    int32_t gpu_milli;
    int64_t held_until_ms, started_ms, ended_ms;
    int32_t exit_code, exit_signal;
    struct model_allocation allocation; /* id 0 = none open */
    /* What the engine reports of this attempt counts from its start; so much of it belongs to
     * earlier allocations, before it was suspended. */
    int64_t busy_base_ns, known_base_ns;
    bool beyond_told; /* that it holds device memory past its part's account */
    int64_t usage_stored_ms;
};

struct core_workload {
    uint64_t id;
    char *name;
    const char *owner; /* interned */
    struct core_team *team;
    struct core_shape *shape;
    struct core_task *tasks; /* NULL until the first placement: all pending, attempt 0 */
    char *message;
    struct heap_node timer; /* in core->limits while a run limit counts */
    int64_t submitted_ms, started_ms, limit_at_ms;
    int64_t evicted_ms;
    enum model_workload_state state;
    int64_t signal_ms[MODEL_SIGNAL_COUNT]; /* when each sign of life was last seen; see idle.c */
    int64_t extended_ms;                   /* until then it may be idle */
    uint8_t idle_step;                     /* 1, 2: warned; 3: acted upon */
    int64_t idle_told_ms;                  /* when idle_step was reached */
    int32_t suspend_attempt;               /* somebody asked for it to be suspended: 1 + attempt */
    bool asleep;                           /* the scheduler knows it in two parts; see suspend.c */
    int32_t restarts, failures, refusals;
    int32_t running, ended; /* tasks that hold devices; tasks in a final state */
    int32_t stopping;       /* of the running, those that have been asked to stop */
    int32_t exit_code;
};

/* How long a reply is kept for a repeated request. */
#define CORE_REPLY_TTL_MS (24LL * 3600 * 1000)

/* ---- messages --------------------------------------------------------------------------- */

enum core_message_kind { MESSAGE_COMMAND, MESSAGE_ENGINE, MESSAGE_COMMITTED, MESSAGE_STOP };

struct core_message {
    struct core_message *next;
    enum core_message_kind kind;
    struct core_command *command;
    struct engine_event event; /* deep copy in arena */
    struct arena arena;
};

struct core_queue {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct core_message *first, *last;
};

/* 0 or -ENOMEM. */
int core_queue_init(struct core_queue *q);
/* Answers commands that are still queued with -ECANCELED, frees everything. */
void core_queue_done(struct core_queue *q);
/* From any thread; takes M over. */
void core_queue_push(struct core_queue *q, struct core_message *m);
/* Everything queued, oldest first; waits up to TIMEOUT_MS (0 = not at all) if there is nothing. */
struct core_message *core_queue_take(struct core_queue *q, int64_t timeout_ms);
/* A message with an arena of its own. */
struct core_message *core_message_new(enum core_message_kind kind);
/* A list of messages that nobody will look at: commands are answered with -ECANCELED. */
void core_message_abandon(struct core_message *list);
void core_message_free(struct core_message *m);

/* ---- journal ---------------------------------------------------------------------------- */

enum core_effect_kind { EFFECT_START, EFFECT_STOP, EFFECT_SUSPEND, EFFECT_RESUME, EFFECT_FORGET };

/* A call to the engine that waits for its transaction. */
struct core_effect {
    struct core_effect *next;
    enum core_effect_kind kind;
    const char *intent;
    const struct engine_start *start; /* EFFECT_START */
    int64_t grace_ms;                 /* EFFECT_STOP */
};

/* A command that is answered when what it led to is durable. */
struct core_waiter {
    struct core_waiter *next;
    struct core_command *command;
};

/*
 * One transaction and what follows it. With a command it is what a person asked for: it may
 * fail, then nothing happened. Without, it records what has happened: it is handed in until it
 * is durable; its waiters are told of a failure at once, and it takes effect nevertheless.
 */
struct core_entry {
    struct store_txn txn;
    struct core_entry *next;
    struct core_command *command;
    struct core_waiter *waiters;
    void (*apply)(struct core *core, struct core_entry *entry); /* after the commit */
    void (*drop)(struct core *core, struct core_entry *entry);  /* it failed: undo the staging */
    void *staged; /* apply's and drop's, in the arena */
    struct core_effect *first_effect, *last_effect;
};

struct core_journal {
    struct core_entry *open;         /* rows of what happened, still collecting */
    struct core_entry *first, *last; /* sealed, waiting for the next group */
    struct core_entry **group;       /* with the store now */
    struct store_txn **group_txns;
    size_t group_len;
    bool committing;
    bool failing;        /* the last group failed on the disk */
    int64_t retry_at_ms; /* when failing */
    struct err err;      /* why */
};

/* The arena and transaction that rows of the present moment go to. */
struct store_txn *core_journal_txn(struct core *core);
/* A transaction of its own for COMMAND, behind everything recorded so far. */
struct core_entry *core_journal_command(struct core *core, struct core_command *command);
/* COMMAND is answered when everything that was recorded so far is durable, or has failed once. */
void core_journal_wait(struct core *core, struct core_command *command);
void core_journal_op(struct store_txn *txn, const struct store_op *op);
void core_journal_effect(struct core *core, enum core_effect_kind kind, const char *intent,
                         const struct engine_start *start, int64_t grace_ms);
/* Hands the next group to the store if none is under way. */
void core_journal_flush(struct core *core);
/* The store has answered. */
void core_journal_committed(struct core *core);
bool core_journal_idle(const struct core *core);
void core_journal_done(struct core *core);

/* ---- the whole -------------------------------------------------------------------------- */

struct core {
    struct core_config config;
    struct core_ports ports;
    struct core_queue queue;
    struct core_journal journal;
    /* A structural command (teams, users, drains) under way: others, and reports of nodes, wait
     * until it has been applied, so that each is checked against the state that it will meet and
     * no row is written over with what it held before. */
    const struct core_command *barrier;
    bool barrier_done;
    struct core_message *waiting, *last_waiting;
    struct sched *sched;
    _Atomic int64_t offset_ms; /* boot clock -> timeline */

    struct map teams, team_names; /* id -> core_team, name -> core_team */
    struct map nodes, node_names;
    struct map shapes; /* json -> core_shape */
    struct map shape_ids;
    struct map workloads; /* id -> core_workload: live ones */
    struct map users;     /* name -> core_user */
    struct map interned;  /* text -> itself */
    struct arena strings; /* of the interned */
    struct heap limits;   /* run limits, by time */
    struct arena turn;    /* scratch of one message or turn */

    uint64_t last_workload, last_event, last_id, last_shape;
    uint64_t committed_event;
    uint64_t pending, running; /* workloads */
    int64_t now_ms;            /* of this turn */
    int64_t started_ms;
    int64_t past_saved_ms; /* see past.c */
    int64_t last_seen_ms;  /* time of the newest stored event */
    bool reconciled;
    bool stopping;
    bool dirty; /* something changed that the scheduler should look at */
};

/* "name" kept as long as core. */
const char *core_intern(struct core *core, const char *text);
int64_t core_timeline(struct core *core, int64_t boot_ms);

/* ---- record.c --------------------------------------------------------------------------- */

void core_record_workload(struct core *core, struct core_workload *w);
void core_record_task(struct core *core, struct core_workload *w, int32_t index);
void core_record_allocation(struct core *core, const struct model_allocation *a);
/* Appends an event; fields besides type, workload, task, message may be NULL. DATA and MESSAGE
 * are copied. ACTOR NULL = "allot". */
void core_record_event(struct core *core, struct store_txn *txn, const struct model_event *event);
void core_record_workload_event(struct core *core, const struct core_workload *w, int32_t task,
                                const char *type, const char *data, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));
/* A model row that points into W and its team. */
void core_workload_row(const struct core_workload *w, struct model_workload *ret_row);

/* ---- shape.c ---------------------------------------------------------------------------- */

/* Finds or makes the shape; SHAPE is copied. */
struct core_shape *core_shape_intern(struct core *core, const struct model_shape *shape);
int core_shape_add_stored(struct core *core, uint64_t id, const char *json);
/* Forgets SHAPE if it is not stored and no workload refers to it: what was refused leaves nothing
 * behind. NULL is fine. */
void core_shape_let_go(struct core *core, struct core_shape *shape);

/* ---- access.c --------------------------------------------------------------------------- */

/* -EACCES with ERR unless the actor is admin, or the team lies in a subtree of its teams. */
int core_access_team(const struct core_actor *actor, const struct core_team *team, struct err *err);
int core_access_admin(const struct core_actor *actor, const char *what, struct err *err);

/* ---- commands: stage, or answer at once. Return 0 when taken over, else status with err. --- */

int core_command_team_put(struct core *core, struct core_command *c);
int core_command_team_delete(struct core *core, struct core_command *c);
int core_command_submit(struct core *core, struct core_command *c);
int core_command_submit_dry(struct core *core, struct core_command *c);
int core_command_stop(struct core *core, struct core_command *c);
int core_command_suspend(struct core *core, struct core_command *c);
int core_command_resume(struct core *core, struct core_command *c);
int core_command_extend(struct core *core, struct core_command *c);
int core_command_explain(struct core *core, struct core_command *c);
/* What would be said of W, staged and not yet known to the scheduler, if it were submitted now. */
void core_explain_new(struct core *core, const struct core_workload *w, struct arena *arena,
                      struct model_explanation *x);
int core_command_explain_brief(struct core *core, struct core_command *c);
int core_command_drain(struct core *core, struct core_command *c);
int core_command_maintenance(struct core *core, struct core_command *c);
int core_command_user_put(struct core *core, struct core_command *c);
int core_command_user_delete(struct core *core, struct core_command *c);
int core_command_token_create(struct core *core, struct core_command *c);
int core_command_token_delete(struct core *core, struct core_command *c);
int core_command_team_usage(struct core *core, struct core_command *c);
int core_command_metrics(struct core *core, struct core_command *c);
int core_command_status(struct core *core, struct core_command *c);
void core_command_finish(struct core_command *c, int status);
int core_command_record_reply(struct core *core, struct core_command *c, struct core_entry *entry);

/* ---- user.c ----------------------------------------------------------------------------- */

/* Makes the user known, or changes its role. */
void core_user_set(struct core *core, const char *name, bool admin);

/* ---- team.c, node.c --------------------------------------------------------------------- */

struct core_team *core_team_add(struct core *core, const struct model_team *row);
/* Tells the scheduler of T, and of its ancestors as far as they change with it. */
int core_team_to_sched(struct core *core, struct core_team *t);
void core_team_free(struct core_team *t);
void core_node_report(struct core *core, const struct model_node *report);
struct core_node *core_node_add(struct core *core, const struct model_node *row);
int core_node_to_sched(struct core *core, const struct core_node *n);
void core_node_free(struct core_node *n);

/* ---- reading.c -------------------------------------------------------------------------- */

/* EVENT is a READINGS; of a node that is not known it is nothing. */
void core_reading_take(struct core *core, const struct engine_event *event);
/* Nodes with their last readings, by name, into C. */
void core_reading_list(struct core *core, struct core_command *c);

/* ---- workload.c, task.c ----------------------------------------------------------------- */

struct core_workload *core_workload_new(struct core *core, uint64_t id, const char *name,
                                        const char *owner, struct core_team *team,
                                        struct core_shape *shape);
void core_workload_free(struct core_workload *w);
/* Tasks array, made on first use. */
struct core_task *core_workload_tasks(struct core_workload *w);
void core_workload_set_state(struct core *core, struct core_workload *w,
                             enum model_workload_state state);
void core_workload_set_message(struct core_workload *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Nothing to say any more. */
void core_workload_clear_message(struct core_workload *w);
/* Ends it: stops what runs, cancels what waits. EXIT_CODE 0 = cancelled, else failed. */
void core_workload_stop(struct core *core, struct core_workload *w, int32_t exit_code,
                        int64_t grace_ms, const char *actor, const char *why);
/* After any task changed: has the gang started, has the workload ended? */
void core_workload_review(struct core *core, struct core_workload *w);
/* Run limits that are over. */
void core_workload_check_limits(struct core *core);
void core_workload_arm_limit(struct core *core, struct core_workload *w);

/* Follows the transition table (abort otherwise) and keeps the workload's counters. */
void core_task_set_state(struct core *core, struct core_workload *w, int32_t index,
                         enum model_task_state state);
/* Leaves its devices: closes the allocation at END_MS and says HOW, forgets node and devices. */
void core_task_release(struct core *core, struct core_workload *w, int32_t index, int64_t end_ms,
                       enum model_release how);
void core_task_intent(const struct core_workload *w, int32_t index, char *text);
/* GPU time of A, an allocation of T, for which T had not begun: known to be idle, and no engine
 * counts it. 0 before it begins. */
int64_t core_task_launch_ns(const struct core_task *t, const struct model_allocation *a);
/* Asks the engine to stop it (STARTING or RUNNING); GRACE -1 = the workload's own. A task that is
 * STOPPING already gets a given grace too: the engine keeps to the earlier end. */
void core_task_stop(struct core *core, struct core_workload *w, int32_t index, int64_t grace_ms);

/* ---- suspend.c -------------------------------------------------------------------------- */

/* May a workload of SHAPE be suspended: was it started for that? */
bool core_suspend_possible(const struct core_shape *shape);
/* The workload of which ID, of the scheduler, is the part that stays on its node; else 0. */
uint64_t core_suspend_owner(uint64_t id);
/* The scheduler knows W as it was submitted once more: with its devices if it is STARTING, else as
 * one that waits. Nothing, where it does already. */
void core_suspend_one_again(struct core *core, struct core_workload *w);
/* After a turn that decided of W, which is suspended. */
void core_suspend_decided(struct core *core, struct core_workload *w);
/* At start-up, when all has been read: what W, of which a task lives and which may be suspended,
 * used before it was last suspended; and tells the scheduler of it if it is, or if it stops. 0, or
 * why the scheduler has no place for it. */
int core_suspend_load(struct core *core, struct core_workload *w);
/* W, which is STARTING, has its devices again: lets the engine resume it. */
void core_suspend_start(struct core *core, struct core_workload *w);
/* Lets the engine suspend W. False: it was not started for that, or does not run. */
bool core_suspend_try(struct core *core, struct core_workload *w);
/* W is evicted by D: lets the engine suspend it, if that is how it gives way and it is about its
 * devices and not about its node. False: it is not. */
bool core_suspend_evict(struct core *core, struct core_workload *w, const struct sched_decision *d);
/* At start-up: is what W, of which a task lives, holds on devices to lie in host memory? */
bool core_suspend_wanted(const struct core_workload *w);
/* Which workloads are to be suspended, as somebody has been told; after the workloads. */
int core_suspend_load_wishes(struct core *core, struct err *err);
/* What the engine reports of its task. */
void core_suspend_suspended(struct core *core, struct core_workload *w,
                            const struct engine_event *event);
void core_suspend_resumed(struct core *core, struct core_workload *w,
                          const struct engine_event *event);
void core_suspend_wake(struct core *core, struct core_workload *w);
/* Does the scheduler know of W, which is suspended, what it should? 0, or -EUCLEAN with WHAT. */
int core_suspend_verify(struct core *core, const struct core_workload *w, char *what, size_t size);

/* ---- note.c ----------------------------------------------------------------------------- */

/* A number that few workloads have, and that is to outlive the server. */
struct core_note {
    const char *key; /* of the store's meta data */
    int64_t (*of)(const struct core *core, const struct core_workload *w); /* 0 = it has none */
    void (*set)(struct core_workload *w, int64_t number);
    const char *unreadable; /* what the log says of the key when it cannot be read */
};

/* Stores the numbers of all workloads with what else is being stored. */
void core_note_store(struct core *core, const struct core_note *note);
/* Sets those that were stored, of workloads that still live. Unreadable ones are told, and are
 * none. */
int core_note_load(struct core *core, const struct core_note *note, struct err *err);

/* ---- idle.c ----------------------------------------------------------------------------- */

/* Signs of life of one of W's tasks: warns, and acts, by the policy of its team. */
void core_idle_seen(struct core *core, struct core_workload *w, const struct engine_event *event);
/* Extensions that are stored; after the workloads. */
int core_idle_load(struct core *core, struct err *err);

/* ---- past.c ----------------------------------------------------------------------------- */

/* Writes down what the scheduler knows of past use, when that is due again. */
void core_past_save(struct core *core);
/* Tells the scheduler what was written down; after the teams. */
int core_past_load(struct core *core, struct err *err);

/* ---- report.c, decide.c, load.c --------------------------------------------------------- */

void core_report_handle(struct core *core, const struct engine_event *event);
void core_decide(struct core *core);
int core_load_state(struct core *core, struct err *err);
void core_load_reconcile(struct core *core);

#endif
