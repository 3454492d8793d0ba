/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A workload as it was written: every field that a person may give, and which were given. The
 * step between the JSON and the shape; strings are in the arena of the decoder. Internal to model.
 */
#ifndef ALLOT_MODEL_WORKLOAD_DRAFT_H
#define ALLOT_MODEL_WORKLOAD_DRAFT_H

#include "model/request_read.h"
#include "model/workload.h"

struct model_topology_draft {
    const char *required, *preferred;
};

struct model_preemption_draft {
    int handling; /* enum model_handling; -1 = not given */
    int64_t grace_ms;
};

struct model_group_draft {
    const char *name;
    int64_t tasks, min_tasks; /* -1 = not given */
    struct model_request_draft request;
    struct model_topology_draft topology;
    struct model_strings command;
    struct model_pairs env;
};

#define MODEL_GROUP_DRAFT_INIT                                            \
    {                                                                     \
        .tasks = -1, .min_tasks = -1, .request = MODEL_REQUEST_DRAFT_INIT \
    }

struct model_draft {
    struct model_group_draft main; /* the fields of the single group */
    const char *name, *team;
    int kind, class_;       /* -1 = not given */
    int preemptible, burst; /* likewise */
    int32_t priority;
    int64_t max_retries, limit_ms, expected_ms, min_run_ms, max_unavailable;
    struct model_preemption_draft preemption;
    const char *image, *workdir, *checkpoint_dir;
    struct model_group_draft *groups;
    int32_t group_count;
};

/* Reads JSON into D, everything in ARENA; no defaults, no rules between fields. D->team may be
 * preset. -EINVAL, -ERANGE or -E2BIG with the path of the field. */
int model_draft_read(struct json_object *json, struct arena *arena, struct model_draft *d,
                     struct err *err);

#endif
