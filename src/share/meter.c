/* SPDX-License-Identifier: Apache-2.0 */
#include "share/meter.h"

#include <stddef.h>

#include "share/clock.h"
#include "share/shim.h"

#define COST_MIN_NS INT64_C(500)
#define COST_MAX_NS INT64_C(100000000000)
#define MEMORY_OF_COSTS 4 /* a new measurement counts for one in so many */

static uint32_t lane_of(uint64_t lane)
{
    return share_place_of(lane, SHARE_LANES);
}

bool meter_cost(const struct meter *m, uint64_t kind, int64_t *ret_ns)
{
    const struct share_cost *c = &m->fast.costs[share_place_of(kind, SHARE_KINDS)];
    bool known = atomic_load(&c->kind) == kind;

    *ret_ns = known ? atomic_load(&c->ns) : 0;
    return known;
}

static void learn(struct meter *m, uint64_t kind, int64_t ns)
{
    struct share_cost *c = &m->fast.costs[share_place_of(kind, SHARE_KINDS)];
    int64_t before;

    ns = ns < COST_MIN_NS ? COST_MIN_NS : ns > COST_MAX_NS ? COST_MAX_NS : ns;
    if (meter_cost(m, kind, &before))
        ns = before + (ns - before) / MEMORY_OF_COSTS;
    atomic_store(&c->ns, ns);
    atomic_store(&c->kind, kind);
}

/* Work of NS that was submitted at FROM or later is done by NOW. */
static void charge(struct meter *m, uint64_t from, int64_t ns, uint64_t now)
{
    uint64_t begin = m->clock_ns > from ? m->clock_ns : from;
    uint64_t end = begin + (uint64_t)ns < now ? begin + (uint64_t)ns : now;

    if (end <= begin)
        return;
    atomic_fetch_add(&m->fast.slot->devices[m->fast.device].busy_ns, end - begin);
    m->clock_ns = end;
}

/* ---- events ------------------------------------------------------------------------------- */

static struct cu_event *take_event(struct meter *m, struct cu_ctx *ctx)
{
    struct cu_event *event = NULL;

    for (uint32_t i = m->event_count; i-- > 0;) {
        if (m->events[i].ctx != ctx)
            continue;
        event = m->events[i].event;
        m->events[i] = m->events[--m->event_count];
        return event;
    }
    return REAL(cuEventCreate)(&event, 0) == CU_OK ? event : NULL;
}

static void give_event(struct meter *m, struct meter_event event)
{
    if (event.event == NULL)
        return;
    if (m->event_count == METER_EVENTS)
        REAL(cuEventDestroy_v2)(event.event);
    else
        m->events[m->event_count++] = event;
}

static bool record(struct cu_event *event, struct cu_stream *stream, bool ptsz)
{
    fn_cuEventRecord *real =
        ptsz ? REAL_AS(cuEventRecord_ptsz, cuEventRecord) : REAL(cuEventRecord);

    return event && real(event, stream) == CU_OK;
}

/* ---- samples ------------------------------------------------------------------------------ */

/* S is over: what its piece took, or what was guessed where the driver does not say. */
static int64_t took(const struct meter_sample *s)
{
    float ms;

    if (s->kind == 0)
        return 0;
    if (REAL(cuEventElapsedTime)(&ms, s->start.event, s->end.event) != CU_OK || ms < 0)
        return s->cost_ns;
    return (int64_t)((double)ms * 1e6);
}

static void settle(struct meter *m, const struct meter_sample *s, int64_t ns, uint64_t now)
{
    charge(m, s->from_ns, s->before_ns + ns, now);
    m->ahead_ns -= s->before_ns + s->cost_ns;
    m->unknown_count -= !s->known;
    give_event(m, s->start);
    give_event(m, s->end);
}

void meter_harvest(struct meter *m, uint64_t now)
{
    uint64_t busy = 0; /* lanes, a bit each */
    uint32_t left = 0;

    for (uint32_t i = 0; i < m->sample_count; i++) {
        struct meter_sample s = m->samples[i];

        if (busy >> s.lane & 1 || REAL(cuEventQuery)(s.end.event) == CU_NOT_READY) {
            busy |= UINT64_C(1) << s.lane;
            m->samples[left++] = s;
            continue;
        }
        int64_t ns = took(&s);
        if (s.kind)
            learn(m, s.kind, ns);
        settle(m, &s, ns, now);
    }
    m->sample_count = left;
}

int64_t meter_given(const struct meter *m, uint32_t lane)
{
    return m->lanes[lane].allowed_ns - atomic_load(&m->fast.lanes[lane].left_ns);
}

/* Lane L is that of KEY from now on, which may be given NS. What it was given before is the
 * caller's to account for. */
static void allow(struct meter *m, uint32_t l, uint64_t key, int64_t ns, uint64_t now)
{
    if (atomic_load(&m->fast.lanes[l].stream) == 0)
        m->lanes_used++;
    m->lanes[l] = (struct meter_lane){ns, now};
    atomic_store(&m->fast.lanes[l].left_ns, ns);
    atomic_store(&m->fast.lanes[l].stream, key);
}

static void add_sample(struct meter *m, struct meter_sample s, uint64_t now)
{
    s.before_ns = meter_given(m, s.lane);
    s.from_ns = s.before_ns > 0 ? m->lanes[s.lane].since_ns : now;
    m->ahead_ns += s.before_ns + s.cost_ns;
    m->unknown_count += !s.known;
    m->samples[m->sample_count++] = s;
}

void meter_begin(struct meter *m, struct piece *p)
{
    if (m->sample_count == METER_SAMPLES || REAL(cuCtxGetCurrent)(&p->ctx) != CU_OK)
        return;
    p->start = take_event(m, p->ctx);
    p->end = take_event(m, p->ctx);
    if (p->end && record(p->start, p->stream, p->ptsz))
        return;
    give_event(m, (struct meter_event){p->start, p->ctx});
    give_event(m, (struct meter_event){p->end, p->ctx});
    p->start = p->end = NULL;
}

void meter_end(struct meter *m, struct piece *p, cu_result r, uint64_t now)
{
    struct meter_sample s = {.kind = p->kind,
                             .lane = lane_of(p->lane),
                             .start = {p->start, p->ctx},
                             .end = {p->end, p->ctx}};

    s.known = meter_cost(m, p->kind, &s.cost_ns);
    if (p->start && r == CU_OK && m->sample_count < METER_SAMPLES &&
        record(p->end, p->stream, p->ptsz)) {
        add_sample(m, s, now);
        allow(m, s.lane, p->lane, p->allowed_ns, now);
        return;
    }
    give_event(m, s.start);
    give_event(m, s.end);
    if (r == CU_OK) /* the next sample has it too */
        atomic_fetch_sub(&m->fast.lanes[s.lane].left_ns, s.cost_ns);
}

void meter_mark(struct meter *m, const struct piece *p, uint64_t now)
{
    struct meter_sample s = {.lane = lane_of(p->lane), .known = true};

    if (meter_given(m, s.lane) <= 0 || atomic_load(&m->fast.lanes[s.lane].stream) != p->lane ||
        m->sample_count == METER_SAMPLES || REAL(cuCtxGetCurrent)(&s.end.ctx) != CU_OK)
        return;
    s.end.event = take_event(m, s.end.ctx);
    if (!record(s.end.event, p->stream, p->ptsz)) {
        give_event(m, s.end);
        return;
    }
    add_sample(m, s, now);
    allow(m, s.lane, p->lane, 0, now);
}

void meter_forget(struct meter *m, uint64_t now)
{
    for (uint32_t i = 0; i < m->sample_count; i++)
        settle(m, &m->samples[i], m->samples[i].cost_ns, now);
    m->sample_count = 0;
    while (m->event_count > 0)
        REAL(cuEventDestroy_v2)(m->events[--m->event_count].event);
}
