/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarative documents for `apply -f`: what a company has in its Git today.
 *
 *   Kubernetes ResourceQuota  -> a team named after metadata.namespace. spec.hard:
 *       requests.nvidia.com/gpu = guarantee, limits.nvidia.com/gpu = limit (absent: hard quota,
 *       as Kubernetes treats requests of extended resources), requests.cpu and limits.cpu,
 *       requests.memory and limits.memory likewise, persistentvolumeclaims = number of volumes.
 *       Other keys are reported as ignored by name, never silently.
 *   kind: Team      {"apiVersion": "allot/v1", "kind": "Team", "metadata": {"name": ...},
 *                    "spec": {the fields of model/team.h without name}}
 *   kind: Workload  likewise, with the fields of model/workload.h; metadata.namespace = team.
 *
 * This module turns one document into the body of one API call, so that client and server agree
 * by construction.
 */
#ifndef ALLOT_MODEL_MANIFEST_H
#define ALLOT_MODEL_MANIFEST_H

#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"

struct json_object;

enum model_manifest_kind { MODEL_MANIFEST_TEAM, MODEL_MANIFEST_WORKLOAD };

struct model_manifest {
    enum model_manifest_kind kind;
    const char *source;  /* "ResourceQuota", "Team" or "Workload", for messages */
    const char *name;    /* team name, or workload name (may be NULL) */
    const char *body;    /* JSON for PUT /v1/teams/NAME or POST /v1/workloads */
    const char *ignored; /* comma-separated keys that have no meaning here, or NULL */
};

/* A document of kind List (or ResourceQuotaList, TeamList, WorkloadList) holds several in
 * "items"; any other is one. Lists do not nest. Items are borrowed from DOC; NULL for something
 * that is no object. */
size_t model_manifest_count(struct json_object *doc);
struct json_object *model_manifest_item(struct json_object *doc, size_t index);

/* All in ARENA. -EINVAL with ERR for an unknown kind, a missing field, a bad quantity. */
int model_manifest_decode(struct json_object *doc, struct arena *arena,
                          struct model_manifest *ret_manifest, struct err *err);

#endif
