/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drives the scheduler library through a stream of arrivals in virtual time.
 *
 * Purpose. Whoever has jobs with known run times (a trace, a server's own history, a load
 * generator) learns what the real scheduler would have done with them: who waits, who is evicted,
 * what is lost. No engine, no store: a started task runs until its work is done, an evicted one
 * stops after its grace and is pending again.
 *
 * What a task does. Its work is `run_ms` long and all tasks of a job are alike. Time on devices
 * makes progress, except for the first `restart_ms` after an eviction. Progress is saved each
 * `checkpoint_ms` of it; an eviction falls back to the last save, stops work at once and holds
 * the devices for `grace_ms` more. At a pause (rigid gangs only) the devices are given up with
 * all progress saved; when `length_ms` have passed the job is that much further and asks for
 * devices again at its old age, or has ended if nothing is left.
 *
 *     WAITING --START--> RUNNING --work done--> ENDED
 *     RUNNING --EVICT--> STOPPING --grace over--> WAITING
 *     RUNNING, STOPPING --node lost--> WAITING, with what was saved
 *     RUNNING --pause--> AWAY --length over--> WAITING or ENDED
 *
 * Order. All that happens in one millisecond is reported before the scheduler's turn: ends, then
 * stops, pauses, returns, calls, submits; among equals in the order they were given. The same
 * input gives the same run on every machine.
 *
 * Accounting. held = kept + lost for every task that has ended: kept is its work outside pauses,
 * lost is what was rolled back, restarts and graces.
 *
 * Ownership. The caller owns the scheduler (with teams and nodes in it) and the jobs; both live
 * until drive_destroy(). Workloads are removed from the scheduler as they end. One thread.
 * Units: milliseconds; GPU time in milli-GPU times milliseconds. Nothing here reads a clock.
 *
 *     struct drive *d = drive_create(s, NULL);
 *     for (size_t i = 0; i < count; i++)
 *         drive_submit(d, &jobs[i]);
 *     drive_run(d, INT64_MAX, &err);
 *     drive_result(d, 0, &result);
 *     drive_destroy(d);
 */
#ifndef ALLOT_SIM_DRIVE_H
#define ALLOT_SIM_DRIVE_H

#include <stddef.h>
#include <stdint.h>

#include "allot/sched.h"
#include "base/err.h"

#define DRIVE_NEVER INT64_MAX

/* Devices are given up when so much work is done, for so long; see above. */
struct drive_pause {
    int64_t at_ms;     /* of the job's work, 0 < at_ms < run_ms */
    int64_t length_ms; /* > 0; at_ms + length_ms below the next at_ms, at most run_ms */
};

struct drive_job {
    struct sched_workload workload; /* id nonzero and unique; what it points to lives as long */
    int64_t submit_ms;
    int64_t run_ms;        /* work of each task, >= 0 */
    int64_t checkpoint_ms; /* progress between saves; 0 = never saved */
    int64_t restart_ms;    /* on devices without progress after an eviction */
    int64_t resume_ms;     /* likewise after a pause */
    int64_t grace_ms;      /* from an eviction to the release of the devices */
    const struct drive_pause *pauses;
    uint32_t pause_count;
};

enum drive_event_kind {
    DRIVE_SUBMITTED, /* accepted; of the whole job */
    DRIVE_REFUSED,   /* can never start; of the whole job */
    DRIVE_STARTED,   /* the rest: of one task */
    DRIVE_EVICTED,   /* begins its grace */
    DRIVE_STOPPED,   /* its grace is over, or its node is lost: it waits again */
    DRIVE_PAUSED,
    DRIVE_RETURNED, /* its pause is over, it waits again */
    DRIVE_TASK_ENDED,
    DRIVE_ENDED /* the last task has; of the whole job */
};

struct drive_event {
    enum drive_event_kind kind;
    int64_t now_ms;
    const struct drive_job *job;
    uint32_t task;
    int32_t gpu_milli;                     /* charge of the placement that begins or ends; else 0 */
    const struct sched_decision *decision; /* STARTED, EVICTED; else NULL */
};

/* Told of everything in order. It may ask the scheduler, but must not change it. */
struct drive_observer {
    void (*note)(void *arg, const struct drive_event *event);
    void *arg;
};

enum drive_end { DRIVE_END_NONE, DRIVE_END_DONE, DRIVE_END_REFUSED };

/* Of one job; counts are the largest among its tasks. Times are DRIVE_NEVER where it did not
 * happen. */
struct drive_result {
    const struct drive_job *job;
    enum drive_end end;
    struct sched_refusal refusal; /* DRIVE_END_REFUSED */
    int64_t first_start_ms;
    int64_t end_ms;
    int64_t queued_ms;     /* all its waiting: before the first start and after each stop */
    int64_t held_milli_ms; /* GPU time from starts to confirmed releases */
    int64_t lost_milli_ms; /* of that, without lasting progress */
    uint32_t starts, evictions, losses, pauses;
};

struct drive;

/* Never NULL: out of memory aborts. OBSERVER may be NULL and is copied. */
struct drive *drive_create(struct sched *s, const struct drive_observer *observer);
/* NULL is fine. The scheduler and the jobs stay the caller's. */
void drive_destroy(struct drive *d);

/* JOB arrives at its submit_ms, or at once if that has passed. -EINVAL: a time below 0, pauses
 * out of order, or pauses of an elastic job; -EEXIST: the id was given before. */
int drive_submit(struct drive *d, const struct drive_job *job, struct err *err);

/* Calls FN at AT_MS, before the turn: for edits of teams and nodes. */
void drive_call(struct drive *d, int64_t at_ms, void (*fn)(struct sched *s, void *arg), void *arg);

/* In such a call: the node is lost, what runs there stops at once and waits again. The scheduler
 * must have been told that it is down. */
void drive_lose_node(struct drive *d, uint64_t node);

/* Lets time pass until nothing happens any more, or to UNTIL_MS. Work that waits for ever is left
 * waiting. -EINVAL: the scheduler refused a job for another reason than its size; -ELOOP: it asks
 * for turns without end. */
int drive_run(struct drive *d, int64_t until_ms, struct err *err);

/* Time of the last thing that happened. */
int64_t drive_now(const struct drive *d);
/* Scheduler turns so far. */
uint64_t drive_turns(const struct drive *d);
/* Likewise decisions. */
uint64_t drive_decisions(const struct drive *d);

/* Jobs in the order of drive_submit(); INDEX below the count. */
size_t drive_count(const struct drive *d);
/* What became of that job until now. */
void drive_result(const struct drive *d, size_t index, struct drive_result *ret_result);

#endif
