/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What really happened on a server: its teams, nodes and workloads with the times of all their
 * runs, as src/store/history.h writes them. For the questions "what if" and "how much should be
 * guaranteed to whom".
 *
 * The work of a job. A record says when devices were held, not how far the work was. All tasks
 * of a job are taken to work as long as the longest of them: where it saves checkpoints, what its
 * runs before had saved, every so often, and its last run; else its last run. What still runs is
 * taken to end with the record, at the least after the run time that it expects. What has not run
 * yet is taken to run as long as it expects, or as its limit says, or as the median of all others;
 * the count of such guesses is reported. What was cancelled before it ran is left out.
 *
 * Runs that failed and were tried again are part of the work of a job: it holds devices for as
 * long, gives them up and asks again. Runs that ended with their node are not: they are cut short
 * where the node is lost.
 *
 * Changes. Teams and nodes are given as they were at the first submit and as they are at the end,
 * with all changes between, as far as the server recorded them.
 *
 * Units: milliseconds of the server's timeline, milli-GPU. The record owns everything that it
 * points to. One thread.
 *
 *     struct past past;
 *     r = past_read("history.jsonl", &past, &err);
 *     for (size_t i = 0; i < past.jobs.len; i++) ...
 *     past_done(&past);
 */
#ifndef ALLOT_SIM_PAST_H
#define ALLOT_SIM_PAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "allot/sched.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "model/node.h"
#include "model/state.h"
#include "model/team.h"

struct core_shape;

#define PAST_LEVELS_MAX 16

/* A change as it was read; see past_internal.h. */
struct past_raw {
    int64_t at_ms;
    bool of_node;
    size_t index;
    const char *before, *after; /* JSON, or NULL */
};

struct past_run {
    int32_t task, attempt;
    uint64_t node; /* id */
    enum model_release how;
    int64_t gpu_milli;
    int64_t start_ms, end_ms; /* the end of the record where it goes on */
    int64_t stopping_ms;      /* when it was asked to stop; 0 = it was not, or not known */
    bool open;
};

enum past_guess { PAST_KNOWN, PAST_CENSORED, PAST_GUESSED };

struct past_job {
    uint64_t id;
    const char *name;
    uint64_t team;
    int64_t submitted_ms, ended_ms; /* 0 = not yet */
    struct core_shape *shape;
    const struct past_run *runs; /* in the order of their starts */
    size_t first_run, run_count; /* index of the first among all */
    bool left_out;               /* cancelled before it ran */
    enum past_guess guess;       /* how well WORK_MS is known */
    int64_t work_ms;             /* its failed runs included */
    const int64_t *failed_ms;    /* how long each failed run took that was tried again */
    uint32_t failed_count;
    /* Of the task with most: starts after the first; after a failure of its own; with its node. */
    uint32_t restarts, retries, losses;
    int32_t failures;  /* as the server counted them */
    int64_t gpu_milli; /* of all tasks: as charged, or as asked for where it never ran */
};

struct past_team {
    struct model_team row;   /* at the end */
    bool deleted;            /* likewise */
    struct model_team first; /* in the beginning */
    bool absent;             /* likewise: it was not there yet */
};

struct past_node {
    struct model_node row, first; /* as for teams */
    bool absent;
};

struct past_change {
    int64_t at_ms;
    bool of_node;       /* else of a team */
    size_t index;       /* among the teams or nodes */
    int64_t more_milli; /* of a node: GPUs that are there from now on, or no more */
    bool gone;          /* not there from now on; what it is like is that before */
    struct model_team team;
    struct model_node node;
};

struct past {
    struct arena arena;
    int64_t from_ms, until_ms;   /* first submit, last thing recorded */
    int64_t events_from_ms;      /* earlier changes are not known; 0 = all are */
    VEC(struct past_team) teams; /* parents before children, as at the end */
    VEC(struct past_node) nodes;
    VEC(struct past_change) changes;       /* within the window, in the order of time */
    VEC(struct past_raw) raw;              /* while it is being read */
    const char *topology[PAST_LEVELS_MAX]; /* levels, outermost first, where they are recorded */
    uint32_t level_count;
    struct sched_config config; /* of the server, where it is recorded */
    VEC(struct past_job) jobs;  /* by id: in the order of submits */
    VEC(struct past_run) runs;
    struct map team_ids; /* id -> index + 1 */
    struct map shapes;   /* canonical JSON -> core_shape */
};

/* Reads the file PATH; "-" is standard input, a pipe is read to its end. -EINVAL and other negative
 * errno with ERR naming the line. */
int past_read(const char *path, struct past *ret_past, struct err *err);
/* Likewise from FILE, which is called NAME in messages and stays open. */
int past_read_stream(FILE *file, const char *name, struct past *ret_past, struct err *err);
/* Frees everything. */
void past_done(struct past *p);

/* Measures the work anew, for jobs that save every CHECKPOINT_MS (0 = never) where they save. A
 * record that has been read has done so with PAST_CHECKPOINT_MS. */
#define PAST_CHECKPOINT_MS (10 * 60 * 1000)
void past_assume(struct past *p, int64_t checkpoint_ms);
/* How long evicted tasks took to stop, in the median; -1 where none is recorded. RET_COUNT of
 * them. */
int64_t past_stop_ms(const struct past *p, size_t *ret_count);

/* NULL when there is no such team. */
struct past_team *past_team_by_id(const struct past *p, uint64_t id);
/* Of those that are not deleted. */
struct past_team *past_team_by_name(const struct past *p, const char *name);
/* Milli-GPU of all devices of a node. */
int64_t past_node_capacity(const struct model_node *node);
/* Likewise of those that are there at the end. */
int64_t past_capacity(const struct past *p);
/* Milli-GPU times ms that there was within the window, nodes out of order included. */
__int128 past_gpu_time(const struct past *p);
/* Can MILLI of all the window be added up in 63 bits? */
bool past_can_add_up(const struct past *p, __int128 milli);
/* Start of the first run, never before the submit; 0 = it never ran. */
int64_t past_first_start(const struct past_job *job);

#endif
