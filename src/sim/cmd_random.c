/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>

#include "base/qty.h"
#include "sim/command.h"
#include "sim/random_run.h"

static int random_main(int argc, char **argv)
{
    static const struct option longs[] = {
        {"seeds", required_argument, NULL, 'n'},
        {"first", required_argument, NULL, 'f'},
        {"steps", required_argument, NULL, 's'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    struct sim_random_options o = {.seeds = 30, .steps = 1500, .first = 1};
    optind = 0; /* the program may have parsed options of its own before */
    for (int c; (c = getopt_long(argc, argv, "h", longs, NULL)) != -1;) {
        if (c == 'h')
            return sim_usage(&sim_cmd_random, stdout, 0);
        int64_t *value = c == 'n' ? &o.seeds : (c == 'f' ? &o.first : &o.steps);
        if (c == '?' || qty_parse_int(optarg, value, NULL) < 0)
            return sim_usage(&sim_cmd_random, stderr, 2);
    }
    if (optind < argc || o.seeds < 1 || o.seeds > INT32_MAX || o.steps < 1 || o.steps > INT32_MAX ||
        o.first > INT64_MAX - o.seeds)
        return sim_usage(&sim_cmd_random, stderr, 2);
    return sim_random_run(&o, stdout);
}

const struct sim_command sim_cmd_random = {
    .name = "random",
    .summary = "play random histories of the whole control plane, faults included",
    .usage = "usage: allot sim random [--seeds N] [--first SEED] [--steps N]\n"
             "\n"
             "Plays random histories of the whole control plane, faults included. Prints TAP;\n"
             "exits 1 if anything failed.\n"
             "\n"
             "  --seeds N     how many histories (30)\n"
             "  --first SEED  the first seed (1)\n"
             "  --steps N     steps of each (1500)\n",
    .run = random_main,
};
