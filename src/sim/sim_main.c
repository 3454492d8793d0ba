/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/sim.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/qty.h"
#include "sim/random_run.h"
#include "sim/scenario.h"

static int usage(FILE *out, int status)
{
    fputs("usage: allot sim scenarios [--only ID] [--trace] [--expect-fail FILE] FILE...\n"
          "       allot sim random [--seeds N] [--first SEED] [--steps N]\n"
          "\n"
          "scenarios: runs scheduling scenarios on the scheduler library in virtual time.\n"
          "random: plays random histories of the whole control plane, faults included.\n"
          "Both print TAP and exit 1 if anything failed.\n"
          "\n"
          "  --only ID           run this scenario alone\n"
          "  --trace             print every event and decision with its reason\n"
          "  --expect-fail FILE  ids that are known to fail, one a line with '# reason'\n"
          "  --seeds N           how many histories (30)\n"
          "  --first SEED        the first seed (1)\n"
          "  --steps N           steps of each (1500)\n"
          "\n"
          "example: allot sim scenarios --only P10 --trace tests/sim/given.jsonl\n",
          out);
    return status;
}

static int scenarios_main(int argc, char **argv)
{
    static const struct option longs[] = {
        {"only", required_argument, NULL, 'o'},
        {"trace", no_argument, NULL, 't'},
        {"expect-fail", required_argument, NULL, 'x'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    struct sim_scenarios_options o = {0};
    optind = 0; /* the program may have parsed options of its own before */
    for (int c; (c = getopt_long(argc, argv, "h", longs, NULL)) != -1;) {
        switch (c) {
        case 'o':
            o.only = optarg;
            break;
        case 't':
            o.trace = true;
            break;
        case 'x':
            o.expect_fail = optarg;
            break;
        case 'h':
            return usage(stdout, 0);
        default:
            return usage(stderr, 2);
        }
    }
    if (optind >= argc)
        return usage(stderr, 2);
    o.files = (const char *const *)argv + optind;
    o.file_count = (size_t)(argc - optind);
    return sim_scenarios_run(&o, stdout);
}

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
    optind = 0;
    for (int c; (c = getopt_long(argc, argv, "h", longs, NULL)) != -1;) {
        if (c == 'h')
            return usage(stdout, 0);
        int64_t *value = c == 'n' ? &o.seeds : (c == 'f' ? &o.first : &o.steps);
        if (c == '?' || qty_parse_int(optarg, value, NULL) < 0)
            return usage(stderr, 2);
    }
    if (optind < argc || o.seeds < 1 || o.seeds > INT32_MAX || o.steps < 1 || o.steps > INT32_MAX ||
        o.first > INT64_MAX - o.seeds)
        return usage(stderr, 2);
    return sim_random_run(&o, stdout);
}

int sim_main(int argc, char **argv)
{
    if (argc >= 2 && strcmp(argv[1], "scenarios") == 0)
        return scenarios_main(argc - 1, argv + 1);
    if (argc >= 2 && strcmp(argv[1], "random") == 0)
        return random_main(argc - 1, argv + 1);
    if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0))
        return usage(stdout, 0);
    return usage(stderr, 2);
}
