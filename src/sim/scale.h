/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scale benchmark: how many decisions a second does the scheduler library make, on one core,
 * on the machines of real clusters?
 *
 * Purpose. The peers of this scheduler are measured in pods a second on thousands of nodes. Here
 * the library alone is measured, without a server or a disk: a world of real nodes (a public node
 * list, repeated if asked), jobs with the requests of a public pod list and the gang sizes of
 * another, a thousand teams in three levels; and six situations (scale_modes).
 *
 * What is timed. Each step is what happened (an add, a stop) and the turns until the scheduler
 * rests; its CPU time comes from the meter (sim/sim.h). What this program does itself (drawing
 * jobs, keeping its books) is not timed. A decision is one task that starts, is evicted, or is
 * promised devices; a step with several counts each of them with an equal part of its time in the
 * percentiles. A submit is the step of one arriving job, all of it; its first turn decides the job
 * itself, the others go on looking for those who wait.
 *
 * Bounds. What a mode repeats (arrivals, ends) stops when options.seconds of such time are spent;
 * the result then says `cut_short`. Progress is told now and then, to whoever asks for it.
 *
 * Determinism. Everything but times and memory follows from the options, unless a run is cut
 * short: same input, same decisions; their hash is reported.
 *
 * Ownership. A world owns its scheduler and all lists; scale_world_done() releases them. Inputs
 * outlive the worlds made from them. One thread. Units as in allot/sched.h, times in nanoseconds.
 *
 *     struct scale_input in = {0};
 *     scale_input_load(&in, &options, &err);
 *     struct scale_result result;
 *     scale_fill(&options, &in, meter, &result);
 */
#ifndef ALLOT_SIM_SCALE_H
#define ALLOT_SIM_SCALE_H

#include <stdio.h>

#include "allot/sched.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/rng.h"
#include "base/vec.h"
#include "sim/openb.h"
#include "sim/sim.h"

#define SCALE_TASKS_MAX 128         /* of one job */
#define SCALE_RACK_NODES 16
#define SCALE_ZONE_RACKS 16
#define SCALE_GUARANTEED_PERCENT 80 /* of all that there is, over all teams */

struct scale_options {
    const char *nodes, *pods; /* files */
    const char *philly;       /* file with a column num_gpus; NULL = the built-in distribution */
    int64_t repeat;           /* each node that many times */
    int64_t jobs;             /* at most */
    int64_t steps;            /* of churn */
    int64_t departments;      /* three levels: its cube is the number of teams */
    int64_t seed;
    int64_t full_percent;     /* of all GPUs: what counts as a full cluster */
    int64_t seconds;          /* in the scheduler, of each part that can be cut short */
    FILE *progress;           /* NULL = nobody wants to know */
};

struct scale_node {
    const char *model; /* NULL without devices */
    int64_t cpu_milli, memory_bytes;
    uint32_t device_count;
};

struct scale_input {
    struct arena arena;
    struct openb_nodes openb; /* where the node list is one of OpenB's */
    struct openb_pods pods;
    VEC(struct scale_node) nodes; /* repeated */
    VEC(uint32_t) gangs;          /* sizes; each is as likely as any other */
    int64_t gpus;                 /* of all nodes */
    int64_t cpu_milli, memory_bytes; /* likewise; memory SCHED_UNLIMITED where it is not known */
};

/* Loads the files. 0, or a negative errno with the reason. */
int scale_input_load(struct scale_input *in, const struct scale_options *o, struct err *err);
/* Releases it; a zeroed input is fine. */
void scale_input_done(struct scale_input *in);

/* ---- a world ----------------------------------------------------------------------------- */

enum scale_bound { SCALE_ANYWHERE, SCALE_MODEL, SCALE_RACK, SCALE_ZONE };

struct scale_job { /* of the workload with this index + 1 as its id */
    uint32_t pod;
    uint32_t team;
    uint32_t model_node; /* SCALE_MODEL: a node of the model that is asked for */
    uint32_t at;         /* 1 + position in `running`; 0 = does not run */
    uint32_t milli;      /* GPU of one task */
    uint8_t tasks;       /* at most SCALE_TASKS_MAX */
    uint8_t bound;       /* enum scale_bound */
    uint8_t class_;      /* enum sched_class */
    uint8_t running;     /* tasks */
};

struct scale_place { /* of one running task, for a cold start */
    uint64_t workload, node;
    uint32_t task, device_count;
    uint16_t devices[OPENB_DEVICES_MAX];
};

struct scale_world {
    const struct scale_options *o;
    const struct scale_input *in;
    const struct sim_meter *meter;
    struct sched *s;
    struct rng rng;
    VEC(struct scale_job) jobs;
    VEC(uint32_t) running;         /* jobs */
    VEC(struct scale_place) places; /* kept if keeps_places */
    bool keeps_places;
    struct sched_request request; /* scratch of scale_workload() */
    struct sched_task tasks[SCALE_TASKS_MAX];
    struct sched_workload workload;
    int64_t gpu_milli; /* charged to running tasks */
    int64_t now_ms;
    uint64_t hash; /* of all decisions */
    uint64_t decisions, starts, evictions, promises;
    uint64_t refused;  /* jobs that could never start */
    int64_t node_bytes;  /* resident memory that the nodes took */
    int64_t spent_ns;    /* in the scheduler, since scale_mark() */
    int64_t last_ns;     /* of it, in the last step */
    int64_t first_ns;    /* of that, up to the end of the first turn */
    int64_t told_ns;     /* of it, when progress was told */
    VEC(int64_t) took;   /* of each decision since then */
    VEC(int64_t) submits; /* of each submit since then */
    VEC(int64_t) firsts;  /* of each submit, up to the end of its first turn */
    uint64_t turns;       /* since then */
    uint64_t marked;     /* decisions at that time */
};

/* Nodes and teams, and an empty cluster. */
void scale_world_init(struct scale_world *w, const struct scale_options *o,
                      const struct scale_input *in, const struct sim_meter *meter);
/* Releases it. */
void scale_world_done(struct scale_world *w);

/* Draws the next job; its index. It is not submitted yet. */
uint32_t scale_draw(struct scale_world *w);
/* The workload of a job, as the scheduler takes it; valid until the next call. */
const struct sched_workload *scale_workload(struct scale_world *w, uint32_t job);
/* Submits a job, untimed; false if it was refused. */
bool scale_submit(struct scale_world *w, uint32_t job);
/* Enters all jobs that were drawn into S, as new ones or as such that were accepted before; the
 * time of it, in nanoseconds. */
int64_t scale_enter_all(struct scale_world *w, struct sched *s, bool accepted);
/* Draws a job and submits it: a step. */
void scale_arrive(struct scale_world *w);
/* A running job, each as likely as any other; some must run. */
uint32_t scale_random_running(struct scale_world *w);
/* A running job ends, untimed. */
void scale_end(struct scale_world *w, uint32_t job);
/* Turns until nothing is decided; what is evicted stops at once. */
void scale_settle(struct scale_world *w);
/* The same for a step that has begun at BEGUN_NS (scale_begin()): the time is noted. */
int64_t scale_begin(const struct scale_world *w);
/* Ends the step; the number of decisions it took. */
uint64_t scale_step(struct scale_world *w, int64_t begun_ns);
/* Likewise, with one turn only. */
uint64_t scale_turn(struct scale_world *w, int64_t begun_ns);
/* From here on times count. */
void scale_mark(struct scale_world *w);
/* DONE of OF repetitions are over: tells progress now and then. False once the time that a part
 * may take is spent. */
bool scale_goes_on(struct scale_world *w, const char *mode, int64_t done, int64_t of);
/* Is so much of all GPUs in use? */
bool scale_holds(const struct scale_world *w, int64_t percent);
/* A few at a time, untimed, until the cluster is full or LIMIT jobs were drawn. */
void scale_fill_up(struct scale_world *w, int64_t limit);

/* ---- results ----------------------------------------------------------------------------- */

#define SCALE_FIGURES_MAX 48

struct scale_figure {
    const char *name; /* "decisions_per_second" */
    double value;
};

struct scale_result {
    const char *mode, *what; /* "fill", "one job at a time into an empty cluster" */
    size_t nodes;
    int64_t gpus;
    uint64_t hash;
    struct scale_figure figures[SCALE_FIGURES_MAX];
    size_t count;
};

/* Adds a figure. */
void scale_figure(struct scale_result *r, const char *name, double value);
/* Starts a result about W: who and how large, and the resident memory of the process now, books of
 * the benchmark included. */
void scale_result_begin(struct scale_result *r, const struct scale_world *w, const char *mode,
                        const char *what);
/* Decisions a second and percentiles since scale_mark(), and how much of the GPUs is in use. */
void scale_result_times(struct scale_result *r, struct scale_world *w);
/* The value below which so many thousandths of LIST are, in microseconds; sorts it. COUNT > 0. */
double scale_percentile_us(int64_t *list, size_t count, int64_t thousandths);

struct scale_mode {
    const char *name, *summary;
    /* Fills results (at most SCALE_RESULTS_MAX); how many. */
    size_t (*run)(const struct scale_options *o, const struct scale_input *in,
                  const struct sim_meter *meter, struct scale_result *results);
};

#define SCALE_RESULTS_MAX 4

extern const struct scale_mode scale_mode_fill, scale_mode_churn, scale_mode_pending,
    scale_mode_reclaim, scale_mode_impossible, scale_mode_start, scale_mode_kueue;

#endif
