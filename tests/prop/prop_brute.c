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
 * One TAP line a bundle of seeds; a failing seed is printed with its step.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/qty.h"
#include "prop_brute.h"

#define BUNDLES 20
#define ALIVE_MAX 8

struct options {
    int64_t seeds, first, steps;
    bool trace;
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

static bool history(uint64_t seed, const struct options *o, struct brute_counts *sum)
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

static int run(const struct options *o)
{
    int64_t bundles = o->seeds < BUNDLES ? o->seeds : BUNDLES;
    int status = 0;
    struct brute_counts sum = {0};
    printf("1..%" PRId64 "\n", bundles);
    for (int64_t b = 0; b < bundles; b++) {
        int64_t from = o->first + o->seeds * b / bundles;
        int64_t to = o->first + o->seeds * (b + 1) / bundles;
        bool ok = true;
        for (int64_t seed = from; seed < to; seed++)
            ok = history((uint64_t)seed, o, &sum) && ok;
        printf("%s %" PRId64 " - sequences of seeds %" PRId64 " to %" PRId64 "\n",
               ok ? "ok" : "not ok", b + 1, from, to - 1);
        fflush(stdout);
        status |= !ok;
    }
    printf("# %" PRIu64 " rests; %" PRIu64 " times nothing could start and %" PRIu64
           " times nobody be evicted (%" PRIu64 " too large), %" PRIu64 " starts in order, %" PRIu64
           " sets of victims, %" PRIu64 " of them larger than the least\n",
           sum.rests, sum.blocked, sum.helpless, sum.passed_over, sum.starts, sum.sets, sum.larger);
    return status;
}

int main(int argc, char **argv)
{
    static const struct option longs[] = {
        {"seeds", required_argument, NULL, 'n'},
        {"first", required_argument, NULL, 'f'},
        {"steps", required_argument, NULL, 's'},
        {"trace", no_argument, NULL, 't'},
        {0},
    };
    struct options o = {.seeds = 20000, .first = 1, .steps = 10};
    for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        if (c == 't') {
            o.trace = true;
            continue;
        }
        int64_t *value = c == 'n' ? &o.seeds : c == 'f' ? &o.first : &o.steps;
        if (c == '?' || qty_parse_int(optarg, value, NULL) < 0 || o.seeds < 1) {
            fputs("usage: prop-brute [--seeds N] [--first SEED] [--steps N] [--trace]\n", stderr);
            return 2;
        }
    }
    return run(&o);
}
