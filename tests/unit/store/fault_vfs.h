/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A SQLite VFS that fails on demand: the real one underneath, and a countdown over the calls
 * that change the disk (writes, syncs, truncations, growth of the shared index). One instance
 * for the process; the store must be idle while a fault is set.
 *
 * It can also keep what a power cut would leave: with fault_keep_synced(FOLDER), every sync copies
 * the file, as it is then, to FOLDER under its own name. What was written but not synced is
 * not in the copies.
 *
 *     fault_vfs_register();
 *     options.vfs = FAULT_VFS_NAME;
 *     fault_set(FAULT_ANY, 3, SQLITE_FULL, false);   the third call from now fails
 */
#ifndef ALLOT_TESTS_STORE_FAULT_VFS_H
#define ALLOT_TESTS_STORE_FAULT_VFS_H

#include <stdbool.h>

#define FAULT_VFS_NAME "allot-fault"

enum fault_call { FAULT_WRITE = 1, FAULT_SYNC = 2, FAULT_TRUNCATE = 4, FAULT_ANY = 7 };

void fault_vfs_register(void);
/* The NTH call (from 1) of the kinds in CALLS returns RC; STICKY: and all that follow. */
void fault_set(int calls, int nth, int rc, bool sticky);
void fault_clear(void);
/* Did the fault that was set strike? */
bool fault_struck(void);
/* FOLDER lives until it is replaced; NULL = stop keeping. */
void fault_keep_synced(const char *folder);

#endif
