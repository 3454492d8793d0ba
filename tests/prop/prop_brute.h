/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The comparison of small worlds with a search through everything (prop_exact.h): what is asked
 * when, and how often it was.
 *
 * A world whose `brute` is set is compared at each start, at each promise, and at rest.
 */
#ifndef ALLOT_PROP_BRUTE_H
#define ALLOT_PROP_BRUTE_H

#include "prop_exact.h"

struct brute_counts {
    uint64_t rests;
    uint64_t blocked;     /* workloads at rest that could not start in any way */
    uint64_t helpless;    /* ... nor with any admissible set of victims gone */
    uint64_t passed_over; /* too many sets to try them all */
    uint64_t starts;      /* starts that were the first in order */
    uint64_t sets;        /* sets of victims without one too many */
    uint64_t larger;      /* of these, with more workloads than the smallest admissible one */
};

/* A start of a quiet turn, not carried out yet: does nobody who could start come before it? */
bool brute_start(const struct judge *j);
/* The last promise of a winner, its victims still gone: are they admissible and none too many? */
bool brute_promise(const struct judge *j);
/* Nothing changes any more: nobody waits who could start, or has a right to a place. */
bool brute_rest(struct prop_world *w);

#endif
