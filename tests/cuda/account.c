/* SPDX-License-Identifier: Apache-2.0 */
/* What devices hold: exact, without a lock, and right whoever is killed in the middle. */
#include <errno.h>
#include <sched.h>

#include "shared.h"

#define SETTLE_TURNS 10000

/*
 * A process counts by the devices it began with. After a restore on another one its device L is
 * `moved[L]` in the file; pairs cover all devices, so each stands for one.
 */
static uint32_t own_index(const struct dbl_proc *proc, uint32_t device)
{
    uint32_t l = device;

    for (uint32_t i = 0; proc->moved[l] != device && i < DBL_DEVICES; i++)
        l = i;
    return l;
}

/* Sums what is claimed. Whoever adds to its own claim first and sums then cannot miss a rival
 * that does the same: one of the two sees the other. */
uint64_t dbl_claimed(struct dbl_shared *sh, uint32_t device)
{
    uint32_t high = atomic_load(&sh->procs_high);
    uint64_t sum = sh->devices[device].info.reserved;

    for (uint32_t i = 0; i < high; i++) {
        struct dbl_proc *proc = &sh->procs[i];

        if (atomic_load(&proc->live) && !atomic_load(&proc->swapped)) {
            const struct dbl_usage *usage = &proc->usage[own_index(proc, device)];

            for (int k = 0; k < DBL_KINDS; k++)
                sum += atomic_load(&usage->claimed[k]);
            sum += atomic_load(&usage->adopted);
        }
    }
    return sum;
}

uint64_t dbl_held(struct dbl_shared *sh, uint32_t slot, uint32_t device)
{
    struct dbl_proc *proc = &sh->procs[slot];
    struct dbl_usage *usage = &proc->usage[own_index(proc, device)];
    uint64_t sum = atomic_load(&usage->adopted);

    for (int k = 0; k < DBL_KINDS; k++)
        sum += atomic_load(&usage->held[k]);
    return sum;
}

uint64_t dbl_used(struct dbl_shared *sh, uint32_t device)
{
    uint32_t high = atomic_load(&sh->procs_high);
    uint64_t sum = sh->devices[device].info.reserved;

    for (uint32_t i = 0; i < high; i++)
        if (atomic_load(&sh->procs[i].live) && !atomic_load(&sh->procs[i].swapped))
            sum += dbl_held(sh, i, device);
    return sum;
}

/* It did not fit beside the claims of others: did it fit beside what they hold? */
static int charge_slowly(struct dbl_shared *sh, _Atomic uint64_t *claim, uint32_t device,
                         uint64_t bytes)
{
    uint64_t before = atomic_load_explicit(claim, memory_order_relaxed);
    uint64_t total = sh->devices[device].info.memory;

    for (int turn = 0; turn < SETTLE_TURNS; turn++) {
        dbl_lock(sh);
        dbl_reap(sh);
        dbl_unlock(sh);
        if (dbl_used(sh, device) > total - bytes)
            return -ENOMEM;
        atomic_exchange(claim, before + bytes);
        if (dbl_claimed(sh, device) <= total)
            return 0;
        atomic_store(claim, before);
        sched_yield();
    }
    return -ENOMEM;
}

int dbl_charge(struct dbl_shared *sh, uint32_t slot, uint32_t own, enum dbl_kind kind,
               uint64_t bytes)
{
    struct dbl_usage *usage = &sh->procs[slot].usage[own];
    uint32_t device = sh->procs[slot].moved[own];
    uint64_t total = sh->devices[device].info.memory;
    uint64_t before = atomic_load_explicit(&usage->claimed[kind], memory_order_relaxed);
    int error = 0;

    if (bytes > total)
        return -ENOMEM;
    /* An exchange, for no later read may be done before it. */
    atomic_exchange(&usage->claimed[kind], before + bytes);
    if (dbl_claimed(sh, device) > total) {
        atomic_store(&usage->claimed[kind], before);
        error = charge_slowly(sh, &usage->claimed[kind], device, bytes);
    }
    if (error == 0)
        atomic_store_explicit(&usage->held[kind], before + bytes, memory_order_release);
    return error;
}

void dbl_refund(struct dbl_shared *sh, uint32_t slot, uint32_t own, enum dbl_kind kind,
                uint64_t bytes)
{
    struct dbl_usage *usage = &sh->procs[slot].usage[own];
    uint64_t left = atomic_load_explicit(&usage->held[kind], memory_order_relaxed) - bytes;

    atomic_store_explicit(&usage->held[kind], left, memory_order_release);
    atomic_store_explicit(&usage->claimed[kind], left, memory_order_release);
}
