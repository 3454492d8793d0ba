/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A team: node of the quota tree. Amounts are integers in the unit of the resource; absent
 * limit = MODEL_UNLIMITED, absent guarantee = 0.
 *
 * JSON (every field but `name` optional):
 *   {"name": "ml-research", "parent": "research", "weight": 1, "priority": 100,
 *    "guarantee": {"gpu": 8, "cpu": 64, "memory": "512GiB"},
 *    "limit": {"gpu": "12.5", "volumes": 50}, "quota": "fair"}
 *
 * "idle": {"notebook": {"after": "1h", "action": "suspend"}}: see idle.h.
 *
 * guarantee and limit may also name GPU types: "gpu_types": {"H100": 4}; see team_types.h.
 *
 * `quota` is the model: "fair" (burst above the guarantee, up to the limit) or "hard": the limit
 * is the guarantee and follows it. It then need not be given, and must agree where it is. Of cpu
 * and memory only what is guaranteed is limited, or a team with GPUs alone could run nothing.
 */
#ifndef ALLOT_MODEL_TEAM_H
#define ALLOT_MODEL_TEAM_H

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json_writer.h"
#include "model/idle.h"

struct json_object;

enum model_resource {
    MODEL_GPU_MILLI,
    MODEL_CPU_MILLI,
    MODEL_MEMORY_BYTES,
    MODEL_RESOURCE_COUNT
};

#define MODEL_UNLIMITED INT64_MAX
#define MODEL_TEAM_DEPTH_MAX 32

enum model_quota { MODEL_QUOTA_FAIR, MODEL_QUOTA_HARD };

/* "fair", "hard"; static. */
const char *model_quota_name(enum model_quota q);
/* -EINVAL for another word. */
int model_quota_parse(const char *text, enum model_quota *ret_quota);

#define MODEL_TYPES_MAX 64 /* of one team */

struct model_type_quota { /* of one GPU type, in milli-GPU; MODEL_UNLIMITED = not stated */
    const char *type;
    int64_t guarantee, limit;
};

struct model_team {
    uint64_t id;        /* assigned by core; 0 while unknown */
    uint64_t parent_id; /* 0 = top */
    uint64_t version;   /* counts changes; the ETag */
    const char *name;
    const char *parent; /* name, or NULL = top */
    int64_t guarantee[MODEL_RESOURCE_COUNT];
    int64_t limit[MODEL_RESOURCE_COUNT]; /* of a hard quota: made from the guarantee */
    enum model_quota quota;
    const struct model_type_quota *types; /* sorted by type */
    int32_t type_count;
    int64_t weight;      /* 0..1000000 */
    int32_t priority;    /* among siblings, default 100 */
    struct model_idle_rule idle[MODEL_KIND_COUNT]; /* see idle.h */
    int64_t volume_limit; /* number of volumes, MODEL_UNLIMITED = none */
};

/* Defaults: no guarantee, no limit, weight 1, priority 100. */
void model_team_init(struct model_team *t);

/*
 * Decodes a team from parsed JSON into T (initialised by the caller: absent fields keep what is
 * there, which makes it an update). Strings go to ARENA. Unknown fields are refused by name; a
 * limit below the guarantee is refused. -EINVAL or -ERANGE with ERR.
 */
int model_team_decode(struct json_object *json, struct arena *arena, struct model_team *t,
                      struct err *err);
/* One JSON object that decodes to the same team, with id and version. */
void model_team_encode(const struct model_team *t, struct json_writer *w);
/* The fields of T inside an object that the caller began; for callers that add their own. */
void model_team_encode_fields(const struct model_team *t, struct json_writer *w);

#endif
