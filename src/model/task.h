/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task (one process group on one node, rank r of a workload) and its allocations (its hold on
 * devices, from the start decision to the confirmed release: the unit of metering).
 *
 * Times are milliseconds on the server's timeline (see core/core.h); intervals are half-open.
 */
#ifndef ALLOT_MODEL_TASK_H
#define ALLOT_MODEL_TASK_H

#include <stdint.h>

#include "base/json_writer.h"
#include "model/state.h"

#define MODEL_INTENT_MAX 64

/* A task without a stored record is PENDING with attempt 0. */
struct model_task {
    uint64_t workload;
    int32_t index;   /* rank, 0-based */
    int32_t attempt; /* restart count: 0 for the first run */
    enum model_task_state state;
    uint64_t node; /* 0 = none */
    const char *node_name;
    const uint16_t *devices;
    int32_t device_count;
    int32_t gpu_milli;     /* charge of this placement */
    int64_t held_until_ms; /* HELD: expiry of the promise */
    int64_t started_ms, ended_ms;
    int32_t exit_code;   /* 0..255; 128 + signal when killed */
    int32_t exit_signal; /* 0 = exited by itself */
    const char *message; /* why it failed, was refused or evicted, or NULL */
};

struct model_allocation {
    uint64_t id;
    uint64_t workload;
    int32_t task, attempt;
    uint64_t team, node;
    const uint16_t *devices;
    int32_t device_count;
    int32_t gpu_milli;
    int64_t cpu_milli, memory_bytes;
    int64_t start_ms, end_ms; /* end 0 = open */
    int64_t busy_ns;          /* device busy time so far, within known_ns */
    int64_t known_ns;         /* GPU time of which it is known, within gpu_milli * elapsed */
    int64_t seen_ms;          /* last usage report */
    int64_t stopping_ms;      /* when it was asked to stop; 0 = it was not, or not known */
    enum model_release release;
};

/* "81.0.2": workload.task.attempt. The deterministic name of a start: starting it twice is one
 * start. TEXT holds MODEL_INTENT_MAX bytes. */
void model_intent_format(uint64_t workload, int32_t task, int32_t attempt, char *text);
/* 0 or -EINVAL. */
int model_intent_parse(const char *text, uint64_t *ret_workload, int32_t *ret_task,
                       int32_t *ret_attempt);

/* Devices as text "0,3,5" for the store; parse writes at most MAX and returns the count. */
void model_devices_format(const uint16_t *devices, int32_t count, struct strbuf *out);
int model_devices_parse(const char *text, uint16_t *devices, int32_t max);

/* One JSON object; exit_code is null until the task has ended. */
/* One JSON object. */
void model_task_encode(const struct model_task *t, struct json_writer *w);

#endif
