/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpointing another process: RUNNING -lock-> LOCKED -checkpoint-> CHECKPOINTED -restore->
 * LOCKED -unlock-> RUNNING; what cannot be checkpointed ends as FAILED, for ever. The state is in
 * the target's slot; the target's own threads wait in ENTER for as long as it is not RUNNING.
 */
#include <signal.h>
#include <string.h>

#include "driver.h"

#define BILLION UINT64_C(1000000000)
#define MILLION UINT64_C(1000000)
#define ACK_NS (30 * BILLION)

/* The slot of PID as this process sees pids. With the shared mutex. */
static cu_result target_of(int pid, uint32_t *ret_slot)
{
    if (pid <= 0 || (kill(pid, 0) < 0 && pid != 0))
        return CU_INVALID_VALUE;
    dbl_reap(driver.sh);
    for (uint32_t i = 0; i < driver.sh->procs_high; i++) {
        int seen = 0;

        if (!dbl_alive(driver.sh, i, &seen) || seen != pid)
            continue;
        *ret_slot = i;
        return CU_OK;
    }
    return CU_NOT_INITIALIZED;
}

static struct dbl_proc *proc_of(uint32_t slot)
{
    return &driver.sh->procs[slot];
}

cu_result cuCheckpointProcessGetState(int pid, int *ret_state)
{
    uint32_t slot;
    cu_result result;

    ENTER_QUERY();
    if (ret_state == NULL)
        return CU_INVALID_VALUE;
    dbl_lock(driver.sh);
    result = target_of(pid, &slot);
    if (result == CU_OK)
        *ret_state = (int)atomic_load(&proc_of(slot)->check);
    dbl_unlock(driver.sh);
    return result;
}

cu_result cuCheckpointProcessGetRestoreThreadId(int pid, int *ret_tid)
{
    uint32_t slot;
    cu_result result;

    ENTER_QUERY();
    if (ret_tid == NULL)
        return CU_INVALID_VALUE;
    dbl_lock(driver.sh);
    result = target_of(pid, &slot);
    if (result == CU_OK && proc_of(slot)->service_tid == 0)
        result = CU_NOT_INITIALIZED;
    if (result == CU_OK)
        *ret_tid = (int)proc_of(slot)->service_tid;
    dbl_unlock(driver.sh);
    return result;
}

/* Waits until all that was submitted in SLOT is done and nobody is inside; or until DEADLINE. */
static cu_result drain(uint32_t slot, uint64_t deadline)
{
    struct dbl_proc *proc = proc_of(slot);

    for (;;) {
        uint64_t next;

        dbl_sim_run(driver.sh);
        if (!atomic_load(&proc->live))
            return CU_NOT_INITIALIZED; /* it died meanwhile */
        if (atomic_load(&proc->inside) == 0 && dbl_proc_idle(proc))
            return CU_OK;
        if (dbl_now(driver.sh) >= deadline)
            return CU_NOT_READY;
        next = dbl_sim_next(driver.sh);
        dbl_wait(driver.sh, driver.slot, next < deadline ? next : deadline);
        dbl_reap(driver.sh);
    }
}

cu_result cuCheckpointProcessLock(int pid, struct cu_checkpoint_lock *args)
{
    uint64_t deadline = DBL_NEVER;
    uint32_t slot;
    cu_result result;

    ENTER_QUERY();
    if (driver.bench)
        return CU_NOT_SUPPORTED;
    if (args != NULL && args->timeout_ms > 0)
        deadline = dbl_now(driver.sh) + args->timeout_ms * MILLION;
    dbl_lock(driver.sh);
    result = target_of(pid, &slot);
    if (result == CU_OK && atomic_load(&proc_of(slot)->check) != CU_PROCESS_RUNNING)
        result = CU_ILLEGAL_STATE;
    if (result == CU_OK) {
        atomic_store(&proc_of(slot)->check, CU_PROCESS_LOCKED);
        result = drain(slot, deadline);
        if (result == CU_NOT_READY) {
            atomic_store(&proc_of(slot)->check, CU_PROCESS_RUNNING);
            dbl_notify(driver.sh);
        }
    }
    dbl_unlock(driver.sh);
    return result;
}

static uint64_t held(uint32_t slot)
{
    uint64_t sum = 0;

    for (uint32_t d = 0; d < driver.sh->config.devices; d++)
        sum += dbl_held(driver.sh, slot, d);
    return sum;
}

/* Tells the target's own thread and waits, without the mutex, until it has seen it. */
static void command(uint32_t slot)
{
    struct dbl_proc *proc = proc_of(slot);
    uint32_t number = atomic_fetch_add(&proc->command, 1) + 1;

    dbl_futex_wake(&proc->command);
    dbl_unlock(driver.sh);
    for (uint64_t waited = 0; proc->service_tid != 0 && waited < ACK_NS; waited += MILLION) {
        if ((int32_t)(atomic_load(&proc->served) - number) >= 0 ||
            !dbl_alive(driver.sh, slot, NULL))
            break;
        dbl_futex_wait(&proc->served, atomic_load(&proc->served), MILLION);
    }
    dbl_lock(driver.sh);
}

/* Copying takes its time, by the clock of the devices. With the mutex, which is free meanwhile. */
static void take_time(uint64_t bytes)
{
    uint64_t rate = driver.sh->config.copy_bytes_per_s, now = dbl_now(driver.sh);

    if (rate == 0)
        return;
    dbl_unlock(driver.sh);
    dbl_sleep_until(driver.sh, now + (uint64_t)((unsigned __int128)bytes * BILLION / rate));
    dbl_lock(driver.sh);
}

/* The target can go nowhere from here. */
static void give_up(uint32_t slot)
{
    atomic_store(&proc_of(slot)->check, CU_PROCESS_FAILED);
    dbl_notify(driver.sh);
}

/* A failure that a test asked for: the driver does not try to leave the target in a good state. */
static cu_result fail_as_asked(uint32_t slot)
{
    cu_result code = dbl_injected(driver.sh, DBL_FAIL_CHECKPOINT);

    if (code != CU_OK)
        give_up(slot);
    return code;
}

static cu_result save(uint32_t slot)
{
    struct dbl_proc *proc = proc_of(slot);
    uint64_t bytes = held(slot);

    if (atomic_load(&proc->check) != CU_PROCESS_LOCKED)
        return CU_ILLEGAL_STATE;
    if (driver.sh->config.mode == DBL_MPS || proc->managed > 0 || proc->ipc > 0) {
        give_up(slot);
        return CU_NOT_SUPPORTED;
    }
    atomic_store(&proc->saved_bytes, bytes);
    command(slot);
    take_time(bytes);
    if (!dbl_alive(driver.sh, slot, NULL))
        return CU_NOT_INITIALIZED;
    atomic_store(&proc->swapped, 1);
    atomic_store(&proc->check, CU_PROCESS_CHECKPOINTED);
    return CU_OK;
}

cu_result cuCheckpointProcessCheckpoint(int pid, struct cu_checkpoint_save *args)
{
    uint32_t slot;
    cu_result result;

    ENTER_QUERY();
    dbl_lock(driver.sh);
    result = target_of(pid, &slot);
    if (result == CU_OK)
        result = fail_as_asked(slot);
    if (result == CU_OK)
        result = save(slot);
    dbl_unlock(driver.sh);
    return result;
}

static int index_of(const struct cu_uuid *uuid)
{
    for (uint32_t d = 0; d < driver.sh->config.devices; d++)
        if (memcmp(driver.sh->devices[d].info.uuid, uuid->bytes, 16) == 0)
            return (int)d;
    return -1;
}

/* Where the devices of PROC go by PAIRS: every one of the machine to one of its own chip. */
static cu_result find_moves(const struct dbl_proc *proc, const struct cu_checkpoint_restore *args,
                            uint8_t moved[DBL_DEVICES])
{
    uint32_t count = driver.sh->config.devices;
    bool taken[DBL_DEVICES] = {false};

    memcpy(moved, proc->moved, DBL_DEVICES);
    if (args == NULL || args->pair_count == 0)
        return CU_OK;
    if (args->pair_count != count || args->pairs == NULL)
        return CU_INVALID_VALUE;
    for (uint32_t i = 0; i < count; i++) {
        int from = index_of(&args->pairs[i].old_uuid), to = index_of(&args->pairs[i].new_uuid);
        uint32_t l = 0;

        if (from < 0 || to < 0 || taken[to])
            return CU_INVALID_VALUE;
        if (strcmp(driver.sh->devices[from].info.name, driver.sh->devices[to].info.name) != 0)
            return CU_INVALID_VALUE;
        taken[to] = true;
        while (l < count && proc->moved[l] != from)
            l++;
        moved[l] = (uint8_t)to;
    }
    return CU_OK;
}

/* Whether all devices hold what they should with SLOT back. */
static bool fits(void)
{
    for (uint32_t d = 0; d < driver.sh->config.devices; d++)
        if (dbl_claimed(driver.sh, d) > driver.sh->devices[d].info.memory)
            return false;
    return true;
}

static cu_result bring_back(uint32_t slot, const struct cu_checkpoint_restore *args)
{
    struct dbl_proc *proc = proc_of(slot);
    uint8_t moved[DBL_DEVICES], before[DBL_DEVICES];
    cu_result result;

    if (atomic_load(&proc->check) != CU_PROCESS_CHECKPOINTED)
        return CU_ILLEGAL_STATE;
    result = find_moves(proc, args, moved);
    if (result != CU_OK)
        return result;
    memcpy(before, proc->moved, sizeof(before));
    memcpy(proc->moved, moved, sizeof(moved));
    atomic_store(&proc->swapped, 0);
    if (!fits()) {
        atomic_store(&proc->swapped, 1);
        memcpy(proc->moved, before, sizeof(before));
        return CU_OUT_OF_MEMORY;
    }
    take_time(atomic_load(&proc->saved_bytes));
    atomic_store(&proc->saved_bytes, 0);
    command(slot);
    if (!dbl_alive(driver.sh, slot, NULL))
        return CU_NOT_INITIALIZED;
    atomic_store(&proc->check, CU_PROCESS_LOCKED);
    return CU_OK;
}

cu_result cuCheckpointProcessRestore(int pid, struct cu_checkpoint_restore *args)
{
    uint32_t slot;
    cu_result result;

    ENTER_QUERY();
    dbl_lock(driver.sh);
    result = target_of(pid, &slot);
    if (result == CU_OK)
        result = fail_as_asked(slot);
    if (result == CU_OK)
        result = bring_back(slot, args);
    dbl_unlock(driver.sh);
    return result;
}

cu_result cuCheckpointProcessUnlock(int pid, struct cu_checkpoint_unlock *args)
{
    uint32_t slot;
    cu_result result;

    ENTER_QUERY();
    dbl_lock(driver.sh);
    result = target_of(pid, &slot);
    if (result == CU_OK && atomic_load(&proc_of(slot)->check) != CU_PROCESS_LOCKED)
        result = CU_ILLEGAL_STATE;
    if (result == CU_OK) {
        atomic_store(&proc_of(slot)->check, CU_PROCESS_RUNNING);
        dbl_notify(driver.sh);
    }
    dbl_unlock(driver.sh);
    return result;
}
