/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a hole on a device is worth to requests for parts of devices.
 *
 * Purpose. Room of 530 thousandths is worth half a device where most ask for 470, a third where
 * they ask for 320, and nothing to those who ask for 650. To take 320 of it and leave 210, which
 * nobody asks for, is a loss that does not show in the sum of what is idle.
 *
 * Method. Cutting devices into the parts that the mix asks for, so that as few devices as can be
 * are cut, is the cutting stock problem. The optimal dual prices of its linear relaxation say
 * what part of a device a request of each size takes in the best of all cuttings: a request for
 * 470 of which two go on a device costs 1/2; of 810, beside which hardly anything fits, 1. A hole
 * is worth the most that requests which fit into it together would cost. What a placement takes
 * of that beyond the price of its request is lost to every later cutting. Patterns are generated
 * as they are needed (Gilmore and Gomory, Operations Research 9, 1961): a knapsack problem finds
 * the pattern that the prices so far undervalue most, the simplex method takes it in.
 *
 * Invariants. Fixed point, the same on every machine. Worth never falls with the hole, is 0 for
 * 0 and 1 device for a device. Where the method is stopped early (WORTH_STEPS_MAX), or rounding
 * is against it, prices are not the best ones but still consistent.
 *
 *     struct worth_size sizes[] = {{470, 750}, {320, 328}};
 *     worth_make(sizes, 2, worth);
 */
#ifndef ALLOT_SCHED_WORTH_H
#define ALLOT_SCHED_WORTH_H

#include <stdint.h>

#define WORTH_MILLI 1000   /* of a device */
#define WORTH_SIZES_MAX 24 /* that are looked at */
#define WORTH_STEPS_MAX 200

struct worth_size {
    int32_t milli;  /* 1 .. WORTH_MILLI - 1, each size once */
    int64_t number; /* of requests, at least 1; in proportion to the largest, to 2^14 steps */
};

/* What holes of 0 .. WORTH_MILLI are worth, in 2^20 per milli-GPU, if requests come as SIZES say;
 * COUNT is at most WORTH_SIZES_MAX. */
void worth_make(const struct worth_size *sizes, uint32_t count, int32_t ret_worth[WORTH_MILLI + 1]);

#endif
