/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Core's store port in memory, for simulation.
 *
 * A group that core hands in is not durable at once: it waits until memory_store_commit() makes
 * it durable, memory_store_fail() refuses it as a disk would, or memory_store_crash() forgets
 * it. Between crash points the store is the only thing that survives, exactly like a disk. Rows
 * are deep copies in one arena that lives as long as the store.
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

/* Is a group waiting? */
bool memory_store_busy(const struct memory_store *store);
/* Makes the waiting group durable and answers. */
void memory_store_commit(struct memory_store *store);
/* Refuses the waiting group with ERRNUM (-ENOSPC) and answers. */
void memory_store_fail(struct memory_store *store, int errnum);
/* Forgets the waiting group without an answer: its owner is gone. */
void memory_store_crash(struct memory_store *store);

/* What is durable, for checks. NULL where there is none. */
const struct model_workload *memory_store_workload(const struct memory_store *store, uint64_t id);
size_t memory_store_allocations(const struct memory_store *store,
                                const struct model_allocation ***ret_rows);

#endif
