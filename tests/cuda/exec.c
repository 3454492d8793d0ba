/* SPDX-License-Identifier: Apache-2.0 */
/* Executable graphs: instantiating, launching, their memory over a launch. */
#include <stdlib.h>
#include <string.h>

#include "graph.h"

#define MAGIC UINT32_C(0x45786563)

struct step {
    int type;
    struct drv_launch launch;
    uint64_t copy_ns;
    cu_host_fn *fn;
    void *data;
    struct drv_alloc *alloc;
    cu_devptr ptr;
    uint64_t bytes;
};

struct cu_graph_exec {
    uint32_t magic;
    uint64_t flags;
    struct cu_ctx *ctx;
    size_t count;
    bool memory; /* has steps that allocate or free */
    struct step steps[];
};

/* Steps of GRAPH, those of child graphs in the place of their nodes. */
static size_t steps_of(const struct cu_graph *graph)
{
    size_t count = 0;

    for (size_t i = 0; i < graph->count; i++)
        count += graph->nodes[i]->child != NULL ? steps_of(graph->nodes[i]->child) : 1;
    return count;
}

static void add_steps(struct cu_graph_exec *exec, const struct cu_graph *graph)
{
    for (size_t i = 0; i < graph->count; i++) {
        const struct cu_node *node = graph->nodes[i];
        struct step *step;

        if (node->child != NULL) {
            add_steps(exec, node->child);
            continue;
        }
        step = &exec->steps[exec->count++];
        *step = (struct step){node->type, node->launch, node->copy_ns, node->fn,
                              node->data, node->alloc,  node->ptr,     0};
        if (node->alloc != NULL) {
            step->bytes = node->alloc->bytes;
            drv_graph_address_ref(node->alloc);
        }
        if (node->type == CU_NODE_MEM_ALLOC || node->type == CU_NODE_MEM_FREE)
            exec->memory = true;
    }
}

static cu_result instantiate(struct cu_graph_exec **ret_exec, struct cu_graph *graph,
                             uint64_t flags)
{
    struct cu_graph_exec *exec;
    struct cu_ctx *ctx;
    cu_result result = drv_context(&ctx);

    if (result != CU_OK)
        return result;
    if (ret_exec == NULL || !graph_valid(graph) || flags > 15)
        return CU_INVALID_VALUE;
    exec = drv_object_new(sizeof(*exec) + steps_of(graph) * sizeof(exec->steps[0]));
    if (exec == NULL)
        return CU_OUT_OF_MEMORY;
    exec->magic = MAGIC;
    exec->flags = flags;
    exec->ctx = ctx;
    add_steps(exec, graph);
    *ret_exec = exec;
    return CU_OK;
}

cu_result cuGraphInstantiate(struct cu_graph_exec **ret_exec, struct cu_graph *graph,
                             struct cu_node **ret_error_node, char *log, size_t bytes)
{
    ENTER();
    return instantiate(ret_exec, graph, 0);
}

cu_result cuGraphInstantiate_v2(struct cu_graph_exec **ret_exec, struct cu_graph *graph,
                                struct cu_node **ret_error_node, char *log, size_t bytes)
{
    ENTER();
    return instantiate(ret_exec, graph, 0);
}

static bool valid(const struct cu_graph_exec *exec)
{
    return exec != NULL && exec->magic == MAGIC;
}

static bool frees(const struct cu_graph_exec *exec, cu_devptr ptr)
{
    for (size_t i = 0; i < exec->count; i++)
        if (exec->steps[i].type == CU_NODE_MEM_FREE && exec->steps[i].ptr == ptr)
            return true;
    return false;
}

/* The most that a launch has allocated at a time, and what it leaves allocated. */
static void memory_need(const struct cu_graph_exec *exec, uint64_t *ret_peak, uint64_t *ret_kept)
{
    uint64_t now = 0, peak = 0;

    for (size_t i = 0; i < exec->count; i++) {
        const struct step *step = &exec->steps[i];

        if (step->type == CU_NODE_MEM_ALLOC)
            now += step->bytes;
        if (now > peak)
            peak = now;
        for (size_t j = 0; step->type == CU_NODE_MEM_FREE && j < i; j++)
            if (exec->steps[j].type == CU_NODE_MEM_ALLOC && exec->steps[j].ptr == step->ptr)
                now -= exec->steps[j].bytes;
    }
    *ret_peak = peak;
    *ret_kept = now;
}

/* What the last launch left allocated: an error, or freed now if it was instantiated so. */
static cu_result end_last(struct cu_graph_exec *exec)
{
    cu_result result = CU_OK;

    pthread_mutex_lock(&driver.mutex);
    for (size_t i = 0; i < exec->count && result == CU_OK; i++) {
        struct step *step = &exec->steps[i];

        if (step->type != CU_NODE_MEM_ALLOC || step->alloc->charged == 0)
            continue;
        result =
            exec->flags & CU_INSTANTIATE_AUTO_FREE ? drv_graph_free(step->alloc) : CU_INVALID_VALUE;
    }
    pthread_mutex_unlock(&driver.mutex);
    return result;
}

static bool own(const struct cu_graph_exec *exec, cu_devptr ptr)
{
    for (size_t i = 0; i < exec->count; i++)
        if (exec->steps[i].type == CU_NODE_MEM_ALLOC && exec->steps[i].ptr == ptr)
            return true;
    return false;
}

static cu_result begin_memory(struct cu_graph_exec *exec)
{
    uint64_t peak, kept;
    cu_result result = end_last(exec);

    if (result != CU_OK)
        return result;
    memory_need(exec, &peak, &kept);
    result = drv_graph_use(exec->ctx, peak, kept);
    if (result != CU_OK)
        return result;
    pthread_mutex_lock(&driver.mutex);
    for (size_t i = 0; i < exec->count; i++) {
        struct step *step = &exec->steps[i];

        if (step->type == CU_NODE_MEM_ALLOC && !frees(exec, step->ptr))
            step->alloc->charged = step->bytes;
    }
    pthread_mutex_unlock(&driver.mutex);
    for (size_t i = 0; i < exec->count && result == CU_OK; i++)
        if (exec->steps[i].type == CU_NODE_MEM_FREE && !own(exec, exec->steps[i].ptr))
            result = drv_free(exec->steps[i].ptr);
    return result;
}

/* Kernels that follow each other and are equally wide are one piece of work. */
static cu_result play_kernels(struct cu_graph_exec *exec, struct cu_stream *stream, size_t *at,
                              uint8_t depth)
{
    struct drv_launch launch = exec->steps[*at].launch;

    while (*at + 1 < exec->count && exec->steps[*at + 1].type == CU_NODE_KERNEL &&
           exec->steps[*at + 1].launch.sms == launch.sms)
        launch.duration_ns += exec->steps[++*at].launch.duration_ns;
    atomic_fetch_add(&driver.launches, 1);
    return drv_submit(stream, (struct dbl_op){.kind = DBL_OP_KERNEL,
                                              .depth = depth,
                                              .sms = launch.sms,
                                              .remaining = launch.duration_ns * DBL_FRACTION});
}

static cu_result play(struct cu_graph_exec *exec, struct cu_stream *stream)
{
    cu_result result = CU_OK;
    uint8_t depth = 1; /* a graph is one launch, however much is in it */

    for (size_t i = 0; i < exec->count && result == CU_OK; i++) {
        const struct step *step = &exec->steps[i];

        if (step->type == CU_NODE_KERNEL)
            result = play_kernels(exec, stream, &i, depth);
        else if (step->type == CU_NODE_MEMCPY || step->type == CU_NODE_MEMSET)
            result = drv_submit(stream, (struct dbl_op){.kind = DBL_OP_COPY,
                                                        .depth = depth,
                                                        .remaining = step->copy_ns * DBL_FRACTION});
        else if (step->type == CU_NODE_HOST)
            result = drv_submit_host(stream, step->fn, NULL, step->data);
        else
            continue;
        depth = 0;
    }
    return result;
}

static cu_result launch(struct cu_graph_exec *exec, struct cu_stream *handle, bool per_thread)
{
    struct cu_stream *stream;
    cu_result result;

    if (!valid(exec))
        return CU_INVALID_VALUE;
    result = drv_stream(handle, per_thread, &stream);
    if (result != CU_OK)
        return result;
    INJECT(DBL_FAIL_GRAPH);
    if (drv_capturing(stream))
        return drv_capture_spoil(stream);
    if (exec->memory)
        result = begin_memory(exec);
    return result == CU_OK ? play(exec, stream) : result;
}

cu_result cuGraphLaunch(struct cu_graph_exec *exec, struct cu_stream *stream)
{
    ENTER();
    return launch(exec, stream, false);
}

cu_result cuGraphLaunch_ptsz(struct cu_graph_exec *exec, struct cu_stream *stream)
{
    ENTER();
    return launch(exec, stream, true);
}

/* Makes the memory of a launch ready, without one. */
static cu_result upload(struct cu_graph_exec *exec, struct cu_stream *handle, bool per_thread)
{
    struct cu_stream *stream;
    uint64_t peak, kept;
    cu_result result;

    if (!valid(exec))
        return CU_INVALID_VALUE;
    result = drv_stream(handle, per_thread, &stream);
    if (result != CU_OK || !exec->memory)
        return result;
    memory_need(exec, &peak, &kept);
    return drv_graph_use(exec->ctx, peak, 0);
}

cu_result cuGraphUpload(struct cu_graph_exec *exec, struct cu_stream *stream)
{
    ENTER();
    return upload(exec, stream, false);
}

cu_result cuGraphUpload_ptsz(struct cu_graph_exec *exec, struct cu_stream *stream)
{
    ENTER();
    return upload(exec, stream, true);
}

cu_result cuGraphInstantiateWithFlags(struct cu_graph_exec **ret_exec, struct cu_graph *graph,
                                      uint64_t flags)
{
    ENTER();
    return flags & CU_INSTANTIATE_UPLOAD ? CU_INVALID_VALUE : instantiate(ret_exec, graph, flags);
}

static cu_result with_params(struct cu_graph_exec **ret_exec, struct cu_graph *graph,
                             struct cu_instantiate_params *params, bool per_thread)
{
    cu_result result;

    if (params == NULL)
        return CU_INVALID_VALUE;
    params->ret_error_node = NULL;
    params->ret_result = 0;
    result = instantiate(ret_exec, graph, params->flags);
    if (result == CU_OK && (params->flags & CU_INSTANTIATE_UPLOAD))
        result = upload(*ret_exec, params->upload_stream, per_thread);
    return result;
}

cu_result cuGraphInstantiateWithParams(struct cu_graph_exec **ret_exec, struct cu_graph *graph,
                                       struct cu_instantiate_params *params)
{
    ENTER();
    return with_params(ret_exec, graph, params, false);
}

cu_result cuGraphInstantiateWithParams_ptsz(struct cu_graph_exec **ret_exec, struct cu_graph *graph,
                                            struct cu_instantiate_params *params)
{
    ENTER();
    return with_params(ret_exec, graph, params, true);
}

/* What it left allocated stays so until its graph goes too, or it is freed. */
cu_result cuGraphExecDestroy(struct cu_graph_exec *exec)
{
    ENTER();
    if (!valid(exec))
        return CU_INVALID_VALUE;
    for (size_t i = 0; i < exec->count; i++)
        if (exec->steps[i].alloc != NULL)
            drv_graph_address_free(exec->steps[i].alloc);
    exec->magic = 0;
    drv_object_free(exec);
    return CU_OK;
}

cu_result cuGraphExecGetFlags(struct cu_graph_exec *exec, uint64_t *ret_flags)
{
    ENTER();
    if (!valid(exec) || ret_flags == NULL)
        return CU_INVALID_VALUE;
    *ret_flags = exec->flags;
    return CU_OK;
}
