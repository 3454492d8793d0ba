/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which faults a random history has, and how often: "crash=20,disk=5", in steps of a thousand.
 *
 *     crash    the server dies, at a point of a group's life chosen at random
 *     reboot   of a hundred crashes, those that take the machine and its tasks along
 *     disk     the disk refuses a group
 *     late, dup, reorder   events of tasks come late, twice, out of order
 *     nodes    a node is lost, returns, is drained or undrained
 *     clock    the wall clock jumps, or the machine sleeps for long
 *     quota    quotas are edited, teams come and go
 *     refuse   a launch is refused
 *     lost     a task is lost
 *     suspend  work that runs is suspended, resumed, calls a GPU meanwhile; a move of device memory
 *              goes wrong. Only then is work submitted that may be suspended
 *
 * A plan is a list of such rates or of names of plans: `none`, `default`, `heavy`. What stands
 * later replaces what stands before: "default,crash=100", "none,crash=50".
 */
#ifndef ALLOT_SIM_HISTORY_PLAN_H
#define ALLOT_SIM_HISTORY_PLAN_H

#include <stdint.h>

#include "base/err.h"

struct history_plan {
    int32_t crash, reboot, disk, late, dup, reorder, nodes, clock, quota, refuse, lost, suspend;
};

/* -EINVAL with ERR: an unknown word is named, with the list of those that exist; -ERANGE: rates
 * above 1000, or above 1000 together. */
int history_plan_parse(const char *text, struct history_plan *ret_plan, struct err *err);

#endif
