/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which history a command works on: a file, standard input, a data folder, or a server.
 *
 * The options are the same for all commands that replay records; their words are taken over as
 * they stand in argv. One of the places is meant, none being the configured server; more than
 * one is refused.
 *
 *     static const struct option longs[] = {SOURCE_OPTIONS, {"help", no_argument, NULL, 'h'}, {0}};
 *     if (source_option(&source, c, optarg)) continue;
 *     r = source_operands(&source, argc, argv, &err);
 *     r = source_read(&source, records, &past, &err);
 */
#ifndef ALLOT_SIM_SOURCE_H
#define ALLOT_SIM_SOURCE_H

#include <getopt.h>
#include <stdbool.h>

#include "sim/past.h"
#include "sim/sim.h"

enum { SOURCE_DATA = 1000, SOURCE_SERVER, SOURCE_TOKEN };

#define SOURCE_OPTIONS                                      \
    {"data", required_argument, NULL, SOURCE_DATA},         \
        {"server", required_argument, NULL, SOURCE_SERVER}, \
    {                                                       \
        "token", required_argument, NULL, SOURCE_TOKEN      \
    }

/* What help says about them. */
#define SOURCE_HELP                                                                     \
    "  HISTORY                  a file of 'allot export history'; '-' reads it from\n"  \
    "                           standard input. None: the configured server is asked\n" \
    "  --server URL             ask this server (an administrator's token is needed)\n" \
    "  --token TOKEN            instead of the configured one\n"                        \
    "  --data FOLDER            the data folder of a server, also while it runs\n"

struct source {
    const char *file; /* "-" = standard input */
    struct sim_place place;
};

/* Takes the value of one of SOURCE_OPTIONS; false for another option. */
bool source_option(struct source *s, int option, const char *value);
/* Says what is wrong with the option for which getopt (of ":...") gave C, '?' or ':'; -EINVAL. */
int source_bad_option(int c, char **argv, struct err *err);
/* Takes the operands that getopt left. -EINVAL with ERR: too many, or another place beside one. */
int source_operands(struct source *s, int argc, char **argv, struct err *err);
/* Reads the history; see past_read() for errors. -EINVAL also where RECORDS is NULL and no file
 * was named. */
int source_read(const struct source *s, const struct sim_records *records, struct past *ret_past,
                struct err *err);

#endif
