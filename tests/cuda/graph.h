/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs, as capture makes them and launches play them.
 *
 * Nodes are kept in the order they were added, which is one in which they can be run, since a node
 * comes after those it depends on. A graph owns its nodes and the addresses of its allocations;
 * an executable graph owns a copy of the steps. Not shared between threads without a lock of the
 * caller's, as with the driver.
 */
#ifndef ALLOT_TESTS_CUDA_GRAPH_H
#define ALLOT_TESTS_CUDA_GRAPH_H

#include "driver.h"

struct cu_node {
    uint32_t magic;
    uint32_t index; /* in its graph */
    int type;       /* CU_NODE_... */
    struct cu_graph *graph;
    struct cu_node **deps;
    size_t dep_count;
    struct drv_launch launch; /* KERNEL */
    uint64_t copy_ns;         /* MEMCPY, MEMSET */
    cu_host_fn *fn;           /* HOST */
    void *data;
    struct drv_alloc *alloc; /* MEM_ALLOC */
    cu_devptr ptr;           /* MEM_ALLOC, MEM_FREE */
    struct cu_graph *child;  /* GRAPH: a copy, owned */
};

struct cu_graph {
    uint32_t magic;
    struct cu_node **nodes;
    size_t count, room;
};

/* An empty graph, or NULL. */
struct cu_graph *graph_new(void);

/* Frees GRAPH with its nodes; NULL is none. */
void graph_free(struct cu_graph *graph);

/* A node of TYPE after COUNT others as *ret_node. CU_INVALID_VALUE: one is not of GRAPH. */
cu_result graph_add(struct cu_graph *graph, int type, struct cu_node *const *after, size_t count,
                    struct cu_node **ret_node);

/* An address for BYTES that NODE allocates whenever it runs. */
cu_result graph_alloc_address(struct cu_ctx *ctx, uint64_t bytes, struct cu_node *node);

/* Whether GRAPH is one. */
bool graph_valid(const struct cu_graph *graph);

#endif
