/* SPDX-License-Identifier: Apache-2.0 */
/* Turns until nothing changes. */
#include "base/map.h"
#include "prop_judge.h"
#include "sched/world.h"

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

static bool verified(struct prop_world *w)
{
    char what[200] = "";
    return sched_verify(w->s, what, sizeof(what)) == 0 || prop_fail(w, "sched_verify: %s", what);
}

/* Starts that made way before they were told are no decisions: nothing of them is in the books. */
static void note_taken_back(struct prop_world *w)
{
    for (size_t i = 0; i < w->s->taken_back.len; i++) {
        const struct taken_back *b = &w->s->taken_back.items[i];
        struct prop_pair pair = {(uint32_t)(b->workload - 1), (uint32_t)(b->winner - 1), 0, false};
        prop_trace(w, "taken back: %llu, for %llu", (unsigned long long)b->workload,
                   (unsigned long long)b->winner);
        vec_push(&w->pairs, pair);
    }
}

static bool turn(struct prop_world *w, size_t *ret_count)
{
    struct judge j = {.w = w, .shares = naive_shares(w), .quiet = true};
    for (size_t i = 0; i < w->workloads.len; i++)
        j.quiet &= prop_count(w->workloads.items[i], PROP_LEAVING) +
                       prop_count(w->workloads.items[i], PROP_ENDING) ==
                   0;
    j.d = sched_turn(w->s, w->now_ms);
    *ret_count = j.d->count;
    note_taken_back(w);
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
    for (int i = 0; i < TURNS_MAX; i++) {
        size_t count;
        if (!verified(w) || !turn(w, &count))
            return false;
        if (count == 0 && sched_next_ms(w->s) > w->now_ms)
            return true; /* else its work is in parts, and more of it is due at once */
        if (!prop_stops_due(w))
            return false;
    }
    return prop_fail(w, "no rest after %d turns without an event", TURNS_MAX);
}
