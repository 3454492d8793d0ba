/* SPDX-License-Identifier: Apache-2.0 */
/* What tests ask and tell: clock, failures, sums. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "shared.h"

static const char *const mode_names[] = {"timeslice", "mps", "bench"};
static const char *const kind_names[] = {"context", "linear", "managed", "pool",
                                         "vmm",     "array",  "graph",   "module"};
static const char *const fail_names[] = {
    "init", "context", "alloc", "pool", "vmm",  "map",    "array",      "host",
    "free", "launch",  "graph", "copy", "sync", "module", "checkpoint", "nvml"};

_Static_assert(ARRAY_LEN(kind_names) == DBL_KINDS, "a name for each kind");
_Static_assert(ARRAY_LEN(fail_names) == DBL_FAILS, "a name for each kind of failure");

const char *dbl_mode_name(int mode)
{
    return mode >= 0 && mode < (int)ARRAY_LEN(mode_names) ? mode_names[mode] : NULL;
}

const char *dbl_kind_name(int kind)
{
    return kind >= 0 && kind < DBL_KINDS ? kind_names[kind] : NULL;
}

const char *dbl_fail_name(int kind)
{
    return kind >= 0 && kind < DBL_FAILS ? fail_names[kind] : NULL;
}

void dbl_uuid_text(const uint8_t uuid[16], char text[48])
{
    int at = snprintf(text, 48, "GPU-");

    for (int i = 0; i < 16; i++)
        at += snprintf(text + at, (size_t)(48 - at), "%s%02x",
                       i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

const char *dbl_file(void)
{
    const char *file = getenv(DBL_FILE_ENV);

    return file ? file : DBL_FILE_DEFAULT;
}

const struct dbl_config *dbl_config(struct dbl_shared *sh)
{
    return &sh->config;
}

const struct dbl_device_info *dbl_info(struct dbl_shared *sh, uint32_t index)
{
    return &sh->devices[index].info;
}

void dbl_describe(struct dbl_shared *sh, uint32_t index, const struct dbl_device_info *info)
{
    sh->devices[index].info = *info;
}

void dbl_advance(struct dbl_shared *sh, uint64_t ns)
{
    uint64_t target;

    dbl_lock(sh);
    dbl_reap(sh);
    dbl_sim_run(sh);
    target = sh->virtual_ns + ns;
    for (;;) {
        uint64_t next = dbl_sim_next(sh);

        if (dbl_host_calls(sh)) {
            /* They happen in real time, at this instant of the virtual one. */
            dbl_wait(sh, DBL_PROCS, sh->virtual_ns + 1);
            dbl_sim_run(sh);
            continue;
        }
        if (sh->virtual_ns >= target)
            break;
        dbl_clock_to(sh, next < target ? next : target);
    }
    dbl_unlock(sh);
}

void dbl_actors(struct dbl_shared *sh, uint32_t count)
{
    dbl_lock(sh);
    atomic_store(&sh->actors, count);
    dbl_notify(sh);
    dbl_unlock(sh);
}

void dbl_actor_leave(struct dbl_shared *sh)
{
    dbl_lock(sh);
    if (sh->actors > 0)
        atomic_fetch_sub(&sh->actors, 1);
    dbl_notify(sh);
    dbl_unlock(sh);
}

/* The slot of this process, DBL_PROCS if it has none: a waiter goes with its process. */
static uint32_t own_slot(struct dbl_shared *sh)
{
    for (uint32_t i = 0; i < sh->procs_high; i++)
        if (sh->procs[i].live && sh->procs[i].pid == getpid() && dbl_alive(sh, i, NULL))
            return i;
    return DBL_PROCS;
}

void dbl_sleep_until(struct dbl_shared *sh, uint64_t time_ns)
{
    dbl_lock(sh);
    while (dbl_now(sh) < time_ns) {
        dbl_wait(sh, own_slot(sh), time_ns);
        if (sh->config.clock == DBL_CLOCK_REAL)
            continue;
        dbl_sim_run(sh);
    }
    dbl_unlock(sh);
}

void dbl_fail_nth(struct dbl_shared *sh, enum dbl_fail kind, int64_t nth, int code)
{
    atomic_store(&sh->fail_code[kind], code);
    atomic_store(&sh->fail_after[kind], nth);
    atomic_store(&sh->armed, 1);
}

int dbl_injected(struct dbl_shared *sh, enum dbl_fail kind)
{
    if (sh->config.mode != DBL_BENCH)
        atomic_fetch_add_explicit(&sh->calls[kind], 1, memory_order_relaxed);
    if (!atomic_load_explicit(&sh->armed, memory_order_relaxed) || sh->fail_after[kind] <= 0)
        return 0;
    return atomic_fetch_sub(&sh->fail_after[kind], 1) == 1 ? sh->fail_code[kind] : 0;
}

uint64_t dbl_calls(struct dbl_shared *sh, enum dbl_fail kind)
{
    return atomic_load(&sh->calls[kind]);
}

static uint64_t slot_bytes(const struct dbl_proc *proc, uint32_t device, enum dbl_kind kind)
{
    uint32_t own = device;
    uint64_t sum = 0;
    const struct dbl_usage *usage;

    for (uint32_t i = 0; proc->moved[own] != device && i < DBL_DEVICES; i++)
        own = i;
    usage = &proc->usage[own];
    if (kind != DBL_KINDS)
        return usage->held[kind] + (kind == DBL_VMM ? usage->adopted : 0);
    for (int k = 0; k < DBL_KINDS; k++)
        sum += usage->held[k];
    return sum + usage->adopted;
}

uint64_t dbl_bytes(struct dbl_shared *sh, uint32_t device, enum dbl_kind kind)
{
    uint64_t sum = 0;

    dbl_lock(sh);
    dbl_reap(sh);
    for (uint32_t i = 0; i < sh->procs_high; i++)
        if (sh->procs[i].live && !sh->procs[i].swapped)
            sum += slot_bytes(&sh->procs[i], device, kind);
    dbl_unlock(sh);
    return sum;
}

uint64_t dbl_process_bytes(struct dbl_shared *sh, int pid, uint32_t device, enum dbl_kind kind)
{
    uint64_t sum = 0;

    dbl_lock(sh);
    dbl_reap(sh);
    for (uint32_t i = 0; i < sh->procs_high; i++) {
        int seen = 0;

        if (dbl_alive(sh, i, &seen) && seen == pid && !sh->procs[i].swapped)
            sum += slot_bytes(&sh->procs[i], device, kind);
    }
    dbl_unlock(sh);
    return sum;
}

uint64_t dbl_busy_ns(struct dbl_shared *sh, int pid, uint32_t device)
{
    uint64_t busy = 0;

    dbl_lock(sh);
    dbl_reap(sh);
    dbl_sim_run(sh);
    if (pid == 0)
        busy = sh->devices[device].meter.busy_ns;
    for (uint32_t i = 0; pid != 0 && i < sh->procs_high; i++) {
        int seen = 0;

        if (dbl_alive(sh, i, &seen) && seen == pid)
            busy += sh->procs[i].meter[device].busy_ns;
    }
    dbl_unlock(sh);
    return busy;
}

uint32_t dbl_processes(struct dbl_shared *sh)
{
    uint32_t count = 0;

    dbl_lock(sh);
    dbl_reap(sh);
    for (uint32_t i = 0; i < sh->procs_high; i++)
        count += sh->procs[i].live;
    dbl_unlock(sh);
    return count;
}

uint64_t dbl_unsimulated(struct dbl_shared *sh, uint32_t index)
{
    return index < ARRAY_LEN(sh->unsimulated) ? atomic_load(&sh->unsimulated[index]) : 0;
}
