/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fixture whose node has two real devices, of 80 GiB: those of the simulated driver of
 * tests/cuda. Tasks run in a folder with gpu_worker and a copy of that driver.
 *
 *     f = fixture_new();
 *     driven_up(f, DBL_TIMESLICE);
 *     driven_begin(f, 1, "./gpu_worker 600", 0, 250);
 *     driven_down(f);
 */
#ifndef ALLOT_TESTS_UNIT_ENGINE_DRIVEN_H
#define ALLOT_TESTS_UNIT_ENGINE_DRIVEN_H

#include "double.h"
#include "fixture.h"

void driven_up(struct fixture *f, enum dbl_mode mode);
/* Workload N runs SCRIPT with MILLI of DEVICE. */
void driven_begin(struct fixture *f, int n, const char *script, uint16_t device, int32_t milli);
/* Drops F, too. NULL is fine. */
void driven_down(struct fixture *f);
/* Bytes that all processes hold of DEVICE. */
uint64_t driven_held(uint32_t device);
/* The file of the devices. */
const char *driven_file(void);

#endif
