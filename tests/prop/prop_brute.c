/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: prop-brute [--seeds N] [--first SEED] [--steps N] [--trace]
 *
 * Short histories of small worlds (up to four nodes and eight workloads at a time), compared with
 * a search through everything:
 *   - whoever may start is started, and in the order of the design;
 *   - whoever has a right to a place that others hold gets it, from as few as are needed;
 *   - nobody goes who may not, and no smaller part of the victims would have done;
 *   - fair shares, gates and books as in prop-sched.
 * One TAP line a bundle of seeds; a failing seed is printed with its step. Seeds from 2^32 on play
 * the worlds of those below with many quotas per GPU type.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "prop_brute.h"
#include "prop_options.h"

#define ALIVE_MAX 8

/* Seeds beyond the usual ones that found a fault once; they run whenever none is asked for. */
static const uint64_t kept[] = {
    252155, 279508,      /* one task of a gang took the device that another needed */
    PROP_TYPED | 95724,  /* tasks that ask for memory used a limit up on dear devices */
    PROP_TYPED | 109042, /* a cheaper set of victims was not looked for behind a dear one */
    150177, 156412,      /* what made the team above exceed its share ran where it was of no use */
    PROP_TYPED | 202728, /* likewise */
};

static uint32_t alive(const struct prop_world *w)
{
    uint32_t n = 0;
    for (size_t i = 0; i < w->workloads.len; i++)
        n += w->workloads.items[i]->known;
    return n;
}

static bool step(struct prop_world *w)
{
    if (prop_chance(w, 60))
        w->now_ms += (int64_t)prop_below(w, 3000);
    if (!prop_chance(w, 20) && !prop_stops_due(w))
        return false;
    if (alive(w) < ALIVE_MAX ? !prop_happen(w) : !prop_make_room(w))
        return false;
    return prop_turns(w) && prop_rest_check(w) && brute_rest(w);
}

static bool history(uint64_t seed, const struct prop_options *o, void *sum)
{
    struct prop_world *w = prop_create(seed, o->trace, sum);
    while (prop_ok(w) && w->step < o->steps && step(w) && prop_ok(w))
        w->step++;
    if (!prop_ok(w))
        printf("# seed %" PRIu64 ", step %u: %s\n", seed, w->step, w->failure);
    bool ok = prop_ok(w);
    prop_destroy(w);
    return ok;
}

int main(int argc, char **argv)
{
    struct prop_options o = {.seeds = 20000, .first = 1, .steps = 10};
    struct brute_counts sum = {0};
    if (!prop_options_parse(argc, argv, "prop-brute", &o))
        return 2;
    int64_t bundles = prop_bundle_count(&o);
    printf("1..%" PRId64 "\n", bundles + !o.chosen);
    int status = prop_bundles(&o, "sequences", history, &sum);
    if (!o.chosen) {
        bool ok = true;
        for (size_t i = 0; i < ARRAY_LEN(kept); i++)
            ok = history(kept[i], &o, &sum) && ok;
        printf("%s %" PRId64 " - sequences of seeds that once failed\n", ok ? "ok" : "not ok",
               bundles + 1);
        status |= !ok;
    }
    printf("# %" PRIu64 " rests; %" PRIu64 " times nothing could start and %" PRIu64
           " times nobody be evicted (%" PRIu64 " too large), %" PRIu64 " starts in order, %" PRIu64
           " sets of victims, %" PRIu64 " of them larger than the least\n",
           sum.rests, sum.blocked, sum.helpless, sum.passed_over, sum.starts, sum.sets, sum.larger);
    return status;
}
