/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The world of one scenario: virtual clock, event heap, and what its engine would report.
 *
 * Purpose. It owns a scheduler, feeds it what happens (submissions, ends, stops, lost nodes),
 * carries decisions out at once and keeps its own books of tasks and devices. After each turn
 * the books are compared with the scheduler's; a difference is an error of the library and ends
 * the run.
 *
 * Time. Milliseconds; the scenario's time 0 is SIM_EPOCH_MS of the scheduler's clock, because
 * what runs at the start began a minute earlier. All events of one instant are reported before
 * the turn of that instant; a turn's consequences that take no time (a stop without grace, a
 * refused launch) are reported at the same instant, followed by another turn, until nothing
 * changes. One turn is one round.
 *
 * Ownership. The scenario must outlive the world. One world belongs to one thread.
 *
 *     r = sim_world_create(&scenario, trace, &world, &err);
 *     r = sim_world_advance(world, 10 * 1000, &err);
 *     if (sim_world_state(world, 3) != SIM_STATE_RUNNING) ...
 *     sim_world_destroy(world);
 */
#ifndef ALLOT_SIM_WORLD_H
#define ALLOT_SIM_WORLD_H

#include <stdio.h>

#include "base/heap.h"
#include "base/vec.h"
#include "sim/ledger.h"
#include "sim/scenario_data.h"

#define SIM_EPOCH_MS 3600000
#define SIM_RAN_BEFORE_MS 60000

enum sim_task_phase {
    SIM_TASK_PENDING,
    SIM_TASK_HELD,
    SIM_TASK_RUNNING,
    SIM_TASK_STOPPING,
    SIM_TASK_ENDED
};

struct sim_world_task {
    enum sim_task_phase phase;
    uint32_t node; /* RUNNING, STOPPING, HELD */
    uint16_t *devices;
    uint32_t device_count;
    uint32_t generation; /* counts starts; outdates events of an earlier run */
    const struct sched_request *request;
};

enum sim_life { SIM_LIFE_FUTURE, SIM_LIFE_KNOWN, SIM_LIFE_REFUSED, SIM_LIFE_OVER };

struct sim_world_workload {
    enum sim_life life;
    struct sim_world_task *tasks;
    uint32_t run;  /* counts complete starts; outdates end events */
    bool complete; /* its minimum runs, so its run time counts */
};

struct sim_world_node {
    struct sched_node decl; /* as told to the scheduler */
};

struct sim_world {
    const struct sim_scenario *scenario;
    struct sched *sched;
    struct arena arena;
    struct sim_ledger ledger;
    struct sim_world_workload *workloads;
    struct sim_world_node *nodes;
    struct heap events;
    uint64_t next_seq;
    uint64_t open_events; /* in the heap, ends of run times not counted */
    int64_t now_ms;       /* of the scenario */
    FILE *trace;          /* NULL = none */
    uint64_t rounds;
    uint64_t evictions_total; /* workloads, counted once a decision */
    uint64_t round_evictions_max;
    VEC(uint32_t) evicted; /* workloads, each once, in order of the first eviction */
};

/* Builds teams, nodes and the initial state. TRACE may be NULL. */
int sim_world_create(const struct sim_scenario *scenario, FILE *trace, struct sim_world **ret_world,
                     struct err *err);
void sim_world_destroy(struct sim_world *w);

/* Runs everything up to and including the instant AT_MS. */
int sim_world_advance(struct sim_world *w, int64_t at_ms, struct err *err);
/* Plays every submission, event and stop that is due some time, then rounds until rest. */
int sim_world_settle(struct sim_world *w, struct err *err);
/* COUNT more turns at the present instant. */
int sim_world_rounds(struct sim_world *w, uint32_t count, struct err *err);

/* Tasks that occupy their devices: running or stopping. */
uint32_t sim_world_running_tasks(const struct sim_world *w, uint32_t workload);
/* As FORMAT defines the words; SIM_STATE_PARTIAL between pending and running. */
enum sim_state sim_world_state(const struct sim_world *w, uint32_t workload);
enum sim_state sim_world_task_state(const struct sim_world *w, uint32_t workload, uint32_t task);
/* Name of a state in messages. */
const char *sim_state_name(enum sim_state state);

/* ---- shared by the parts of the world ---------------------------------------------------- */

/* Tells the scheduler about levels, teams and nodes (world_build.c). */
int sim_world_build(struct sim_world *w, struct err *err);
/* Adds workload INDEX to the scheduler; a refusal is an outcome, not an error. */
int sim_world_submit(struct sim_world *w, uint32_t index, struct err *err);
/* Restores what runs at the start (world_place.c). */
int sim_world_place(struct sim_world *w, struct err *err);
/* Changes a team to the numbers of EVENT. */
int sim_world_team_edit(struct sim_world *w, const struct sim_event *event, struct err *err);

/* Carries one decision out in the books (world_act.c). */
int sim_world_act(struct sim_world *w, const struct sched_decision *d, struct err *err);
/* Reports that a task is off its devices. */
int sim_world_task_off(struct sim_world *w, uint32_t workload, uint32_t task, enum sched_stop how,
                       struct err *err);
/* The workload is over: ends what runs of it and forgets it. */
int sim_world_workload_end(struct sim_world *w, uint32_t workload, struct err *err);
/* A person cancels it: what runs gets its grace. */
int sim_world_workload_cancel(struct sim_world *w, uint32_t workload, struct err *err);
/* Its minimum may be complete or broken now: starts or stops its run time. */
void sim_world_run_time(struct sim_world *w, uint32_t workload, int64_t since_ms);

enum sim_timer {
    SIM_TIMER_SUBMIT,
    SIM_TIMER_EVENT,   /* one of the scenario's events */
    SIM_TIMER_END,     /* run time or limit of a workload is over */
    SIM_TIMER_STOPPED, /* an evicted task has stopped */
    SIM_TIMER_REFUSED  /* the engine answers a start with a refusal */
};
/* Schedules; STAMP is the generation or run that it belongs to. */
void sim_world_timer(struct sim_world *w, int64_t at_ms, enum sim_timer kind, uint32_t index,
                     uint32_t task, uint32_t stamp);

/* Writes trace lines: "# 00:01:40.000 ..." (world_trace.c). */
void sim_trace(struct sim_world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sim_trace_decision(struct sim_world *w, const struct sched_decision *d);

#endif
