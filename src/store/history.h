/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorded history of a server as lines of JSON, for the simulator and for spreadsheets.
 *
 * The store is opened read-only and read as one snapshot, whether or not a server uses it; the
 * server does not notice. Nothing personal goes out but names of teams and workloads: no owner,
 * command, environment or token.
 *
 * Lines, in this order (times in milliseconds of the server's timeline, GPUs in milli):
 *     {"history": 1, "now_ms": 1700000000000}      version; time of the last thing recorded
 *     {"team": 3, "parent": 0, "deleted": false, "spec": {fields of model/team.h}}
 *     {"node": 5, "spec": {fields of model/node.h}}
 *     {"workload": 81, "name": "digits", "team": 3, "state": "succeeded", "submitted_ms": ...,
 *      "started_ms": ..., "ended_ms": ..., "restarts": 1, "shape": {model_shape_encode()}}
 *     {"run": [workload, task, attempt, gpu_milli, start_ms, end_ms, busy_ms]}   end 0 = open
 * Runs of a workload follow each other by start.
 *
 *     r = store_history_write("/var/lib/allot", file, &err);
 */
#ifndef ALLOT_STORE_HISTORY_H
#define ALLOT_STORE_HISTORY_H

#include <stdio.h>

#include "base/err.h"

/*
 * Writes the history of the store in FOLDER to OUT. -ENOENT: there is no store; -EACCES: it may
 * not be read; -EPROTONOSUPPORT: another release made it; -EUCLEAN: damaged; -EIO: OUT could not
 * be written.
 */
int store_history_write(const char *folder, FILE *out, struct err *err);

#endif
