/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Core's store port in memory, for simulation.
 *
 * A group that core hands in is not durable at once: it waits until memory_store_commit() makes
 * it durable, memory_store_fail() refuses it as a disk would, or memory_store_crash() takes its
 * owner away before or after it became durable. Between crash points the store is the only thing
 * that survives, exactly like a disk. Rows are deep copies. Those that core never reads again
 * (ended workloads with their tasks, closed allocations) are dropped, so that a history of any
 * length fits; whoever wants to count them watches.
 *
 * It serves what core reads (start-up, launches); lists for an API are not part of a simulation
 * and their entries in the table are NULL.
 */
#ifndef ALLOT_SIM_MEMORY_STORE_H
#define ALLOT_SIM_MEMORY_STORE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/store_port.h"

struct memory_store;

extern const struct store_ops memory_store_ops;

/* An empty store; aborts when out of memory. */
struct memory_store *memory_store_create(void);
/* Frees the rows too. */
void memory_store_destroy(struct memory_store *store);

/* Sees every row operation at the moment when it becomes durable, before it is applied. */
typedef void memory_store_watch_fn(void *user, const struct store_op *op);
/* Sets the one watcher; the store does not own USER. */
void memory_store_watch(struct memory_store *store, memory_store_watch_fn *fn, void *user);

/* Is a group waiting? */
bool memory_store_busy(const struct memory_store *store);
/* Makes the waiting group durable and answers. */
void memory_store_commit(struct memory_store *store);
/* Refuses the waiting group with ERRNUM (-ENOSPC) and answers. */
void memory_store_fail(struct memory_store *store, int errnum);
/* The owner of the waiting group, if there is one, is gone: no answer. It is durable, or not. */
void memory_store_crash(struct memory_store *store, bool durable);

#endif
