/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random histories of the whole control plane: the real core and scheduler between a store in
 * memory and an engine in virtual time.
 *
 * Each step does one random thing: submit, stop, change a quota, drain a node, let time pass,
 * make a group durable, let the disk fail, or crash (core is destroyed and made again from what
 * is durable, while tasks run on). After each step core_verify() must hold. At the end faults
 * cease, everything is stopped or ends by itself, and then: every acknowledged workload is in the
 * store in a final state, no allocation is open, allocations of a device never hold more than the
 * device, no task was started twice. The same seed gives the same history.
 */
#ifndef ALLOT_SIM_HISTORY_H
#define ALLOT_SIM_HISTORY_H

#include <stdint.h>
#include <stdio.h>

struct history_options {
    uint64_t seed;
    int32_t steps;
};

struct history_result {
    uint64_t hash; /* of everything that was acknowledged and metered */
    uint32_t submitted, refused, crashes, disk_faults;
    uint32_t succeeded, failed, cancelled;
    uint64_t allocations;
};

/* 0, or -EUCLEAN after a line on OUT that names seed, step and what is wrong. */
int history_run(const struct history_options *options, FILE *out,
                struct history_result *ret_result);

#endif
