/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of a workload that hold whoever wrote it: what a person sends and what the store
 * gives back pass the same checks. Messages begin with the field, as model/json.h asks.
 */
#ifndef ALLOT_MODEL_CHECK_H
#define ALLOT_MODEL_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/workload.h"

#define MODEL_GPU_TYPES_MAX 16
#define MODEL_LABELS_MAX 16       /* of a request */
#define MODEL_NODE_LABELS_MAX 256 /* of a node: Kubernetes puts dozens on one */
#define MODEL_MIG_MAX 16
#define MODEL_PRIORITY_MAX 1000000
#define MODEL_RETRIES_MAX 1000
#define MODEL_CPU_MILLI_MAX 1000000000LL             /* of one task: 10^6 cores */
#define MODEL_TASK_BYTES_MAX (1LL << 46)             /* of one task: 64 TiB */
#define MODEL_GRACE_MS_MAX (24 * 3600 * 1000LL)      /* a day */
#define MODEL_RUN_MS_MAX (3650 * 24 * 3600 * 1000LL) /* ten years */

/* One string each; -EINVAL or -ERANGE. */
int model_check_env_name(const char *s, size_t len, struct err *err);
int model_check_path(const char *s, size_t len, struct err *err); /* absolute, no '..' */
int model_check_image(const char *s, size_t len, struct err *err);
int model_check_label(const char *s, size_t len, struct err *err);       /* key or level */
int model_check_label_value(const char *s, size_t len, struct err *err); /* may be empty */
int model_check_name(const char *s, size_t len, struct err *err);
int model_check_gpu_type(const char *s, size_t len, struct err *err);

/* Compute slices of a MIG profile: "3g.40gb" is 3; -EINVAL if it is none. */
int model_mig_slices(const char *profile, struct err *err);

/* The bounds of max_unavailable, for whoever refuses one. */
#define MODEL_UNAVAILABLE_BOUNDS \
    "use 1 to the number of tasks; class production is never evicted at all"

/* The numbers of S agree with each other and with what its kind and class allow. */
int model_shape_check(const struct model_shape *s, struct err *err);

#endif
