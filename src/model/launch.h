/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of a launch's JSON that the workload's own encoding shares. Internal to model.
 */
#ifndef ALLOT_MODEL_LAUNCH_H
#define ALLOT_MODEL_LAUNCH_H

#include "base/json_writer.h"
#include "model/workload.h"

/* "command" and "env" inside an object that the caller began. */
void model_launch_encode_group(const struct model_launch_group *g, struct json_writer *w);
/* "image", "workdir" and "checkpoint_dir", where given. */
void model_launch_encode_paths(const struct model_launch *l, struct json_writer *w);

#endif
