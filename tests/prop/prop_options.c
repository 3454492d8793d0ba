/* SPDX-License-Identifier: Apache-2.0 */
#include "prop_options.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/qty.h"

bool prop_options_parse(int argc, char **argv, const char *program, struct prop_options *ret)
{
    static const struct option longs[] = {
        {"seeds", required_argument, NULL, 'n'},
        {"first", required_argument, NULL, 'f'},
        {"steps", required_argument, NULL, 's'},
        {"trace", no_argument, NULL, 't'},
        {0},
    };
    for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        int64_t *value = c == 'n' ? &ret->seeds : c == 'f' ? &ret->first : &ret->steps;
        ret->trace = ret->trace || c == 't';
        ret->chosen = ret->chosen || c == 'f';
        if (c != 't' && (c == '?' || qty_parse_int(optarg, value, NULL) < 0 || ret->seeds < 1)) {
            fprintf(stderr, "usage: %s [--seeds N] [--first SEED] [--steps N] [--trace]\n",
                    program);
            return false;
        }
    }
    return true;
}

int64_t prop_bundle_count(const struct prop_options *o)
{
    return o->seeds < PROP_BUNDLES ? o->seeds : PROP_BUNDLES;
}

int prop_bundles(const struct prop_options *o, const char *what, prop_holds_fn *holds, void *sum)
{
    int64_t bundles = prop_bundle_count(o);
    int status = 0;
    for (int64_t b = 0; b < bundles; b++) {
        int64_t from = o->first + o->seeds * b / bundles;
        int64_t to = o->first + o->seeds * (b + 1) / bundles;
        bool ok = true;
        for (int64_t seed = from; seed < to; seed++)
            ok = holds((uint64_t)seed, o, sum) && ok;
        printf("%s %" PRId64 " - %s of seeds %" PRId64 " to %" PRId64 "\n", ok ? "ok" : "not ok",
               b + 1, what, from, to - 1);
        fflush(stdout);
        status |= !ok;
    }
    return status;
}
