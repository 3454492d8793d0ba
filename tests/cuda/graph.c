/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: building them by hand. */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

#define MAGIC UINT32_C(0x47726170)
#define NODE_MAGIC UINT32_C(0x4e6f6465)
#define BILLION UINT64_C(1000000000)

bool graph_valid(const struct cu_graph *graph)
{
    return graph != NULL && graph->magic == MAGIC;
}

struct cu_graph *graph_new(void)
{
    struct cu_graph *graph = drv_object_new(sizeof(*graph));

    if (graph != NULL)
        graph->magic = MAGIC;
    return graph;
}

/* The address of an allocation goes with its node, also where its context went before. */
static void node_free(struct cu_node *node)
{
    if (node->type == CU_NODE_MEM_ALLOC && node->alloc != NULL)
        drv_graph_address_free(node->alloc);
    graph_free(node->child);
    free(node->deps);
    node->magic = 0;
    free(node);
}

void graph_free(struct cu_graph *graph)
{
    if (graph == NULL)
        return;
    for (size_t i = 0; i < graph->count; i++)
        node_free(graph->nodes[i]);
    free(graph->nodes);
    graph->magic = 0;
    drv_object_free(graph);
}

static bool make_room(struct cu_graph *graph)
{
    size_t room = graph->room * 2 + 16;
    struct cu_node **nodes;

    if (graph->count < graph->room)
        return true;
    nodes = realloc(graph->nodes, room * sizeof(struct cu_node *));
    if (nodes == NULL)
        return false;
    graph->nodes = nodes;
    graph->room = room;
    return true;
}

cu_result graph_add(struct cu_graph *graph, int type, struct cu_node *const *after, size_t count,
                    struct cu_node **ret_node)
{
    struct cu_node *node;

    if (!graph_valid(graph) || ret_node == NULL || (count > 0 && after == NULL))
        return CU_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (after[i] == NULL || after[i]->magic != NODE_MAGIC || after[i]->graph != graph)
            return CU_INVALID_VALUE;
    node = calloc(1, sizeof(*node));
    if (node == NULL || !make_room(graph)) {
        free(node);
        return CU_OUT_OF_MEMORY;
    }
    node->deps = calloc(count + 1, sizeof(struct cu_node *));
    if (node->deps == NULL) {
        free(node);
        return CU_OUT_OF_MEMORY;
    }
    node->magic = NODE_MAGIC;
    node->type = type;
    node->graph = graph;
    for (size_t i = 0; i < count; i++)
        node->deps[i] = after[i];
    node->dep_count = count;
    node->index = (uint32_t)graph->count;
    graph->nodes[graph->count++] = node;
    *ret_node = node;
    return CU_OK;
}

/* Takes the last node back, whose parameters were bad. */
static cu_result take_back(struct cu_graph *graph, cu_result why)
{
    node_free(graph->nodes[--graph->count]);
    return why;
}

cu_result graph_alloc_address(struct cu_ctx *ctx, uint64_t bytes, struct cu_node *node)
{
    if (bytes == 0)
        return CU_INVALID_VALUE;
    node->alloc = drv_graph_address(ctx, bytes);
    if (node->alloc == NULL)
        return CU_OUT_OF_MEMORY;
    node->ptr = node->alloc->base;
    return CU_OK;
}

/* A copy of GRAPH, or NULL: also when it allocates or frees, which a child graph must not. */
static struct cu_graph *graph_copy(const struct cu_graph *graph)
{
    struct cu_graph *copy = graph_new();

    for (size_t i = 0; copy != NULL && i < graph->count; i++) {
        const struct cu_node *from = graph->nodes[i];
        struct cu_node *to = NULL;
        bool well = from->type != CU_NODE_MEM_ALLOC && from->type != CU_NODE_MEM_FREE &&
                    graph_add(copy, from->type, NULL, 0, &to) == CU_OK;

        if (well && from->child != NULL) {
            to->child = graph_copy(from->child);
            well = to->child != NULL;
        }
        if (!well) {
            graph_free(copy);
            return NULL;
        }
        to->launch = from->launch;
        to->copy_ns = from->copy_ns;
        to->fn = from->fn;
        to->data = from->data;
    }
    return copy;
}

static cu_result add_child(struct cu_node **ret_node, struct cu_graph *graph,
                           struct cu_node *const *after, size_t count, struct cu_graph *child)
{
    cu_result result;

    if (!graph_valid(child))
        return CU_INVALID_VALUE;
    result = graph_add(graph, CU_NODE_GRAPH, after, count, ret_node);
    if (result != CU_OK)
        return result;
    (*ret_node)->child = graph_copy(child);
    return (*ret_node)->child != NULL ? CU_OK : take_back(graph, CU_NOT_SUPPORTED);
}

cu_result cuGraphCreate(struct cu_graph **ret_graph, unsigned flags)
{
    struct cu_graph *graph;

    ENTER();
    if (ret_graph == NULL || flags != 0)
        return CU_INVALID_VALUE;
    graph = graph_new();
    if (graph == NULL)
        return CU_OUT_OF_MEMORY;
    *ret_graph = graph;
    return CU_OK;
}

cu_result cuGraphDestroy(struct cu_graph *graph)
{
    ENTER();
    if (!graph_valid(graph))
        return CU_INVALID_VALUE;
    graph_free(graph);
    return CU_OK;
}

static cu_result add_kernel(struct cu_node **ret_node, struct cu_graph *graph,
                            struct cu_node *const *after, size_t count,
                            const struct cu_kernel_node *p, struct cu_function *function)
{
    uint64_t blocks;
    cu_result result;

    if (!drv_function_valid(function))
        return CU_INVALID_VALUE;
    if (p->grid_x == 0 || p->grid_y == 0 || p->grid_z == 0 || p->block_x == 0)
        return CU_INVALID_VALUE;
    blocks = (uint64_t)p->grid_x * p->grid_y * p->grid_z;
    result = graph_add(graph, CU_NODE_KERNEL, after, count, ret_node);
    if (result != CU_OK)
        return result;
    result = drv_launch_cost(function, blocks, p->params, &(*ret_node)->launch);
    return result == CU_OK ? CU_OK : take_back(graph, result);
}

/* The older structure ends before its field for kernels of libraries. */
cu_result cuGraphAddKernelNode(struct cu_node **ret_node, struct cu_graph *graph,
                               struct cu_node *const *after, size_t count,
                               const struct cu_kernel_node *params)
{
    ENTER();
    return params != NULL ? add_kernel(ret_node, graph, after, count, params, params->function)
                          : CU_INVALID_VALUE;
}

static struct cu_function *function_of(const struct cu_kernel_node *params)
{
    return params->function != NULL ? params->function : (struct cu_function *)params->kernel;
}

cu_result cuGraphAddKernelNode_v2(struct cu_node **ret_node, struct cu_graph *graph,
                                  struct cu_node *const *after, size_t count,
                                  const struct cu_kernel_node *params)
{
    ENTER();
    return params != NULL ? add_kernel(ret_node, graph, after, count, params, function_of(params))
                          : CU_INVALID_VALUE;
}

cu_result cuGraphAddEmptyNode(struct cu_node **ret_node, struct cu_graph *graph,
                              struct cu_node *const *after, size_t count)
{
    ENTER();
    return graph_add(graph, CU_NODE_EMPTY, after, count, ret_node);
}

static cu_result add_host(struct cu_node **ret_node, struct cu_graph *graph,
                          struct cu_node *const *after, size_t count,
                          const struct cu_host_node *params)
{
    cu_result result;

    if (params == NULL || params->fn == NULL)
        return CU_INVALID_VALUE;
    result = graph_add(graph, CU_NODE_HOST, after, count, ret_node);
    if (result != CU_OK)
        return result;
    (*ret_node)->fn = params->fn;
    (*ret_node)->data = params->data;
    return CU_OK;
}

cu_result cuGraphAddHostNode(struct cu_node **ret_node, struct cu_graph *graph,
                             struct cu_node *const *after, size_t count,
                             const struct cu_host_node *params)
{
    ENTER();
    return add_host(ret_node, graph, after, count, params);
}

static cu_result add_copy(struct cu_node **ret_node, struct cu_graph *graph,
                          struct cu_node *const *after, size_t count, int type, uint64_t bytes)
{
    uint64_t rate = driver.sh->config.copy_bytes_per_s;
    cu_result result = graph_add(graph, type, after, count, ret_node);

    if (result == CU_OK && rate > 0)
        (*ret_node)->copy_ns = (uint64_t)((unsigned __int128)bytes * BILLION / rate);
    return result;
}

cu_result cuGraphAddMemcpyNode(struct cu_node **ret_node, struct cu_graph *graph,
                               struct cu_node *const *after, size_t count,
                               const struct cu_copy3d *copy, struct cu_ctx *ctx)
{
    ENTER();
    if (copy == NULL)
        return CU_INVALID_VALUE;
    return add_copy(ret_node, graph, after, count, CU_NODE_MEMCPY,
                    copy->width_bytes * copy->height * copy->depth);
}

cu_result cuGraphAddMemsetNode(struct cu_node **ret_node, struct cu_graph *graph,
                               struct cu_node *const *after, size_t count,
                               const struct cu_memset_node *params, struct cu_ctx *ctx)
{
    ENTER();
    if (params == NULL)
        return CU_INVALID_VALUE;
    return add_copy(ret_node, graph, after, count, CU_NODE_MEMSET,
                    params->width * params->element_bytes * params->height);
}

static cu_result add_alloc(struct cu_node **ret_node, struct cu_graph *graph,
                           struct cu_node *const *after, size_t count, struct cu_alloc_node *params)
{
    struct cu_ctx *ctx;
    cu_result result = drv_context(&ctx);

    if (result != CU_OK)
        return result;
    if (params == NULL || params->props.type != CU_ALLOCATION_PINNED ||
        params->props.location.type != CU_LOCATION_DEVICE ||
        params->props.location.id != ctx->device)
        return CU_INVALID_VALUE;
    result = graph_add(graph, CU_NODE_MEM_ALLOC, after, count, ret_node);
    if (result != CU_OK)
        return result;
    result = graph_alloc_address(ctx, params->bytes, *ret_node);
    if (result != CU_OK)
        return take_back(graph, result);
    params->ret_ptr = (*ret_node)->ptr;
    return CU_OK;
}

cu_result cuGraphAddMemAllocNode(struct cu_node **ret_node, struct cu_graph *graph,
                                 struct cu_node *const *after, size_t count,
                                 struct cu_alloc_node *params)
{
    ENTER();
    return add_alloc(ret_node, graph, after, count, params);
}

static cu_result add_free(struct cu_node **ret_node, struct cu_graph *graph,
                          struct cu_node *const *after, size_t count, cu_devptr ptr)
{
    cu_result result = graph_add(graph, CU_NODE_MEM_FREE, after, count, ret_node);

    if (result == CU_OK)
        (*ret_node)->ptr = ptr;
    return result;
}

cu_result cuGraphAddMemFreeNode(struct cu_node **ret_node, struct cu_graph *graph,
                                struct cu_node *const *after, size_t count, cu_devptr ptr)
{
    ENTER();
    return add_free(ret_node, graph, after, count, ptr);
}

cu_result cuGraphAddChildGraphNode(struct cu_node **ret_node, struct cu_graph *graph,
                                   struct cu_node *const *after, size_t count,
                                   struct cu_graph *child)
{
    ENTER();
    return add_child(ret_node, graph, after, count, child);
}

static cu_result add_any(struct cu_node **ret_node, struct cu_graph *graph,
                         struct cu_node *const *after, size_t count, struct cu_node_params *p)
{
    if (p == NULL)
        return CU_INVALID_VALUE;
    switch (p->type) {
    case CU_NODE_KERNEL:
        return add_kernel(ret_node, graph, after, count, &p->kernel, function_of(&p->kernel));
    case CU_NODE_MEMCPY:
        return add_copy(ret_node, graph, after, count, p->type,
                        p->memcpy.copy.width_bytes * p->memcpy.copy.height * p->memcpy.copy.depth);
    case CU_NODE_MEMSET:
        return add_copy(ret_node, graph, after, count, p->type,
                        p->memset.width * p->memset.element_bytes * p->memset.height);
    case CU_NODE_HOST:
        return add_host(ret_node, graph, after, count, &p->host);
    case CU_NODE_GRAPH:
        return add_child(ret_node, graph, after, count, p->child.graph);
    case CU_NODE_EMPTY:
        return graph_add(graph, p->type, after, count, ret_node);
    case CU_NODE_MEM_ALLOC:
        return add_alloc(ret_node, graph, after, count, &p->alloc);
    case CU_NODE_MEM_FREE:
        return add_free(ret_node, graph, after, count, p->free.ptr);
    default:
        return CU_NOT_SUPPORTED;
    }
}

cu_result cuGraphAddNode(struct cu_node **ret_node, struct cu_graph *graph,
                         struct cu_node *const *after, size_t count, struct cu_node_params *params)
{
    ENTER();
    return add_any(ret_node, graph, after, count, params);
}

cu_result cuGraphAddNode_v2(struct cu_node **ret_node, struct cu_graph *graph,
                            struct cu_node *const *after, const struct cu_edge *edges, size_t count,
                            struct cu_node_params *params)
{
    ENTER();
    return add_any(ret_node, graph, after, count, params);
}

/* NODES may be NULL to ask for their number; unused places become NULL. */
cu_result cuGraphGetNodes(struct cu_graph *graph, struct cu_node **nodes, size_t *count)
{
    ENTER();
    if (!graph_valid(graph) || count == NULL)
        return CU_INVALID_VALUE;
    for (size_t i = 0; nodes != NULL && i < *count; i++)
        nodes[i] = i < graph->count ? graph->nodes[i] : NULL;
    if (nodes == NULL || *count > graph->count)
        *count = graph->count;
    return CU_OK;
}

static int ordinal_of(uint32_t real)
{
    int ordinal = 0;

    while (ordinal < driver.count && driver.visible[ordinal] != real)
        ordinal++;
    return ordinal;
}

cu_result cuGraphMemAllocNodeGetParams(struct cu_node *node, struct cu_alloc_node *ret_params)
{
    ENTER();
    if (node == NULL || node->magic != NODE_MAGIC || node->type != CU_NODE_MEM_ALLOC ||
        ret_params == NULL)
        return CU_INVALID_VALUE;
    *ret_params = (struct cu_alloc_node){
        .props = {.type = CU_ALLOCATION_PINNED,
                  .location = {CU_LOCATION_DEVICE, ordinal_of(node->alloc->real)}},
        .bytes = node->alloc->bytes,
        .ret_ptr = node->ptr,
    };
    return CU_OK;
}

cu_result cuGraphChildGraphNodeGetGraph(struct cu_node *node, struct cu_graph **ret_graph)
{
    ENTER();
    if (node == NULL || node->magic != NODE_MAGIC || node->type != CU_NODE_GRAPH ||
        ret_graph == NULL)
        return CU_INVALID_VALUE;
    *ret_graph = node->child;
    return CU_OK;
}

cu_result cuGraphNodeGetType(struct cu_node *node, int *ret_type)
{
    ENTER();
    if (node == NULL || node->magic != NODE_MAGIC || ret_type == NULL)
        return CU_INVALID_VALUE;
    *ret_type = node->type;
    return CU_OK;
}
