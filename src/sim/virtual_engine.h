/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine in virtual time, for simulation. It outlives core, as real tasks do.
 *
 * Tasks run for a random time and end with a random result; stopping takes a while; launches may
 * be refused, tasks lost, events delayed, repeated and swapped between tasks. It keeps its own
 * truth and aborts when a promise of the port is broken: an intent that is started twice, two
 * tasks that share a whole device, or memory and compute of a device handed out twice.
 */
#ifndef ALLOT_SIM_VIRTUAL_ENGINE_H
#define ALLOT_SIM_VIRTUAL_ENGINE_H

#include <stdint.h>

#include "base/rng.h"
#include "core/engine_port.h"

struct virtual_engine;

struct virtual_faults {
    int32_t refuse_permille; /* launches that are refused */
    int32_t lose_permille;   /* tasks that are lost instead of ending */
    int32_t fail_permille;   /* tasks that end with a failure */
    int32_t repeat_permille; /* events that come twice */
    int64_t delay_ms;        /* events come up to this late */
    int64_t run_ms;          /* tasks run up to this long */
};

extern const struct engine_ops virtual_engine_ops;

/* Reports NODE with its devices; the strings must live as long as the engine. */
struct virtual_engine *virtual_engine_create(uint64_t seed, const struct virtual_faults *faults,
                                             const struct model_node *node);
void virtual_engine_destroy(struct virtual_engine *e);

/* A (new) core listens; reports the node. */
void virtual_engine_attach(struct virtual_engine *e, struct engine_host host);
/* Core is gone: events wait for nobody. */
void virtual_engine_detach(struct virtual_engine *e);
/* Everything that is due until NOW (boot clock, ms). Returns when the next thing is due, or
 * INT64_MAX. */
int64_t virtual_engine_advance(struct virtual_engine *e, int64_t now_ms);
/* Tasks that run or stop at this moment. */
size_t virtual_engine_running(const struct virtual_engine *e);

#endif
