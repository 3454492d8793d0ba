/* SPDX-License-Identifier: Apache-2.0 */
#include "share/ledger.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

/* What a look at all slots shows. */
struct look {
    uint64_t held;   /* by all, with what the agent charges */
    uint64_t wanted; /* by all, us included */
    bool lower;      /* a process in a lower slot wants some */
};

/* Sums that wrap would look small: they stop at the top. */
static uint64_t plus(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static struct share_held *own(struct share_ledger *l, uint32_t device)
{
    return &l->counters->slots[l->slot].devices[device];
}

static uint32_t slots_used(const struct share_limits *l)
{
    uint32_t n = atomic_load(&l->slots_used);
    return n < SHARE_SLOTS ? n : SHARE_SLOTS;
}

/*
 * Wishes are read before holdings: a process that settles adds to the second before it takes
 * from the first, so what moves meanwhile is seen twice and never missed.
 */
static struct look look_around(const struct share_limits *limits,
                               const struct share_counters *counters, uint32_t device,
                               uint32_t slot)
{
    struct look look = {.held = atomic_load(&limits->devices[device].beyond)};
    uint32_t n = slots_used(limits);
    for (uint32_t i = 0; i < n; i++) {
        const struct share_held *h = &counters->slots[i].devices[device];
        uint64_t wanted = atomic_load(&h->wanted);
        look.held = plus(look.held, atomic_load(&h->held));
        look.wanted = plus(look.wanted, wanted);
        look.lower |= wanted > 0 && i < slot;
    }
    return look;
}

enum outcome { SETTLED, FULL, CROWDED };

/* Our wish for BYTES is among those seen. CROWDED: only wishes stand in the way. */
static enum outcome settle(struct share_held *h, const struct look *look, uint64_t bytes,
                           uint64_t limit)
{
    if (plus(look->held, look->wanted) > limit)
        return plus(look->held, bytes) > limit ? FULL : CROWDED;
    atomic_fetch_add(&h->held, bytes);
    return SETTLED;
}

/*
 * Whoever has the lowest slot keeps its wish and looks again; others step back first. Slots are
 * read one after the other, and what moves from one to another meanwhile is counted twice: full
 * is only what looks the same twice.
 */
static int reserve_contended(struct share_ledger *l, uint32_t device, uint64_t bytes,
                             uint64_t limit)
{
    struct share_held *h = own(l, device);
    enum outcome outcome = CROWDED;
    uint64_t before = UINT64_MAX;
    bool wished = false;

    for (int i = 0; i < SHARE_PATIENCE; i++) {
        if (!wished)
            atomic_fetch_add(&h->wanted, bytes);
        struct look look = look_around(l->limits, l->counters, device, l->slot);
        outcome = settle(h, &look, bytes, limit);
        wished = outcome == CROWDED && !look.lower;
        if (!wished)
            atomic_fetch_sub(&h->wanted, bytes);
        if (outcome == SETTLED || (outcome == FULL && look.held == before))
            break;
        before = look.held;
        if (outcome == CROWDED)
            sched_yield();
    }
    if (wished)
        atomic_fetch_sub(&h->wanted, bytes);
    return outcome == SETTLED ? 0 : -ENOMEM;
}

void share_ledger_init(struct share_ledger *l, const struct share_limits *limits,
                       struct share_counters *counters, uint32_t slot)
{
    *l = (struct share_ledger){.limits = limits, .counters = counters, .slot = slot};
    pthread_mutex_init(&l->contended, NULL);
}

int share_ledger_reserve(struct share_ledger *l, uint32_t device, uint64_t bytes)
{
    uint64_t limit = l->limits->devices[device].memory_limit;
    struct share_held *h = own(l, device);

    if (bytes > limit)
        return -ENOMEM;
    atomic_fetch_add(&h->wanted, bytes);
    struct look look = look_around(l->limits, l->counters, device, l->slot);
    enum outcome outcome = settle(h, &look, bytes, limit);
    atomic_fetch_sub(&h->wanted, bytes);
    if (outcome == SETTLED)
        return 0;
    pthread_mutex_lock(&l->contended);
    int r = reserve_contended(l, device, bytes, limit);
    pthread_mutex_unlock(&l->contended);
    return r;
}

void share_ledger_release(struct share_ledger *l, uint32_t device, uint64_t bytes)
{
    atomic_fetch_sub(&own(l, device)->held, bytes);
}

void share_ledger_charge(struct share_ledger *l, uint32_t device, uint64_t bytes)
{
    atomic_fetch_add(&own(l, device)->held, bytes);
}

uint64_t share_ledger_held(const struct share_limits *limits, const struct share_counters *counters,
                           uint32_t device)
{
    return look_around(limits, counters, device, 0).held;
}

void share_ledger_empty(struct share_counters *counters, uint32_t slot)
{
    struct share_slot *s = &counters->slots[slot];
    for (uint32_t i = 0; i < SHARE_DEVICES; i++) {
        atomic_store(&s->devices[i].held, 0);
        atomic_store(&s->devices[i].wanted, 0);
        atomic_store(&s->devices[i].busy_ns, 0);
    }
    atomic_store(&s->obstacles, 0);
    atomic_store(&s->submits, 0);
    atomic_store(&s->outstanding, 0);
    atomic_store(&s->waiting, 0);
    atomic_store(&s->taken, 0);
}
