/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints what came of a "what if", as tables for people or as one JSON object.
 *
 * Tables are at most 80 columns wide. Of many teams those with most GPU time are shown, and how
 * many are not. Money is micro-USD, exact: GPU time times the price of one GPU-hour, rounded to
 * the nearest.
 */
#ifndef ALLOT_SIM_WHATIF_PRINT_H
#define ALLOT_SIM_WHATIF_PRINT_H

#include <stdio.h>

#include "sim/whatif.h"

struct whatif_report {
    const struct past *past;
    struct whatif_outcome recorded, baseline, asked;
    struct whatif_difference error; /* of the baseline against the record */
    bool changed;                   /* something was asked */
    bool all_teams;                 /* show all of them */
    int64_t price_uusd;             /* of one GPU-hour; 0 = none is known */
    int64_t stop_ms;                /* that an evicted task takes to stop... */
    size_t stops;                   /* ...as the median of so many; 0 = it is assumed */
};

/* "0s", "250ms", "12.5s", "95m", "3.2h"; TEXT holds 32 bytes. */
const char *whatif_time_text(int64_t ms, char *text);
/* Hours with one decimal, or three below ten, of milli-GPU times ms; TEXT holds 32 bytes. */
const char *whatif_hours_text(int64_t milli_ms, char *text);
/* "12.3%" of thousandths; TEXT holds 32 bytes. */
const char *whatif_percent_text(int64_t permille, char *text);
/* NAME in WIDTH columns (at most 64), cut with an ellipsis or filled with blanks; TEXT holds
 * WHATIF_NAME_MAX bytes. */
#define WHATIF_NAME_MAX 400
const char *whatif_name_text(const char *name, int width, char *text);

/* Tables. */
void whatif_print_text(const struct whatif_report *r, FILE *out);
/* One JSON object on a line. */
void whatif_print_json(const struct whatif_report *r, FILE *out);

#endif
