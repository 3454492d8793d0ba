/* SPDX-License-Identifier: Apache-2.0 */
/* Capture and graphs: what is captured, what spoils a capture, what a launch costs and holds. */
#include <string.h>

#include "harness.h"

static struct dbl_config machine(void)
{
    struct dbl_config config = dbl_config_default;

    config.clock = DBL_CLOCK_VIRTUAL;
    config.copy_bytes_per_s = GIB;
    return config;
}

#define CASE(name)                            \
    static void test_##name(void **state)     \
    {                                         \
        struct dbl_config config = machine(); \
                                              \
        on_machine(name, &config);            \
    }

static struct cu_stream *stream_new(void)
{
    struct cu_stream *stream;

    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
}

static void count_up(void *data)
{
    ++*(int *)data;
}

static void captured_and_launched(struct dbl_shared *sh)
{
    struct cu_node *const *deps, *nodes[8];
    struct cu_function *kernel;
    struct cu_stream *stream;
    struct cu_graph_exec *exec;
    struct cu_graph *graph, *same;
    uint64_t start, id;
    size_t count = 8, dep_count;
    int status, calls = 0, type;

    begin_on(0);
    dbl_actors(sh, 1);
    stream = stream_new();
    kernel = kernel_of(MS_NS, "10");
    OK(cuStreamIsCapturing(stream, &status));
    SAME(status, CU_CAPTURE_NONE);
    OK(cuStreamBeginCapture_v2(stream, CU_CAPTURE_RELAXED));
    SAME(cuStreamBeginCapture_v2(stream, CU_CAPTURE_RELAXED), CU_ILLEGAL_STATE);
    for (int i = 0; i < 3; i++)
        OK(launch_in(kernel, stream));
    OK(cuLaunchHostFunc(stream, count_up, &calls));
    OK(cuMemsetD8Async(4096, 0, MIB, stream));
    OK(cuStreamIsCapturing(stream, &status));
    SAME(status, CU_CAPTURE_ACTIVE);
    OK(cuStreamGetCaptureInfo_v2(stream, &status, &id, &same, &deps, &dep_count));
    SAME(dep_count, 1);
    OK(cuGraphNodeGetType(deps[0], &type));
    SAME(type, CU_NODE_MEMSET);
    OK(cuStreamEndCapture(stream, &graph));
    CHECK(graph == same);
    SAME(cuStreamEndCapture(stream, &graph), CU_ILLEGAL_STATE);
    graph = same;
    OK(cuGraphGetNodes(graph, nodes, &count));
    SAME(count, 5);
    /* Nothing has run yet. */
    SAME(dbl_busy_ns(sh, 0, 0), 0);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphDestroy(graph));
    start = dbl_now(sh);
    OK(cuGraphLaunch(exec, stream));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    SAME(calls, 2);
    SAME(dbl_busy_ns(sh, 0, 0), 6 * MS_NS);
    SAME((dbl_now(sh) - start) / 1000, (6 * MS_NS + 2 * 976562) / 1000);
    OK(cuGraphExecDestroy(exec));
}

static void streams_join_by_events(struct dbl_shared *sh)
{
    struct cu_function *kernel;
    struct cu_stream *a, *b;
    struct cu_event *fork, *join;
    struct cu_graph *graph;
    int status;

    begin_on(0);
    a = stream_new();
    b = stream_new();
    kernel = kernel_of(MS_NS, "10");
    OK(cuEventCreate(&fork, CU_EVENT_NO_TIMING));
    OK(cuEventCreate(&join, CU_EVENT_NO_TIMING));
    OK(cuStreamBeginCapture_v2(a, CU_CAPTURE_GLOBAL));
    OK(launch_in(kernel, a));
    OK(cuEventRecord(fork, a));
    SAME(cuEventQuery(fork), CU_CAPTURED_EVENT);
    OK(cuStreamWaitEvent(b, fork, 0));
    OK(cuStreamIsCapturing(b, &status));
    SAME(status, CU_CAPTURE_ACTIVE);
    OK(launch_in(kernel, b));
    SAME(cuStreamEndCapture(b, &graph), CU_CAPTURE_UNMATCHED);
    SAME(cuStreamEndCapture(a, &graph), CU_CAPTURE_UNJOINED);
    CHECK(graph == NULL);
    OK(cuStreamIsCapturing(b, &status));
    SAME(status, CU_CAPTURE_NONE);
    OK(cuStreamBeginCapture_v2(a, CU_CAPTURE_GLOBAL));
    OK(launch_in(kernel, a));
    OK(cuEventRecord(fork, a));
    OK(cuStreamWaitEvent(b, fork, 0));
    OK(launch_in(kernel, b));
    OK(cuEventRecord(join, b));
    OK(cuStreamWaitEvent(a, join, 0));
    OK(cuStreamEndCapture(a, &graph));
    OK(cuGraphDestroy(graph));
    OK(cuEventRecord(join, b));
    OK(cuStreamBeginCapture_v2(a, CU_CAPTURE_GLOBAL));
    SAME(cuStreamWaitEvent(a, join, 0), CU_CAPTURE_ISOLATION);
    SAME(cuStreamEndCapture(a, &graph), CU_CAPTURE_INVALIDATED);
}

static void *allocate(void *ctx)
{
    static cu_result result;
    cu_devptr ptr;

    OK(cuCtxSetCurrent(ctx));
    result = cuMemAlloc_v2(&ptr, MIB);
    return &result;
}

static cu_result allocate_elsewhere(struct cu_ctx *ctx)
{
    pthread_t thread;
    void *result;

    CHECK(pthread_create(&thread, NULL, allocate, ctx) == 0);
    CHECK(pthread_join(thread, &result) == 0);
    return *(cu_result *)result;
}

static void what_spoils_a_capture(struct dbl_shared *sh)
{
    struct cu_ctx *ctx = begin_on(0);
    struct cu_stream *stream = stream_new(), *blocking;
    struct cu_graph *graph;
    cu_devptr ptr;
    int status, mode = CU_CAPTURE_RELAXED;

    SAME(cuStreamBeginCapture_v2(NULL, CU_CAPTURE_GLOBAL), CU_CAPTURE_UNSUPPORTED);
    OK(cuStreamBeginCapture_v2(stream, CU_CAPTURE_GLOBAL));
    SAME(cuStreamSynchronize(stream), CU_CAPTURE_UNSUPPORTED);
    OK(cuStreamIsCapturing(stream, &status));
    SAME(status, CU_CAPTURE_INVALID);
    SAME(cuStreamEndCapture(stream, &graph), CU_CAPTURE_INVALIDATED);
    OK(cuStreamBeginCapture_v2(stream, CU_CAPTURE_GLOBAL));
    SAME(allocate_elsewhere(ctx), CU_CAPTURE_UNSUPPORTED);
    SAME(cuStreamEndCapture(stream, &graph), CU_CAPTURE_INVALIDATED);
    OK(cuStreamBeginCapture_v2(stream, CU_CAPTURE_THREAD_LOCAL));
    OK(allocate_elsewhere(ctx));
    SAME(cuMemAlloc_v2(&ptr, MIB), CU_CAPTURE_UNSUPPORTED);
    SAME(cuStreamEndCapture(stream, &graph), CU_CAPTURE_INVALIDATED);
    OK(cuStreamBeginCapture_v2(stream, CU_CAPTURE_GLOBAL));
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    SAME(mode, CU_CAPTURE_GLOBAL);
    OK(cuMemAlloc_v2(&ptr, MIB));
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphDestroy(graph));
    OK(cuStreamCreate(&blocking, 0));
    OK(cuStreamBeginCapture_v2(blocking, CU_CAPTURE_RELAXED));
    SAME(cuStreamQuery(NULL), CU_CAPTURE_IMPLICIT);
    SAME(cuStreamEndCapture(blocking, &graph), CU_CAPTURE_INVALIDATED);
    OK(cuStreamQuery(NULL));
}

static uint64_t graph_number(int attribute)
{
    uint64_t value;

    OK(cuDeviceGetGraphMemAttribute(0, attribute, &value));
    return value;
}

static void memory_of_graphs(struct dbl_shared *sh)
{
    struct cu_stream *stream;
    struct cu_graph_exec *exec;
    struct cu_graph *graph;
    cu_devptr inside, kept;
    uint64_t zero = 0;

    begin_on(0);
    stream = stream_new();
    OK(cuStreamBeginCapture_v2(stream, CU_CAPTURE_GLOBAL));
    OK(cuMemAllocAsync(&inside, 10 * MIB, stream));
    OK(cuMemFreeAsync(inside, stream));
    OK(cuMemAllocAsync(&kept, 4 * MIB, stream));
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    SAME(dbl_bytes(sh, 0, DBL_GRAPH), 0);
    SAME(cuMemFreeAsync(kept, stream), CU_INVALID_VALUE);
    OK(cuGraphUpload(exec, stream));
    SAME(dbl_bytes(sh, 0, DBL_GRAPH), 10 * MIB);
    OK(cuGraphLaunch(exec, stream));
    SAME(graph_number(CU_GRAPH_MEM_USED_CURRENT), 4 * MIB);
    SAME(graph_number(CU_GRAPH_MEM_USED_HIGH), 10 * MIB);
    SAME(graph_number(CU_GRAPH_MEM_RESERVED_CURRENT), 10 * MIB);
    /* What it left allocated must be freed before it runs again. */
    SAME(cuGraphLaunch(exec, stream), CU_INVALID_VALUE);
    OK(cuMemFreeAsync(kept, stream));
    OK(cuGraphLaunch(exec, stream));
    OK(cuDeviceGraphMemTrim(0));
    SAME(dbl_bytes(sh, 0, DBL_GRAPH), 4 * MIB);
    OK(cuMemFree_v2(kept));
    OK(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_USED_HIGH, &zero));
    SAME(graph_number(CU_GRAPH_MEM_USED_HIGH), 0);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphInstantiateWithFlags(&exec, graph, CU_INSTANTIATE_AUTO_FREE));
    for (int i = 0; i < 3; i++)
        OK(cuGraphLaunch(exec, stream));
    SAME(graph_number(CU_GRAPH_MEM_USED_CURRENT), 4 * MIB);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuDeviceGraphMemTrim(0));
    SAME(dbl_bytes(sh, 0, DBL_GRAPH), 0);
}

static void graphs_by_hand(struct dbl_shared *sh)
{
    struct cu_node *first, *second, *alloc, *host, *last;
    struct cu_kernel_node kernel = {NULL, 4, 1, 1, 128, 1, 1};
    struct cu_alloc_node memory = {
        .props = {.type = CU_ALLOCATION_PINNED, .location = {CU_LOCATION_DEVICE, 0}},
        .bytes = 3 * MIB};
    struct cu_node_params params = {.type = CU_NODE_HOST};
    struct cu_instantiate_params instantiate = {.flags = CU_INSTANTIATE_UPLOAD};
    struct cu_graph_exec *exec;
    struct cu_graph *graph;
    int calls = 0;

    begin_on(0);
    dbl_actors(sh, 1);
    kernel.function = kernel_of(2 * MS_NS, "grid");
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddKernelNode_v2(&first, graph, NULL, 0, &kernel));
    OK(cuGraphAddKernelNode(&second, graph, &first, 1, &kernel));
    OK(cuGraphAddMemAllocNode(&alloc, graph, &second, 1, &memory));
    CHECK(memory.ret_ptr != 0);
    params.host.fn = count_up;
    params.host.data = &calls;
    OK(cuGraphAddNode_v2(&host, graph, &alloc, NULL, 1, &params));
    OK(cuGraphAddMemFreeNode(&last, graph, &host, 1, memory.ret_ptr));
    memory.props.type = 7;
    SAME(cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &memory), CU_INVALID_VALUE);
    OK(cuGraphInstantiateWithParams(&exec, graph, &instantiate));
    SAME(dbl_bytes(sh, 0, DBL_GRAPH), 4 * MIB);
    dbl_fail_nth(sh, DBL_FAIL_GRAPH, 1, CU_LAUNCH_FAILED);
    SAME(cuGraphLaunch(exec, NULL), CU_LAUNCH_FAILED);
    OK(cuGraphLaunch_ptsz(exec, NULL));
    OK(cuStreamSynchronize_ptsz(NULL));
    SAME(calls, 1);
    SAME(dbl_busy_ns(sh, 0, 0), 4 * MS_NS);
    SAME(graph_number(CU_GRAPH_MEM_USED_CURRENT), 0);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
}

static void child_graphs(struct dbl_shared *sh)
{
    struct cu_kernel_node kernel = {NULL, 1, 1, 1, 128, 1, 1};
    struct cu_node *node, *after;
    struct cu_graph *child, *graph;
    struct cu_graph_exec *exec;

    begin_on(0);
    dbl_actors(sh, 1);
    kernel.function = kernel_of(MS_NS, "1");
    OK(cuGraphCreate(&child, 0));
    OK(cuGraphAddKernelNode_v2(&node, child, NULL, 0, &kernel));
    OK(cuGraphAddKernelNode_v2(&after, child, &node, 1, &kernel));
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddChildGraphNode(&node, graph, NULL, 0, child));
    OK(cuGraphAddChildGraphNode(&after, graph, &node, 1, child));
    OK(cuGraphAddKernelNode_v2(&node, graph, &after, 1, &kernel));
    OK(cuGraphDestroy(child));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, NULL));
    OK(cuCtxSynchronize());
    SAME(dbl_busy_ns(sh, 0, 0), 5 * MS_NS);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
}

CASE(child_graphs)
CASE(captured_and_launched)
CASE(streams_join_by_events)
CASE(what_spoils_a_capture)
CASE(memory_of_graphs)
CASE(graphs_by_hand)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_captured_and_launched), cmocka_unit_test(test_streams_join_by_events),
        cmocka_unit_test(test_what_spoils_a_capture), cmocka_unit_test(test_memory_of_graphs),
        cmocka_unit_test(test_graphs_by_hand),        cmocka_unit_test(test_child_graphs),
    };

    return cmocka_run_group_tests_name("cuda capture", tests, NULL, NULL);
}
