/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of workloads that hold GPUs and do nothing: a team's policy, by kind.
 *
 *   "idle": {"notebook": {"after": "1h", "action": "suspend"},
 *            "job": {"after": "4h", "action": "notify", "signal": "gpu"}}
 *
 *   after    how long nothing has to happen, 10 seconds to 365 days
 *   action   "notify", "suspend" (what cannot be suspended is stopped only if that is said:
 *            else it is left alone, and that is told), "stop"
 *   signal   "any" (default): use of a GPU, of CPU, output, people's sessions and notebooks'
 *            kernels keep it; "gpu": use of a GPU alone
 *
 * A kind that a team says nothing of follows the team above. In an update a kind that is not named
 * keeps what it has; null takes it away.
 */
#ifndef ALLOT_MODEL_IDLE_H
#define ALLOT_MODEL_IDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json_writer.h"
#include "base/strbuf.h"
#include "model/state.h"

struct json_object;

enum model_idle_action {
    MODEL_IDLE_NOTIFY,
    MODEL_IDLE_SUSPEND,
    MODEL_IDLE_STOP,
    MODEL_IDLE_ACTION_COUNT
};

struct model_idle_rule {
    int64_t after_ms; /* 0 = the team says nothing of this kind */
    enum model_idle_action action;
    bool gpu_only;
};

/* Signs of life of a task, each with a time. */
enum model_signal {
    MODEL_SIGNAL_GPU,     /* it computed on a GPU, or gave work to one */
    MODEL_SIGNAL_CPU,     /* its processes used CPU */
    MODEL_SIGNAL_OUTPUT,  /* it wrote to its log */
    MODEL_SIGNAL_SESSION, /* somebody opened a session in it */
    MODEL_SIGNAL_KERNEL,  /* a kernel of its Jupyter server executed something */
    MODEL_SIGNAL_UNKNOWN, /* it could not be seen whether a GPU was used */
    MODEL_SIGNAL_COUNT
};

/* Static text. */
const char *model_idle_action_name(enum model_idle_action a);
const char *model_signal_name(enum model_signal s);

/* Reader for a table of fields; OUT is the array of rules, one a kind. -EINVAL, -ERANGE. */
int model_idle_read(struct json_object *v, struct arena *a, void *out, struct err *err);
/* The object; {} where nothing is said. */
void model_idle_encode(const struct model_idle_rule rules[MODEL_KIND_COUNT], struct json_writer *w);
/* The same as text, appended to OUT, and back; "" = nothing is said. -EINVAL, -ERANGE. */
void model_idle_text(const struct model_idle_rule rules[MODEL_KIND_COUNT], struct strbuf *out);
int model_idle_parse(const char *text, struct model_idle_rule rules[MODEL_KIND_COUNT]);

#endif
