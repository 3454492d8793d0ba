/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The region of the task, for who only looks at it: the shim of NVML, and what verifies a part. Who
 * looks takes no slot, and does not count as a process of the task's GPUs.
 */
#ifndef ALLOT_SHARE_LOOK_H
#define ALLOT_SHARE_LOOK_H

#include "allot/share.h"

struct share_view {
    const struct share_limits *limits;
    const struct share_counters *counters;
};

/* Maps the region, for the life of the process. Negative: no agent answers (share_call()), or its
 * region is not one that we can read. */
int share_look(struct share_view *ret_view);
/* The device of VIEW that has UUID (16 bytes), or -1. */
int share_look_device(const struct share_view *view, const uint8_t *uuid);

#endif
