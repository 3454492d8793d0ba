/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this process costs, for the benchmarks of the simulator; see sim/sim.h. Stateless.
 */
#ifndef ALLOT_BIN_METER_H
#define ALLOT_BIN_METER_H

#include "sim/sim.h"

extern const struct sim_meter bin_meter;

#endif
