/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of model/manifest.h that knows Kubernetes' ResourceQuota. Internal to model.
 */
#ifndef ALLOT_MODEL_MANIFEST_QUOTA_H
#define ALLOT_MODEL_MANIFEST_QUOTA_H

#include "base/err.h"
#include "base/strbuf.h"

struct json_object;

/* Writes the body of PUT /v1/teams/TEAM for the quota's SPEC; adds to IGNORED, comma-separated,
 * the entries of spec.hard that have no meaning here. -EINVAL or -ERANGE. */
int model_manifest_quota(struct json_object *spec, const char *team, struct strbuf *ret_body,
                         struct strbuf *ignored, struct err *err);

#endif
