/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays a trace of real arrivals under one policy of sharing and measures what people would
 * have seen.
 *
 * Policies, all on the scheduler library (drive.h):
 *   BLOCKS  each team owns a static block; first come first served with backfill inside it. One
 *           scheduler a block: nothing is shared, not even a reservation.
 *   POOL    one team owns everything; first come first served with backfill.
 *   QUOTA   each team is guaranteed its block; whatever is idle may be used by anybody and is
 *           reclaimed when its owner returns: the work loses what it did since its last save.
 *   FRACTION  QUOTA, and a job of one GPU whose use is at most half of it gets half of it.
 *   IDLE    QUOTA, and a job that has been idle for a time gives its GPUs up until it is busy
 *           again; it then waits for GPUs at its old age.
 *
 * Size of blocks. No booking is invented: the block of a team is a quantile of the GPUs that it
 * would have had in use at each minute if there were no end of them, at least its largest job,
 * rounded up to 8. With a total given, blocks are scaled to it by largest remainder.
 *
 * Placement. With node_gpus > 0 a job sits on nodes of that size: in one node if it fits, else on
 * whole nodes and one rest. With 0, GPUs are a flat pool and any will do. A block has nodes of its
 * own.
 *
 * Units: milliseconds, GPU time in milli-GPU times milliseconds. Deterministic.
 */
#ifndef ALLOT_SIM_REPLAY_H
#define ALLOT_SIM_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/busy.h"
#include "sim/drive.h"
#include "sim/philly.h"

enum replay_policy {
    REPLAY_BLOCKS,
    REPLAY_POOL,
    REPLAY_QUOTA,
    REPLAY_FRACTION,
    REPLAY_IDLE,
    REPLAY_POLICIES
};

struct replay_options {
    enum replay_policy policy;
    uint32_t gpus;         /* in all; 0 = what the blocks add up to */
    uint32_t node_gpus;    /* of one node; 0 = flat pool */
    uint32_t quantile;     /* of the demand that a block covers, percent */
    bool limits;           /* every job declares its run time exactly */
    int64_t checkpoint_ms; /* between saves; 0 = never saved */
    int64_t restart_ms, grace_ms;
    int64_t resume_ms; /* IDLE: to have GPUs again */
    int64_t idle_ms;   /* IDLE: given up after that */
    uint32_t slowdown; /* FRACTION: percent that a shared job takes longer */
    uint64_t seed;     /* of busy.h */
};

enum replay_size { REPLAY_1, REPLAY_2_4, REPLAY_8, REPLAY_MORE, REPLAY_ALL, REPLAY_SIZES };

struct replay_job {    /* what became of a job of the trace, in its order */
    int64_t wait_ms;   /* to the first start; DRIVE_NEVER = it never started */
    int64_t queued_ms; /* all waiting, that after evictions and pauses included */
    int64_t jct_ms;    /* submit to end; DRIVE_NEVER = it did not end */
    uint32_t evictions, pauses;
    bool in_quota; /* its team's whole demand fitted in its block when it came */
    bool fraction; /* it got half a GPU */
};

struct replay_spread { /* of one size class, waits to the first start */
    size_t jobs;
    int64_t mean, p50, p90, p95, p99, max; /* ms */
    size_t over_5min, over_1h;
    int64_t queued_mean, jct_mean, jct_p50, jct_p95; /* ms */
};

struct replay_result {
    uint32_t gpus, teams;
    uint32_t blocks[PHILLY_TEAMS_MAX]; /* by team */
    int64_t window_ms;                 /* first to last submit: utilisation is that of this time */
    int64_t end_ms;
    /* GPU time within the window */
    int64_t allocated_milli_ms; /* held: starts, restarts and graces included */
    int64_t lost_milli_ms;      /* of that, without lasting progress */
    int64_t active_milli_ms;    /* kept, and not idle */
    int64_t busy_milli_ms;      /* kept, weighted by its use: what GPUs computed */
    int64_t installed_milli_ms;
    /* GPU time of the whole run */
    int64_t held_total_milli_ms, lost_total_milli_ms, paused_milli_ms;
    size_t jobs, refused, unfinished;
    uint64_t evictions, pauses, early_returns; /* back within 15 minutes of a pause */
    int64_t resume_p95_ms;                     /* wait of who returns from a pause */
    size_t fractions;
    struct replay_spread spread[REPLAY_SIZES];
    size_t in_quota, unsafe; /* jobs within quota; of these, > 60 s later than in blocks */
    int64_t unsafe_worst_ms;
    size_t worse, better; /* of all jobs: > 60 s later, earlier than in blocks */
    uint64_t turns, decisions;
    struct replay_job *each; /* of the trace, owned: replay_result_done() */
};

/* Stable lower-case word. */
const char *replay_policy_name(enum replay_policy policy);
const char *replay_size_name(enum replay_size size);

/* Quota on nodes of 8 and blocks of 95 %, saves each 30 minutes; the rest as the text says. */
void replay_options_default(struct replay_options *ret_options);

/* Fills BLOCKS by team; returns their sum. GPUS > 0 scales them to that. */
uint32_t replay_blocks(const struct philly *trace, uint32_t quantile, uint32_t gpus,
                       uint32_t *ret_blocks);

/*
 * 0, or a negative errno with ERR. ALONE, if not NULL, is the result of BLOCKS with the same
 * blocks, to compare each job with; see unsafe, worse, better.
 */
int replay_run(const struct philly *trace, const struct use_curve *curve,
               const struct replay_options *options, const struct replay_result *alone,
               struct replay_result *ret_result, struct err *err);
void replay_result_done(struct replay_result *result);

/* Fills the spreads, sums and comparisons of R from r->each. */
void replay_measure(const struct philly *trace, const struct replay_result *alone,
                    struct replay_result *r);

#endif
