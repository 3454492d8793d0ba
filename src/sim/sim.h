/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry of the simulator for programs: `allot sim scenarios FILE...`, `allot sim random`.
 *
 * It reads files and writes to standard output; it never reads a clock and starts no threads.
 * What a benchmark needs to know of the machine, the program tells it through a meter: no decision
 * and no result of a simulation depends on it, only the figures of time and memory beside them.
 *
 *     return sim_main(argc - 1, argv + 1, &meter);  (argv[1] is "sim", argv[2] the subcommand)
 */
#ifndef ALLOT_SIM_SIM_H
#define ALLOT_SIM_SIM_H

#include <stdint.h>

/* Measures this process. */
struct sim_meter {
    int64_t (*cpu_ns)(void);    /* CPU time of the calling thread, in nanoseconds */
    int64_t (*rss_bytes)(void); /* resident memory of the process; 0 = unknown */
};

/* ARGV[0] is the word `sim`, ARGV[1] the subcommand. METER must outlive the call. Exit status: 0,
 * 1 failed, 2 usage. */
int sim_main(int argc, char **argv, const struct sim_meter *meter);

#endif
