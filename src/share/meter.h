/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a process keeps one device busy: samples of its work, and what they say.
 *
 * A sample is one piece between two events, and the work that its lane was given since the last
 * one. Samples are read when their events have passed, in any call that comes by; nothing waits
 * for them. A mark is a sample without a piece: it shows when a lane has done what it was given.
 *
 * The busy time of all lanes together is kept by one clock of the device: it runs from when work
 * was submitted, by what the work took, and never ahead of the present. So lanes that overlap, and
 * costs that are guessed too high, are never charged beyond the time that passed.
 *
 * All functions are to be called with the meter's lock, and between share_relax() and
 * share_unrelax(). Units: nanoseconds.
 */
#ifndef ALLOT_SHARE_METER_H
#define ALLOT_SHARE_METER_H

#include <pthread.h>

#include "share/compute.h"

#define METER_SAMPLES 64
#define METER_EVENTS (2 * METER_SAMPLES + 32)

struct meter_event {
    struct cu_event *event;
    struct cu_ctx *ctx;
};

struct meter_sample {
    uint64_t kind, from_ns; /* of the first work in it; kind 0: a mark */
    uint32_t lane;
    bool known;
    struct meter_event start, end;
    int64_t before_ns, cost_ns; /* of the work before the piece, and of the piece as guessed */
};

/* Of a lane, beside what share_fast has. */
struct meter_lane {
    int64_t allowed_ns; /* what its left_ns began with */
    uint64_t since_ns;  /* when */
};

struct meter {
    struct share_fast fast;
    pthread_mutex_t lock;
    const struct share_limits *limits;
    struct share_counters *counters;
    struct meter_lane lanes[SHARE_LANES];
    uint32_t lanes_used;
    struct meter_sample samples[METER_SAMPLES]; /* those of a lane are in order */
    uint32_t sample_count, unknown_count;
    int64_t ahead_ns;                        /* of what is sampled and not seen done */
    struct meter_event events[METER_EVENTS]; /* to be used again */
    uint32_t event_count;
    uint64_t clock_ns;
    uint32_t waiters; /* threads that wait for a slice */
    /* The account of a share that is a cap. */
    uint64_t account_at_ns, account_busy_ns;
    int64_t account_ns;
    bool account_empty;
};

/* What a piece of KIND costs, as far as known: false and 0 if not. */
bool meter_cost(const struct meter *m, uint64_t kind, int64_t *ret_ns);
/* What LANE was given since its last sample. */
int64_t meter_given(const struct meter *m, uint32_t lane);
/* Reads what has passed by NOW. */
void meter_harvest(struct meter *m, uint64_t now);
/* Puts the first event before PIECE. Its `start` is NULL if it is not to be measured. */
void meter_begin(struct meter *m, struct piece *piece);
/* PIECE has been submitted, if R says so. */
void meter_end(struct meter *m, struct piece *piece, cu_result r, uint64_t now);
/* Marks the end of what the lane of PIECE was given so far. */
void meter_mark(struct meter *m, const struct piece *piece, uint64_t now);
/* Charges all that is not read yet by what it was guessed to cost, and lets all events go. */
void meter_forget(struct meter *m, uint64_t now);

#endif
