/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of past.h share. A record is read line by line (past.c), then its changes are
 * put in order (past_change.c), then the work of its jobs is measured (past_work.c).
 */
#ifndef ALLOT_SIM_PAST_INTERNAL_H
#define ALLOT_SIM_PAST_INTERNAL_H

#include "sim/past.h"

struct json_object;

#define TIME_MAX_MS ((int64_t)1 << 42) /* the year 2109 */
#define GPU_TIME_MAX (INT64_MAX / 64)  /* milli-GPU times ms: room for work done again */

/* Keeps one change, whose KIND is "team", "node" or "server". -EINVAL with ERR: not in the order of
 * time, or about what is not there. */
int past_change_read(struct past *p, const char *kind, int64_t at_ms, struct json_object *data,
                     struct err *err);
/* All lines are read: decodes the changes, and says how things were at the beginning. */
int past_change_resolve(struct past *p, struct err *err);

/* Sets the window. Runs that go on end with the record from here on. */
void past_work_window(struct past *p);

#endif
