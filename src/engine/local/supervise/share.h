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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "gpu/region.h"

struct share {
    struct gpu_region *region; /* NULL: the task has none */
    int agent;                 /* descriptor of the agent's socket, -1 = none */
    bool closed;               /* the gate: programs wait with their next call of the driver */
    bool wake;                 /* one of them does; who has told the engine clears it */
    int64_t closed_at_ms, closed_ms; /* since when, and for how long in sum before */
};

/*
 * Makes the region that the launch record DATA asks for, if it does; the current folder is the
 * task's. -EINVAL with ERR: the record is not to be understood; otherwise as gpu_region_open().
 * After an error too, share_close() gives back what there is.
 */
int share_open(const char *data, size_t len, struct share *ret_share, struct err *err);
void share_close(struct share *s);

/* Opens or closes the gate. */
void share_gate(struct share *s, bool open);
/* How long it has been closed so far, in sum. */
int64_t share_closed_ms(const struct share *s);

/* Has a program of the task given work to a device since this was last asked, or does such work
 * still run? */
bool share_in_use(struct share *s);

/* Adds to RECORD what the engine asks of a task that is to sleep: its processes (pid), why one of
 * them cannot (obstacle), bytes of device memory (held). */
void share_describe(const struct share *s, struct strbuf *record);

#endif
