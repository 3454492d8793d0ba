/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What really happened on a server: its teams, nodes and workloads with the times of all their
 * runs, as src/store/history.h writes them. For the questions "what if" and "how much should be
 * guaranteed to whom".
 *
 * The work of a job. A record says when devices were held, not how far the work was. All tasks
 * of a job are taken to work as long as the longest of them: where it saves checkpoints, the sum
 * of its runs; else its last run. What still runs is taken to end with the record, at the least
 * after the run time that it expects. What has not run yet is taken to run as long as it expects,
 * or as its limit says, or as the median of all others; the count of such guesses is reported.
 * What was cancelled before it ran is left out.
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

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "model/node.h"
#include "model/team.h"

struct core_shape;

struct past_run {
    int32_t task, attempt;
    int64_t gpu_milli;
    int64_t start_ms, end_ms; /* the end of the record where it goes on */
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
    int64_t work_ms;
    int64_t gpu_milli; /* of all tasks: as charged, or as asked for where it never ran */
};

struct past_team {
    struct model_team row;
    bool deleted;
};

struct past {
    struct arena arena;
    int64_t from_ms, until_ms;   /* first submit, last thing recorded */
    VEC(struct past_team) teams; /* by id */
    VEC(struct model_node) nodes;
    VEC(struct past_job) jobs; /* by id: in the order of submits */
    VEC(struct past_run) runs;
    struct map shapes; /* canonical JSON -> core_shape */
};

/* -EINVAL and other negative errno with ERR naming the line. */
int past_read(const char *path, struct past *ret_past, struct err *err);
void past_done(struct past *p);

/* NULL when there is no such team. */
struct past_team *past_team_by_id(const struct past *p, uint64_t id);
/* Of those that are not deleted. */
struct past_team *past_team_by_name(const struct past *p, const char *name);
/* Milli-GPU of all devices of the nodes. */
int64_t past_capacity(const struct model_node *nodes, size_t count);
/* Those times the length of the record; and whether that can be added up in 63 bits. */
__int128 past_gpu_time(const struct past *p, const struct model_node *nodes, size_t count);
bool past_can_add_up(const struct past *p, const struct model_node *nodes, size_t count);
/* Start of the first run, never before the submit; 0 = it never ran. */
int64_t past_first_start(const struct past_job *job);

#endif
