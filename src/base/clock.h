/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two clocks. Durations, limits and graces use the boot-time clock, which never jumps and
 * counts suspended time; the wall clock is only for labels that people read. Identifiers name
 * their unit: _ns, _ms, _s.
 */
#ifndef ALLOT_BASE_CLOCK_H
#define ALLOT_BASE_CLOCK_H

#include <stdint.h>

#define NS_PER_MS 1000000LL
#define NS_PER_S 1000000000LL
#define MS_PER_S 1000LL

/* CLOCK_BOOTTIME. */
int64_t clock_boot_ns(void);
int64_t clock_boot_ms(void);
/* CLOCK_REALTIME, milliseconds since 1970 UTC. */
int64_t clock_wall_ms(void);

/* "2026-11-30T21:29:59.123Z"; TEXT holds at least CLOCK_TEXT_MAX bytes. */
#define CLOCK_TEXT_MAX 32
void clock_format_utc(int64_t wall_ms, char *text);
/* The last millisecond of the year 9999: later ones have no such form. */
#define CLOCK_UTC_MAX_MS 253402300799999
/*
 * That form, seconds and fraction (of one to three digits) optional, with an offset ("+01:00")
 * in place of the Z if need be; or a date alone, its start in UTC; or milliseconds since 1970.
 * From 1970 to CLOCK_UTC_MAX_MS; 24:00, leap seconds and times without a zone are not taken.
 * -EINVAL for anything else, the 31st of February included.
 */
int clock_parse_utc(const char *text, int64_t *ret_wall_ms);

#endif
