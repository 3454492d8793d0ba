/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorded history of a server as lines of JSON, for the simulator and for spreadsheets.
 *
 * It is read in pieces, each of milliseconds: through the store port while the server runs
 * (read_history() in store_private.h), or from the data folder, which is opened read-only and
 * read as one snapshot, whether or not a server uses it; the server does not notice. Between
 * pieces of the former the world goes on; what happens after the first piece is left out, so both
 * give the same. Nothing personal goes out but names of teams and workloads: no owner, command,
 * environment or token.
 *
 * Lines, in this order (times in milliseconds of the server's timeline, GPUs in milli):
 *     {"history": 2, "now_ms": 1700000000000, "events_from_ms": 1690000000000}
 *         version; time of the last thing recorded; changes before that are not known (0 = all are)
 *     {"team": 3, "parent": 0, "deleted": false, "spec": {fields of model/team.h}}
 *     {"node": 5, "spec": {fields of model/node.h}}
 *     {"change": "team" | "node" | "server", "time_ms": ..., "data": {what the event says}}
 *     {"workload": 81, "name": "digits", "team": 3, "state": "succeeded", "submitted_ms": ...,
 *      "started_ms": ..., "ended_ms": ..., "restarts": 1, "failures": 0,
 *      "shape": {model_shape_encode()}}
 *     {"run": [workload, task, attempt, gpu_milli, start_ms, end_ms, busy_ms, node,
 *      stopping_ms], "how": "ended"}    end 0 = it goes on; when it was asked to stop, 0 = it was
 *         not; how it ended (model_release), "" = not known
 *     {"end": {"workloads": 81, "runs": 90}}
 * Teams and nodes are as they are at the end, parents before children. Runs of a workload follow
 * each other by start, behind it. Without its last line a history is cut off.
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
