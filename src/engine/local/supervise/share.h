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
#include "gpu/turns.h"

#define SHARE_LOOKS 5

struct share {
    struct gpu_region *region; /* NULL: the task has none */
    int agent;                 /* descriptor of the agent's socket, -1 = none */
    bool closed;               /* the gate: programs wait with their next call of the driver */
    bool used;                 /* a device, since share_in_use() was last asked */
    bool wake;                 /* one of them does; who has told the engine clears it */
    struct gpu_turns *turns[SHARE_DEVICES]; /* on devices that are shared, else NULL */
    uint64_t next_ns; /* when to take the next step with them; 0 = never */
    /* What the driver counts beyond what is charged, at the last looks. */
    uint64_t beyond[SHARE_DEVICES][SHARE_LOOKS];
    uint32_t looks;
    int64_t closed_at_ms, closed_ms; /* since when, and for how long in sum before */
};

/*
 * Makes the region that the launch record DATA asks for, if it does; the current folder is the
 * task's. -EINVAL with ERR: the record is not to be understood; otherwise as gpu_region_open().
 * After an error too, share_close() gives back what there is.
 */
int share_open(const char *data, size_t len, struct share *ret_share, struct err *err);
void share_close(struct share *s);

/* Tells the others on its devices what the task does there, and the task until when it may submit;
 * when that is due. */
void share_step(struct share *s);
/* Milliseconds until then, -1: never. */
int share_timeout_ms(const struct share *s);

/* Opens or closes the gate. */
void share_gate(struct share *s, bool open);
/* How long it has been closed so far, in sum. */
int64_t share_closed_ms(const struct share *s);

/*
 * Takes the driver's figures of what the task's processes hold of each device (bytes), by the
 * record DATA, and charges what no process accounts for: memory that was taken past the shim. Both
 * figures are of about the same moment, so the least difference of the last looks is what counts.
 */
void share_driver_says(struct share *s, const char *data, size_t len);
/* What is charged so, of all devices. */
int64_t share_beyond(const struct share *s);

/* Has a program of the task given work to a device since this was last asked, or does such work
 * still run? */
bool share_in_use(struct share *s);

/* Adds to RECORD what the engine asks of a task that is to sleep: its processes (pid), why one of
 * them cannot (obstacle), bytes of device memory (held). */
void share_describe(const struct share *s, struct strbuf *record);

#endif
