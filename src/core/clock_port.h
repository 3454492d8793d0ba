/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock port: the boot-time clock for durations, the wall clock for the first label, and
 * the id of this boot, which tells whether stored boot-clock times still mean anything. A
 * simulation gives a virtual clock.
 */
#ifndef ALLOT_CORE_CLOCK_PORT_H
#define ALLOT_CORE_CLOCK_PORT_H

#include <stdint.h>

struct clock_ops {
    int64_t (*boot_ms)(void *clock);
    int64_t (*wall_ms)(void *clock);
    const char *(*boot_id)(void *clock);
};

#endif
