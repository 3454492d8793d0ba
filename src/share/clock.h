/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock that shares of time are kept by: CLOCK_BOOTTIME, as in allot/share.h. Only the build
 * for tests (SHARE_TEST) takes the clock of the simulated driver instead, which may be virtual.
 */
#ifndef ALLOT_SHARE_CLOCK_H
#define ALLOT_SHARE_CLOCK_H

#include <stdint.h>

/* Nanoseconds. */
uint64_t share_now(void);
/* Sleeps until TIME_NS, or until WORD is not SEEN any more and its futex is woken. May return
 * early for no reason. */
void share_sleep(const _Atomic uint32_t *word, uint32_t seen, uint64_t time_ns);

#endif
