/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small facts about processes, read from /proc.
 */
#ifndef ALLOT_ENGINE_LOCAL_PROCESS_H
#define ALLOT_ENGINE_LOCAL_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* When PID started, in clock ticks since boot: with the pid, a name no other process ever has
 * within one boot. -1 = no such process. */
int64_t process_start_ticks(pid_t pid);

/* Would SIG, sent now, reach code of PID's own: a handler, or a wait for the signal that it
 * blocks? False also when it ends or has ended. */
bool process_takes(pid_t pid, int sig);

/* Does SIG wait for PID to take it? Tells of one that has ended too, until it is reaped. */
bool process_pending(pid_t pid, int sig);

/* The kernel's boot id, to free(); NULL = unreadable. */
char *process_boot_id(void);

#endif
