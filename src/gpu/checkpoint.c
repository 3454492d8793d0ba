/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/checkpoint.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "share/cuda_fns.h"

/* What the driver may still say of a process that is in none of its states. */
#define STATE_NONE (-1)

struct gpu_checkpoint {
    fn_cuInit *init;
    fn_cuCheckpointProcessGetState *state;
    fn_cuCheckpointProcessLock *lock;
    fn_cuCheckpointProcessCheckpoint *save;
    fn_cuCheckpointProcessRestore *restore;
    fn_cuCheckpointProcessUnlock *unlock;
};

int gpu_checkpoint_open(const char *library, struct gpu_checkpoint **ret_checkpoint,
                        struct err *err)
{
    void *driver = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    _cleanup_free_ struct gpu_checkpoint *c = calloc(1, sizeof(*c));
    cu_result r;

    if (c == NULL)
        return -ENOMEM;
    if (driver == NULL)
        return err_set(err, -ENOENT, ERR_NOT_FOUND, NULL, NULL, "the driver cannot be loaded: %s",
                       dlerror());
    c->init = (fn_cuInit *)dlsym(driver, "cuInit");
    c->state = (fn_cuCheckpointProcessGetState *)dlsym(driver, "cuCheckpointProcessGetState");
    c->lock = (fn_cuCheckpointProcessLock *)dlsym(driver, "cuCheckpointProcessLock");
    c->save = (fn_cuCheckpointProcessCheckpoint *)dlsym(driver, "cuCheckpointProcessCheckpoint");
    c->restore = (fn_cuCheckpointProcessRestore *)dlsym(driver, "cuCheckpointProcessRestore");
    c->unlock = (fn_cuCheckpointProcessUnlock *)dlsym(driver, "cuCheckpointProcessUnlock");
    if (!c->init || !c->state || !c->lock || !c->save || !c->restore || !c->unlock)
        return err_set(err, -EOPNOTSUPP, ERR_UNSUPPORTED, NULL, "install driver 570 or later",
                       "this driver cannot move a process to host memory");
    r = c->init(0);
    if (r != CU_OK)
        return err_set(err, -EIO, ERR_UNAVAILABLE, NULL, "see nvidia-smi on this machine",
                       "the driver does not start: error %d", r);
    *ret_checkpoint = steal_ptr(&c);
    return 0;
}

/* ---- one process ---------------------------------------------------------------------------- */

static bool has_ended(pid_t pid)
{
    return kill(pid, 0) < 0 && errno == ESRCH;
}

/* What the driver's answer R about PID, in a step towards WHAT, comes to. */
static int judge(struct gpu_checkpoint *c, pid_t pid, cu_result r, const char *what,
                 struct err *err)
{
    int state = STATE_NONE;

    if (r == CU_OK || has_ended(pid))
        return 0;
    if (c->state(pid, &state) == CU_OK && state == CU_PROCESS_FAILED)
        return err_set(err, -EIO, ERR_INTERNAL, NULL, NULL,
                       "the driver lost process %d when it was to be %s: error %d", (int)pid, what,
                       r);
    switch (r) {
    case CU_NOT_READY:
        return err_set(err, -EBUSY, ERR_UNAVAILABLE, NULL, "try again when it computes nothing",
                       "process %d has work on its device that does not end", (int)pid);
    case CU_NOT_INITIALIZED:
        return err_set(err, -EBUSY, ERR_UNAVAILABLE, NULL, "try again in a moment",
                       "process %d is just starting to use its device", (int)pid);
    case CU_OUT_OF_MEMORY:
        return err_set(err, -ENOMEM, ERR_UNAVAILABLE, NULL, "try again when memory is free",
                       "there is too little memory for process %d to be %s", (int)pid, what);
    default:
        return err_set(err, -EOPNOTSUPP, ERR_UNSUPPORTED, NULL, NULL,
                       "the driver refuses that process %d be %s: error %d", (int)pid, what, r);
    }
}

/* STATE_NONE: it has ended, or never used the driver. */
static int state_of(struct gpu_checkpoint *c, pid_t pid)
{
    int state;

    return c->state(pid, &state) == CU_OK ? state : STATE_NONE;
}

static int lock(struct gpu_checkpoint *c, pid_t pid, unsigned lock_ms, struct err *err)
{
    struct cu_checkpoint_lock args = {.timeout_ms = lock_ms};

    if (state_of(c, pid) == CU_PROCESS_LOCKED || state_of(c, pid) == CU_PROCESS_CHECKPOINTED)
        return 0;
    return judge(c, pid, c->lock(pid, &args), "locked", err);
}

static int save(struct gpu_checkpoint *c, pid_t pid, struct err *err)
{
    struct cu_checkpoint_save args = {0};

    if (state_of(c, pid) == CU_PROCESS_CHECKPOINTED)
        return 0;
    return judge(c, pid, c->save(pid, &args), "moved to host memory", err);
}

static int restore(struct gpu_checkpoint *c, pid_t pid, struct err *err)
{
    struct cu_checkpoint_restore args = {0};

    if (state_of(c, pid) != CU_PROCESS_CHECKPOINTED)
        return 0;
    return judge(c, pid, c->restore(pid, &args), "moved back to its devices", err);
}

static int unlock(struct gpu_checkpoint *c, pid_t pid, struct err *err)
{
    struct cu_checkpoint_unlock args = {0};
    int state = state_of(c, pid);

    if (state == CU_PROCESS_RUNNING || state == STATE_NONE)
        return 0;
    return judge(c, pid, c->unlock(pid, &args), "unlocked", err);
}

/* ---- a task's ------------------------------------------------------------------------------- */

int gpu_checkpoint_resume(struct gpu_checkpoint *c, const pid_t *pids, size_t count,
                          struct err *err)
{
    int r = 0;

    for (size_t i = 0; i < count && r == 0; i++)
        r = restore(c, pids[i], err);
    /* Not before all are back: they may wait for each other. */
    for (size_t i = 0; i < count && r == 0; i++)
        r = unlock(c, pids[i], err);
    return r;
}

int gpu_checkpoint_suspend(struct gpu_checkpoint *c, const pid_t *pids, size_t count,
                           unsigned lock_ms, struct err *err)
{
    struct err undo_err = ERR_INIT;
    int r = 0;

    for (size_t i = 0; i < count && r == 0; i++)
        r = lock(c, pids[i], lock_ms, err);
    for (size_t i = 0; i < count && r == 0; i++)
        r = save(c, pids[i], err);
    if (r < 0 && r != -EIO && gpu_checkpoint_resume(c, pids, count, &undo_err) < 0)
        return err_set(err, -EIO, ERR_INTERNAL, NULL, NULL, "%s", undo_err.text);
    return r;
}
