/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdbool.h>

#include "sim/command.h"
#include "sim/scenario.h"

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
    struct err err = ERR_INIT;
    const char *name;
    int c;

    optind = 0; /* the program may have parsed options of its own before */
    while ((c = sim_option(argc, argv, longs, &name, &err)) > 0) {
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
        default:
            return sim_usage(&sim_cmd_scenarios, stdout, 0);
        }
    }
    if (c == 0 && optind >= argc)
        c = err_set(&err, -EINVAL, ERR_MISSING, NULL, "allot sim scenarios FILE...",
                    "name a file of scenarios");
    if (c < 0)
        return sim_misused(&sim_cmd_scenarios, &err);
    o.files = (const char *const *)argv + optind;
    o.file_count = (size_t)(argc - optind);
    return sim_scenarios_run(&o, stdout);
}

const struct sim_command sim_cmd_scenarios = {
    .name = "scenarios",
    .summary = "run scheduling scenarios on the scheduler library in virtual time",
    .usage = "usage: allot sim scenarios [--only ID] [--trace] [--expect-fail FILE] FILE...\n"
             "\n"
             "Runs scheduling scenarios on the scheduler library in virtual time. Prints TAP;\n"
             "exits 1 if anything failed.\n"
             "\n"
             "  --only ID           run this scenario alone\n"
             "  --trace             print every event and decision with its reason\n"
             "  --expect-fail FILE  ids that are known to fail, one a line with '# reason'\n"
             "\n"
             "example: allot sim scenarios --only FS15 --trace tests/sim/shares.jsonl\n",
    .run = scenarios_main,
};
