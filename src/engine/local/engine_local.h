/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The local engine: runs tasks as processes on this machine, behind core's engine port.
 *
 * For every task attempt there is a folder DATA/tasks/INTENT and one `allot-supervise` process
 * that owns everything about the task: sandbox, log, exit record. The engine writes the launch
 * record, starts the supervisor, listens to it, and finds it again after a crash. It keeps no
 * state of its own on disk, so there is nothing that could disagree with what runs.
 *
 *   DATA/tasks/INTENT/launch   what to run; its flock says whether a supervisor lives
 *                     socket   where to find the supervisor (only while no server listens)
 *                     pids     supervisor and init, with their start times
 *                     log.N    output, from byte N on
 *                     exit     the exit record, written atomically at the end
 *                     work/    /home/task inside the sandbox
 *   DATA/ended/INTENT          the same folder after core has forgotten the task, kept until
 *                              `retain_count` or `retain_ms` is exceeded
 *
 * What a crash leaves, and what reconcile() makes of it (each has a test):
 *   no folder, or a launch record without a lock and without an exit record   LOST
 *   lock held                                                                 STARTED, adopted
 *   exit record                                                              EXITED or REFUSED
 *   a folder that core does not know                                          killed, put away
 * LOST is reported only after the control groups are empty.
 *
 * Threads. One thread of its own does all work that is quick; image preparation and clean-up run
 * on two helpers. Every function of the port may be called from any thread. Host callbacks come
 * from the engine's thread alone.
 *
 *     struct engine_local *e;
 *     r = engine_local_create(&config, &e, &err);
 *     engine_local_attach(e, core_engine_host(core));
 *     ports.engine = engine_local_ops(); ports.engine_ctx = e;
 */
#ifndef ALLOT_ENGINE_LOCAL_ENGINE_LOCAL_H
#define ALLOT_ENGINE_LOCAL_ENGINE_LOCAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "core/engine_port.h"

#define ENGINE_LOCAL_LOG_BYTES ((int64_t)64 * 1024 * 1024)
#define ENGINE_LOCAL_TMP_BYTES ((int64_t)1024 * 1024 * 1024)
#define ENGINE_LOCAL_PIDS 4096
#define ENGINE_LOCAL_RETAIN_COUNT 5000
#define ENGINE_LOCAL_RETAIN_MS ((int64_t)7 * 24 * 3600 * 1000)
#define ENGINE_LOCAL_UID_BASE 1900000000U

/* Strings are copied. A zero or NULL means the default. */
struct engine_local_config {
    const char *data_dir;       /* the server's data folder; required */
    const char *node_name;      /* default: host name */
    const struct model_pair *labels; /* of the node; "host" is added: the node's name */
    int32_t label_count;
    const char *devices;        /* NULL = what NVML finds; "8xH100" simulated; "auto:8xH100" */
    const char *supervise_path; /* default: beside this program, then libexec */
    const char *share_library;  /* default: liballot-share.so, likewise; without it parts of GPUs
                                   are not enforced */
    const char *agent_path;     /* default: allot-gpu-agent, likewise; without it no task is
                                   suspended */
    const char *bwrap_path;     /* default: bwrap in /usr/bin, /usr/local/bin, /bin */
    const char *images_dir;     /* default: DATA/images */
    const char *checkpoint_dir; /* default: DATA/checkpoints */
    int64_t log_bytes;          /* of one task */
    int64_t tmp_bytes;          /* of /tmp and /dev/shm each */
    int64_t pids_max;           /* processes of one task */
    int64_t retain_count, retain_ms;
    uint32_t uid_base; /* tasks run as UID_BASE + 0..65535, by team */
    /* Folders beneath which workdir and checkpoint_dir must lie, NULL-terminated. NULL: any
     * folder that is open to everybody. See supervise/folders.h. */
    const char *const *workdir_roots;
    /* Folders that tasks may read although they lie in hidden places (a data set or a virtual
     * environment in someone's home folder), NULL-terminated; NULL = none. Everything in them is
     * shown to everybody. */
    const char *const *shown_dirs;
    /* Run tasks even where no sandbox can be built. The node says so. */
    bool allow_unsandboxed;
    /* Refuse parts of devices where nothing enforces them. The node says so. */
    bool strict_sharing;
    /* For tests: called on the engine's thread before each step of a start ("folder", "lock",
     * "launch", "spawn", "watch") and before a request to the agent ("agent"); may kill the
     * process. */
    void (*step)(void *ctx, const char *step);
    void *step_ctx;
};

struct engine_local;

/*
 * Prepares the folders, finds devices and control groups, tries the sandbox, starts the threads.
 * 0 or negative errno with ERR: folder not writable, no supervisor program, bad device spec. A
 * machine that cannot sandbox is not an error: its node says why, and tasks are refused.
 * Raises the soft limit on open files to the hard one.
 */
int engine_local_create(const struct engine_local_config *config, struct engine_local **ret_engine,
                        struct err *err);

/* Connects the host and reports the node. Once, before the first call of the port. */
void engine_local_attach(struct engine_local *engine, struct engine_host host);

/* The port's functions; their first argument is the engine. */
const struct engine_ops *engine_local_ops(void);

/* Stops the threads. Tasks run on. NULL is fine. */
void engine_local_destroy(struct engine_local *engine);

#endif
