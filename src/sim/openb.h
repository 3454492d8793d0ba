/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public OpenB trace (Alibaba clusterdata, cluster-trace-gpu-v2023): node and pod lists.
 *
 * Purpose. The packing, scale and replay benchmarks use the machines and requests of a real GPU
 * cluster. This loader turns the two kinds of list into plain arrays, checked and bounded, and
 * each element into what the scheduler library takes.
 *
 * Columns. Nodes: sn, cpu_milli, memory_mib, gpu, model. Pods: name, cpu_milli, memory_mib,
 * num_gpu, gpu_milli, and where the list has them gpu_spec, qos, creation_time, deletion_time,
 * scheduled_time (seconds from the start of the trace). Unknown further columns are ignored.
 *
 * Invariants. A pod with gpu_milli below 1000 asks for exactly one device; one with whole devices
 * says 1000 each; one without devices says 0. A pod's list of models has no duplicates, empty =
 * any.
 *
 * Ownership. All texts and arrays live in the arena of struct openb_nodes or openb_pods until
 * openb_nodes_free(), openb_pods_free(). Equal model names are one pointer within a list only.
 * Units: millicores, bytes, milli-GPU per device, seconds.
 */
#ifndef ALLOT_SIM_OPENB_H
#define ALLOT_SIM_OPENB_H

#include <stdint.h>

#include "allot/sched.h"
#include "base/arena.h"
#include "base/err.h"

#define OPENB_DEVICES_MAX 64 /* of one node */
#define OPENB_MODELS_MAX 32  /* that one pod accepts */
#define OPENB_ROWS_MAX 4000000

struct openb_node {
    const char *name;
    const char *model; /* NULL without devices */
    int64_t cpu_milli, memory_bytes;
    uint32_t device_count;
};

struct openb_nodes {
    struct arena arena;
    struct openb_node *items; /* in the order of the file */
    size_t count;
};

enum openb_qos { OPENB_QOS_UNKNOWN, OPENB_BE, OPENB_BURSTABLE, OPENB_LS, OPENB_GUARANTEED };

struct openb_pod {
    const char *name;
    int64_t cpu_milli, memory_bytes;
    uint32_t device_count;
    int32_t device_milli; /* of each: 1000 = whole; 0 without devices */
    uint32_t model_count;
    const char *const *models; /* acceptable ones */
    enum openb_qos qos;
    int64_t created_s, deleted_s, scheduled_s; /* -1 = the list does not say */
};

struct openb_pods {
    struct arena arena;
    struct openb_pod *items; /* in the order of the file */
    size_t count;
};

/* Loads a node list. 0, or a negative errno with file and line in ERR. */
int openb_load_nodes(const char *path, struct openb_nodes *ret_nodes, struct err *err);
/* Loads a pod list, likewise. */
int openb_load_pods(const char *path, struct openb_pods *ret_pods, struct err *err);
/* Release; zeroed lists are fine. */
void openb_nodes_free(struct openb_nodes *nodes);
void openb_pods_free(struct openb_pods *pods);

/* GPU compute that the pod asks for, all devices together. */
static inline int64_t openb_pod_milli(const struct openb_pod *p)
{
    return (int64_t)p->device_count * p->device_milli;
}

/* The node for the scheduler. DEVICES has OPENB_DEVICES_MAX elements and is filled (memory
 * unknown); it and the texts of N must live until sched_node_set() has been called. */
struct sched_node openb_sched_node(const struct openb_node *n, uint64_t id, uint64_t order,
                                   struct sched_device *devices);
/* What one task of the pod asks for; refers to the pod's texts. */
struct sched_request openb_sched_request(const struct openb_pod *p);

#endif
