/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/slices.h"

#include <errno.h>
#include <string.h>

#include "allot/share.h"

#define NOBODY GPU_SLICES_TENANTS
#define CHARGE_MAX_NS UINT64_C(60000000000) /* at one report; beyond is forgiven */
#define AHEAD_MAX_NS UINT64_C(2000000000)   /* figures of busy time are later by less */
#define LAG_MAX_NS (INT64_C(1) << 60)
#define MILLI 1000
#define SHORTEST_NS UINT64_C(1000000) /* a slice that a budget cuts is not shorter */

void gpu_slices_init(struct gpu_slices *s, bool unused_usable)
{
    memset(s, 0, sizeof(*s));
    s->unused_usable = unused_usable;
    s->open = unused_usable;
    s->holder = NOBODY;
}

static int64_t budget_max(const struct gpu_slices_tenant *t)
{
    return (int64_t)(GPU_SLICE_PERIOD_NS * t->milli);
}

int gpu_slices_join(struct gpu_slices *s, uint32_t milli, uint64_t now, uint32_t *ret_tenant)
{
    if (milli < 1 || milli > MILLI)
        return -EINVAL;
    for (uint32_t i = 0; i < GPU_SLICES_TENANTS; i++) {
        struct gpu_slices_tenant *t = &s->tenants[i];

        if (t->milli)
            continue;
        *t = (struct gpu_slices_tenant){.milli = milli, .joined_ns = now};
        t->budget = budget_max(t);
        *ret_tenant = i;
        return 0;
    }
    return -ENOSPC;
}

void gpu_slices_leave(struct gpu_slices *s, uint32_t tenant)
{
    if (tenant >= GPU_SLICES_TENANTS)
        return;
    s->tenants[tenant] = (struct gpu_slices_tenant){0};
    if (s->holder == tenant)
        s->holder = NOBODY;
}

static void pass_time(struct gpu_slices_tenant *t, uint64_t ns)
{
    t->lag_ns += (int64_t)(ns * MILLI / t->milli);
    if (t->lag_ns > LAG_MAX_NS)
        t->lag_ns = LAG_MAX_NS;
}

void gpu_slices_report(struct gpu_slices *s, uint32_t tenant, uint64_t now, bool wants,
                       uint64_t busy_ns)
{
    if (tenant >= GPU_SLICES_TENANTS || s->tenants[tenant].milli == 0)
        return;
    struct gpu_slices_tenant *t = &s->tenants[tenant];
    uint64_t passed = now > t->joined_ns ? now - t->joined_ns : 0;
    t->wants = wants;
    if (busy_ns > passed)
        busy_ns = passed;
    if (busy_ns <= t->charged_ns)
        return;
    uint64_t more = busy_ns - t->charged_ns;
    t->charged_ns = busy_ns;
    if (more > CHARGE_MAX_NS)
        more = CHARGE_MAX_NS;
    uint64_t charged = more < t->ahead_ns ? more : t->ahead_ns;
    t->ahead_ns -= charged;
    pass_time(t, more - charged);
    t->budget -= (int64_t)(more * MILLI);
    if (t->budget < -(int64_t)(CHARGE_MAX_NS * MILLI))
        t->budget = -(int64_t)(CHARGE_MAX_NS * MILLI);
}

static void fill_budgets(struct gpu_slices *s, uint64_t now)
{
    uint64_t passed = now > s->turn_ns ? now - s->turn_ns : 0;

    if (passed > CHARGE_MAX_NS)
        passed = CHARGE_MAX_NS;
    for (uint32_t i = 0; i < GPU_SLICES_TENANTS; i++) {
        struct gpu_slices_tenant *t = &s->tenants[i];

        t->budget += (int64_t)(passed * t->milli);
        if (t->budget > budget_max(t))
            t->budget = budget_max(t);
    }
}

/* The holder pays for what has passed of its slice: others could not use it. Figures of busy
 * time are late, so what is paid is remembered until they may have come. */
static void charge_holder(struct gpu_slices *s, uint64_t now)
{
    uint64_t until = now < s->end_ns ? now : s->end_ns;

    if (s->holder == NOBODY || until <= s->turn_ns)
        return;
    struct gpu_slices_tenant *t = &s->tenants[s->holder];
    pass_time(t, until - s->turn_ns);
    t->ahead_ns += until - s->turn_ns;
    if (t->ahead_ns > AHEAD_MAX_NS)
        t->ahead_ns = AHEAD_MAX_NS;
}

/* Virtual time begins anew with whoever wants the device and is furthest behind. */
static void rebase(struct gpu_slices *s)
{
    int64_t least = INT64_MAX;

    for (uint32_t i = 0; i < GPU_SLICES_TENANTS; i++)
        if (s->tenants[i].wants && s->tenants[i].lag_ns < least)
            least = s->tenants[i].lag_ns;
    if (least == INT64_MAX)
        return;
    for (uint32_t i = 0; i < GPU_SLICES_TENANTS; i++) {
        struct gpu_slices_tenant *t = &s->tenants[i];
        int64_t saved = t->milli ? -(int64_t)(GPU_SLICE_NS * MILLI / t->milli) : 0;

        t->lag_ns -= least;
        if (t->lag_ns < saved)
            t->lag_ns = saved;
    }
}

static bool may_hold(const struct gpu_slices *s, uint32_t tenant)
{
    const struct gpu_slices_tenant *t = &s->tenants[tenant];

    return t->wants && (s->unused_usable || t->budget > 0);
}

/* The one furthest behind; after an equal one, the next by number. */
static uint32_t choose(const struct gpu_slices *s)
{
    uint32_t best = NOBODY;

    for (uint32_t n = 1; n <= GPU_SLICES_TENANTS; n++) {
        uint32_t i = (s->holder + n) % GPU_SLICES_TENANTS;

        if (may_hold(s, i) && (best == NOBODY || s->tenants[i].lag_ns < s->tenants[best].lag_ns))
            best = i;
    }
    return best;
}

static uint64_t slice_of(const struct gpu_slices *s, uint32_t tenant)
{
    uint64_t left = (uint64_t)s->tenants[tenant].budget / MILLI;

    if (s->unused_usable || left > GPU_SLICE_NS)
        return GPU_SLICE_NS;
    return left > SHORTEST_NS ? left : SHORTEST_NS;
}

/* When the first of those that want the device has budget again. */
static uint64_t next_budget(const struct gpu_slices *s, uint64_t now)
{
    uint64_t next = GPU_SLICE_NEVER;

    for (uint32_t i = 0; i < GPU_SLICES_TENANTS; i++) {
        const struct gpu_slices_tenant *t = &s->tenants[i];

        if (!t->wants)
            continue;
        uint64_t at = now + (t->budget > 0 ? 0 : (uint64_t)-t->budget / t->milli + 1);
        next = at < next ? at : next;
    }
    return next;
}

static uint32_t count_wanting(const struct gpu_slices *s)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < GPU_SLICES_TENANTS; i++)
        n += s->tenants[i].wants;
    return n;
}

uint64_t gpu_slices_turn(struct gpu_slices *s, uint64_t now)
{
    if (now < s->turn_ns)
        now = s->turn_ns;
    fill_budgets(s, now);
    charge_holder(s, now);
    s->turn_ns = now;
    rebase(s);
    s->open = s->unused_usable && count_wanting(s) <= 1;
    if (s->open) {
        s->holder = NOBODY;
        return GPU_SLICE_NEVER;
    }
    if (s->holder != NOBODY && now < s->end_ns && may_hold(s, s->holder))
        return s->end_ns;
    s->holder = choose(s);
    if (s->holder == NOBODY)
        return next_budget(s, now);
    s->end_ns = now + slice_of(s, s->holder);
    return s->end_ns;
}

uint64_t gpu_slices_end(const struct gpu_slices *s, uint32_t tenant)
{
    if (s->open)
        return SHARE_NO_SLICE;
    return s->holder == tenant && tenant < GPU_SLICES_TENANTS ? s->end_ns : 0;
}
