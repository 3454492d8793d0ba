/* SPDX-License-Identifier: Apache-2.0 */
#include "model/state.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

static const char *const kind_names[MODEL_KIND_COUNT] = {
    [MODEL_JOB] = "job",
    [MODEL_NOTEBOOK] = "notebook",
    [MODEL_SERVICE] = "service",
};

static const char *const class_names[MODEL_CLASS_COUNT] = {
    [MODEL_PRODUCTION] = "production",
    [MODEL_TRAINING] = "training",
    [MODEL_DEVELOPMENT] = "development",
    [MODEL_BATCH] = "batch",
};

static const char *const handling_names[MODEL_HANDLING_COUNT] = {
    [MODEL_CHECKPOINT] = "checkpoint",
    [MODEL_RESTART] = "restart",
    [MODEL_SUSPEND] = "suspend",
};

static const char *const workload_state_names[MODEL_WORKLOAD_STATE_COUNT] = {
    [MODEL_WORKLOAD_PENDING] = "pending",     [MODEL_WORKLOAD_RUNNING] = "running",
    [MODEL_WORKLOAD_SUSPENDED] = "suspended", [MODEL_WORKLOAD_STOPPING] = "stopping",
    [MODEL_WORKLOAD_SUCCEEDED] = "succeeded", [MODEL_WORKLOAD_FAILED] = "failed",
    [MODEL_WORKLOAD_CANCELLED] = "cancelled",
};

static const char *const task_state_names[MODEL_TASK_STATE_COUNT] = {
    [MODEL_TASK_PENDING] = "pending",     [MODEL_TASK_HELD] = "held",
    [MODEL_TASK_STARTING] = "starting",   [MODEL_TASK_RUNNING] = "running",
    [MODEL_TASK_SUSPENDED] = "suspended", [MODEL_TASK_STOPPING] = "stopping",
    [MODEL_TASK_UNKNOWN] = "unknown",     [MODEL_TASK_SUCCEEDED] = "succeeded",
    [MODEL_TASK_FAILED] = "failed",       [MODEL_TASK_CANCELLED] = "cancelled",
};

static const char *const release_names[MODEL_RELEASE_COUNT] = {
    [MODEL_RELEASE_NONE] = "",
    [MODEL_RELEASE_ENDED] = "ended",
    [MODEL_RELEASE_FAILED] = "failed",
    [MODEL_RELEASE_GAVE_WAY] = "gave_way",
    [MODEL_RELEASE_LOST] = "lost",
    [MODEL_RELEASE_REFUSED] = "refused",
    [MODEL_RELEASE_STOPPED] = "stopped",
    [MODEL_RELEASE_SUSPENDED] = "suspended",
    [MODEL_RELEASE_RESUMED] = "resumed",
};

#define BIT(v) (1u << (v))

#define WORKLOAD_ENDS \
    (BIT(MODEL_WORKLOAD_SUCCEEDED) | BIT(MODEL_WORKLOAD_FAILED) | BIT(MODEL_WORKLOAD_CANCELLED))

/* Where each state may go; a state never goes to itself. */
static const unsigned workload_next[MODEL_WORKLOAD_STATE_COUNT] = {
    /* It succeeds from here where it waits for its devices and its program ends. */
    [MODEL_WORKLOAD_PENDING] =
        BIT(MODEL_WORKLOAD_RUNNING) | BIT(MODEL_WORKLOAD_STOPPING) | WORKLOAD_ENDS,
    [MODEL_WORKLOAD_RUNNING] = BIT(MODEL_WORKLOAD_PENDING) | BIT(MODEL_WORKLOAD_STOPPING) |
                               BIT(MODEL_WORKLOAD_SUSPENDED) | WORKLOAD_ENDS,
    [MODEL_WORKLOAD_SUSPENDED] =
        BIT(MODEL_WORKLOAD_PENDING) | BIT(MODEL_WORKLOAD_STOPPING) | WORKLOAD_ENDS,
    [MODEL_WORKLOAD_STOPPING] = WORKLOAD_ENDS,
};

/*
 * A task that was asked to stop, or whose node cannot be reached, may be found to have ended in
 * any way; it goes back to PENDING when it is to run again.
 */
#define TASK_ENDS                                                                   \
    (BIT(MODEL_TASK_PENDING) | BIT(MODEL_TASK_SUCCEEDED) | BIT(MODEL_TASK_FAILED) | \
     BIT(MODEL_TASK_CANCELLED))

static const unsigned task_next[MODEL_TASK_STATE_COUNT] = {
    [MODEL_TASK_PENDING] = BIT(MODEL_TASK_HELD) | BIT(MODEL_TASK_STARTING) |
                           BIT(MODEL_TASK_FAILED) | BIT(MODEL_TASK_CANCELLED),
    [MODEL_TASK_HELD] = BIT(MODEL_TASK_PENDING) | BIT(MODEL_TASK_STARTING) |
                        BIT(MODEL_TASK_FAILED) | BIT(MODEL_TASK_CANCELLED),
    [MODEL_TASK_STARTING] = BIT(MODEL_TASK_RUNNING) | BIT(MODEL_TASK_SUSPENDED) |
                            BIT(MODEL_TASK_STOPPING) | BIT(MODEL_TASK_UNKNOWN) | TASK_ENDS,
    [MODEL_TASK_RUNNING] = BIT(MODEL_TASK_SUSPENDED) | BIT(MODEL_TASK_STOPPING) |
                           BIT(MODEL_TASK_UNKNOWN) | TASK_ENDS,
    [MODEL_TASK_SUSPENDED] =
        BIT(MODEL_TASK_STARTING) | BIT(MODEL_TASK_STOPPING) | BIT(MODEL_TASK_UNKNOWN) | TASK_ENDS,
    [MODEL_TASK_STOPPING] = BIT(MODEL_TASK_SUSPENDED) | BIT(MODEL_TASK_UNKNOWN) | TASK_ENDS,
    [MODEL_TASK_UNKNOWN] =
        BIT(MODEL_TASK_STARTING) | BIT(MODEL_TASK_RUNNING) | BIT(MODEL_TASK_STOPPING) | TASK_ENDS,
};

static const char *name_of(const char *const *names, size_t count, unsigned v)
{
    return v < count ? names[v] : "invalid";
}

static int parse_name(const char *const *names, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], text) == 0)
            return (int)i;
    }
    return -EINVAL;
}

#define DEFINE_NAMES(type, names)                                      \
    const char *model_##type##_name(enum model_##type v)               \
    {                                                                  \
        return name_of(names, ARRAY_LEN(names), (unsigned)v);          \
    }                                                                  \
    int model_##type##_parse(const char *text, enum model_##type *ret) \
    {                                                                  \
        int v = parse_name(names, ARRAY_LEN(names), text);             \
                                                                       \
        if (v < 0)                                                     \
            return v;                                                  \
        *ret = (enum model_##type)v;                                   \
        return 0;                                                      \
    }

DEFINE_NAMES(kind, kind_names)
DEFINE_NAMES(class, class_names)
DEFINE_NAMES(handling, handling_names)
DEFINE_NAMES(workload_state, workload_state_names)
DEFINE_NAMES(task_state, task_state_names)
DEFINE_NAMES(release, release_names)

bool model_workload_state_is_final(enum model_workload_state v)
{
    return v == MODEL_WORKLOAD_SUCCEEDED || v == MODEL_WORKLOAD_FAILED ||
           v == MODEL_WORKLOAD_CANCELLED;
}

bool model_task_state_is_final(enum model_task_state v)
{
    return v == MODEL_TASK_SUCCEEDED || v == MODEL_TASK_FAILED || v == MODEL_TASK_CANCELLED;
}

bool model_task_state_holds(enum model_task_state v)
{
    return v == MODEL_TASK_STARTING || v == MODEL_TASK_RUNNING || v == MODEL_TASK_STOPPING ||
           v == MODEL_TASK_UNKNOWN;
}

bool model_task_state_lives(enum model_task_state v)
{
    return model_task_state_holds(v) || v == MODEL_TASK_SUSPENDED;
}

bool model_workload_transition_ok(enum model_workload_state from, enum model_workload_state to)
{
    return (unsigned)from < MODEL_WORKLOAD_STATE_COUNT && (unsigned)to < 32 &&
           (workload_next[from] & BIT(to)) != 0;
}

bool model_task_transition_ok(enum model_task_state from, enum model_task_state to)
{
    return (unsigned)from < MODEL_TASK_STATE_COUNT && (unsigned)to < 32 &&
           (task_next[from] & BIT(to)) != 0;
}
