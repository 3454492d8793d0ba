/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node and its devices, as an engine reports them.
 *
 * Devices are known by their index, which is what placements and allocations name: an engine
 * keeps the order. A MIG slice is a device of its own. Nothing is owned: strings and arrays live
 * as long as the arena or the caller that filled them in.
 */
#ifndef ALLOT_MODEL_NODE_H
#define ALLOT_MODEL_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json_writer.h"
#include "model/workload.h"

struct json_object;

#define MODEL_DEVICES_MAX 1024 /* of one node */

struct model_device {
    const char *uuid;
    const char *type;        /* "H100" */
    int64_t memory_bytes;
    const char *mig_profile; /* NULL = a whole GPU */
    int32_t mig_milli;       /* compute slices over the device's */
    bool simulated;
    const char *path; /* device file to give to a task, or NULL */
};

/* A way to hold parts of a GPU apart: not there, there and not used, or what is used. */
enum model_backend_state { MODEL_BACKEND_ABSENT, MODEL_BACKEND_FOUND, MODEL_BACKEND_USED };

struct model_backend {
    const char *name; /* "shim" */
    enum model_backend_state state;
    const char *reason; /* why it is not used or how; NULL = nothing to say */
};

#define MODEL_SHARING_REFUSED "refused" /* parts of devices are, as nothing enforces them */

enum model_node_state { MODEL_NODE_UP, MODEL_NODE_DOWN, MODEL_NODE_UNKNOWN };

struct model_node {
    uint64_t id; /* assigned by core */
    const char *name;
    const char *cluster;
    enum model_node_state state;
    bool drained;
    int64_t window_from_ms, window_until_ms; /* maintenance; until 0 = none is announced */
    const char *gpu_type;
    const char *sharing;   /* backend of fractions: "none" = accounting only, or REFUSED */
    const char *limits;    /* what enforces cpu, memory, pids: "cgroup2", "cgroup1", "none" */
    const char *isolation; /* what the sandbox gives: "bubblewrap", or why not */
    int64_t cpu_milli, memory_bytes;
    const struct model_device *devices;
    int32_t device_count;
    const struct model_pair *labels;
    int32_t label_count;
    const struct model_backend *backends; /* all that were looked for */
    int32_t backend_count;
};

/* "up", "down", "unknown"; static. */
const char *model_node_state_name(enum model_node_state v);
/* "absent", "found", "used"; static. */
const char *model_backend_state_name(enum model_backend_state v);
/* One JSON object, devices and labels included; capacities as in model/amount.h. */
void model_node_encode(const struct model_node *n, struct json_writer *w);
/* The fields of a node or of a device inside an object that the caller began; for callers that
 * add their own. */
void model_node_encode_fields(const struct model_node *n, struct json_writer *w);
/* Of those fields id, name and what changes by itself: state, drained, maintenance. */
void model_node_encode_state(const struct model_node *n, struct json_writer *w);
void model_device_encode_fields(const struct model_device *d, struct json_writer *w);
/* What encode wrote (the store may leave id and state out: N keeps what it has). Strings into
 * ARENA. -EINVAL or -ERANGE with ERR; N is then as before. */
int model_node_decode(const char *text, size_t len, struct arena *arena, struct model_node *n,
                      struct err *err);

/* Reads a time on the server's timeline into int64_t milliseconds; for tables of fields. */
int model_node_read_time(struct json_object *v, struct arena *a, void *out, struct err *err);

/* Simulated devices: one group of whole GPUs ("8xH100", "4xA100:40GiB") or of slices
 * ("7xH100/1g.10gb"); a mixture ("8xH100+2xA100/1g.10gb") is refused for now. 1..1024
 * devices. Known types give the memory:
 * H100 80GiB, H200 141GiB, A100 80GiB, A10 24GiB, L40S 48GiB, L4 24GiB, T4 16GiB, V100 32GiB,
 * B200 192GiB; others need ":SIZE". */
int model_devices_from_spec(const char *spec, struct arena *arena,
                            const struct model_device **ret_devices, int32_t *ret_count,
                            struct err *err);

#endif
