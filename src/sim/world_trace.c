/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens, in words that a person reads: one line an event or decision.
 */
#include <stdarg.h>

#include "base/strbuf.h"
#include "sim/world.h"

void sim_trace(struct sim_world *w, const char *fmt, ...)
{
    if (w->trace == NULL)
        return;
    int64_t s = w->now_ms / 1000;
    fprintf(w->trace, "# %02lld:%02lld:%02lld.%03lld ", (long long)(s / 3600),
            (long long)(s / 60 % 60), (long long)(s % 60), (long long)(w->now_ms % 1000));
    va_list ap;
    va_start(ap, fmt);
    vfprintf(w->trace, fmt, ap);
    va_end(ap);
    fputc('\n', w->trace);
}

static const char *cause_words(const struct sched_decision *d)
{
    bool evict = d->kind == SCHED_EVICT;
    switch (d->cause) {
    case SCHED_CAUSE_FITS:
        return "it fits and its gates are open";
    case SCHED_CAUSE_PROMISED:
        return "what was held for it is free now";
    case SCHED_CAUSE_PREEMPT:
        return evict ? "preempted by higher work of its team" : "preempts lower work of its team";
    case SCHED_CAUSE_RECLAIM:
        return evict ? "reclaimed for another team" : "reclaims what its team is entitled to";
    case SCHED_CAUSE_IDLE_ONLY:
        return evict ? "takes idle capacity only and gives way" : "idle-only work gives way to it";
    case SCHED_CAUSE_CONSOLIDATE:
        return evict ? "moved to make room" : "room is made by moving others";
    case SCHED_CAUSE_STALE_GANG:
        return "ran below its minimum for too long";
    case SCHED_CAUSE_MAINTENANCE:
        return "the maintenance of its node begins";
    case SCHED_CAUSE_EXPIRED:
        return "the hold ran out";
    case SCHED_CAUSE_OBSOLETE:
        return "the promise no longer holds";
    case SCHED_CAUSES:
        break;
    }
    return "no known cause";
}

static const char *kind_words(enum sched_decision_kind kind)
{
    switch (kind) {
    case SCHED_START:
        return "start";
    case SCHED_HOLD:
        return "hold for";
    case SCHED_UNHOLD:
        return "end hold for";
    case SCHED_EVICT:
        return "evict";
    }
    return "?";
}

static void devices_words(struct strbuf *b, const struct sched_decision *d)
{
    for (uint32_t i = 0; i < d->device_count; i++)
        strbuf_addf(b, "%s%u", i == 0 ? " devices " : ",", d->devices[i]);
}

void sim_trace_decision(struct sim_world *w, const struct sched_decision *d)
{
    const struct sim_scenario *s = w->scenario;
    if (w->trace == NULL || d->workload == 0 || d->workload > s->workload_count)
        return;
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
    strbuf_addf(&b, "%s %s/%u", kind_words(d->kind), s->workloads[d->workload - 1].name, d->task);
    if (d->node > 0 && d->node <= s->node_count)
        strbuf_addf(&b, " on %s", s->nodes[d->node - 1].name);
    if (d->kind == SCHED_START || d->kind == SCHED_HOLD)
        devices_words(&b, d);
    strbuf_addf(&b, ": %s", cause_words(d));
    if (d->on_behalf_of > 0 && d->on_behalf_of <= s->workload_count)
        strbuf_addf(&b, ", for %s", s->workloads[d->on_behalf_of - 1].name);
    if (d->team > 0 && d->team <= s->team_count)
        strbuf_addf(&b, ", due to team %s", s->teams[d->team - 1].name);
    sim_trace(w, "%s", strbuf_str(&b));
}
