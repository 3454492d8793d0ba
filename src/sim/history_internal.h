/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What those who play histories share: history.c plays, history_command.c asks core for what
 * people ask for, history_check.c holds the state against the rules, history_make.c draws steps
 * and looks only.
 *
 * Ownership: struct history owns all of it. One thread. Units: milliseconds; `elapsed_ms` is time
 * as it really passes, the boot clock is that since `booted_ms`, the wall clock is off by
 * `wall_skew_ms`.
 */
#ifndef ALLOT_SIM_HISTORY_INTERNAL_H
#define ALLOT_SIM_HISTORY_INTERNAL_H

#include "base/map.h"
#include "core/core.h"
#include "sim/history.h"
#include "sim/memory_store.h"
#include "sim/virtual_engine.h"

struct history_node {
    struct model_node row;
    struct model_device *devices; /* owned, as the name; row.device_count of them */
    char name[16];
};

struct history {
    struct memory_store *store;
    struct virtual_engine *engine;
    struct history_judge *judge;
    struct core *core;
    struct history_node *nodes[HISTORY_NODES_MAX]; /* NULL = there is none */
    struct map numbers;                            /* of workloads that were asked for */
    int64_t elapsed_ms, booted_ms, wall_skew_ms;
    int64_t timeline_ms; /* core's, less elapsed_ms: the same until the machine starts again... */
    bool anchored;       /* ...once something of this start is durable */
    int32_t boots;
    char boot_id[24];
    uint64_t compare_every; /* quiet steps */
    uint64_t unchecked;     /* of them since the last comparison */
    struct history_result result;
};

/* The number by which a workload's name is looked for. */
#define HISTORY_NAME_MAX 16
void history_name(char prefix, int32_t number, char *text);

/* ---- history_command.c ------------------------------------------------------------------ */

/* Hands a person's wish to core; what comes of it is checked when core answers. */
void history_ask_team(struct history *h, const struct history_step *step);
void history_ask_dissolve(struct history *h, const struct history_step *step);
void history_ask_submit(struct history *h, const struct history_step *step);
void history_ask_cancel(struct history *h, const struct history_step *step);
/* Suspends it, or resumes it. */
void history_ask_suspend(struct history *h, const struct history_step *step);
void history_ask_drain(struct history *h, const struct history_step *step);
/* Gives every team all it may want, so that whatever was accepted can run. */
void history_ask_everything(struct history *h);

/* ---- history_check.c -------------------------------------------------------------------- */

/* Remembers the first thing that is wrong. */
void history_wrong(struct history *h, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* After each step and turn: 0, or -EUCLEAN with the reason in the result. */
int history_check(struct history *h);
/* Is everything that happened durable? */
bool history_quiet(struct history *h);
/* Compares what the store gives with what lives in CORE. */
void history_compare(struct history *h);
/* At rest: does anybody wait who could start? */
void history_check_rest(struct history *h);
/* A core made from what is durable. */
struct core *history_load(struct history *h);

#endif
