/* SPDX-License-Identifier: Apache-2.0 */
#include "share/compute.h"

#include <stddef.h>

#include "share/clock.h"
#include "share/meter.h"
#include "share/shim.h"

#define SAMPLE_NS INT64_C(1000000) /* of work between two samples of a lane, about */
#define AHEAD_NS INT64_C(50000000) /* the most that is ahead of what is submitted */
#define UNKNOWN_MAX 2              /* pieces of unknown cost under way */
#define LOOK_NS UINT64_C(100000)   /* how often work under way is looked at by who waits */
#define SLICE_LOOK_NS UINT64_C(10000000)
#define PERIOD_NS INT64_C(100000000) /* of a cap */
#define EMPTY_PARTS 10 /* an account that was emptied is used again when it is a tenth full */
#define DEBT_MAX_NS INT64_C(60000000000)
#define MILLI 1000

struct share_fast *_Atomic share_only;

static struct meter meters[SHARE_DEVICES];
static pthread_mutex_t meters_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- meters ------------------------------------------------------------------------------- */

static void init_meter(struct meter *m, uint32_t device, const struct share_ledger *ledger)
{
    int count = 0;

    pthread_mutex_lock(&meters_lock);
    if (m->limits == NULL) {
        m->fast.device = device;
        m->fast.slot = &ledger->counters->slots[ledger->slot];
        m->counters = ledger->counters;
        m->clock_ns = m->account_at_ns = share_now();
        m->account_ns = PERIOD_NS * ledger->limits->devices[device].compute_milli / MILLI;
        __atomic_store_n(&m->limits, ledger->limits, __ATOMIC_RELEASE);
        if (REAL(cuDeviceGetCount)(&count) == CU_OK && count == 1)
            atomic_store(&share_only, &m->fast);
    }
    pthread_mutex_unlock(&meters_lock);
}

/* Of the thread's device; NULL: it is not shared. */
static struct meter *meter_here(void)
{
    const struct share_ledger *ledger = share_link();
    int device = ledger ? share_here() : -1;

    if (device < 0)
        return NULL;
    if (__atomic_load_n(&meters[device].limits, __ATOMIC_ACQUIRE) == NULL)
        init_meter(&meters[device], (uint32_t)device, ledger);
    return &meters[device];
}

/* ---- capture ------------------------------------------------------------------------------ */

int share_relax(void)
{
    int mode = CU_CAPTURE_RELAXED;

    if (share_real(SYM_cuThreadExchangeStreamCaptureMode) == NULL ||
        REAL(cuThreadExchangeStreamCaptureMode)(&mode) != CU_OK)
        return CU_CAPTURE_RELAXED;
    return mode;
}

void share_unrelax(int mode)
{
    if (mode != CU_CAPTURE_RELAXED)
        REAL(cuThreadExchangeStreamCaptureMode)(&mode);
}

/* Also where the driver does not say: the stream is no valid one, or the legacy one while another
 * is captured. */
static bool is_captured(struct cu_stream *stream, bool ptsz)
{
    int status = CU_CAPTURE_NONE;
    cu_result r = CU_OK;

    if (ptsz && share_real(SYM_cuStreamIsCapturing_ptsz))
        r = REAL_AS(cuStreamIsCapturing_ptsz, cuStreamIsCapturing)(stream, &status);
    else if (share_real(SYM_cuStreamIsCapturing))
        r = REAL(cuStreamIsCapturing)(stream, &status);
    return r != CU_OK || status != CU_CAPTURE_NONE;
}

/* ---- whether a piece may go --------------------------------------------------------------- */

/* What is known when a piece of COST is to go at NOW, and what comes of it. */
struct look {
    uint64_t now;
    int64_t ahead, cost;
    int64_t room;     /* for work after the piece */
    uint64_t next_ns; /* 0: it may go; else when to look again */
    bool for_slice;
};

static void wait_until(struct look *look, uint64_t time_ns)
{
    if (look->next_ns < time_ns)
        look->next_ns = time_ns;
}

static void keep_room(struct look *look, int64_t ns)
{
    if (look->room > ns)
        look->room = ns;
}

/* What the task was busy in all; counters that go back are those of a process that ended. */
static int64_t busy_since(struct meter *m)
{
    uint32_t used = atomic_load(&m->limits->slots_used), device = m->fast.device;
    uint64_t busy = 0, before = m->account_busy_ns;

    for (uint32_t i = 0; i < used && i < SHARE_SLOTS; i++)
        busy += atomic_load(&m->counters->slots[i].devices[device].busy_ns);
    m->account_busy_ns = busy;
    if (busy <= before)
        return 0;
    return busy - before < (uint64_t)DEBT_MAX_NS ? (int64_t)(busy - before) : DEBT_MAX_NS;
}

static void look_at_account(struct meter *m, struct look *look)
{
    int64_t milli = m->limits->devices[m->fast.device].compute_milli;
    int64_t full = PERIOD_NS * milli / MILLI;
    int64_t passed = look->now > m->account_at_ns ? (int64_t)(look->now - m->account_at_ns) : 0;

    if (passed > DEBT_MAX_NS / milli * MILLI)
        passed = DEBT_MAX_NS / milli * MILLI;
    m->account_at_ns = look->now;
    m->account_ns += passed * milli / MILLI - busy_since(m);
    if (m->account_ns > full)
        m->account_ns = full;
    if (m->account_ns < -DEBT_MAX_NS)
        m->account_ns = -DEBT_MAX_NS;
    int64_t left = m->account_ns - look->ahead;
    if (left <= 0 || (m->account_empty && left < full / EMPTY_PARTS)) {
        int64_t missing = full / EMPTY_PARTS - left;
        m->account_empty = true;
        wait_until(look, look->now + (uint64_t)(missing * MILLI / milli) + 1);
        return;
    }
    m->account_empty = false;
    keep_room(look, left - look->cost);
}

static void look_at_slice(const struct meter *m, struct look *look)
{
    uint64_t end = atomic_load(&m->limits->devices[m->fast.device].slice_end_ns);

    if (end == SHARE_NO_SLICE)
        return;
    if (look->now >= end) {
        look->for_slice = true;
        wait_until(look, look->now + (look->ahead > 0 ? LOOK_NS : SLICE_LOOK_NS));
        return;
    }
    int64_t left = end - look->now < (uint64_t)AHEAD_NS ? (int64_t)(end - look->now) : AHEAD_NS;
    left -= look->ahead;
    if (look->ahead > 0 && left < look->cost / 2)
        wait_until(look, look->now + LOOK_NS);
    keep_room(look, left - look->cost);
}

static struct look look_at(struct meter *m, const struct piece *p, uint64_t now)
{
    struct look look = {.now = now, .room = SAMPLE_NS};
    bool known = meter_cost(m, p->kind, &look.cost);
    int64_t given = meter_given(m, share_place_of(p->lane, SHARE_LANES));

    look.ahead = m->ahead_ns + (given > 0 ? given : 0);
    if (look.ahead == 0 && m->sample_count > 0)
        look.ahead = 1; /* of unknown cost */
    if (!(m->limits->flags & (SHARE_COMPUTE | SHARE_CAP)))
        return look;
    if ((!known && m->unknown_count >= UNKNOWN_MAX) ||
        (look.ahead > 0 && look.ahead + look.cost > AHEAD_NS))
        wait_until(&look, now + LOOK_NS);
    keep_room(&look, AHEAD_NS - look.ahead - look.cost);
    if (m->limits->flags & SHARE_CAP)
        look_at_account(m, &look);
    if (m->limits->flags & SHARE_COMPUTE)
        look_at_slice(m, &look);
    return look;
}

/* Whether a thread waits for a slice. */
static void say_waiting(struct meter *m, bool *waiting, bool now)
{
    uint32_t bit = 1u << m->fast.device;

    if (*waiting == now)
        return;
    *waiting = now;
    m->waiters += now ? 1 : -1u;
    if (m->waiters > 0)
        atomic_fetch_or(&m->fast.slot->waiting, bit);
    else
        atomic_fetch_and(&m->fast.slot->waiting, ~bit);
}

/* With the lock, which is free while it sleeps. */
static void wait_for_turn(struct meter *m, struct piece *p)
{
    const struct share_device *d = &m->limits->devices[m->fast.device];
    bool waiting = false;

    for (;;) {
        uint32_t turn = atomic_load(&d->slice_turn);
        meter_harvest(m, share_now());
        struct look look = look_at(m, p, share_now());
        say_waiting(m, &waiting, look.for_slice);
        p->allowed_ns = look.room > 0 ? look.room : 0;
        if (look.next_ns == 0)
            break;
        meter_mark(m, p, look.now);
        if (look.for_slice && m->sample_count == 0)
            atomic_fetch_and(&m->fast.slot->outstanding, ~(1u << m->fast.device));
        pthread_mutex_unlock(&m->lock);
        share_sleep(&d->slice_turn, turn, look.next_ns);
        pthread_mutex_lock(&m->lock);
    }
}

/* ---- pieces ------------------------------------------------------------------------------- */

void share_submit(struct piece *p, uint64_t kind, struct cu_stream *stream, bool ptsz)
{
    struct meter *m = meter_here();

    *p = (struct piece){
        .kind = kind, .lane = share_lane(stream, ptsz), .stream = stream, .ptsz = ptsz};
    if (m == NULL)
        return;
    int mode = share_relax();
    if (!is_captured(stream, ptsz)) {
        p->meter = m;
        pthread_mutex_lock(&m->lock);
        wait_for_turn(m, p);
        share_touch(&m->fast);
        meter_begin(m, p);
        pthread_mutex_unlock(&m->lock);
    }
    share_unrelax(mode);
    if (atomic_load_explicit(share_gate, memory_order_relaxed) != 0)
        share_wait_open(0); /* closed while we waited */
}

cu_result share_submitted(struct piece *p, cu_result r)
{
    if (p->meter == NULL)
        return r;
    int mode = share_relax();
    pthread_mutex_lock(&p->meter->lock);
    meter_end(p->meter, p, r, share_now());
    pthread_mutex_unlock(&p->meter->lock);
    share_unrelax(mode);
    return r;
}

uint64_t share_submits(void)
{
    struct share_fast *f = atomic_load_explicit(&share_only, memory_order_acquire);

    return f ? atomic_load_explicit(&f->slot->submits, memory_order_relaxed) : 0;
}

void share_caught_up(bool all, uint64_t submits)
{
    struct share_fast *f = atomic_load_explicit(&share_only, memory_order_acquire);
    struct meter *m = (struct meter *)f;

    if (f == NULL)
        return;
    int mode = share_relax();
    pthread_mutex_lock(&m->lock);
    if (m->sample_count > 0)
        meter_harvest(m, share_now());
    if ((all || m->lanes_used == 1) && m->sample_count == 0 && share_submits() == submits)
        atomic_fetch_and(&f->slot->outstanding, ~(1u << f->device));
    pthread_mutex_unlock(&m->lock);
    share_unrelax(mode);
}

void share_compute_forget(void)
{
    int mode = share_relax();

    for (uint32_t i = 0; i < SHARE_DEVICES; i++) {
        pthread_mutex_lock(&meters[i].lock);
        if (meters[i].limits)
            meter_forget(&meters[i], share_now());
        pthread_mutex_unlock(&meters[i].lock);
    }
    share_unrelax(mode);
}

void share_compute_forked(void)
{
    atomic_store(&share_only, NULL);
    __builtin_memset(meters, 0, sizeof(meters));
    meters_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}
