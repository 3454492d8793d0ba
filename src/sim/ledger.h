/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An independent account of what every device and node holds.
 *
 * Purpose. The world keeps its own books, written without a look at the scheduler's, so that a
 * start on a device that is full, on a node that is down, or with the wrong devices is caught
 * at the instant it is decided. The rules are those of the request: a whole device takes all of
 * one, a fraction its share of compute and of memory, a memory request its bytes and no
 * compute, a MIG request whole slices of its profile.
 *
 * Invariant: per device, compute <= 1000 milli and memory <= what it has; per node, cpu and
 * memory <= what it has. sim_ledger_take() refuses what would break it and changes nothing.
 *
 * Ownership. The ledger copies what it needs of a node; profile names must outlive it (those of
 * nodes in the model's form are copied).
 * Units: milli-GPU, millicores, bytes.
 *
 *     struct sim_ledger l = {0};
 *     sim_ledger_node_set(&l, 0, &node);
 *     r = sim_ledger_take(&l, 0, &request, devices, count, &err);
 *     sim_ledger_release(&l, 0, &request, devices, count);
 */
#ifndef ALLOT_SIM_LEDGER_H
#define ALLOT_SIM_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "allot/sched.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/vec.h"
#include "model/node.h"

struct sim_ledger_device {
    const char *mig_profile; /* NULL = a whole GPU */
    int64_t memory_bytes;    /* 0 = unknown */
    int64_t used_milli, used_memory;
    uint32_t whole; /* tasks that hold all of it: 0 or 1 */
    uint32_t users;
};

struct sim_ledger_node {
    struct sim_ledger_device *devices;
    uint32_t device_count;
    int64_t cpu_milli, memory_bytes; /* SCHED_UNLIMITED = never binding */
    int64_t used_cpu, used_memory;
    bool open; /* up and schedulable */
};

struct sim_ledger {
    struct sim_ledger_node *nodes; /* by the caller's index */
    uint32_t node_count;
    struct arena strings; /* of what came in the form of the model */
    VEC(const struct sched_request *) requests;
};

/* Creates or changes node INDEX; what it holds stays. A later call may add devices. */
void sim_ledger_node_set(struct sim_ledger *l, uint32_t index, const struct sched_node *node);
/* -EINVAL: wrong devices for the request; -ENOSPC: over-allocated, or the node is closed. */
int sim_ledger_take(struct sim_ledger *l, uint32_t index, const struct sched_request *q,
                    const uint16_t *devices, uint32_t device_count, struct err *err);
/* Gives back exactly what was taken with the same arguments. */
void sim_ledger_release(struct sim_ledger *l, uint32_t index, const struct sched_request *q,
                        const uint16_t *devices, uint32_t device_count);
/* Would it fit now? Finds devices, first fit in order; RET_DEVICES holds as many as it asks. */
bool sim_ledger_fit(const struct sim_ledger *l, uint32_t index, const struct sched_request *q,
                    uint16_t *ret_devices);
/* The same node or request in the scheduler's form, kept as long as the ledger; equal requests
 * are kept once. */
void sim_ledger_model_node(struct sim_ledger *l, uint32_t index, const struct model_node *node);
const struct sched_request *sim_ledger_model_request(struct sim_ledger *l,
                                                     const struct model_request *request);
/* Devices that a request holds in all. */
uint32_t sim_ledger_device_count(const struct sched_request *q);
/* Frees what it holds. */
void sim_ledger_done(struct sim_ledger *l);

#endif
