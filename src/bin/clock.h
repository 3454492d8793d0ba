/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine's clocks behind core's clock port. Stateless but for the id of this boot, which
 * bin_clock_init() reads once.
 */
#ifndef ALLOT_BIN_CLOCK_H
#define ALLOT_BIN_CLOCK_H

#include "core/clock_port.h"

struct bin_clock {
    char boot_id[64];
};

extern const struct clock_ops bin_clock_ops;

/* 0, or a negative errno when the kernel does not tell the boot id. */
int bin_clock_init(struct bin_clock *clock);

#endif
