/* SPDX-License-Identifier: Apache-2.0 */
/* Turns until nothing changes, of one scheduler or of two side by side. */
#include <string.h>

#include "base/map.h"
#include "prop_judge.h"

#define TURNS_MAX 300

static void hash_decision(struct prop_world *w, const struct sched_decision *d)
{
    uint64_t parts[] = {(uint64_t)d->kind,
                        (uint64_t)d->cause,
                        d->workload,
                        d->task,
                        d->node,
                        d->device_count,
                        (uint64_t)d->gpu_milli,
                        d->on_behalf_of,
                        (uint64_t)d->until_ms,
                        (uint64_t)d->price_ms,
                        d->team};
    w->hash = w->hash * 31 + map_hash(parts, sizeof(parts));
    if (d->device_count > 0)
        w->hash = w->hash * 31 + map_hash(d->devices, d->device_count * sizeof(uint16_t));
}

void prop_trace_decision(const struct prop_world *w, const char *who,
                         const struct sched_decision *d)
{
    static const char *const kinds[] = {"start", "hold", "unhold", "evict"};
    prop_trace(w, "%s%s %llu/%u (%s) on node %llu, %d milli, for %llu", who, kinds[d->kind],
               (unsigned long long)d->workload, d->task, sched_cause_name(d->cause),
               (unsigned long long)d->node, d->gpu_milli, (unsigned long long)d->on_behalf_of);
}

static bool same_decision(const struct sched_decision *a, const struct sched_decision *b)
{
    return a->kind == b->kind && a->cause == b->cause && a->workload == b->workload &&
           a->task == b->task && a->node == b->node && a->device_count == b->device_count &&
           a->on_behalf_of == b->on_behalf_of &&
           (a->device_count == 0 ||
            memcmp(a->devices, b->devices, a->device_count * sizeof(uint16_t)) == 0);
}

static bool rebuilt_alike(struct prop_world *w, const struct sched_decisions *d)
{
    if (w->s[1] == NULL)
        return true;
    const struct sched_decisions *other = sched_turn(w->s[1], w->now_ms);
    for (size_t i = 0; i < d->count && other->count != d->count; i++)
        prop_trace_decision(w, "the one that lived on: ", &d->items[i]);
    for (size_t i = 0; i < other->count && other->count != d->count; i++)
        prop_trace_decision(w, "the rebuilt one: ", &other->items[i]);
    if (other->count != d->count)
        return prop_fail(w, "the rebuilt scheduler makes %zu decisions, the other %zu",
                         other->count, d->count);
    for (size_t i = 0; i < d->count; i++) {
        if (same_decision(&d->items[i], &other->items[i]))
            continue;
        prop_trace_decision(w, "the one that lived on: ", &d->items[i]);
        prop_trace_decision(w, "the rebuilt one: ", &other->items[i]);
        return prop_fail(w,
                         "the rebuilt scheduler decides otherwise: decision %zu is kind %d "
                         "on %llu/%u, the other's kind %d on %llu/%u",
                         i, (int)other->items[i].kind, (unsigned long long)other->items[i].workload,
                         other->items[i].task, (int)d->items[i].kind,
                         (unsigned long long)d->items[i].workload, d->items[i].task);
    }
    return true;
}

static bool verified(struct prop_world *w)
{
    char what[200] = "";
    for (int i = 0; i < 2; i++) {
        if (w->s[i] != NULL && sched_verify(w->s[i], what, sizeof(what)) < 0)
            return prop_fail(w, "sched_verify of scheduler %d: %s", i, what);
    }
    return true;
}

static bool turn(struct prop_world *w, size_t *ret_count)
{
    struct judge j = {.w = w, .shares = naive_shares(w), .quiet = true};
    for (size_t i = 0; i < w->workloads.len; i++)
        j.quiet &= prop_count(w->workloads.items[i], PROP_LEAVING) +
                       prop_count(w->workloads.items[i], PROP_ENDING) ==
                   0;
    j.d = sched_turn(w->s[0], w->now_ms);
    *ret_count = j.d->count;
    if (!rebuilt_alike(w, j.d))
        return false;
    for (j.i = 0; j.i < j.d->count; j.i++) {
        hash_decision(w, judge_now(&j));
        prop_trace_decision(w, "", judge_now(&j));
        w->decisions++;
        if (!judge_decision(&j))
            return false;
    }
    return judge_gangs(&j) && verified(w);
}

bool prop_turns(struct prop_world *w)
{
    prop_rebuilt_review(w);
    for (int i = 0; i < TURNS_MAX; i++) {
        size_t count;
        if (!verified(w) || !turn(w, &count))
            return false;
        if (count == 0 && sched_next_ms(w->s[0]) > w->now_ms)
            return true; /* else its work is in parts, and more of it is due at once */
        if (!prop_stops_due(w))
            return false;
    }
    return prop_fail(w, "no rest after %d turns without an event", TURNS_MAX);
}
