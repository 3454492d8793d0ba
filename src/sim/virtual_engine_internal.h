/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the virtual engine share: virtual_engine.c nodes, launches, stops and events;
 * virtual_sleep.c tasks that are suspended.
 */
#ifndef ALLOT_SIM_VIRTUAL_ENGINE_INTERNAL_H
#define ALLOT_SIM_VIRTUAL_ENGINE_INTERNAL_H

#include "base/map.h"
#include "base/vec.h"
#include "sim/ledger.h"
#include "sim/virtual_engine.h"

#define LAUNCH_MS 20  /* the longest launch */
#define TRAVEL_MS 30  /* and the longest way of an event */
#define FENCE_MS 2000 /* until the engine is sure that the tasks of a lost node are gone */

enum phase { PHASE_STARTING, PHASE_RUNNING, PHASE_STOPPING, PHASE_ENDED };
/* Where what a task holds on devices is; SAVING and RESTORING take a while. */
enum sleep { AWAKE, SAVING, ASLEEP, RESTORING };

struct vtask {
    char intent[MODEL_INTENT_MAX];
    char *name;
    uint64_t workload;
    int32_t index;
    uint32_t node;
    enum phase phase;
    int64_t at_ms; /* when the phase ends by itself, INT64_MAX = never */
    enum engine_event_kind end;
    int32_t exit_code;
    bool stopped, lasting;
    bool unknown;          /* to be stopped when its node is in sight again */
    int64_t stop_grace_ms; /* likewise; -1 = no */
    int64_t ended_ms, started_ms;
    bool past_boot; /* both are of an earlier one */
    int64_t ran_ms;
    int64_t last_mail_ms;                         /* its events keep their order */
    const struct sched_request *request, *asleep; /* all that it asked for; what it keeps */
    uint16_t *devices;
    uint32_t device_count;
    int32_t gpu_milli; /* 0: how busy it is, is not known */
    bool suspendable;
    enum sleep sleep;
    bool to_sleep;       /* as core wants it */
    bool untold; /* a server that was started anew does not know that it sleeps */
    bool calls;          /* its program waits for the devices */
    int64_t slept_ms;    /* ASLEEP since then */
    int64_t host_bytes;  /* of what it holds on devices */
    int64_t awake_ms;    /* so long it has held them, until `awake_at_ms` */
    int64_t awake_at_ms; /* 0 = it does not */
    uint64_t chance;     /* what its launch and stop take */
};

/* An event on its way to core. */
struct mail {
    int64_t at_ms;
    uint64_t seq;
    enum engine_event_kind kind;
    int64_t boot_ms;
    bool past_boot;
    int64_t ran_ms, awake_ms;
    uint64_t key; /* of the task */
    uint32_t node;
    const char *message; /* static, or NULL */
};

struct vnode {
    const struct model_node *row; /* NULL = there is none */
    bool lost;
};

struct virtual_engine {
    struct vnode nodes[16];
    struct sim_ledger ledger;
    struct engine_host host;
    int64_t now_ms;
    struct map by_intent; /* hash of the intent -> vtask, or GONE when forgotten */
    VEC(struct vtask *) tasks;
    VEC(struct mail) mail;
    uint64_t mail_seq, trace;
    int64_t late_ms, repeat_ms; /* of the next event; -1 = none */
    bool refuse, refuse_lasting;
    bool hinder[VIRTUAL_HINDERS]; /* the next move */
    uint32_t calls_left;
    char broken[200];
};

/* Sends KIND about T on its way; MESSAGE is static, or NULL. */
void vtask_post(struct virtual_engine *e, enum engine_event_kind kind, struct vtask *t,
                const char *message);
/* It is over, and holds nothing any more. */
void vtask_end(struct virtual_engine *e, struct vtask *t, enum engine_event_kind how, int32_t code);
/* Enters T's hold on its node in the account: on all that it asked for, or on what it keeps when
 * it is ASLEEP; and takes it out. */
void vtask_occupy(struct virtual_engine *e, struct vtask *t);
void vtask_vacate(struct virtual_engine *e, struct vtask *t);
void virtual_engine_note_broken(struct virtual_engine *e, const char *promise, const char *intent);

/* ---- virtual_sleep.c -------------------------------------------------------------------- */

/* T, on a node in sight, goes where core wants it to be, or says that it is there. */
void vtask_move(struct virtual_engine *e, struct vtask *t);
/* The time of a move is over. */
void vtask_moved(struct virtual_engine *e, struct vtask *t);
/* A core that does not know it yet hears that T's program waits. */
void vtask_call(struct virtual_engine *e, struct vtask *t);
/* For how long T has held its devices. */
int64_t vtask_awake_ms(const struct virtual_engine *e, const struct vtask *t);

#endif
