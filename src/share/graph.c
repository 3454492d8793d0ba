/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs. The work of one is charged as one piece, whatever is in it. Memory that graphs allocate
 * is charged when one is launched, by what the driver's memory of graphs takes more; how much that
 * can be is read from the nodes when a graph is instantiated.
 */
#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

#include "share/blocks.h"
#include "share/compute.h"
#include "share/hooks.h"
#include "share/settle.h"
#include "share/shim.h"

#define DEPTH_MAX 16 /* of graphs in graphs */

/* Bytes that the nodes of GRAPH allocate, and the device of the first of them. */
struct demand {
    uint64_t bytes;
    cu_device ordinal;
};

static void demand_of(struct cu_graph *graph, int depth, struct demand *demand);

static void add_node(struct cu_node *node, int depth, struct demand *demand)
{
    struct cu_alloc_node alloc;
    struct cu_graph *child;
    int type;

    if (REAL(cuGraphNodeGetType)(node, &type) != CU_OK)
        return;
    if (type == CU_NODE_MEM_ALLOC && REAL(cuGraphMemAllocNodeGetParams)(node, &alloc) == CU_OK) {
        if (demand->bytes == 0)
            demand->ordinal = alloc.props.location.id;
        demand->bytes += alloc.bytes;
    }
    if (type == CU_NODE_GRAPH && depth < DEPTH_MAX &&
        REAL(cuGraphChildGraphNodeGetGraph)(node, &child) == CU_OK)
        demand_of(child, depth + 1, demand);
}

static void demand_of(struct cu_graph *graph, int depth, struct demand *demand)
{
    size_t count = 0, size;
    struct cu_node **nodes;

    if (REAL(cuGraphGetNodes)(graph, NULL, &count) != CU_OK || count == 0)
        return;
    size = count * sizeof(struct cu_node *);
    nodes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (nodes == MAP_FAILED)
        return;
    if (REAL(cuGraphGetNodes)(graph, nodes, &count) == CU_OK)
        for (size_t i = 0; i < count; i++)
            add_node(nodes[i], depth, demand);
    munmap(nodes, size);
}

/* GRAPH was instantiated with answer R: remembers what a launch may take. */
static cu_result instantiated(cu_result r, struct cu_graph_exec **ret_exec, struct cu_graph *graph)
{
    struct demand demand = {0};
    struct block block = {.count = 1, .kind = BLOCK_GRAPH};

    if (r != CU_OK || share_link() == NULL)
        return r;
    demand_of(graph, 0, &demand);
    if (demand.bytes == 0)
        return r;
    block.key = (uintptr_t)*ret_exec;
    block.bytes = demand.bytes;
    block.other = (uint64_t)demand.ordinal;
    if (share_block_put(&block) == 0)
        return CU_OK;
    REAL(cuGraphExecDestroy)(*ret_exec);
    return CU_OUT_OF_MEMORY;
}

cu_result hook_cuGraphInstantiate(struct cu_graph_exec **ret_exec, struct cu_graph *graph,
                                  struct cu_node **ret_error_node, char *log, size_t bytes)
{
    return instantiated(REAL(cuGraphInstantiate)(ret_exec, graph, ret_error_node, log, bytes),
                        ret_exec, graph);
}

cu_result hook_cuGraphInstantiate_v2(struct cu_graph_exec **ret_exec, struct cu_graph *graph,
                                     struct cu_node **ret_error_node, char *log, size_t bytes)
{
    return instantiated(REAL(cuGraphInstantiate_v2)(ret_exec, graph, ret_error_node, log, bytes),
                        ret_exec, graph);
}

cu_result hook_cuGraphInstantiateWithFlags(struct cu_graph_exec **ret_exec, struct cu_graph *graph,
                                           uint64_t flags)
{
    return instantiated(REAL(cuGraphInstantiateWithFlags)(ret_exec, graph, flags), ret_exec, graph);
}

cu_result hook_cuGraphInstantiateWithParams(struct cu_graph_exec **ret_exec, struct cu_graph *graph,
                                            struct cu_instantiate_params *params)
{
    return instantiated(REAL(cuGraphInstantiateWithParams)(ret_exec, graph, params), ret_exec,
                        graph);
}

cu_result hook_cuGraphInstantiateWithParams_ptsz(struct cu_graph_exec **ret_exec,
                                                 struct cu_graph *graph,
                                                 struct cu_instantiate_params *params)
{
    return instantiated(REAL_AS(cuGraphInstantiateWithParams_ptsz,
                                cuGraphInstantiateWithParams)(ret_exec, graph, params),
                        ret_exec, graph);
}

cu_result hook_cuGraphExecDestroy(struct cu_graph_exec *exec)
{
    struct block block;
    bool mine = share_block_take(BLOCK_GRAPH, (uintptr_t)exec, &block);
    cu_result r = REAL(cuGraphExecDestroy)(exec);

    if (mine && r != CU_OK)
        share_block_put(&block);
    share_dirty();
    return r;
}

/* A launch or an upload. Most graphs allocate nothing: one look into the table. */
static cu_result charged(fn_cuGraphLaunch *real, struct cu_graph_exec *exec,
                        struct cu_stream *stream)
{
    struct block block;
    struct growth growth;
    cu_device ordinal;
    cu_result r;

    if (!share_block_find(BLOCK_GRAPH, (uintptr_t)exec, &block))
        return real(exec, stream);
    ordinal = (cu_device)block.other;
    if (!share_grow_begin(&growth, NULL, ordinal, share_device(ordinal), block.bytes))
        return CU_OUT_OF_MEMORY;
    r = real(exec, stream);
    share_grow_end(&growth); /* what runs cannot be undone; it is charged */
    share_dirty();
    return r;
}

/* One piece of work, whatever is in it. */
static cu_result launch(fn_cuGraphLaunch *real, struct cu_graph_exec *exec,
                        struct cu_stream *stream, bool ptsz)
{
    uint64_t kind = share_kind(exec, 1, 1);
    struct piece piece;

    if (share_submit_known(kind, share_lane(stream, ptsz)))
        return charged(real, exec, stream);
    share_submit(&piece, kind, stream, ptsz);
    return share_submitted(&piece, charged(real, exec, stream));
}

cu_result hook_cuGraphLaunch(struct cu_graph_exec *exec, struct cu_stream *stream)
{
    return launch(REAL(cuGraphLaunch), exec, stream, false);
}

cu_result hook_cuGraphLaunch_ptsz(struct cu_graph_exec *exec, struct cu_stream *stream)
{
    return launch(REAL_AS(cuGraphLaunch_ptsz, cuGraphLaunch), exec, stream, true);
}

cu_result hook_cuGraphUpload(struct cu_graph_exec *exec, struct cu_stream *stream)
{
    return charged(REAL(cuGraphUpload), exec, stream);
}

cu_result hook_cuGraphUpload_ptsz(struct cu_graph_exec *exec, struct cu_stream *stream)
{
    return charged(REAL_AS(cuGraphUpload_ptsz, cuGraphUpload), exec, stream);
}

cu_result hook_cuDeviceGraphMemTrim(cu_device device)
{
    cu_result r = REAL(cuDeviceGraphMemTrim)(device);

    share_settle();
    return r;
}
