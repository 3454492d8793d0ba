/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and state tables of the vocabulary: kinds, classes, and the states of workloads and
 * tasks. Text is what API, CLI and store use; it never changes once released. Each enum starts
 * at 0 and has a COUNT, so that tables are arrays.
 *
 * Workload: PENDING (nothing runs yet, or requeued), RUNNING (at least one task holds devices),
 * STOPPING (a person or a limit ends it), then one terminal state. An eviction leads back from
 * RUNNING to PENDING once all of its tasks have stopped. SUSPENDED: its processes live, what they
 * hold on devices lies in host memory; PENDING again when they want their devices back.
 *
 * Task: PENDING, HELD (promised), STARTING (intent stored, engine asked), RUNNING (engine
 * confirmed), SUSPENDED (as above; back by STARTING), STOPPING (asked to stop), UNKNOWN (its node
 * is unreachable); terminal SUCCEEDED, FAILED, CANCELLED. A task that will run again goes back to
 * PENDING with attempt + 1.
 */
#ifndef ALLOT_MODEL_STATE_H
#define ALLOT_MODEL_STATE_H

#include <stdbool.h>

enum model_kind { MODEL_JOB, MODEL_NOTEBOOK, MODEL_SERVICE, MODEL_KIND_COUNT };

enum model_class {
    MODEL_PRODUCTION,
    MODEL_TRAINING,
    MODEL_DEVELOPMENT,
    MODEL_BATCH,
    MODEL_CLASS_COUNT
};

enum model_handling { MODEL_CHECKPOINT, MODEL_RESTART, MODEL_SUSPEND, MODEL_HANDLING_COUNT };

enum model_workload_state {
    MODEL_WORKLOAD_PENDING,
    MODEL_WORKLOAD_RUNNING,
    MODEL_WORKLOAD_SUSPENDED,
    MODEL_WORKLOAD_STOPPING,
    MODEL_WORKLOAD_SUCCEEDED,
    MODEL_WORKLOAD_FAILED,
    MODEL_WORKLOAD_CANCELLED,
    MODEL_WORKLOAD_STATE_COUNT
};

enum model_task_state {
    MODEL_TASK_PENDING,
    MODEL_TASK_HELD,
    MODEL_TASK_STARTING,
    MODEL_TASK_RUNNING,
    MODEL_TASK_SUSPENDED,
    MODEL_TASK_STOPPING,
    MODEL_TASK_UNKNOWN,
    MODEL_TASK_SUCCEEDED,
    MODEL_TASK_FAILED,
    MODEL_TASK_CANCELLED,
    MODEL_TASK_STATE_COUNT
};

/* How a task's hold on devices came to its end. */
enum model_release {
    MODEL_RELEASE_NONE,     /* it goes on, or was written down by a release that did not note it */
    MODEL_RELEASE_ENDED,    /* by itself, well */
    MODEL_RELEASE_FAILED,   /* by itself, with an exit code or signal */
    MODEL_RELEASE_GAVE_WAY, /* evicted, or stopped to start again with its gang */
    MODEL_RELEASE_LOST,     /* with its node, or without an exit record */
    MODEL_RELEASE_REFUSED,  /* could not be launched */
    MODEL_RELEASE_STOPPED,  /* by a person or a limit, for good */
    MODEL_RELEASE_SUSPENDED, /* it lives on in host memory */
    MODEL_RELEASE_RESUMED,  /* of its host memory alone: it has devices again */
    MODEL_RELEASE_COUNT
};

/* Text of a value; static. Parse: 0 or -EINVAL. */
const char *model_kind_name(enum model_kind v);
int model_kind_parse(const char *text, enum model_kind *ret);
const char *model_class_name(enum model_class v);
int model_class_parse(const char *text, enum model_class *ret);
const char *model_handling_name(enum model_handling v);
int model_handling_parse(const char *text, enum model_handling *ret);
const char *model_workload_state_name(enum model_workload_state v);
int model_workload_state_parse(const char *text, enum model_workload_state *ret);
const char *model_task_state_name(enum model_task_state v);
int model_task_state_parse(const char *text, enum model_task_state *ret);
/* "" for MODEL_RELEASE_NONE. */
const char *model_release_name(enum model_release v);
int model_release_parse(const char *text, enum model_release *ret);

/* Can nothing follow it? */
bool model_workload_state_is_final(enum model_workload_state v);
/* Likewise of a task. */
bool model_task_state_is_final(enum model_task_state v);
/* Does the task hold devices in this state (STARTING, RUNNING, STOPPING, UNKNOWN)? */
bool model_task_state_holds(enum model_task_state v);
/* Has it processes: does it hold devices, or is it suspended? */
bool model_task_state_lives(enum model_task_state v);

/* The transition tables. Core asserts them; tests walk them. */
bool model_workload_transition_ok(enum model_workload_state from, enum model_workload_state to);
bool model_task_transition_ok(enum model_task_state from, enum model_task_state to);

#endif
