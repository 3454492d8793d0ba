/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine port: what core needs from whatever runs tasks.
 *
 * An engine reports nodes with their devices and runs tasks there. Core stores an intent before
 * it asks for anything; the intent's name (model_intent_format) is the deterministic name of a
 * start, so asking twice starts once. Calls do not block: they are taken over and answered by
 * events through the host's table, from any thread, in order per intent.
 *
 *   start  -> STARTED, then EXITED;   or REFUSED (never ran);   or LOST
 *   stop   -> EXITED (also if it had exited already)
 *   suspend -> SUSPENDED; or RESUMED with a message: it runs on, and why
 *   resume  -> RESUMED; or SUSPENDED again, when its devices have no room for it; or EXITED, when
 *             it cannot be brought back
 *
 * An event may come twice; core ignores what it knows. An EXITED is repeated at each reconcile
 * until core calls forget(). Of suspend() and resume() the last one counts, whatever is under way.
 * A SUSPENDED tells when the task fell asleep, also when it comes again, and one that answers a
 * resume() a later time than that of the call: so core can tell whether it had its devices since.
 * Times are boot-clock milliseconds at the place where it happened.
 *
 * Start-up. Core calls reconcile() with every intent that it believes alive. The engine adopts
 * what runs, answers with STARTED, EXITED, LOST or REFUSED for each, stops what it finds running
 * and core does not know, then sends one RECONCILED.
 */
#ifndef ALLOT_CORE_ENGINE_PORT_H
#define ALLOT_CORE_ENGINE_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "model/idle.h"
#include "model/node.h"
#include "model/reading.h"
#include "model/task.h"
#include "model/workload.h"

struct engine_start {
    const char *intent;
    uint64_t workload;
    int32_t task;    /* rank */
    int32_t attempt; /* restart count */
    int32_t task_count;
    const char *name, *team, *owner; /* of the workload */
    const char *node;                /* node to run on */
    const char *node_list;           /* comma-separated, by rank, of the tasks now placed */
    const struct model_request *request;
    const uint16_t *devices; /* indices on the node */
    int32_t device_count;
    int32_t group, rank_in_group;
    bool suspendable; /* it may be suspended: its programs are to meet the gate */
};

struct engine_intent {
    const char *intent;
    enum model_task_state state; /* STARTING, RUNNING or STOPPING as core knows it */
    const uint16_t *devices;
    int32_t device_count;
    bool suspended;            /* what it holds on devices is to lie in host memory */
    int64_t busy_ns, known_ns; /* as last reported: an engine that measures goes on from there */
};

enum engine_event_kind {
    ENGINE_NODE,       /* a node and its devices: new or changed */
    ENGINE_READINGS,   /* what the driver says of a node's devices, every few seconds */
    ENGINE_STARTED,    /* the command runs */
    ENGINE_EXITED,     /* it has ended and everything of it is gone */
    ENGINE_LOST,       /* ended without an exit record (supervisor or node died); all is gone */
    ENGINE_REFUSED,    /* could not be launched; nothing runs */
    ENGINE_USAGE,      /* busy time so far */
    ENGINE_SUSPENDED,  /* it holds nothing on its devices any more, and HOST_BYTES for it */
    ENGINE_RESUMED,    /* it holds its devices */
    ENGINE_WAKE,       /* a program of a suspended task waits for its devices */
    ENGINE_RECONCILED
};

struct engine_event {
    enum engine_event_kind kind;
    const char *intent;            /* all but NODE, READINGS and RECONCILED */
    int64_t boot_ms;               /* when it happened */
    const struct model_node *node; /* NODE */
    /* READINGS: of the node of that name, all that are known of. */
    const char *node_name;
    const struct model_reading *readings;
    int32_t reading_count;
    int32_t exit_code;             /* EXITED: 0..255, 128 + signal when killed */
    int32_t exit_signal;           /* EXITED: 0 = by itself */
    bool lasting;                  /* REFUSED: trying again would not help */
    bool stopped;                  /* EXITED: it had been asked to stop before it ended */
    /* EXITED, REFUSED, LOST: it ended in an earlier boot of its node, RAN_MS after it had started
     * (0 = not known); boot_ms, of this boot, cannot tell. */
    bool past_boot;
    int64_t ran_ms;
    /* USAGE: device memory that the driver counts for the task and that nobody asked the agent of
     * sharing for; it is charged. */
    int64_t beyond_bytes;
    /* USAGE: when each sign of life was last seen, on the boot clock; 0 = never. */
    int64_t signal_ms[MODEL_SIGNAL_COUNT];
    /* All about a task: device busy time since its start, and of how much time that is known. Both
     * cumulative, in GPU time: two whole devices for a second are two seconds. What is not known
     * is neither busy nor idle. */
    int64_t busy_ns, known_ns;
    int64_t host_bytes; /* SUSPENDED */
    /* RESUMED: why it was not suspended, NULL when that was not asked for. REFUSED, LOST, EXITED:
     * a sentence ("out of memory"); of REFUSED what follows a newline is
     * detail for who looks for the cause, and kept in the event alone. */
    const char *message;
};

/* What an engine may call, from any thread. EVENT and what it points to live until return. */
struct engine_host {
    void (*event)(void *host, const struct engine_event *event);
    /* The launch of a workload, into ARENA. Thread-safe; reads the store. */
    int (*load_launch)(void *host, uint64_t workload, struct arena *arena,
                       const struct model_launch **ret_launch, struct err *err);
    void *host;
};

struct engine_ops {
    const char *name; /* "local" */
    void (*start)(void *engine, const struct engine_start *start);
    /* SIGTERM, GRACE_MS, SIGKILL of everything. */
    void (*stop)(void *engine, const char *intent, int64_t grace_ms);
    /* Moves what the task holds on devices to host memory and back. Programs go on until they call
     * the driver. NULL both: not by this engine. */
    void (*suspend)(void *engine, const char *intent);
    void (*resume)(void *engine, const char *intent);
    /* Its end is durable in the store; the engine may drop its record (logs stay). */
    void (*forget)(void *engine, const char *intent);
    void (*reconcile)(void *engine, const struct engine_intent *intents, size_t count);

    /*
     * Log of one attempt: up to SIZE bytes from byte OFFSET since the start of the task, stdout
     * and stderr in the order written. RET_OFFSET is where the data begins (later than asked
     * when older parts were rotated away), RET_LEN = 0 at the end for now. Thread-safe.
     * -ENOENT: no such log (yet).
     */
    int (*read_log)(void *engine, const char *intent, int64_t offset, char *data, size_t size,
                    int64_t *ret_offset, size_t *ret_len);

    /*
     * Runs COMMAND inside a running task's sandbox. RET_FD is a connected stream socket that
     * speaks the exec protocol of net/exec_protocol.h; the caller owns it. Thread-safe; may
     * block shortly. -ENOENT: not running; -EOPNOTSUPP.
     */
    int (*exec)(void *engine, const char *intent, const char *const *command, int tty,
                int *ret_fd, struct err *err);
};

#endif
