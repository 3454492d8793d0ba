/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random histories of the whole control plane; see sim/history.h.
 *
 *     test_history [SEEDS [STEPS [FIRST]]]
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "sim/history.h"

static int one_seed(uint64_t seed, int32_t steps, int number)
{
    struct history_options options = {seed, steps};
    struct history_result a = {0}, b = {0};
    int r = history_run(&options, stdout, &a);

    if (r == 0)
        r = history_run(&options, stdout, &b);
    if (r == 0 && a.hash != b.hash) {
        printf("# seed %llu: the second run differs\n", (unsigned long long)seed);
        r = -1;
    }
    printf("%s %d - seed %llu: %u submitted, %u refused, %u succeeded, %u failed, %u cancelled, "
           "%llu allocations, %u crashes, %u disk faults\n",
           r == 0 ? "ok" : "not ok", number, (unsigned long long)seed, a.submitted, a.refused,
           a.succeeded, a.failed, a.cancelled, (unsigned long long)a.allocations, a.crashes,
           a.disk_faults);
    fflush(stdout);
    return r;
}

int main(int argc, char **argv)
{
    int seeds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 30;
    int steps = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1500;
    int first = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 1;
    int failed = 0;

    log_set_level(LOG_LEVEL_NONE); /* full disks are part of the plan */
    printf("1..%d\n", seeds);
    for (int i = 0; i < seeds; i++)
        failed += one_seed((uint64_t)(first + i), steps, i + 1) != 0;
    return failed ? 1 : 0;
}
