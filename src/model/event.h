/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events: the append-only record of what happened and why, in commit order. `seq` is dense and
 * growing; it is the Last-Event-ID of the stream. `type` is one of MODEL_EVENT_* below: a stable
 * dotted word. `data` is a JSON object text or NULL.
 *
 * Strings belong to whoever filled the event in and live as long as it says; times are
 * milliseconds on the server's timeline.
 */
#ifndef ALLOT_MODEL_EVENT_H
#define ALLOT_MODEL_EVENT_H

#include <stdint.h>

#include "base/json_writer.h"

#define MODEL_EVENT_SUBMITTED "workload.submitted"
#define MODEL_EVENT_STARTED "workload.started"     /* the gang's minimum runs */
#define MODEL_EVENT_EVICTED "workload.evicted"     /* preempted, reclaimed, ...: data says why */
#define MODEL_EVENT_REQUEUED "workload.requeued"
#define MODEL_EVENT_SUSPENDING "workload.suspending"
#define MODEL_EVENT_SUSPENDED "workload.suspended" /* its devices are free */
#define MODEL_EVENT_WAKING "workload.waking"       /* it wants them back */
#define MODEL_EVENT_RESUMED "workload.resumed"     /* it has them, or could not be suspended */
#define MODEL_EVENT_IDLE "workload.idle" /* it does nothing: a warning, or it is acted upon */
#define MODEL_EVENT_EXTENDED "workload.extended" /* it may do nothing for longer */
#define MODEL_EVENT_STOPPING "workload.stopping"
#define MODEL_EVENT_ENDED "workload.ended"
#define MODEL_EVENT_TASK_HELD "task.held"
#define MODEL_EVENT_TASK_RELEASED "task.released"  /* a promise given up */
#define MODEL_EVENT_TASK_STARTING "task.starting"
#define MODEL_EVENT_TASK_STARTED "task.started"
#define MODEL_EVENT_TASK_STOPPING "task.stopping"
#define MODEL_EVENT_TASK_ENDED "task.ended"
#define MODEL_EVENT_TASK_BEYOND "task.beyond" /* it took GPU memory past what caps its part */
#define MODEL_EVENT_TASK_LOST "task.lost"
#define MODEL_EVENT_TASK_REFUSED "task.refused"
#define MODEL_EVENT_TEAM "team.changed"
#define MODEL_EVENT_TEAM_DELETED "team.deleted"
#define MODEL_EVENT_NODE "node.changed"
#define MODEL_EVENT_USER "user.changed"
#define MODEL_EVENT_TOKEN "token.changed"
#define MODEL_EVENT_SERVER "server.started"

struct model_event {
    uint64_t seq;
    int64_t time_ms;
    const char *type;
    uint64_t workload; /* 0 = not about one */
    int32_t task;      /* -1 = not about one */
    const char *workload_name, *team, *node; /* names, or NULL */
    const char *actor; /* who: user name, or "allot" for the system */
    const char *message; /* one sentence for people */
    const char *data;
};

/* One JSON object; fields that it is not about are left out. `data` must be valid JSON. */
/* One JSON object. */
void model_event_encode(const struct model_event *e, struct json_writer *w);

#endif
