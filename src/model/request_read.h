/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields of a request as people write them, shared by the top of a workload and by each of
 * its groups, and the readers that other decoders use too. Internal to model.
 */
#ifndef ALLOT_MODEL_REQUEST_READ_H
#define ALLOT_MODEL_REQUEST_READ_H

#include <stdint.h>

#include "model/json.h"
#include "model/workload.h"

struct model_pairs {
    const struct model_pair *items; /* sorted by key */
    int32_t count;
};

struct model_migs {
    const struct model_mig *items; /* sorted by profile */
    int32_t count;
};

struct model_strings {
    const char *const *items; /* NULL-terminated; NULL = not given */
    int32_t count;
};

/* -1 = not given. */
struct model_request_draft {
    int64_t gpus, gpu, gpu_memory, gpu_count, cpu, memory;
    struct model_migs mig;
    struct model_strings gpu_types;
    struct model_pairs labels;
};

#define MODEL_REQUEST_DRAFT_INIT                                                          \
    {                                                                                     \
        .gpus = -1, .gpu = -1, .gpu_memory = -1, .gpu_count = -1, .cpu = -1, .memory = -1 \
    }

/* Rows of a field table; BASE is the struct that the table reads into, MEMBER its draft. */
#define MODEL_REQUEST_FIELDS(base, member)                                        \
    {"gpus", model_read_gpus, offsetof(base, member.gpus)},                       \
        {"gpu", model_read_gpu, offsetof(base, member.gpu)},                      \
        {"gpu_memory", model_read_gpu_memory, offsetof(base, member.gpu_memory)}, \
        {"mig", model_read_migs, offsetof(base, member.mig)},                     \
        {"gpu_count", model_read_gpu_count, offsetof(base, member.gpu_count)},    \
        {"gpu_type", model_read_gpu_types, offsetof(base, member.gpu_types)},     \
        {"cpu", model_read_cpu, offsetof(base, member.cpu)},                      \
        {"memory", model_read_memory, offsetof(base, member.memory)},             \
    {                                                                             \
        "node_labels", model_read_labels, offsetof(base, member.labels)           \
    }

/* Readers for int64_t members of a draft. */
int model_read_gpus(struct json_object *v, struct arena *a, void *out, struct err *err);
int model_read_gpu(struct json_object *v, struct arena *a, void *out, struct err *err);
int model_read_gpu_memory(struct json_object *v, struct arena *a, void *out, struct err *err);
int model_read_gpu_count(struct json_object *v, struct arena *a, void *out, struct err *err);
int model_read_cpu(struct json_object *v, struct arena *a, void *out, struct err *err);
int model_read_memory(struct json_object *v, struct arena *a, void *out, struct err *err);

/* struct model_migs, from "1g.10gb" or {"1g.10gb": 2}. */
int model_read_migs(struct json_object *v, struct arena *a, void *out, struct err *err);
/* struct model_strings, from "H100" or ["H100", "A100"]. */
int model_read_gpu_types(struct json_object *v, struct arena *a, void *out, struct err *err);
/* struct model_pairs. */
int model_read_labels(struct json_object *v, struct arena *a, void *out, struct err *err);
/* Labels of a node: more of them. */
int model_read_node_labels(struct json_object *v, struct arena *a, void *out, struct err *err);
int model_read_env(struct json_object *v, struct arena *a, void *out, struct err *err);
/* struct model_strings: a command line. */
int model_read_command(struct json_object *v, struct arena *a, void *out, struct err *err);
/* const char *: a topology level, an absolute path, an image. */
int model_read_label(struct json_object *v, struct arena *a, void *out, struct err *err);
int model_read_path(struct json_object *v, struct arena *a, void *out, struct err *err);
int model_read_image(struct json_object *v, struct arena *a, void *out, struct err *err);
/* enum model_kind, model_class, model_handling. */
int model_read_kind(struct json_object *v, struct arena *a, void *out, struct err *err);
int model_read_class(struct json_object *v, struct arena *a, void *out, struct err *err);
int model_read_handling(struct json_object *v, struct arena *a, void *out, struct err *err);

/* Makes the request that D describes, defaults filled in; -EINVAL where its forms contradict. */
int model_request_from_draft(const struct model_request_draft *d, struct model_request *ret_request,
                             struct err *err);

#endif
