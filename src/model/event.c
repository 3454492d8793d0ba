/* SPDX-License-Identifier: Apache-2.0 */
#include "model/event.h"

#include <string.h>

void model_event_encode(const struct model_event *e, struct json_writer *w)
{
    json_begin_object(w);
    json_key_i64(w, "seq", (int64_t)e->seq);
    json_key_time(w, "time", e->time_ms);
    json_key_string(w, "type", e->type);
    if (e->workload) {
        json_key_i64(w, "workload", (int64_t)e->workload);
        json_key_string(w, "name", e->workload_name);
    }
    if (e->task >= 0)
        json_key_i64(w, "task", e->task);
    if (e->team)
        json_key_string(w, "team", e->team);
    if (e->node)
        json_key_string(w, "node", e->node);
    json_key_string(w, "actor", e->actor);
    json_key_string(w, "message", e->message);
    if (e->data) {
        json_key(w, "data");
        json_raw(w, e->data, strlen(e->data));
    }
    json_end_object(w);
}
