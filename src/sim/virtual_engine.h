/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine in virtual time, for simulation. It outlives core, as real tasks do.
 *
 * Nothing here is drawn at random: how long a launch or a stop takes follows from the name of the
 * workload, rank and attempt, and everything else is asked for (a task ends, a launch is refused,
 * a node is lost, an event comes late, twice or out of order). Tasks run until they are finished
 * or stopped.
 *
 * Nodes. One that is lost takes nothing and says nothing. Its tasks die with it (the engine is
 * sure of that after a while, or when it asks again), or live on unseen and report when the node
 * is back; stops that were asked for meanwhile are carried out then.
 *
 * Tasks that are suspended give their devices back after a while, and have them again a while after
 * they are resumed; what a move is to be hindered by is asked for beforehand. One whose program
 * calls a GPU meanwhile says so, again to each core that attaches. Where core wants a task to be
 * last, there it ends up, whatever was under way.
 *
 * It keeps its own truth in an account of its own (ledger.h) and notes when a promise of the port
 * is broken: an intent that is started twice, a device handed out twice, a node without the cpu,
 * a running task that is forgotten. virtual_engine_broken() is the first of them.
 *
 *     struct virtual_engine *e = virtual_engine_create();
 *     virtual_engine_node(e, 0, &node);
 *     virtual_engine_attach(e, core_engine_host(core));
 *     next = virtual_engine_advance(e, now_ms);
 */
#ifndef ALLOT_SIM_VIRTUAL_ENGINE_H
#define ALLOT_SIM_VIRTUAL_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/engine_port.h"

struct virtual_engine;

/* A task that has been started and has not ended. */
struct virtual_task {
    uint64_t workload;
    const char *name; /* of the workload */
    int32_t task;
    bool suspendable, asleep;
};

/* What may go wrong with a move of device memory. */
enum virtual_hinder {
    VIRTUAL_HINDER_SUSPEND, /* the task runs on */
    VIRTUAL_HINDER_RESUME,  /* its devices have no room: it stays suspended */
    VIRTUAL_HINDER_DRIVER,  /* the driver loses it: it ends */
    VIRTUAL_HINDERS
};

extern const struct engine_ops virtual_engine_ops;

/* Without nodes; aborts when out of memory. */
struct virtual_engine *virtual_engine_create(void);
void virtual_engine_destroy(struct virtual_engine *e);

/* Has node INDEX from now on, or knows it with other devices; its strings must live as long as
 * the engine. */
void virtual_engine_node(struct virtual_engine *e, uint32_t index, const struct model_node *node);
/* Takes the node away, with its tasks or only out of sight; brings it back. */
void virtual_engine_lose(struct virtual_engine *e, uint32_t index, bool dies);
void virtual_engine_return(struct virtual_engine *e, uint32_t index);
/* Is there such a node, and is it there? */
bool virtual_engine_node_up(const struct virtual_engine *e, uint32_t index);

/* A (new) core listens; reports the nodes. */
void virtual_engine_attach(struct virtual_engine *e, struct engine_host host);
/* Core is about to die: only the next CALLS calls are heard. */
void virtual_engine_cut(struct virtual_engine *e, uint32_t calls);
/* Core is gone: events wait for nobody. */
void virtual_engine_detach(struct virtual_engine *e);
/* The machine has started again: everything that ran is lost, and its clock begins at NOW. */
void virtual_engine_reboot(struct virtual_engine *e, int64_t now_ms);

/* Ends a task that runs on a node in sight: with an exit code, or without a record (LOST). */
bool virtual_engine_finish(struct virtual_engine *e, const char *name, int32_t task, int32_t code,
                           bool lost);
/* The next launch is refused. */
void virtual_engine_refuse(struct virtual_engine *e, bool lasting);
/* The program of a suspended task calls a GPU. */
bool virtual_engine_call(struct virtual_engine *e, const char *name);
/* The next move that WHAT is about goes wrong. */
void virtual_engine_hinder(struct virtual_engine *e, enum virtual_hinder what);
/* The next event of a task comes MS later than it would, or again MS later. */
void virtual_engine_late(struct virtual_engine *e, int64_t ms);
void virtual_engine_repeat(struct virtual_engine *e, int64_t ms);
/* What is on its way arrives in the reverse order, as far as tasks keep the order of their own
 * events. */
void virtual_engine_reorder(struct virtual_engine *e);

/* Everything that is due until NOW (boot clock, ms). Returns when the next thing is due, or
 * INT64_MAX. */
int64_t virtual_engine_advance(struct virtual_engine *e, int64_t now_ms);

/* Tasks that have been started and have not ended, oldest first; -1 when there are not so many. */
size_t virtual_engine_running(const struct virtual_engine *e);
int virtual_engine_task(const struct virtual_engine *e, size_t index, struct virtual_task *ret);

/* A number of everything that was asked of it, in order. */
uint64_t virtual_engine_trace(const struct virtual_engine *e);
/* NULL, or the promise that was broken first. */
const char *virtual_engine_broken(const struct virtual_engine *e);

#endif
