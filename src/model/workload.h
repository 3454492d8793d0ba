/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A workload, split by who needs what.
 *
 *   struct model_shape   what the scheduler needs: class, groups of tasks with their requests,
 *                        limits. Immutable, interned by its canonical JSON: 100,000 pending
 *                        workloads of ten shapes hold ten of these.
 *   struct model_launch  what an engine needs to start a task: command, environment, image,
 *                        folder. Stays in the store; loaded when a task starts.
 *   struct model_workload  identity, owner, state; points to its shape (and launch where loaded).
 *
 * JSON as a person writes it (POST /v1/workloads); fields of the single group stand at the top,
 * several groups stand in "groups":
 *
 *   {"name": "digits", "team": "research", "kind": "job", "class": "training", "priority": 0,
 *    "preemptible": true, "burst": true, "tasks": 6, "min_tasks": 6,
 *    "gpus": 1 | "gpu": 0.25 | "gpu_memory": "10GiB" | "mig": "1g.10gb" | {"1g.10gb": 2},
 *    "gpu_count": 1, "gpu_type": ["H100"], "cpu": "500m", "memory": "2GiB",
 *    "node_labels": {"zone": "a"}, "topology": {"required": "rack"},
 *    "max_run_time": "2h", "expected_run_time": "1h", "min_run_time": "5m",
 *    "max_unavailable": 1,
 *    "preemption": {"handling": "checkpoint", "grace": "30s"}, "max_retries": 0,
 *    "command": ["python3", "train.py"], "env": {"LR": "0.1"}, "image": "docker://...",
 *    "workdir": "/abs/folder", "checkpoint_dir": "/abs/folder",
 *    "groups": [{"name": "ps", "tasks": 2, "min_tasks": 1, "gpus": 1, "command": [...]}]}
 *
 * Beside "groups", command and env are what each group starts from, min_tasks is the gang over
 * all of them (absent: the sum of their minima), topology is of the whole; the other group
 * fields stand in the groups. A group's min_tasks may be 0. ALLOT_* cannot be set in env.
 *
 * `gpu` is 0.001..0.999 of each of `gpu_count` devices; whole numbers are allowed for `gpu` too
 * and mean `gpus`. At most one GPU form per group; none = a CPU-only task. Tasks are numbered
 * through the groups in order: rank 0 is the first task of the first group.
 *
 * max_unavailable is a service's disruption budget: evictions and moves leave at most so many of
 * its tasks without a place.
 *
 * What contradicts itself is refused: burst true in class production or beside max_unavailable,
 * preemptible false or kind service in class batch, gpu_type without a GPU, an expected run time
 * above the maximum.
 *
 * Defaults: kind job; class by kind (job training, notebook development, service production);
 * tasks 1; min_tasks = tasks (rigid), less max_unavailable of a service; preemptible by class (all
 * but production); burst true (for production, and beside max_unavailable, false); grace 30 s;
 * handling checkpoint for job, restart otherwise; max_retries 0. cpu default 1 core for a CPU-only
 * task, else 0 = not counted; memory default 0 = not limited and not counted.
 */
#ifndef ALLOT_MODEL_WORKLOAD_H
#define ALLOT_MODEL_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json_writer.h"
#include "model/state.h"

struct json_object;

#define MODEL_TASKS_MAX 10000 /* of one workload */
#define MODEL_GROUPS_MAX 64
#define MODEL_GPUS_MAX 1024    /* of one task */
#define MODEL_COMMAND_MAX 1024 /* arguments */
#define MODEL_COMMAND_BYTES_MAX 131072
#define MODEL_ENV_MAX 1024    /* variables */
#define MODEL_BATCH_MAX 10000 /* workloads in one submit */

struct model_pair {
    const char *key, *value;
};

struct model_mig {
    const char *profile; /* "1g.10gb" */
    int32_t count;
};

/* Exactly one form, or none (device_count 0 and mig_count 0). */
struct model_request {
    int32_t device_count;        /* whole: N; fraction and memory: k */
    int32_t device_milli;        /* 1000 whole, 1..999 fraction, 0 by memory */
    int64_t device_memory_bytes; /* by memory: of each device */
    const struct model_mig *mig;
    int32_t mig_count;
    int64_t cpu_milli;
    int64_t memory_bytes; /* host memory, 0 = not limited */
    const char *const *gpu_types;
    int32_t gpu_type_count;
    const struct model_pair *labels;
    int32_t label_count;
};

struct model_group {
    const char *name; /* "main" when there is only one */
    int32_t tasks;
    int32_t min_tasks;
    struct model_request request;
    const char *topology_required; /* level, or NULL */
};

struct model_shape {
    enum model_kind kind;
    enum model_class class_;
    int32_t priority;
    bool preemptible;
    bool burst;
    enum model_handling handling;
    int32_t max_retries; /* failures (not evictions) that are retried */
    int32_t min_tasks;   /* gang minimum over all groups */
    int32_t task_count;  /* sum over groups */
    int64_t grace_ms;
    int64_t limit_ms;    /* max_run_time, 0 = none */
    int64_t expected_ms; /* 0 = unknown */
    int64_t min_run_ms;  /* 0 = the server's */
    int32_t max_unavailable; /* of a service: disruption budget, 0 = none */
    const char *topology_required, *topology_preferred;
    const struct model_group *groups;
    int32_t group_count;
};

/* Per group, in the order of the shape's groups. */
struct model_launch_group {
    const char *const *command; /* NULL-terminated */
    const struct model_pair *env;
    int32_t env_count;
};

struct model_launch {
    const char *image;          /* NULL = the host's root, read-only */
    const char *workdir;        /* NULL = a fresh folder of the task */
    const char *checkpoint_dir; /* NULL = kept by the engine for the workload */
    const struct model_launch_group *groups;
    int32_t group_count;
};

struct model_workload {
    uint64_t id;
    const char *name;
    const char *team; /* name */
    const char *owner;
    uint64_t team_id;
    enum model_workload_state state;
    int64_t submitted_ms, started_ms, ended_ms; /* 0 = not yet */
    int64_t evicted_ms;                         /* the last time it gave way; 0 = never */
    int32_t restarts;                           /* ends of a run that was to go on: evictions once
                                                   it has stopped, retries, losses */
    int32_t failures;                           /* counted against max_retries */
    int32_t running_tasks, ended_tasks;
    int32_t exit_code;   /* of the first failed task, or 0; meaningful when ended */
    const char *message; /* why it ended or was evicted last, or NULL */
    const struct model_shape *shape;
    const struct model_launch *launch; /* NULL where not loaded */
};

/* The group of task INDEX; RET_RANK_IN_GROUP may be NULL. INDEX < shape->task_count. */
int32_t model_shape_group_of(const struct model_shape *s, int32_t index,
                             int32_t *ret_rank_in_group);
/* Is it for parts of devices, of which other tasks may have the rest? Slices are none. */
bool model_request_is_part(const struct model_request *r);
/* Milli-GPU charge of one task while it waits: devices * milli, MIG by slices of 7; memory
 * requests over DEVICE_MEMORY bytes (the smallest device that fits), rounded up; 0 = 80 GiB. */
int32_t model_request_gpu_milli(const struct model_request *r, int64_t device_memory);
/* "2 x H100", "0.25 GPU", "10GiB of a GPU", "cpu only"; into ARENA. */
const char *model_request_describe(const struct model_request *r, struct arena *arena);
/* The same, appended to OUT. */
void model_request_describe_into(const struct model_request *r, struct strbuf *out);

/*
 * Decodes what a person wrote. W is zeroed by the caller; W->team may be preset and is then the
 * default for a body that names none (without either, "team" is missing: -EINVAL). W gets name
 * (NULL when absent: core makes one), team, shape and launch, all in ARENA. Unknown fields are
 * refused by name. -EINVAL / -ERANGE / -E2BIG with ERR, err.field = path of the input.
 */
int model_workload_decode(struct json_object *json, struct arena *arena, struct model_workload *w,
                          struct err *err);

/* The whole workload as the API shows it: what the person wrote, in the same fields (those of the
 * launch only where loaded, none where W->shape is NULL), and beside it id, owner, state,
 * submitted_at, started_at, ended_at, evicted_at, running_tasks, ended_tasks, restarts, failures,
 * exit_code, message, and "request", which describes the groups in a few words. */
void model_workload_encode(const struct model_workload *w, struct json_writer *out);
/* The fields of W inside an object that the caller began; for callers that add their own. */
void model_workload_encode_fields(const struct model_workload *w, struct json_writer *out);

/* Canonical JSON of the parts, for the store: equal shapes give equal text. */
void model_shape_encode(const struct model_shape *s, struct json_writer *out);
int model_shape_decode(const char *text, size_t len, struct arena *arena,
                       const struct model_shape **ret_shape, struct err *err);
void model_launch_encode(const struct model_launch *l, struct json_writer *out);
int model_launch_decode(const char *text, size_t len, struct arena *arena,
                        const struct model_launch **ret_launch, struct err *err);

#endif
