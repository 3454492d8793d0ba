/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Core: the control plane's state machine.
 *
 * One thread owns the state: teams, nodes, live workloads, tasks, open allocations, and the
 * scheduler. Commands come in from people, events from engines; transactions go out to the
 * store, calls to engines. Core knows only the ports (store_port.h, engine_port.h, clock_port.h)
 * and never blocks on them.
 *
 * The order of things, always:
 *   a person's command:  check -> stage -> commit -> apply -> reply
 *   a decision:          apply -> commit (intent) -> ask the engine
 *   an engine's event:   apply -> commit -> forget at the engine
 * so what was acknowledged is durable, and every side effect is preceded by its stored intent.
 * When the store fails, staged commands are refused (nothing happened) and everything that
 * already happened in the world is kept and handed in again until it is durable; decisions wait.
 *
 * Time. `now` is a timeline in milliseconds since 1970: boot clock + an offset that is stored
 * with the boot id. Within one boot it never jumps, whatever happens to the wall clock and
 * however often the server restarts; after a reboot it continues from the wall clock, never
 * backwards. Durations, graces, limits and metering are differences on this line.
 *
 * Threads. core_run() is the thread. core_submit(), the engine host's functions and core_stop()
 * may be called from any thread; nothing else may.
 */
#ifndef ALLOT_CORE_CORE_H
#define ALLOT_CORE_CORE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "core/clock_port.h"
#include "core/command.h"
#include "core/engine_port.h"
#include "core/store_port.h"

struct core;

struct core_config {
    int64_t hold_ms;        /* promises; 0 = the scheduler's default */
    int64_t stale_gang_ms;  /* 0 = default */
    int64_t min_run_ms;     /* protection after start; default 0 */
    int64_t moves_max;      /* workloads moved for one request; 0 = default, -1 = none */
    int64_t past_half_life_ms; /* of past use, which biases weights; 0 = it does not count */
    int64_t window_lead_ms; /* before maintenance, for work of unknown length; 0 = default */
    int64_t token_ttl_ms;   /* default life of a token, 0 = none */
    /* Topology: keys of node labels, outermost first; at most 16, NULL-terminated, and must
     * outlive core. NULL: "host" alone. */
    const char *const *topology;
};

struct core_ports {
    const struct store_ops *store;
    void *store_ctx;
    const struct engine_ops *engine;
    void *engine_ctx;
    const struct clock_ops *clock;
    void *clock_ctx;
    /* Called on core's thread when events up to SEQ are committed; must not block. */
    void (*events)(void *ctx, uint64_t seq);
    void *events_ctx;
};

/* Loads the stored state. 0 or negative errno with ERR (corrupt row, unknown schema, ...). */
int core_create(const struct core_config *config, const struct core_ports *ports,
                struct core **ret_core, struct err *err);
/* Commands that have no answer yet are answered with -ECANCELED. NULL is fine. */
void core_destroy(struct core *core);

/* The engine's way up: pass it to the engine before core_run(). */
struct engine_host core_engine_host(struct core *core);

/* Runs until core_stop(); finishes the commits under way, leaves tasks alone. */
void core_run(struct core *core);
void core_stop(struct core *core);

/*
 * The same by hand, for a simulation that owns the clock: core_begin() once instead of
 * core_run(), then core_step() for one turn over everything that has come in. Returns the time
 * on the timeline at which the next turn is due even if nothing comes in.
 */
void core_begin(struct core *core);
int64_t core_step(struct core *core);

/* Takes the command over until its done() is called. Never blocks. */
void core_submit(struct core *core, struct core_command *command);

/* Compares the scheduler's sums and core's own counters with a recount from scratch. 0, or
 * -EUCLEAN with WHAT filled in. For tests; on core's thread. */
int core_verify(struct core *core, char *what, size_t size);

/* The whole state as text, in an order that depends on the state alone: that of a core which was
 * just created from the store equals that of one whose last transaction is durable. For tests; on
 * core's thread. */
void core_describe(struct core *core, struct strbuf *out);

/* Now on the timeline; any thread. */
int64_t core_now_ms(struct core *core);

#endif
