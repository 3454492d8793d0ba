/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What servers have recorded, for the simulator and for `allot export`: fetched from the server
 * that the command line is set up for, or read from a data folder on this machine.
 *
 *     struct recorded r = {.cli = cli};
 *     return sim_main(argc, argv, &bin_meter, &(struct sim_records){recorded_open, &r});
 */
#ifndef ALLOT_BIN_RECORDED_H
#define ALLOT_BIN_RECORDED_H

#include <stdio.h>

#include "base/err.h"
#include "sim/sim.h"

struct cli;

/* The context of recorded_open(). */
struct recorded {
    struct cli *cli;
};

/* For struct sim_records: CTX is a struct recorded. The whole history, in a file that has no name
 * and is gone when it is closed. */
int recorded_open(void *ctx, const struct sim_place *place, FILE **ret_file, const char **ret_name,
                  struct err *err);

/* Writes the history to OUT as it comes. 0, or a negative errno with ERR: what the server says,
 * or -EPROTO when it ended before its end. */
int recorded_write(struct cli *cli, const struct sim_place *place, FILE *out, struct err *err);

#endif
