/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The task's parts of devices: its sharing region, as the launch record asks for it.
 *
 * The region lives in the supervisor, which owns the task: it survives the server, and when it
 * dies the task is ended. The agent's socket lies in the task's folder, where no tenant can reach
 * it, and is shown in the sandbox by its descriptor.
 */
#ifndef ALLOT_ENGINE_LOCAL_SUPERVISE_SHARE_H
#define ALLOT_ENGINE_LOCAL_SUPERVISE_SHARE_H

#include <stddef.h>

#include "base/err.h"
#include "gpu/region.h"

/*
 * Makes the region that the launch record DATA asks for; the current folder is the task's. NULL
 * and 0: it asks for none. RET_AGENT is a descriptor of the agent's socket, the caller's to close;
 * -1: none. -EINVAL with ERR: the record is not to be understood; otherwise as gpu_region_open().
 */
int share_open(const char *data, size_t len, struct gpu_region **ret_region, int *ret_agent,
               struct err *err);

#endif
