/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry of the simulator for programs: `allot sim scenarios FILE...`, `allot sim random`.
 *
 * It reads files and writes to standard output; it never reads a clock and starts no threads.
 * What a benchmark needs to know of the machine, the program tells it through a meter: no decision
 * and no result of a simulation depends on it, only the figures of time and memory beside them.
 *
 * Some commands work on what a server has recorded. They read files themselves; a server or its
 * store they reach through a table of the program, since they know neither.
 *
 *     return sim_main(argc - 1, argv + 1, &meter, NULL); (argv[1] is "sim", argv[2] the subcommand)
 */
#ifndef ALLOT_SIM_SIM_H
#define ALLOT_SIM_SIM_H

#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

/* Measures this process. */
struct sim_meter {
    int64_t (*cpu_ns)(void);    /* CPU time of the calling thread, in nanoseconds */
    int64_t (*rss_bytes)(void); /* resident memory of the process; 0 = unknown */
};

/* Where a history is, in a person's words; all NULL = at the server that is configured. */
struct sim_place {
    const char *data;           /* data folder of a server */
    const char *server, *token; /* of the command line */
};

/* Opens what was recorded. */
struct sim_records {
    /* RET_FILE is read from its beginning and closed by the caller; RET_NAME, what to call it in
     * messages, lives as long as CTX. 0 or a negative errno with ERR. */
    int (*open)(void *ctx, const struct sim_place *place, FILE **ret_file, const char **ret_name,
                struct err *err);
    void *ctx;
};

/* ARGV[0] is the word `sim`, ARGV[1] the subcommand. METER must outlive the call; RECORDS may be
 * NULL: then only files are read. Exit status: 0, 1 failed, 2 usage. */
int sim_main(int argc, char **argv, const struct sim_meter *meter,
             const struct sim_records *records);

#endif
